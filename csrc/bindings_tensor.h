// What the binding files of tensors share.
#pragma once
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>

#include "tensor.h"

namespace magmadnn {

/// Tensor, WorkerPool and the functions of threads and memory: bindings_tensor.cpp calls the other two.
void bind_tensor(pybind11::module_& module);
void bind_dlpack(pybind11::class_<Tensor>& tensor);
void bind_threads(pybind11::module_& module);

/// Keeps a Python object alive from C++; may be dropped by any thread, with or without the GIL.
std::shared_ptr<void> keep_alive(pybind11::object object);

/// "float32" and so on, or anything numpy.dtype() takes.
DType dtype_from_python(pybind11::handle dtype);

/// The tensor's memory as a NumPy array that keeps `tensor` (a Tensor object) alive.
pybind11::array numpy_view(pybind11::handle tensor);

/// The name of an object's type, for messages.
std::string type_name(pybind11::handle object);

}  // namespace magmadnn
