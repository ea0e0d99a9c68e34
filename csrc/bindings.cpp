// The extension module magmadnn_py._core.
#include <pybind11/pybind11.h>

namespace magmadnn {
void bind_tensor(pybind11::module_& m);
void bind_program(pybind11::module_& m);
}  // namespace magmadnn

PYBIND11_MODULE(_core, m) {
    m.doc() = "Tensors, kernels and programs: the native core of magmadnn_py.";
    magmadnn::bind_tensor(m);
    magmadnn::bind_program(m);
}
