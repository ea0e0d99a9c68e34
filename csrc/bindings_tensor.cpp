// Python's view of Tensor: construction, indexing, and exchange with NumPy. DLPack has a file of its own.
#include "bindings_tensor.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace py = pybind11;

namespace magmadnn {

std::shared_ptr<void> keep_alive(py::object object) {
    return {object.release().ptr(), [](void* pointer) {
                if (!Py_IsInitialized()) return;
                const py::gil_scoped_acquire locked;
                Py_DECREF(static_cast<PyObject*>(pointer));
            }};
}

std::string type_name(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

DType dtype_from_python(py::handle dtype) {
    if (py::isinstance<py::str>(dtype)) return dtype_from_name(dtype.cast<std::string>());
    const py::dtype numpy_type = py::dtype::from_args(py::reinterpret_borrow<py::object>(dtype));
    return dtype_from_name(py::str(numpy_type.attr("name")).cast<std::string>());
}

py::array numpy_view(py::handle object) {
    const auto& tensor = object.cast<const Tensor&>();
    return dispatch(tensor.dtype(), [&](auto value) {
        Shape byte_strides = tensor.strides();
        for (int64_t& stride : byte_strides) stride *= sizeof(value);
        return py::array(py::dtype::of<decltype(value)>(), tensor.shape(), std::move(byte_strides),
                         tensor.data(), object);
    });
}

namespace {

std::string text_of(py::handle object) { return py::str(object).cast<std::string>(); }

Shape shape_from_python(const py::object& shape) {
    if (PyIndex_Check(shape.ptr())) return {shape.cast<int64_t>()};
    Shape extents;
    try {
        for (const py::handle extent : shape) extents.push_back(extent.cast<int64_t>());
    } catch (const py::cast_error&) {
        throw py::type_error("shape: got " + py::repr(shape).cast<std::string>() +
                             ", wanted 64-bit integers");
    } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_TypeError)) throw;
        throw py::type_error("shape: got " + type_name(shape) + ", wanted an integer or a tuple of integers");
    }
    return extents;
}

/// reshape(2, 3) and reshape((2, 3)) mean the same.
py::object unpacked(const py::args& arguments) {
    if (arguments.size() == 1) return arguments[0];
    return arguments;
}

/// Runs without the GIL what may move a lot of memory.
template <class Body>
auto without_gil(Body&& body) {
    const py::gil_scoped_release unlocked;
    return body();
}

// ---- from NumPy

/// The dtype a tensor gets for an array, where none is asked for. Throws TypeError for what is no number.
DType natural_dtype(const py::dtype& type, const char* method) {
    const auto bytes = type.itemsize();
    switch (type.kind()) {
        case 'b':
            return DType::boolean;
        case 'f':
            return bytes <= 4 ? DType::float32 : DType::float64;
        case 'i':
            return bytes <= 4 ? DType::int32 : DType::int64;
        case 'u':
            return bytes == 1 ? DType::uint8 : bytes == 2 ? DType::int32 : DType::int64;
        default:
            throw py::type_error(std::string(method) + ": got an array of dtype " + text_of(type) +
                                 ", wanted bool, integers or real floats");
    }
}

py::array as_array(const py::object& object) {
    return py::module_::import("numpy").attr("asarray")(object).cast<py::array>();
}

bool can_share(const py::array& array, DType dtype) {
    const bool same = dispatch(dtype, [&](auto value) {
        return array.dtype().equal(py::dtype::of<decltype(value)>());  // false for the other byte order
    });
    return same && array.writeable() && (array.flags() & py::array::c_style) &&
           (array.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_);
}

void check_range_of_uint64(const py::array& array) {
    if (array.dtype().kind() != 'u' || array.dtype().itemsize() != 8 || array.size() == 0) return;
    const py::int_ highest(array.attr("max")());  // NumPy 1 would compare its own scalar as a float
    if (highest > py::int_(std::numeric_limits<int64_t>::max()))
        throw std::overflow_error("from_array: got the uint64 value " + text_of(highest) +
                                  ", which int64 does not hold");
}

