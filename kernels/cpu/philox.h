// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), several blocks at once.
// A word is kept in a 64-bit lane with rubbish in its upper half: that is the form the multiplication wants.
#pragma once
#include <cstdint>

#include "simd.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace magmadnn::cpu {

class Philox {
  public:
    static constexpr int blocks = lanes<uint64_t>;  // made by one call
    static constexpr int words = 4 * blocks;

    Philox(const int64_t* state, uint32_t stream)
        : key_low_(static_cast<uint32_t>(state[0])),
          key_high_(static_cast<uint32_t>(static_cast<uint64_t>(state[0]) >> 32)),
          stream_(stream),
          step_(static_cast<uint32_t>(state[1])) {}

    /// The words of `count` groups of `blocks` blocks from `block` on, in order; `count` hides the latency.
    template <int count>
    void generate(uint64_t block, uint32_t* out) const {
        Lanes a[count], b[count], c[count], d[count];
        for (int i = 0; i < count; i++) {
            Lanes counter = Lanes{} + block;
            for (int lane = 0; lane < blocks; lane++)
                counter[lane] += static_cast<uint64_t>(i * blocks + lane);
            a[i] = counter;
            b[i] = counter >> 32;
            c[i] = Lanes{} + stream_;
            d[i] = Lanes{} + step_;
        }
        Lanes low = Lanes{} + key_low_, high = Lanes{} + key_high_;
        for (int round = 0; round < 10; round++, low += 0x9E3779B9u, high += 0xBB67AE85u) {
            for (int i = 0; i < count; i++) {
                const Lanes p = multiply(a[i], 0xD2511F53u), q = multiply(c[i], 0xCD9E8D57u);
                a[i] = (q >> 32) ^ b[i] ^ low;
                b[i] = q;
                c[i] = (p >> 32) ^ d[i] ^ high;
                d[i] = p;
            }
        }
        for (int i = 0; i < count; i++) interleave<uint64_t>(a[i], b[i], c[i], d[i], out + i * words);
    }

  private:
    using Lanes = Vector<uint64_t>;
    static constexpr uint64_t low_half = 0xffffffffu;

    /// The 64-bit products of the lanes' low halves with m. Intrinsics, because the compiler turns the plain
    /// expression into three multiplications: 3 times slower in dropout.
    static Lanes multiply(Lanes x, uint32_t m) {
#if MAGMADNN_VECTOR_BYTES == 64 && defined(__AVX512F__)
        return (Lanes)_mm512_maskz_mul_epu32(0xff, (__m512i)x, _mm512_set1_epi64(m));
#elif MAGMADNN_VECTOR_BYTES == 32 && defined(__AVX2__)
        return (Lanes)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x(m));
#elif MAGMADNN_VECTOR_BYTES == 16 && defined(__SSE2__)
        return (Lanes)_mm_mul_epu32((__m128i)x, _mm_set1_epi64x(m));
#else
        return (x & low_half) * m;
#endif
    }

    // A template only so that the branches for other vector lengths are not compiled.
    template <class W>
    static void interleave(Vector<W> a, Vector<W> b, Vector<W> c, Vector<W> d, uint32_t* out) {
        const Vector<W> ab = (a & low_half) | (b << 32), cd = (c & low_half) | (d << 32);
        Vector<W> first, second;  // ab0 cd0 ab1 cd1 ...
        if constexpr (lanes<W> == 2) {
            first = __builtin_shufflevector(ab, cd, 0, 2);
            second = __builtin_shufflevector(ab, cd, 1, 3);
        } else if constexpr (lanes<W> == 4) {
            first = __builtin_shufflevector(ab, cd, 0, 4, 1, 5);
            second = __builtin_shufflevector(ab, cd, 2, 6, 3, 7);
        } else {
            first = __builtin_shufflevector(ab, cd, 0, 8, 1, 9, 2, 10, 3, 11);
            second = __builtin_shufflevector(ab, cd, 4, 12, 5, 13, 6, 14, 7, 15);
        }
        std::memcpy(out, &first, sizeof(first));
        std::memcpy(out + 2 * blocks, &second, sizeof(second));
    }

    uint32_t key_low_, key_high_, stream_, step_;
};

}  // namespace magmadnn::cpu
