// The structures of the public DLPack exchange protocol, version 1.x, and of its predecessor without a
// version (https://dmlc.github.io/dlpack/latest/c_api.html). Layouts are fixed by the protocol; names follow
// our style.
#pragma once
#include <cstdint>

namespace magmadnn::dlpack {

struct Version {
    uint32_t major;
    uint32_t minor;
};
inline constexpr Version current_version{1, 0};

enum DeviceType : int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };

struct Device {
    int32_t type;
    int32_t id;
};

enum TypeCode : uint8_t { code_int = 0, code_uint = 1, code_float = 2, code_bool = 6 };

struct DataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct Array {
    void* data;
    Device device;
    int32_t rank;
    DataType dtype;
    int64_t* shape;
    int64_t* strides;  // in elements; null means row-major
    uint64_t byte_offset;
};

/// Travels in a capsule named "dltensor".
struct Managed {
    Array array;
    void* context;
    void (*deleter)(Managed*);
};

inline constexpr uint64_t flag_read_only = 1;
inline constexpr uint64_t flag_copied = 2;

/// Travels in a capsule named "dltensor_versioned".
struct ManagedVersioned {
    Version version;
    void* context;
    void (*deleter)(ManagedVersioned*);
    uint64_t flags;
    Array array;
};

}  // namespace magmadnn::dlpack
