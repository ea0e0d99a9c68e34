// Python's view of the kernel registry and of programs.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "program.h"
#include "registry.h"

namespace py = pybind11;

namespace magmadnn {

namespace {

void flatten(const py::handle& item, std::vector<py::handle>& leaves) {
    if (py::isinstance<py::tuple>(item) || py::isinstance<py::list>(item))
        for (const py::handle& child : item) flatten(child, leaves);
    else
        leaves.push_back(item);
}

template <class T>
std::vector<T> cast_all(const std::vector<py::handle>& leaves) {
    std::vector<T> values;
    for (const py::handle& leaf : leaves) values.push_back(leaf.cast<T>());
    return values;
}

Attributes::Value attribute(const std::string& name, const py::handle& value) {
    if (py::isinstance<py::str>(value)) return value.cast<std::string>();
    if (py::isinstance<py::float_>(value)) return value.cast<double>();
    if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
    if (py::isinstance<py::tuple>(value) || py::isinstance<py::list>(value)) {
        std::vector<py::handle> leaves;
        flatten(value, leaves);
        if (!leaves.empty() && py::isinstance<py::str>(leaves[0])) return cast_all<std::string>(leaves);
        for (const py::handle& leaf : leaves)
            if (py::isinstance<py::float_>(leaf)) return cast_all<double>(leaves);
        return cast_all<int64_t>(leaves);
    }
    throw py::type_error("attribute '" + name + "': got " + py::repr(value).cast<std::string>() +
                         ", wanted numbers, text or tuples of them");
}

using Types = std::vector<std::pair<std::string, Shape>>;

std::vector<TensorType> tensor_types(const Types& types) {
    std::vector<TensorType> result;
    for (const auto& [dtype, shape] : types) result.push_back({dtype_from_name(dtype), shape});
    return result;
}

Signature make_signature(const std::string& op, const py::dict& attributes, const Types& inputs,
                         const Types& outputs, int threads) {
    Signature signature{op, {}, tensor_types(inputs), tensor_types(outputs), threads};
    for (const auto& [name, value] : attributes)
        signature.attributes.set(name.cast<std::string>(), attribute(name.cast<std::string>(), value));
    return signature;
}

std::vector<Location> locations(const std::vector<std::pair<int, int64_t>>& pairs) {
    std::vector<Location> result;
    for (const auto& [slot, offset] : pairs) result.push_back({slot, offset});
    return result;
}

using Places = std::vector<std::pair<int, int64_t>>;

/// A Python function as a step: it is given the addresses of its inputs and outputs.
Program::Callback python_callback(py::function function, size_t inputs, size_t outputs) {
    // The last reference may be dropped by a thread that does not hold the GIL.
    std::shared_ptr<py::function> held(new py::function(std::move(function)), [](py::function* f) {
        py::gil_scoped_acquire gil;
        delete f;
    });
    return [held, inputs, outputs](void* const* in, void* const* out) {
        py::gil_scoped_acquire gil;
        std::vector<uintptr_t> from, to;
        for (size_t i = 0; i < inputs; i++) from.push_back(reinterpret_cast<uintptr_t>(in[i]));
        for (size_t i = 0; i < outputs; i++) to.push_back(reinterpret_cast<uintptr_t>(out[i]));
        (*held)(from, to);
    };
}

void bind_registry(py::module_& m) {
    m.def("load_kernels", [](const std::string& path) { Registry::instance().load(path); }, py::arg("path"));
    m.def("kernels", [] {
        std::vector<std::pair<std::string, std::string>> names;
        for (const KernelEntry& entry : Registry::instance().entries())
            names.emplace_back(entry.op, entry.algorithm);
        return names;
    });
    m.def("instruction_sets", [] {
        std::vector<std::string> sets;  // the best one first
#if defined(__x86_64__)
        __builtin_cpu_init();
        if (__builtin_cpu_supports("x86-64-v4")) sets.push_back("avx512");
        if (__builtin_cpu_supports("x86-64-v3")) sets.push_back("avx2");
#endif
        sets.push_back("generic");
        return sets;
    });
    m.def(
        "algorithms",
        [](const std::string& op, const py::dict& attributes, const Types& inputs, const Types& outputs,
           int threads) {
            std::vector<std::string> names;
            const Signature signature = make_signature(op, attributes, inputs, outputs, threads);
            for (const KernelEntry* entry : Registry::instance().candidates(signature))
                names.push_back(entry->algorithm);
            return names;
        },
        py::arg("op"), py::arg("attributes"), py::arg("inputs"), py::arg("outputs"), py::arg("threads"));
}

}  // namespace

void bind_program(py::module_& m) {
    bind_registry(m);
    py::class_<Feed>(m, "Feed").def(
        py::init([](std::pair<int, int64_t> place, const std::string& dtype, const Tensor& source) {
            return Feed{{place.first, place.second}, dtype_from_name(dtype), source.contiguous()};
        }),
        py::arg("destination"), py::arg("dtype"), py::arg("source"));
    py::class_<Drain>(m, "Drain")
        .def(py::init([](std::pair<int, int64_t> place, const Tensor& destination) {
                 if (!destination.is_contiguous())
                     throw py::value_error("Drain: destination is not contiguous");
                 return Drain{{place.first, place.second}, destination};
             }),
             py::arg("source"), py::arg("destination"));
    py::class_<Program>(m, "Program")
        .def(py::init<int, int>(), py::arg("slots"), py::arg("threads"))
        .def(
            "add_kernel",
            [](Program& self, const std::string& label, const std::string& op, const py::dict& attributes,
               const Types& input_types, const Types& output_types, const std::string& algorithm,
               const Places& inputs, const Places& outputs) {
                const Signature signature =
                    make_signature(op, attributes, input_types, output_types, self.threads());
                self.add_kernel(label, signature, algorithm, locations(inputs), locations(outputs));
            },
            py::arg("label"), py::arg("op"), py::arg("attributes"), py::arg("input_types"),
            py::arg("output_types"), py::arg("algorithm"), py::arg("inputs"), py::arg("outputs"))
        .def(
            "add_callback",
            [](Program& self, const std::string& label, py::function function, const Places& inputs,
               const Places& outputs) {
                self.add_callback(label, python_callback(std::move(function), inputs.size(), outputs.size()),
                                  locations(inputs), locations(outputs));
            },
            py::arg("label"), py::arg("function"), py::arg("inputs"), py::arg("outputs"))
        .def("bind", &Program::bind, py::arg("slot"), py::arg("tensor"))
        .def("run", &Program::run, py::call_guard<py::gil_scoped_release>())
        .def(
            "run_batches",
            [](Program& self, const std::vector<Feed>& feeds, const std::vector<Drain>& drains, int64_t first,
               int64_t batch, int64_t steps, const std::optional<Tensor>& order, bool timed) {
                std::vector<double> seconds;
                Batches batches{first, batch, steps};
                if (order) {
                    if (order->dtype() != DType::int64 || !order->is_contiguous() || order->rank() != 1)
                        throw py::value_error("run_batches: order: wanted contiguous int64 of rank 1");
                    batches.order = static_cast<const int64_t*>(order->data());
                    batches.order_length = order->size();
                }
                {
                    py::gil_scoped_release release;
                    self.run_batches(feeds, drains, batches, timed ? &seconds : nullptr);
                }
                return seconds;
            },
            py::arg("feeds"), py::arg("drains"), py::arg("first"), py::arg("batch"), py::arg("steps"),
            py::arg("order") = py::none(), py::arg("timed") = false)
        .def_property_readonly("threads", &Program::threads)
        .def_property_readonly("workspace_bytes", &Program::workspace_bytes)
        .def_property_readonly("labels", &Program::labels);
}

}  // namespace magmadnn
