// Vectors of the instruction set this file is compiled for. GCC/Clang vector extensions, so that one source
// serves AVX2, AVX-512, NEON and plain SSE2; MAGMADNN_VECTOR_BYTES is set per library by CMake.
#pragma once
#include <cstdint>
#include <cstring>

#ifndef MAGMADNN_VECTOR_BYTES
#define MAGMADNN_VECTOR_BYTES 16
#endif

namespace magmadnn::cpu {

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(MAGMADNN_VECTOR_BYTES), aligned(alignof(T)), may_alias));
};
/// A vector of T; loads and stores need no more than T's own alignment.
template <class T>
using Vector = typename VectorOf<T>::type;

/// Elements of T in a vector.
template <class T>
inline constexpr int lanes = MAGMADNN_VECTOR_BYTES / static_cast<int>(sizeof(T));

template <class T>
inline Vector<T> load(const T* p) {
    return *reinterpret_cast<const Vector<T>*>(p);
}
template <class T>
inline void store(T* p, Vector<T> v) {
    *reinterpret_cast<Vector<T>*>(p) = v;
}
template <class T>
inline Vector<T> broadcast(T value) {
    return Vector<T>{} + value;
}

}  // namespace magmadnn::cpu