Tensor from_array(const py::object& object, const py::object& dtype, bool copy) {
    if (py::isinstance<Tensor>(object)) {
        const Tensor tensor = object.cast<Tensor>();
        const DType wanted = dtype.is_none() ? tensor.dtype() : dtype_from_python(dtype);
        return without_gil(
            [&] { return copy || wanted != tensor.dtype() ? tensor.astype(wanted) : tensor.contiguous(); });
    }
    const py::array array = as_array(object);
    const DType natural = natural_dtype(array.dtype(), "from_array");
    const DType wanted = dtype.is_none() ? natural : dtype_from_python(dtype);
    const Shape shape(array.shape(), array.shape() + array.ndim());
    if (!copy && can_share(array, wanted))
        return Tensor::wrap(const_cast<void*>(array.data()), wanted, shape, row_major_strides(shape),
                            keep_alive(array));
    if (wanted == DType::int64) check_range_of_uint64(array);
    // NumPy knows every layout and byte order, and works without the GIL.
    const py::object tensor = py::cast(Tensor({wanted, shape}));
    py::module_::import("numpy").attr("copyto")(numpy_view(tensor), array, py::arg("casting") = "unsafe");
    return tensor.cast<Tensor>();
}

// ---- to NumPy

py::object to_array(const py::object& self, const py::object& dtype, const py::object& copy) {
    const py::array view = numpy_view(self);
    const bool must_copy = !copy.is_none() && copy.cast<bool>();
    if (dtype.is_none() || view.dtype().equal(dtype))
        return must_copy ? view.attr("copy")() : py::object(view);
    if (!copy.is_none() && !must_copy)
        throw py::value_error("__array__: the tensor is of dtype " + text_of(view.dtype()) + ", and " +
                              text_of(dtype) + " needs a copy, which copy=False forbids");
    return view.attr("astype")(dtype);
}

py::buffer_info to_buffer(Tensor& tensor) {
    return dispatch(tensor.dtype(), [&](auto value) {
        using T = decltype(value);
        // NumPy's own letter for int64 is that of long where it has 64 bits.
        const bool is_long = std::is_same_v<T, int64_t> && sizeof(long) == sizeof(int64_t);
        Shape byte_strides = tensor.strides();
        for (int64_t& stride : byte_strides) stride *= sizeof(T);
        return py::buffer_info(tensor.data(), sizeof(T), is_long ? "l" : py::format_descriptor<T>::format(),
                               tensor.rank(), tensor.shape(), std::move(byte_strides));
    });
}

py::object item(const Tensor& tensor) {
    if (tensor.size() != 1)
        throw py::value_error("item: the tensor has shape " + to_string(tensor.shape()) +
                              ", wanted one element");
    return dispatch(tensor.dtype(), [&](auto value) -> py::object {
        using T = decltype(value);
        if constexpr (std::is_same_v<T, bool>)
            return py::bool_(*static_cast<const uint8_t*>(tensor.data()) != 0);
        else
            return py::cast(*static_cast<const T*>(tensor.data()));
    });
}

std::string representation(const py::object& self) {
    const auto& tensor = self.cast<const Tensor&>();
    const std::string tail = std::string("dtype=") + name_of(tensor.dtype()) + ")";
    if (tensor.size() == 0) return "Tensor([], shape=" + to_string(tensor.shape()) + ", " + tail;
    const py::object text = py::module_::import("numpy").attr("array2string")(
        numpy_view(self), py::arg("separator") = ", ", py::arg("prefix") = "Tensor(");
    return "Tensor(" + text_of(text) + ", " + tail;
}

// ---- indexing

bool is_plain_index(py::handle entry) {
    return PyIndex_Check(entry.ptr()) && !PyBool_Check(entry.ptr()) && !py::isinstance<py::array>(entry);
}

