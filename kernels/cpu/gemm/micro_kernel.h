// The one inner loop of dense layers and convolutions: C (+)= A B, where A is never copied into a matrix.
//   A(i,k) = a[a_rows[i] + a_columns[k]]    two index tables: pixels and taps of an image, or plain strides
//   B(k,j) = b[k * b_stride + j]            a panel at most `panel_lanes` wide, readable in whole vectors
//   C(i,j) = c[c_rows[i] + j]
#pragma once
#include <algorithm>
#include <cstdint>

#include "gemm/blocking.h"

namespace magmadnn::cpu {

template <class T>
struct Product {
    const T* a;
    const int32_t* a_rows;
    const int32_t* a_columns;
    const T* b;
    int64_t b_stride;
    T* c;
    const int32_t* c_rows;
    int64_t rows;
    int64_t depth;
    int columns;                  // of C; B may hold more, up to whole vectors
    bool accumulate = false;      // add to C instead of overwriting it
    const T* bias = nullptr;      // [columns], added last
    const T* residual = nullptr;  // laid out as C, added with the bias
    bool relu = false;            // after both; NaN stays NaN
};

template <class T>
void multiply(const Product<T>& product);

extern template void multiply(const Product<float>&);
extern template void multiply(const Product<double>&);

template <class T>
inline constexpr int panel_lanes = register_tile.max_vectors * lanes<T>;

}  // namespace magmadnn::cpu
