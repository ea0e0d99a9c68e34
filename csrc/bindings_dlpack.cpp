// Tensor <-> DLPack: exchange of memory with NumPy, torch, CuPy and others without copies.
#include "bindings_tensor.h"
#include "dlpack.h"

namespace py = pybind11;

namespace magmadnn {

namespace {

template <class Managed>
struct CapsuleNames;
template <>
struct CapsuleNames<dlpack::Managed> {
    static constexpr const char *fresh = "dltensor", *used = "used_dltensor";
};
template <>
struct CapsuleNames<dlpack::ManagedVersioned> {
    static constexpr const char *fresh = "dltensor_versioned", *used = "used_dltensor_versioned";
};

dlpack::DataType dlpack_type(DType dtype) {
    return dispatch(dtype, [](auto value) {
        using T = decltype(value);
        const uint8_t code = std::is_same_v<T, bool>       ? dlpack::code_bool
                             : std::is_floating_point_v<T> ? dlpack::code_float
                             : std::is_signed_v<T>         ? dlpack::code_int
                                                           : dlpack::code_uint;
        return dlpack::DataType{code, 8 * sizeof(T), 1};
    });
}

DType dtype_of(const dlpack::DataType& wanted) {
    for (DType dtype :
         {DType::float32, DType::float64, DType::int32, DType::int64, DType::uint8, DType::boolean}) {
        const dlpack::DataType type = dlpack_type(dtype);
        if (type.code == wanted.code && type.bits == wanted.bits && wanted.lanes == 1) return dtype;
    }
    throw py::type_error("from_dlpack: got DLPack type code " + std::to_string(wanted.code) + " of " +
                         std::to_string(wanted.bits) + " bits and " + std::to_string(wanted.lanes) +
                         " lanes, wanted float32, float64, int32, int64, uint8 or bool");
}

/// A tensor and the structure that describes it to others; freed by the structure's deleter.
template <class Managed>
struct Export {
    explicit Export(const Tensor& exported)
        : tensor(exported), shape(tensor.shape()), strides(tensor.strides()) {
        managed.array = {tensor.data(),
                         {dlpack::cpu, 0},
                         tensor.rank(),
                         dlpack_type(tensor.dtype()),
                         shape.data(),
                         strides.data(),
                         0};
        managed.context = this;
        managed.deleter = [](Managed* self) { delete static_cast<Export*>(self->context); };
    }

    Tensor tensor;
    Shape shape;
    Shape strides;
    Managed managed{};
};

// An unused capsule still owns the export; a consumer renames it when it takes over.
template <class Managed>
void destroy_capsule(PyObject* capsule) {
    constexpr const char* name = CapsuleNames<Managed>::fresh;
    if (!PyCapsule_IsValid(capsule, name)) return;
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    managed->deleter(managed);
}

template <class Managed>
py::object make_capsule(std::unique_ptr<Export<Managed>> exported) {
    PyObject* capsule =
        PyCapsule_New(&exported->managed, CapsuleNames<Managed>::fresh, &destroy_capsule<Managed>);
    if (!capsule) throw py::error_already_set();
    exported.release();
    return py::reinterpret_steal<py::object>(capsule);
}

py::object to_dlpack(const Tensor& tensor, const py::object& stream, const py::object& max_version,
                     const py::object& device, const py::object& copy) {
    if (!stream.is_none()) throw py::value_error("__dlpack__: stream must be None for host memory");
    if (!device.is_none() && device.cast<std::pair<int, int>>() != std::pair<int, int>(dlpack::cpu, 0))
        throw py::buffer_error("__dlpack__: got dl_device " + py::repr(device).cast<std::string>() +
                               ", wanted (1, 0): the tensor is in host memory");
    const bool copied = !copy.is_none() && copy.cast<bool>();
    const Tensor source = copied ? tensor.copy() : tensor;
    if (max_version.is_none() || max_version.cast<std::pair<int, int>>().first < 1)
        return make_capsule(std::make_unique<Export<dlpack::Managed>>(source));
    auto exported = std::make_unique<Export<dlpack::ManagedVersioned>>(source);
    exported->managed.version = dlpack::current_version;
    exported->managed.flags = copied ? dlpack::flag_copied : 0;
    return make_capsule(std::move(exported));
}

/// Takes the structure over from its capsule; its deleter runs when the last reference goes.
template <class Managed>
std::shared_ptr<Managed> take(const py::object& capsule) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), CapsuleNames<Managed>::fresh));
    if (!managed || PyCapsule_SetName(capsule.ptr(), CapsuleNames<Managed>::used) != 0)
        throw py::error_already_set();
    return {managed, [](Managed* taken) {
                if (!taken->deleter || !Py_IsInitialized()) return;
                const py::gil_scoped_acquire locked;  // some exporters free Python objects here
                taken->deleter(taken);
            }};
}

Tensor import_array(const dlpack::Array& array, bool read_only, std::shared_ptr<void> owner) {
    if (array.device.type != dlpack::cpu)
        throw py::buffer_error("from_dlpack: got memory of DLPack device type " +
                               std::to_string(array.device.type) +
                               ", wanted host memory (1): the CUDA backend is not part of this build");
    const DType dtype = dtype_of(array.dtype);
    if (array.rank < 0) throw py::buffer_error("from_dlpack: got a negative rank");
    Shape shape(array.shape, array.shape + array.rank);
    checked_bytes(shape, dtype);
    Shape strides =
        array.strides ? Shape(array.strides, array.strides + array.rank) : row_major_strides(shape);
    const Tensor tensor = Tensor::wrap(static_cast<char*>(array.data) + array.byte_offset, dtype,
                                       std::move(shape), std::move(strides), std::move(owner));
    return read_only ? tensor.copy() : tensor;
}

py::object request_capsule(const py::object& object) {
    try {
        return object.attr("__dlpack__")(py::arg("max_version") = py::make_tuple(1, 0));
    } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_TypeError)) throw;
    }
    return object.attr("__dlpack__")();  // an exporter older than DLPack 1.0
}

Tensor from_dlpack(const py::object& object) {
    if (!py::hasattr(object, "__dlpack__"))
        throw py::type_error("from_dlpack: got " + type_name(object) + ", wanted an object with __dlpack__");
    const py::object capsule = request_capsule(object);
    if (PyCapsule_IsValid(capsule.ptr(), CapsuleNames<dlpack::ManagedVersioned>::fresh)) {
        auto managed = take<dlpack::ManagedVersioned>(capsule);
        if (managed->version.major != dlpack::current_version.major)
            throw py::buffer_error("from_dlpack: got DLPack version " +
                                   std::to_string(managed->version.major) + ", wanted 1");
        return import_array(managed->array, managed->flags & dlpack::flag_read_only, managed);
    }
    auto managed = take<dlpack::Managed>(capsule);
    return import_array(managed->array, false, managed);
}

}  // namespace

void bind_dlpack(py::class_<Tensor>& tensor) {
    tensor
        .def("__dlpack__", &to_dlpack, py::kw_only(), py::arg("stream") = py::none(),
             py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
             py::arg("copy") = py::none(),
             "The tensor as a DLPack capsule: the same memory unless copy is True.")
        .def("__dlpack_device__", [](const Tensor&) { return py::make_tuple(int(dlpack::cpu), 0); })
        .def_static(
            "from_dlpack", &from_dlpack, py::arg("object"),
            "A tensor on the memory of any object that speaks DLPack, whatever its strides. Read-only "
            "memory is copied. TypeError for other element types, BufferError for other devices.");
}

}  // namespace magmadnn
