// Discrete Fourier transforms of 8, 16 or 32 vectors, lane by lane. The forward one leaves frequencies in
// bit-reversed order and the inverse one takes them so: between the two, only products frequency by frequency
// happen here. Neither divides by the length.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

#include "simd.h"

namespace magmadnn::cpu {

/// exp(-2 pi i j / N) for j < N / 2.
template <int N>
struct RootsOfUnity {
    float re[N / 2], im[N / 2];
    RootsOfUnity() {
        for (int j = 0; j < N / 2; j++) {
            re[j] = static_cast<float>(std::cos(2 * std::numbers::pi * j / N));
            im[j] = static_cast<float>(-std::sin(2 * std::numbers::pi * j / N));
        }
    }
};
template <int N>
inline const RootsOfUnity<N> roots_of_unity;

/// Multiplies by the root of number j > 0, or by its conjugate.
template <int N, bool Inverse>
inline __attribute__((always_inline)) void turn(int j, Vector<float>& re, Vector<float>& im) {
    const float c = roots_of_unity<N>.re[j];
    const float s = Inverse ? -roots_of_unity<N>.im[j] : roots_of_unity<N>.im[j];
    const Vector<float> turned = 4 * j == N ? -s * im : c * re - s * im;
    im = 4 * j == N ? s * re : c * im + s * re;
    re = turned;
}

/// Decimation in frequency (forward) or in time (inverse), radix two.
template <int N, bool Inverse>
inline __attribute__((always_inline)) void transform(Vector<float>* re, Vector<float>* im) {
    if constexpr (N > 1) {
        constexpr int half = N / 2;
        if constexpr (Inverse) {
            transform<half, Inverse>(re, im);
            transform<half, Inverse>(re + half, im + half);
        }
        const auto add = [&](int j, Vector<float> r, Vector<float> i) {
            re[j + half] = re[j] - r;
            im[j + half] = im[j] - i;
            re[j] += r;
            im[j] += i;
        };
        add(0, re[half], im[half]);
#pragma GCC unroll 16
        for (int j = 1; j < half; j++) {
            if (Inverse) turn<N, Inverse>(j, re[j + half], im[j + half]);
            add(j, re[j + half], im[j + half]);
            if (!Inverse) turn<N, Inverse>(j, re[j + half], im[j + half]);
        }
        if constexpr (!Inverse) {
            transform<half, Inverse>(re, im);
            transform<half, Inverse>(re + half, im + half);
        }
    }
}

/// Transforms the N vectors at re[j * stride], im[j * stride] in place.
template <int N, bool Inverse>
void transform_line(float* re, float* im, int64_t stride) {
    Vector<float> r[N], i[N];
#pragma GCC unroll 32
    for (int j = 0; j < N; j++) {
        r[j] = load(re + j * stride);
        i[j] = load(im + j * stride);
    }
    transform<N, Inverse>(r, i);
#pragma GCC unroll 32
    for (int j = 0; j < N; j++) {
        store(re + j * stride, r[j]);
        store(im + j * stride, i[j]);
    }
}

}  // namespace magmadnn::cpu
