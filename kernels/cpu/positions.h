// Positions of maxima in their windows: bytes in memory, one lane per number in registers. And the positions
// of a vector's non-zero lanes.
#pragma once
#include <type_traits>

#include "simd.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace magmadnn::cpu {

/// Positions inside windows, one per lane of T.
template <class T>
using Position = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
template <class T>
using Positions = Vector<Position<T>>;

// Between bytes and lanes of 32 bits the compiler goes element by element, so where there is an instruction
// for a whole vector it is called by name: 3 times faster in the gradient.
template <class T, class P>
inline void store_positions(P* p, Positions<T> v) {
    if constexpr (sizeof(T) == 4 && sizeof(P) == 1) {
#if MAGMADNN_VECTOR_BYTES == 64 && defined(__AVX512F__)
        return _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                                _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)v));
#elif MAGMADNN_VECTOR_BYTES == 32 && defined(__AVX2__)
        const __m128i low = _mm256_castsi256_si128((__m256i)v),
                      high = _mm256_extracti128_si256((__m256i)v, 1);
        const __m128i words = _mm_packs_epi32(low, high);
        return _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
#endif
    }
    for (int i = 0; i < lanes<T>; i++) p[i] = static_cast<P>(v[i]);
}
template <class T, class P>
inline Positions<T> load_positions(const P* p) {
    if constexpr (sizeof(T) == 4 && sizeof(P) == 1) {
#if MAGMADNN_VECTOR_BYTES == 64 && defined(__AVX512F__)
        return (Positions<T>)_mm512_maskz_cvtepu8_epi32(0xffff,
                                                        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif MAGMADNN_VECTOR_BYTES == 32 && defined(__AVX2__)
        return (Positions<T>)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#endif
    }
    Position<T> wide[lanes<T>];
    for (int i = 0; i < lanes<T>; i++) wide[i] = p[i];
    return load(wide);
}

/// Bit i says whether lane i is not zero (NaN is not).
inline uint64_t nonzero_lanes(Vector<float> v) {
#if MAGMADNN_VECTOR_BYTES == 64 && defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
#elif MAGMADNN_VECTOR_BYTES == 32 && defined(__AVX2__)
    return static_cast<uint64_t>(_mm256_movemask_ps((__m256)(v != Vector<float>{})));
#else
    uint64_t mask = 0;
    for (int i = 0; i < lanes<float>; i++) mask |= static_cast<uint64_t>(v[i] != 0) << i;
    return mask;
#endif
}

}  // namespace magmadnn::cpu