/// Takes one axis (or none, or for `...` all that the rest of the key leaves) and moves `axis` on.
void apply_entry(Tensor& view, int& axis, py::handle entry, int skipped) {
    if (entry.is_none()) {
        view = view.expand_dims(axis++);
    } else if (entry.ptr() == Py_Ellipsis) {
        axis += skipped;
    } else if (PySlice_Check(entry.ptr())) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(entry.ptr(), &start, &stop, &step) != 0) throw py::error_already_set();
        const Py_ssize_t count = PySlice_AdjustIndices(view.shape()[axis], &start, &stop, step);
        view = view.slice(axis++, start, step, count);
    } else if (is_plain_index(entry)) {
        const Py_ssize_t index = PyNumber_AsSsize_t(entry.ptr(), PyExc_IndexError);
        if (index == -1 && PyErr_Occurred()) throw py::error_already_set();
        view = view.select(axis, index);
    } else {
        throw py::type_error("index: got " + type_name(entry) +
                             ", wanted integers, slices, ... or None (use .numpy() for arrays of indices)");
    }
}

Tensor view_at(const Tensor& tensor, const py::object& key) {
    const py::tuple entries = py::isinstance<py::tuple>(key) ? py::tuple(key) : py::make_tuple(key);
    int taken = 0, ellipses = 0;
    for (const py::handle entry : entries) {
        if (entry.ptr() == Py_Ellipsis)
            ellipses++;
        else if (!entry.is_none())
            taken++;
    }
    if (ellipses > 1) throw py::index_error("index: got more than one ...");
    if (taken > tensor.rank())
        throw py::index_error("index: got " + std::to_string(taken) + " indices for a tensor of rank " +
                              std::to_string(tensor.rank()));
    Tensor view = tensor;
    int axis = 0;
    for (const py::handle entry : entries) apply_entry(view, axis, entry, tensor.rank() - taken);
    return view;
}

void set_at(const Tensor& tensor, const py::object& key, const py::object& value) {
    const py::object view = py::cast(view_at(tensor, key));
    const bool is_tensor = py::isinstance<Tensor>(value);
    const py::object source = is_tensor ? numpy_view(value) : value;
    natural_dtype(as_array(source).dtype(), "index");
    numpy_view(view)[py::ellipsis()] = source;  // broadcasts, converts, and minds overlaps
}

// ---- filling and copying

/// A number that an integer tensor takes: whole, and in the range of its dtype.
int64_t whole_number(const Tensor& tensor, const py::object& value) {
    const auto fail = [&](const char* wanted) {
        throw py::value_error("fill: got " + py::repr(value).cast<std::string>() + " for a tensor of dtype " +
                              name_of(tensor.dtype()) + ", wanted " + wanted);
    };
    py::object whole = value;
    if (!PyIndex_Check(value.ptr()) || py::isinstance<py::array>(value)) {
        const double number = py::float_(value);
        if (number != static_cast<double>(static_cast<int64_t>(std::clamp(number, -9e18, 9e18))))
            fail("a whole number");
        whole = py::int_(py::float_(number));
    }
    return dispatch(tensor.dtype(), [&](auto element) -> int64_t {
        using T = decltype(element);
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
            if (whole < py::int_(std::numeric_limits<T>::min()) ||
                whole > py::int_(std::numeric_limits<T>::max()))
                fail("a value in its range");
        return whole.cast<int64_t>();
    });
}

void fill(const py::object& self, const py::object& value) {
    if (PyCallable_Check(value.ptr())) {
        value(self);
        return;
    }
    auto& tensor = self.cast<Tensor&>();
    if (!PyNumber_Check(value.ptr()) || PyComplex_Check(value.ptr()))
        throw py::type_error("fill: got " + type_name(value) + ", wanted a real number or a filler");
    if (tensor.dtype() == DType::boolean) {
        const int64_t truth = py::bool_(value);
        without_gil([&] { tensor.fill(truth); });
    } else if (tensor.dtype() == DType::float32 || tensor.dtype() == DType::float64) {
        const double number = py::float_(value);
        without_gil([&] { tensor.fill(number); });
    } else {
        const int64_t number = whole_number(tensor, value);
        without_gil([&] { tensor.fill(number); });
    }
}

