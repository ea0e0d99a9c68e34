#include "gemm/packing.h"

#include <utility>

#include "gemm/part.h"

namespace magmadnn::cpu {
namespace {

/// Rows of a matrix that are cut up together: few enough for the prefetchers to follow.
constexpr int64_t rows_at_once = 16;

/// One exchange of an in-register transposition: lane l of the results comes from a where bit `Bit` of l is
/// clear and from b where it is set, `Bit` lanes apart for one of the two.
template <class T, int Bit, int... Lane>
inline void exchange(Vector<T>& a, Vector<T>& b, std::integer_sequence<int, Lane...>) {
    const Vector<T> low = __builtin_shufflevector(a, b, (Lane & Bit ? lanes<T> + Lane - Bit : Lane)...);
    b = __builtin_shufflevector(a, b, (Lane & Bit ? lanes<T> + Lane : Lane + Bit)...);
    a = low;
}

template <class T, int Bit = 1>
inline __attribute__((always_inline)) void transpose(Vector<T> (&rows)[lanes<T>]) {
    if constexpr (Bit < lanes<T>) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes<T>; i++)
            if (!(i & Bit))
                exchange<T, Bit>(rows[i], rows[i + Bit], std::make_integer_sequence<int, lanes<T>>());
        transpose<T, 2 * Bit>(rows);
    }
}

template <class T>
inline __attribute__((always_inline)) void pack_row(const T* b, int columns, T* packed) {
    for (; columns >= lanes<T>; columns -= lanes<T>, b += lanes<T>, packed += lanes<T>)
        store(packed, load(b));
    if (columns > 0) store(packed, load_part(b, columns));
}

}  // namespace

template <class T>
void pack(const T* b, int64_t stride, int64_t depth, int columns, int64_t packed_lanes, T* packed) {
    for (int64_t k = 0; k < depth; k++) pack_row(b + k * stride, columns, packed + k * packed_lanes);
}

template <class T>
void pack_panels(const Panels<T>& panels, int64_t first, int64_t end, const T* b, int64_t stride,
                 int64_t depth, T* packed) {
    for (int64_t k = 0; k < depth; k += rows_at_once)
        for (int64_t p = first; p < end; p++)
            pack(b + k * stride + panels.first(p), stride, std::min(rows_at_once, depth - k),
                 panels.columns_of(p), panels.packed_lanes(p),
                 packed + (panels.first(p) - panels.first(first)) * depth + k * panels.packed_lanes(p));
}

template <class T>
void pack_indexed(const T* b, const int32_t* index, int64_t depth, int columns, int64_t packed_lanes,
                  T* packed) {
    for (int64_t k = 0; k < depth; k++) pack_row(b + index[k], columns, packed + k * packed_lanes);
}

template <class T>
void pack_transposed(const T* b, int64_t stride, int64_t depth, int columns, int64_t packed_lanes,
                     T* packed) {
    constexpr int L = lanes<T>;
    // From the last lanes to the first, and from k = 0 up: what a vector writes too much is overwritten
    // later.
    for (int64_t j = (columns - 1) / L * L; j >= 0; j -= L) {
        const int count = static_cast<int>(std::min<int64_t>(columns - j, L));
        const T* row = b + j * stride;
        int64_t k = 0;
        for (; k + L <= depth; k += L) {
            Vector<T> block[L];
#pragma GCC unroll 16
            for (int i = 0; i < L; i++) block[i] = load(row + std::min(i, count - 1) * stride + k);
            transpose<T>(block);
#pragma GCC unroll 16
            for (int i = 0; i < L; i++) store(packed + (k + i) * packed_lanes + j, block[i]);
        }
        for (; k < depth; k++)
            for (int i = 0; i < count; i++) packed[k * packed_lanes + j + i] = row[i * stride + k];
    }
}

template <class T>
void pack_strips(const T* a, int64_t stride, bool transposed, int64_t rows, int64_t depth, T* packed) {
    const Cut tiles = tiles_of(rows);
    if (!transposed) {
        for (int64_t t = 0; t < tiles.parts; t++, packed += strip_rows * depth) {
            const int64_t row = tiles.begin(t);
            pack_transposed(a + row * stride, stride, depth, static_cast<int>(tiles.begin(t + 1) - row),
                            strip_rows, packed);
        }
        return;
    }
    for (int64_t first = 0; first < depth; first += rows_at_once)
        for (int64_t t = 0; t < tiles.parts; t++) {
            const int64_t row = tiles.begin(t);
            const int count = static_cast<int>(std::min<int64_t>(rows - row, strip_rows));
            for (int64_t k = first; k < std::min(first + rows_at_once, depth); k++) {
                const T* from = a + k * stride + row;
                T* to = packed + (t * depth + k) * strip_rows;
                if (count == strip_rows)
                    std::memcpy(to, from, strip_rows * sizeof(T));
                else
                    std::copy_n(from, count, to);
            }
        }
}

template void pack(const float*, int64_t, int64_t, int, int64_t, float*);
template void pack(const double*, int64_t, int64_t, int, int64_t, double*);
template void pack_panels(const Panels<float>&, int64_t, int64_t, const float*, int64_t, int64_t, float*);
template void pack_panels(const Panels<double>&, int64_t, int64_t, const double*, int64_t, int64_t, double*);
template void pack_indexed(const float*, const int32_t*, int64_t, int, int64_t, float*);
template void pack_indexed(const double*, const int32_t*, int64_t, int, int64_t, double*);
template void pack_transposed(const float*, int64_t, int64_t, int, int64_t, float*);
template void pack_transposed(const double*, int64_t, int64_t, int, int64_t, double*);
template void pack_strips(const float*, int64_t, bool, int64_t, int64_t, float*);
template void pack_strips(const double*, int64_t, bool, int64_t, int64_t, double*);

}  // namespace magmadnn::cpu
