// Register-blocked product of a tile: `Rows` x `Vectors` accumulators stay in registers for the whole depth.
#include "gemm/micro_kernel.h"
#include "gemm/part.h"

#include <array>
#include <utility>

namespace magmadnn::cpu {
namespace {

/// The end of a tile narrower than its vectors: `sums` holds [rows][width] elements, of which p.columns
/// count.
template <class T>
void finish_narrow_tile(const Product<T>& p, int64_t row, int rows, const T* sums, int width) {
    for (int j = 0; j < p.columns; j += lanes<T>) {
        const int count = std::min(p.columns - j, lanes<T>);
        const Vector<T> bias = p.bias ? load_part(p.bias + j, count) : Vector<T>{};
        for (int i = 0; i < rows; i++) {
            T* c = p.c + p.c_rows[row + i] + j;
            Vector<T> v = load(sums + i * width + j);
            if (p.accumulate) v += load_part(c, count);
            v += bias;
            if (p.residual) v += load_part(p.residual + p.c_rows[row + i] + j, count);
            if (p.relu) v = v < Vector<T>{} ? Vector<T>{} : v;
            store_part(c, v, count);
        }
    }
}

/// sums += the outer product of a column of A, whose element of row i is a(i), and a row of a panel.
template <class T, int Rows, int Vectors, class Column>
inline __attribute__((always_inline)) void multiply_column(Column a, const T* b,
                                                           Vector<T> (&sum)[Rows][Vectors]) {
    Vector<T> bk[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; j++) bk[j] = load(b + j * lanes<T>);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; j++) sum[i][j] += a(i) * bk[j];
}

/// sums += the product of a strip of A and a panel.
template <class T, int Rows, int Vectors>
inline __attribute__((always_inline)) void multiply_strip(const Product<T>& p, const T* a,
                                                          Vector<T> (&sum)[Rows][Vectors]) {
    const T* b = p.b;
    const int64_t b_stride = p.b_stride;
#pragma GCC unroll 4
    for (int64_t k = p.depth; k > 0; k--, a += strip_rows, b += b_stride)
        multiply_column<T>([a](int i) { return a[i]; }, b, sum);
}

/// sums += the product of rows of A, each column looked up, and a panel.
template <class T, int Rows, int Vectors>
inline __attribute__((always_inline)) void multiply_indexed(const Product<T>& p, const int32_t* a_rows,
                                                            Vector<T> (&sum)[Rows][Vectors]) {
    const T* a[Rows];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++) a[i] = p.a + a_rows[i];
    const T* b = p.b;
    const int64_t b_stride = p.b_stride;
    const int32_t* column = p.a_columns;
#pragma GCC unroll 2
    for (const int32_t* const end = column + p.depth; column != end; column++, b += b_stride) {
        const int64_t k = *column;
        multiply_column<T>([&a, k](int i) { return a[i][k]; }, b, sum);
    }
}

/// The same where columns lie in runs: offsets of rows and one moving pointer take fewer instructions.
template <class T, int Rows, int Vectors>
inline __attribute__((always_inline)) void multiply_runs(const Product<T>& p, const int32_t* a_rows,
                                                         Vector<T> (&sum)[Rows][Vectors]) {
    int64_t row[Rows];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++) row[i] = a_rows[i];
    const T* b = p.b;
    const int64_t b_stride = p.b_stride, stride = p.runs.stride;
    for (int64_t first = 0; first < p.depth; first += p.runs.length) {
        const T* a = p.a + p.a_columns[first];
#pragma GCC unroll 4
        for (int64_t k = std::min(p.runs.length, p.depth - first); k > 0; k--, a += stride, b += b_stride)
            multiply_column<T>([a, &row](int i) { return a[row[i]]; }, b, sum);
    }
}

/// Starts fetching a tile of C or of the residual, which is read when the product is done.
template <class T, int Rows, int Vectors>
inline void prefetch_tile(const T* c, const int32_t* c_rows) {
    constexpr int line = 64 / sizeof(T);
    for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors * lanes<T>; j += line) __builtin_prefetch(c + c_rows[i] + j);
}

/// How A lies.
enum class Layout { strips, runs, indexed };