Tensor create(const py::object& shape, const py::object& dtype, const py::object& filler,
              const std::string& memory) {
    const TensorType type{dtype_from_python(dtype), shape_from_python(shape)};
    Tensor tensor(type, memory_from_name(memory));
    if (!filler.is_none()) fill(py::cast(tensor), filler);
    return tensor;
}

void copy_from(Tensor& tensor, const py::object& source) {
    if (py::isinstance<Tensor>(source)) {
        const auto& other = source.cast<const Tensor&>();
        without_gil([&] { tensor.copy_from(other); });
        return;
    }
    const py::array array = as_array(source);
    natural_dtype(array.dtype(), "copy_from");
    const Shape shape(array.shape(), array.shape() + array.ndim());
    if (shape != tensor.shape())
        throw std::invalid_argument("copy_from: got shape " + to_string(shape) + ", wanted " +
                                    to_string(tensor.shape()));
    py::module_::import("numpy").attr("copyto")(numpy_view(py::cast(tensor)), array,
                                                py::arg("casting") = "unsafe");
}

Tensor transpose(const Tensor& tensor, const py::args& arguments) {
    if (arguments.empty() || (arguments.size() == 1 && arguments[0].is_none())) {
        std::vector<int> reversed(tensor.rank());
        std::iota(reversed.rbegin(), reversed.rend(), 0);
        return tensor.transpose(reversed);
    }
    const Shape axes = shape_from_python(unpacked(arguments));
    return tensor.transpose({axes.begin(), axes.end()});
}

void bind_properties(py::class_<Tensor>& tensor) {
    tensor
        .def_property_readonly(
            "dtype", [](const Tensor& t) { return name_of(t.dtype()); }, "Its name, as text.")
        .def_property_readonly("shape", [](const Tensor& t) { return py::tuple(py::cast(t.shape())); })
        .def_property_readonly(
            "strides", [](const Tensor& t) { return py::tuple(py::cast(t.strides())); },
            "In elements, not bytes.")
        .def_property_readonly("ndim", &Tensor::rank)
        .def_property_readonly("size", &Tensor::size, "Number of elements.")
        .def_property_readonly("nbytes", &Tensor::bytes, "Bytes of the elements.")
        .def_property_readonly(
            "memory", [](const Tensor& t) { return name_of(t.memory()); }, "'host'.")
        .def_property_readonly(
            "data_pointer", [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); },
            "Address of element [0, ..., 0].")
        .def_property_readonly("is_contiguous", &Tensor::is_contiguous, "Whether row-major without gaps.");
}

void bind_views(py::class_<Tensor>& tensor) {
    tensor
        .def(
            "reshape",
            [](const Tensor& t, const py::args& shape) {
                Shape extents = shape_from_python(unpacked(shape));
                return without_gil([&] { return t.reshape(std::move(extents)); });
            },
            "reshape(2, 3) or reshape((2, 3)); one extent may be -1. A view if the strides allow one, else a "
            "copy.")
        .def("transpose", &transpose,
             "A view with the axes in the given order, or reversed if none is given.")
        .def("squeeze", &Tensor::squeeze, py::arg("axis") = py::none(),
             "A view without this axis of extent 1, or without all of them.")
        .def("expand_dims", &Tensor::expand_dims, py::arg("axis"), "A view with an axis of extent 1 more.")
        .def("__getitem__", &view_at, py::arg("key"),
             "A view: integers, slices (negative steps too), ... and None, as in NumPy.")
        .def("__setitem__", &set_at, py::arg("key"), py::arg("value"))
        .def("__len__",
             [](const Tensor& t) {
                 if (t.rank() == 0) throw py::type_error("len() of a tensor of rank 0");
                 return t.shape()[0];
             })
        .def("__iter__", [](const py::object& self) {
            if (self.cast<const Tensor&>().rank() == 0)
                throw py::type_error("iteration over a tensor of rank 0");
            return py::reinterpret_steal<py::object>(PySeqIter_New(self.ptr()));
        });
}

