// The one inner loop of dense layers and convolutions: C (+)= A B, where A lies in one of two ways.
//   indexed  A(i,k) = a[a_rows[i] + a_columns[k]]: pixels and taps of an image, or plain strides. Columns may
//            lie evenly in runs.
//   strips   the rows of each tile apart (`tiles_of`), stored [depth][strip_rows], strip after strip; a_rows
//            is null. Takes packing, and is the fastest.
//
//   B(k,j) = b[k * b_stride + j]            a panel at most `panel_lanes` wide, readable in whole vectors
//   C(i,j) = c[c_rows[i] + j]
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gemm/blocking.h"
#include "gemm/tasks.h"

namespace magmadnn::cpu {

/// Offsets that lie evenly: `length` of them from one on, `stride` apart; the last run may be shorter.
struct Runs {
    int64_t length = 1, stride = 1;
};

/// The table of columns that form one run.
inline constexpr int32_t no_offset = 0;

/// The longest runs that a table falls into; single offsets where they are too short to repay a loop each.
Runs runs_of(const std::vector<int32_t>& offsets);

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
    Runs runs;                    // of a_columns, of which only the first of each is read
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

/// Rows of the tiles of a full-width panel, and of a strip's columns in memory.
inline constexpr int strip_rows = register_tile.rows[register_tile.max_vectors];

/// The cut of rows into tiles of nearly equal height: 8 rows are better cut 4 + 4 than 6 + 2.
inline Cut tiles_of(int64_t rows, int tallest = strip_rows) { return Cut::by_length(rows, tallest); }

}  // namespace magmadnn::cpu
