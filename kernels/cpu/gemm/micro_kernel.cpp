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

template <class T, int Rows, int Vectors>
void multiply_tile(const Product<T>& p, int64_t row) {
    Vector<T> sum[Rows][Vectors];
    const T* a[Rows];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; i++) {
        a[i] = p.a + p.a_rows[row + i];
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; j++) sum[i][j] = Vector<T>{};
    }
    if (p.residual)  // read last, and from far away
        for (int i = 0; i < Rows; i++) __builtin_prefetch(p.residual + p.c_rows[row + i]);
    const T* b = p.b;
    const int64_t b_stride = p.b_stride;
    const int32_t* column = p.a_columns;
#pragma GCC unroll 2
    for (const int32_t* const end = column + p.depth; column != end; column++, b += b_stride) {
        const int64_t k = *column;
        Vector<T> bk[Vectors];
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; j++) bk[j] = load(b + j * lanes<T>);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < Vectors; j++) sum[i][j] += a[i][k] * bk[j];
    }
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
using TileFunction = void (*)(const Product<T>&, int64_t row);

/// Tile functions of one width, indexed by their number of rows less one.
template <class T, int Vectors, size_t... Rows>
constexpr auto tile_functions(std::index_sequence<Rows...>) {
    return std::array<TileFunction<T>, sizeof...(Rows)>{
        multiply_tile<T, static_cast<int>(Rows) + 1, Vectors>...};
}

template <class T, int Vectors>
void multiply_panel(const Product<T>& p) {
    constexpr int tallest = register_tile.rows[Vectors];
    static constexpr auto functions = tile_functions<T, Vectors>(std::make_index_sequence<tallest>());
    // Tiles of nearly equal height: 8 rows are better cut 4 + 4 than 6 + 2.
    const int64_t tiles = (p.rows + tallest - 1) / tallest;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t row = p.rows * t / tiles;
        functions[p.rows * (t + 1) / tiles - row - 1](p, row);
    }
}

}  // namespace

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