void bind_copies(py::class_<Tensor>& tensor) {
    const auto unlocked = py::call_guard<py::gil_scoped_release>();
    tensor.def("copy", &Tensor::copy, unlocked, "A contiguous tensor of its own memory.")
        .def("contiguous", &Tensor::contiguous, unlocked, "Itself if contiguous, else a copy.")
        .def(
            "astype",
            [](const Tensor& t, const py::object& dtype) {
                const DType wanted = dtype_from_python(dtype);
                return without_gil([&] { return t.astype(wanted); });
            },
            py::arg("dtype"),
            "A copy of another dtype; floats are cut toward zero, and what an integer type "
            "cannot hold becomes its lowest value.")
        .def("fill", &fill, py::arg("value"),
             "Set every element to a number, or call a filler on the tensor (magmadnn_py.runtime.tensor).")
        .def("copy_from", &copy_from, py::arg("source"),
             "Copy the values of a tensor or array of the same shape, converting the dtype.")
        .def("__copy__", [](const Tensor& t) { return t; })
        .def(
            "__deepcopy__", [](const Tensor& t, const py::dict&) { return t.copy(); }, py::arg("memo"))
        .def(py::pickle([](const py::object& self) { return py::make_tuple(numpy_view(self)); },
                        [](const py::tuple& state) { return from_array(state[0], py::none(), false); }));
}

void bind_exchange(py::class_<Tensor>& tensor) {
    tensor.def_buffer(&to_buffer)
        .def_static(
            "from_array", &from_array, py::arg("array"), py::arg("dtype") = py::none(),
            py::arg("copy") = false,
            "A tensor of anything NumPy takes for an array of bool, integers or real floats.\n\n"
            "The memory is shared if the array is C-contiguous, writable, aligned, native-endian and of "
            "the wanted dtype, and copied otherwise or with copy=True. Without a dtype, float16 becomes "
            "float32, int8, int16 and uint16 become int32, uint32 and uint64 become int64 (OverflowError "
            "out of its range). TypeError for objects, text, complex and dates.")
        .def(
            "numpy", [](const py::object& self) { return numpy_view(self); },
            "A writable array on this memory.")
        .def("__array__", &to_array, py::arg("dtype") = py::none(), py::arg("copy") = py::none())
        .def("tolist", [](const py::object& self) { return numpy_view(self).attr("tolist")(); })
        .def("item", &item, "The only element, as a Python number.")
        .def("__float__", [](const Tensor& t) { return py::float_(item(t)); })
        .def("__int__", [](const Tensor& t) { return py::int_(item(t)); })
        .def("__bool__", [](const Tensor& t) { return bool(py::bool_(item(t))); })
        .def("__repr__", &representation);
}

}  // namespace

void bind_tensor(py::module_& module) {
    py::class_<Tensor> tensor(
        module, "Tensor", py::buffer_protocol(),
        "A strided view of memory: dtype float32, float64, int32, int64, uint8 or bool. "
        "Indexing, reshape, transpose and squeeze share the memory; copy() does not.");
    tensor.def(py::init(&create), py::arg("shape"), py::arg("dtype") = "float32",
               py::arg("fill") = py::none(), py::arg("memory") = "host",
               "A new contiguous tensor; its elements are undefined unless fill is a number or a filler.");
    bind_properties(tensor);
    bind_views(tensor);
    bind_copies(tensor);
    bind_exchange(tensor);
    bind_dlpack(tensor);
    bind_threads(module);
    module.def("allocation_count", &Storage::allocation_count,
               "Blocks of memory this process allocated so far.");
}

}  // namespace magmadnn
