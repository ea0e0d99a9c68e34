// Element types of tensors, and the mapping between C++ types, names and sizes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace magmadnn {

enum class DType : uint8_t { float32, float64, int32, int64, uint8, boolean };

template <class T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<float>   { static constexpr DType value = DType::float32; };
template <> struct DTypeOf<double>  { static constexpr DType value = DType::float64; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::int32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::int64; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::uint8; };
template <> struct DTypeOf<bool>    { static constexpr DType value = DType::boolean; };
// clang-format on

/// Calls `function` with a default value of the C++ type that `dtype` names and returns its result.
template <class Function>
decltype(auto) dispatch(DType dtype, Function&& function) {
    switch (dtype) {
        case DType::float32:
            return function(float{});
        case DType::float64:
            return function(double{});
        case DType::int32:
            return function(int32_t{});
        case DType::int64:
            return function(int64_t{});
        case DType::uint8:
            return function(uint8_t{});
        case DType::boolean:
            return function(bool{});
    }
    throw std::invalid_argument("dtype: unknown element type");
}

inline size_t size_of(DType dtype) {
    return dispatch(dtype, [](auto value) { return sizeof(value); });
}

inline const char* name_of(DType dtype) {
    constexpr const char* names[] = {"float32", "float64", "int32", "int64", "uint8", "bool"};
    return names[static_cast<int>(dtype)];
}

inline DType dtype_from_name(std::string_view name) {
    for (int i = 0; i < 6; i++)
        if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
    throw std::invalid_argument("dtype: got '" + std::string(name) +
                                "', wanted one of float32, float64, int32, int64, uint8, bool");
}

}  // namespace magmadnn
