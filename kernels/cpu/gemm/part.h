// Loads and stores of the first elements of a vector, for the end of a row.
#pragma once
#include "simd.h"

namespace magmadnn::cpu {

/// Copies `count` < 2 * lanes elements by halves, quarters, ... of a vector: far cheaper than a loop over
/// elements.
template <class T>
inline void copy_part(const T* from, int count, T* to) {
#pragma GCC unroll 8
    for (int size = lanes<T>; size > 0; size /= 2)
        if (count & size) {
            std::memcpy(to, from, static_cast<size_t>(size) * sizeof(T));
            from += size;
            to += size;
        }
}

/// The first `count` elements at p, zeros above.
template <class T>
inline Vector<T> load_part(const T* p, int count) {
    T elements[lanes<T>] = {};
    copy_part(p, count, elements);
    return load(elements);
}

template <class T>
inline void store_part(T* p, Vector<T> v, int count) {
    T elements[lanes<T>];
    store(elements, v);
    copy_part(elements, count, p);
}

}  // namespace magmadnn::cpu
