// Mathematical functions on vectors. float32: own polynomials (minimax on the reduced range), a few units in
// the last place, right at infinities and NaN. float64: the C library, lane by lane.
//   x argument, r reduced argument, n exponent, p polynomial
#pragma once
#include <cmath>
#include <limits>

#include "simd.h"

namespace magmadnn::cpu::math {

using Floats = Vector<float>;
using Doubles = Vector<double>;
using Ints = Vector<int32_t>;
using Unsigned = Vector<uint32_t>;  // where arithmetic on bits may wrap

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Horner's rule, the highest coefficient first.
template <class... Rest>
inline Floats polynomial(Floats x, float highest, Rest... rest) {
    Floats p = broadcast(highest);
    ((p = p * x + rest), ...);
    return p;
}

inline Ints bits(Floats x) { return (Ints)x; }
inline Floats from_bits(Ints x) { return (Floats)x; }
inline Floats absolute(Floats x) { return from_bits(bits(x) & 0x7fffffff); }
inline Floats copy_sign(Floats magnitude, Floats sign) {
    return from_bits((bits(magnitude) & 0x7fffffff) | (bits(sign) & INT32_MIN));
}
inline Floats power_of_two(Ints n) { return from_bits((Ints)(((Unsigned)n + 127u) << 23)); }
inline Floats clamp(Floats x, float low, float high) {  // NaN passes
    x = x < low ? broadcast(low) : x;
    return x > high ? broadcast(high) : x;
}
inline bool any(Ints mask) {
    int64_t words[MAGMADNN_VECTOR_BYTES / 8];
    std::memcpy(words, &mask, sizeof(mask));
    int64_t all = 0;
    for (int64_t word : words) all |= word;
    return all != 0;
}

/// x = n ln2 + r with |r| <= ln2 / 2.
inline void reduce_by_log2(Floats x, Ints& n, Floats& r) {
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
    const Floats shifted = x * 1.44269504f + magic;
    n = (Ints)((Unsigned)bits(shifted) - (Unsigned)bits(broadcast(magic)));
    const Floats whole = shifted - magic;
    r = x - whole * 0.693359375f;  // exact: this part of ln2 has few bits
    r = r + whole * 2.12194440e-4f;
}

inline Floats exp(Floats x) {
    Ints n;
    Floats r;
    reduce_by_log2(clamp(x, -104.0f, 89.0f), n, r);
    const Floats q =
        polynomial(r, 1.395047682e-3f, 8.368882434e-3f, 4.166620601e-2f, 1.666651890e-1f, 5.000000095e-1f);
    const Floats p = (q * r) * r + r + 1.0f;
    const Ints half = n >> 1;  // two factors, so that overflow gives infinity and underflow a denormal
    return p * power_of_two(half) * power_of_two(n - half);
}

inline Floats expm1(Floats x) {
    Ints n;
    Floats r;
    reduce_by_log2(clamp(x, -30.0f, 89.0f), n, r);
    const Floats q = polynomial(r, 1.991355986e-4f, 1.394101174e-3f, 8.333274156e-3f, 4.166635455e-2f,
                                1.666666681e-1f, 5.000000046e-1f);
    const Floats p = (q * r) * r + r;
    const Floats scale = power_of_two(n - 1);
    const Floats result = 2.0f * (scale * p + (scale - 0.5f));
    return x == 0.0f ? x : result;  // keeps the sign of zero
}

inline Floats log(Floats x) {
    const Ints denormal = x < std::numeric_limits<float>::min();
    const Ints b = bits(denormal ? x * 8388608.0f : x);
    const Ints n =
        (Ints)((Unsigned)b - 0x3f3504f3u) >> 23;  // so that the mantissa m lies in [sqrt(1/2), sqrt(2))
    const Floats f = from_bits((Ints)((Unsigned)b - ((Unsigned)n << 23))) - 1.0f;  // m - 1
    const Floats e = __builtin_convertvector(n - (denormal & 23), Floats);
    const Floats p =
        polynomial(f, 6.746601330e-2f, -1.167564131e-1f, 1.188817460e-1f, -1.240559142e-1f, 1.421955091e-1f,
                   -1.666799567e-1f, 2.000211873e-1f, -2.500000960e-1f, 3.333331260e-1f);
    const Floats square = f * f;
    const Floats small = (square * f) * p + e * -2.12194440e-4f - 0.5f * square;
    const Floats result = small + f + e * 0.693359375f;
    const Floats special = x == 0.0f ? broadcast(-infinity) : x < 0.0f ? broadcast(not_a_number) : x;
    return (x > 0.0f) & (x < infinity) ? result : special;
}

inline Floats log1p(Floats x) {
    const Floats u = 1.0f + x;
    const Floats lost = x - (u - 1.0f);  // what rounding 1 + x dropped
    const Floats result = log(u) + lost / u;
    return (u > 0.0f) & (u < infinity) ? (x == 0.0f ? x : result) : log(u);
}

inline Floats tanh(Floats x) {
    const Floats t = expm1(2.0f * clamp(absolute(x), 0.0f, 10.0f));
    return copy_sign(t / (t + 2.0f), x);
}

inline Floats sigmoid(Floats x) { return 1.0f / (1.0f + exp(-x)); }

inline Floats softplus(Floats x) {
    const Floats tail = log1p(exp(-absolute(x)));
    return (x < 0.0f ? Floats{} : x) + tail;
}

inline Floats erf(Floats x) {
    const Floats t = absolute(x), s = x * x;
    const Floats small = polynomial(s, 8.397801628e-5f, -8.149807378e-4f, 5.201716195e-3f, -2.685970231e-2f,
                                    1.128370162e-1f, -3.761263419e-1f, 1.283791667e-1f);
    const Floats log_of_rest =
        polynomial(clamp(t, 0.0f, 3.95f), -2.111858908e-5f, 4.347347287e-4f, -4.172381321e-3f,
                   2.512289838e-2f, -1.082854563e-1f, -6.333420303e-1f, -1.129517342e+0f, 1.751859407e-4f);
    const Floats large = copy_sign(1.0f - exp(log_of_rest), x);
    return t < 0.921875f ? x + x * small : large;
}

/// sin (quarter = 0) or cos (quarter = 1).
inline Floats sine(Floats x, int quarter) {
    if (any(!(absolute(x) < 8192.0f))) {  // too large for the three-part pi below, or not finite
        for (int i = 0; i < lanes<float>; i++)
            x[i] = static_cast<float>(quarter ? std::cos(double(x[i])) : std::sin(double(x[i])));
        return x;
    }
    const float magic = 12582912.0f;
    const Floats shifted = x * 0.636619772f + magic;
    const Floats whole = shifted - magic;
    const Ints n = bits(shifted) + quarter;
    Floats r = x - whole * 1.5703125f;  // pi/2 in three parts
    r = r - whole * 4.837512969970703125e-4f;
    r = r - whole * 7.549789948768648e-8f;
    const Floats s = r * r;
    const Floats sin =
        r + r * s * polynomial(s, 2.718311566e-6f, -1.983933484e-4f, 8.333329386e-3f, -1.666666664e-1f);
    const Floats cos =
        1.0f - 0.5f * s + s * s * polynomial(s, 2.443315516e-5f, -1.388731624e-3f, 4.166664568e-2f);
    const Floats result = (n & 1) != 0 ? cos : sin;
    return from_bits(bits(result) ^ ((n & 2) << 30));
}
inline Floats sin(Floats x) { return sine(x, 0); }
inline Floats cos(Floats x) { return sine(x, 1); }

template <class Function>
inline Doubles each_lane(Doubles x, Function function) {
    for (int i = 0; i < lanes<double>; i++) x[i] = function(x[i]);
    return x;
}
inline Doubles exp(Doubles x) {
    return each_lane(x, [](double v) { return std::exp(v); });
}
inline Doubles expm1(Doubles x) {
    return each_lane(x, [](double v) { return std::expm1(v); });
}
inline Doubles log(Doubles x) {
    return each_lane(x, [](double v) { return std::log(v); });
}
inline Doubles log1p(Doubles x) {
    return each_lane(x, [](double v) { return std::log1p(v); });
}
inline Doubles tanh(Doubles x) {
    return each_lane(x, [](double v) { return std::tanh(v); });
}
inline Doubles erf(Doubles x) {
    return each_lane(x, [](double v) { return std::erf(v); });
}
inline Doubles sin(Doubles x) {
    return each_lane(x, [](double v) { return std::sin(v); });
}
inline Doubles cos(Doubles x) {
    return each_lane(x, [](double v) { return std::cos(v); });
}
inline Doubles sigmoid(Doubles x) { return 1.0 / (1.0 + exp(-x)); }
inline Doubles softplus(Doubles x) {
    return each_lane(x, [](double v) { return (v < 0 ? 0 : v) + std::log1p(std::exp(-std::fabs(v))); });
}

}  // namespace magmadnn::cpu::math
