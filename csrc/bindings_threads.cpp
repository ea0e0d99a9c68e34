// Python's view of the thread pools.
#include <pybind11/pybind11.h>

#include "bindings_tensor.h"
#include "worker_pool.h"

namespace py = pybind11;

namespace magmadnn {

namespace {

void run_from_python(WorkerPool& pool, int64_t count, const py::function& function) {
    if (count < 0)
        throw std::invalid_argument("run: count is " + std::to_string(count) + ", wanted 0 or more");
    const auto task = [](void* context, int64_t index, int worker) {
        const py::gil_scoped_acquire locked;
        (*static_cast<const py::function*>(context))(index, worker);
    };
    const py::gil_scoped_release unlocked;
    pool.run(count, task, const_cast<py::function*>(&function));
}

}  // namespace

void bind_threads(py::module_& module) {
    py::class_<WorkerPool>(module, "WorkerPool", "A pool of `threads` threads, the calling one included.")
        .def(py::init<int>(), py::arg("threads"))
        .def_property_readonly("size", &WorkerPool::size)
        .def(
            "run", &run_from_python, py::arg("count"), py::arg("function"),
            "Call function(index, worker) for every index in [0, count), on all threads; return when all are "
            "done. Raise the exception of the lowest index that failed, if any.")
        .def("resize", &WorkerPool::resize, py::arg("threads"), py::call_guard<py::gil_scoped_release>());

    module.def(
        "get_threads", [] { return default_pool().size(); },
        "Number of threads that kernels use. At first MAGMADNN_THREADS, else the cores this process may "
        "use.");
    module.def(
        "set_threads", [](int count) { default_pool().resize(count); }, py::arg("count"),
        py::call_guard<py::gil_scoped_release>(),
        "Set the number of threads that kernels use (1 to 1024, else ValueError).");
}

}  // namespace magmadnn