template <class T, int Rows, int Vectors, Layout layout>
void multiply_tile(const Product<T>& p, int64_t row, int64_t tile) {
    Vector<T> sum[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; j++) sum[i][j] = Vector<T>{};
    if (p.accumulate) prefetch_tile<T, Rows, Vectors>(p.c, p.c_rows + row);
    if (p.residual) prefetch_tile<T, Rows, Vectors>(p.residual, p.c_rows + row);
    if constexpr (layout == Layout::strips)
        multiply_strip<T>(p, p.a + tile * p.depth * strip_rows, sum);
    else if constexpr (layout == Layout::runs)
        multiply_runs<T>(p, p.a_rows + row, sum);
    else
        multiply_indexed<T>(p, p.a_rows + row, sum);
    if (p.columns == Vectors * lanes<T>) {
        if (p.accumulate) {
#pragma GCC unroll 16
            for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
                for (int j = 0; j < Vectors; j++) sum[i][j] += load(p.c + p.c_rows[row + i] + j * lanes<T>);
        }
        if (p.bias) {
#pragma GCC unroll 4
            for (int j = 0; j < Vectors; j++) {
                const Vector<T> bias = load(p.bias + j * lanes<T>);
#pragma GCC unroll 16
                for (int i = 0; i < Rows; i++) sum[i][j] += bias;
            }
        }
        if (p.residual) {
#pragma GCC unroll 16
            for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
                for (int j = 0; j < Vectors; j++)
                    sum[i][j] += load(p.residual + p.c_rows[row + i] + j * lanes<T>);
        }
        if (p.relu) {
#pragma GCC unroll 16
            for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
                for (int j = 0; j < Vectors; j++)
                    sum[i][j] = sum[i][j] < Vector<T>{} ? Vector<T>{} : sum[i][j];
        }
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < Vectors; j++) store(p.c + p.c_rows[row + i] + j * lanes<T>, sum[i][j]);
    } else {
        T sums[Rows * Vectors * lanes<T>];
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < Vectors; j++) store(sums + (i * Vectors + j) * lanes<T>, sum[i][j]);
        finish_narrow_tile(p, row, Rows, sums, Vectors * lanes<T>);
    }
}

template <class T>
using TileFunction = void (*)(const Product<T>&, int64_t row, int64_t tile);

/// Tile functions of one width, indexed by their number of rows less one.
template <class T, int Vectors, Layout layout, size_t... Rows>
constexpr auto tile_functions(std::index_sequence<Rows...>) {
    return std::array<TileFunction<T>, sizeof...(Rows)>{
        multiply_tile<T, static_cast<int>(Rows) + 1, Vectors, layout>...};
}

template <class T, int Vectors, Layout layout>
void multiply_panel(const Product<T>& p) {
    constexpr int tallest = layout == Layout::strips ? strip_rows : register_tile.rows[Vectors];
    static constexpr auto functions = tile_functions<T, Vectors, layout>(std::make_index_sequence<tallest>());
    const Cut tiles = tiles_of(p.rows, tallest);
    for (int64_t t = 0, row = 0; t < tiles.parts; t++) {
        const int64_t end = tiles.begin(t + 1);
        functions[end - row - 1](p, row, t);
        row = end;
    }
}

template <class T, int Vectors>
void multiply_panel(const Product<T>& p) {
    if (p.rows == 0) return;
    if (!p.a_rows)
        multiply_panel<T, Vectors, Layout::strips>(p);
    else if (p.runs.length > 1)
        multiply_panel<T, Vectors, Layout::runs>(p);
    else
        multiply_panel<T, Vectors, Layout::indexed>(p);
}

}  // namespace

Runs runs_of(const std::vector<int32_t>& offsets) {
    const int64_t count = static_cast<int64_t>(offsets.size());
    if (count < 2) return {};
    const auto step = [&](int64_t i) { return offsets[i] - offsets[i - 1]; };
    Runs runs = {1, step(1)};
    while (runs.length < count && step(runs.length) == runs.stride) runs.length++;
    if (runs.length < long_run) return {};
    for (int64_t i = 1; i < count; i++)
        if (i % runs.length != 0 && step(i) != runs.stride) return {};
    return runs;
}

template <class T>
void multiply(const Product<T>& product) {
    const int vectors = (product.columns + lanes<T> - 1) / lanes<T>;
    if (vectors == 1) multiply_panel<T, 1>(product);
    if (vectors == 2) multiply_panel<T, 2>(product);
    if constexpr (register_tile.max_vectors > 2)
        if (vectors == 3) multiply_panel<T, 3>(product);
}

template void multiply(const Product<float>&);
template void multiply(const Product<double>&);

}  // namespace magmadnn::cpu
