// Winograd's minimal filtering F(m, 3): m outputs of a correlation with 3 weights by n = m + 2 products.
//     y = A' [(G g) . (B d)]     d: n source pixels, g: 3 weights, y: m outputs, . elementwise
// It is the transpose of Toom-Cook multiplication (S. Winograd, Arithmetic Complexity of Computations, 1980;
// A. Lavin and S. Gray, arXiv 1509.09308): polynomials are multiplied by their values at n points, the last
// of which is infinity, where the value is the leading coefficient. With finite points p_j
//     A[j][i] = p_j^i     G[j][i] = p_j^i / prod over l != j of (p_j - p_l)
//     B[j] = coefficients of prod over l != j of (x - p_l), for infinity over all l
// In two dimensions each matrix is applied along both axes. The gradient of the weights follows from the same
// formula, dw = G' [(A dy) . (B d)]; that of the source is a filtering of dy by the reversed weights.
#pragma once
#include <array>

#include "simd.h"

namespace magmadnn::cpu::winograd {

/// The finite points are 0 and these and their negatives. For m = 4 they give a third of the rounding error
/// of the usual 1, 2, the least of all that were tried (float32 against float64, 64 to 512 channels).
template <int m>
inline constexpr std::array<double, m / 2> points;
template <>
inline constexpr std::array<double, 1> points<2> = {1};
template <>
inline constexpr std::array<double, 2> points<4> = {0.625, 1.5};

/// Point j: 0, p, -p, q, -q, ...
template <int m>
constexpr double point(int j) {
    return j == 0 ? 0 : (j % 2 == 1 ? 1 : -1) * points<m>[(j - 1) / 2];
}

/// A matrix with one row per point. Rows of p and -p differ in the signs of their odd columns only.
template <int rows_, int columns_>
struct Matrix {
    static constexpr int rows = rows_, columns = columns_;
    double entry[rows][columns] = {};
};

template <int m, int columns>
constexpr auto make_powers() {
    Matrix<m + 2, columns> a;
    for (int j = 0; j <= m; j++) {
        double power = 1;
        for (int i = 0; i < columns; i++, power *= point<m>(j)) a.entry[j][i] = power;
    }
    a.entry[m + 1][columns - 1] = 1;
    return a;
}

template <int m>
constexpr auto make_weights() {
    auto g = make_powers<m, 3>();
    for (int j = 0; j <= m; j++)
        for (int l = 0; l <= m; l++)
            for (int i = 0; i < 3 && l != j; i++) g.entry[j][i] /= point<m>(j) - point<m>(l);
    return g;
}

template <int m>
constexpr auto make_source() {
    Matrix<m + 2, m + 2> b;
    for (int j = 0; j < m + 2; j++) {
        double (&c)[m + 2] = b.entry[j];
        c[0] = 1;
        for (int l = 0; l <= m; l++)
            for (int i = m + 1; i >= 0 && l != j; i--) c[i] = (i > 0 ? c[i - 1] : 0) - point<m>(l) * c[i];
    }
    return b;
}

template <int m>
inline constexpr auto source_matrix = make_source<m>();  // B
template <int m>
inline constexpr auto weight_matrix = make_weights<m>();  // G
template <int m>
inline constexpr auto target_matrix = make_powers<m, m>();  // A

using V = Vector<float>;

/// Sum over i = first, first + step, ... of entry[row][i] * in[i]; zeros and ones cost nothing.
template <const auto& matrix>
inline __attribute__((always_inline)) V row_product(int row, int first, int step, const V* in) {
    V sum = {};
    bool empty = true;
#pragma GCC unroll 8
    for (int i = first; i < matrix.columns; i += step) {
        const float entry = static_cast<float>(matrix.entry[row][i]);
        if (entry == 0) continue;
        sum = empty ? entry * in[i] : sum + entry * in[i];
        empty = false;
    }
    return sum;
}

/// out = matrix in
template <const auto& matrix>
inline __attribute__((always_inline)) void expand(const V* in, V* out) {
    constexpr int last = matrix.rows - 1;
    out[0] = row_product<matrix>(0, 0, 1, in);
#pragma GCC unroll 8
    for (int j = 1; j < last; j += 2) {
        const V even = row_product<matrix>(j, 0, 2, in), odd = row_product<matrix>(j, 1, 2, in);
        out[j] = even + odd;
        out[j + 1] = even - odd;
    }
    out[last] = row_product<matrix>(last, 0, 1, in);
}

/// out = matrix' in
template <const auto& matrix>
inline __attribute__((always_inline)) void contract(const V* in, V* out) {
    constexpr int last = matrix.rows - 1;
    V pairs[2][last];  // in[j] + in[j + 1], in[j] - in[j + 1]
#pragma GCC unroll 8
    for (int j = 1; j < last; j += 2) {
        pairs[0][j] = in[j] + in[j + 1];
        pairs[1][j] = in[j] - in[j + 1];
    }
#pragma GCC unroll 8
    for (int i = 0; i < matrix.columns; i++) {
        V sum = static_cast<float>(matrix.entry[1][i]) * pairs[i % 2][1];
#pragma GCC unroll 8
        for (int j = 3; j < last; j += 2) sum += static_cast<float>(matrix.entry[j][i]) * pairs[i % 2][j];
        if (matrix.entry[0][i] != 0) sum += static_cast<float>(matrix.entry[0][i]) * in[0];
        if (matrix.entry[last][i] != 0) sum += static_cast<float>(matrix.entry[last][i]) * in[last];
        out[i] = sum;
    }
}

/// Along both axes: read(i, j) gives element (i, j) of the square, write(i, j, v) takes one of the result.
template <const auto& matrix, class Read, class Write>
inline __attribute__((always_inline)) void expand_square(Read read, Write write) {
    V half[matrix.rows][matrix.columns];
#pragma GCC unroll 8
    for (int j = 0; j < matrix.columns; j++) {
        V in[matrix.columns], out[matrix.rows];
#pragma GCC unroll 8
        for (int i = 0; i < matrix.columns; i++) in[i] = read(i, j);
        expand<matrix>(in, out);
#pragma GCC unroll 8
        for (int i = 0; i < matrix.rows; i++) half[i][j] = out[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < matrix.rows; i++) {
        V out[matrix.rows];
        expand<matrix>(half[i], out);
#pragma GCC unroll 8
        for (int j = 0; j < matrix.rows; j++) write(i, j, out[j]);
    }
}

template <const auto& matrix, class Read, class Write>
inline __attribute__((always_inline)) void contract_square(Read read, Write write) {
    V half[matrix.columns][matrix.rows];
#pragma GCC unroll 8
    for (int j = 0; j < matrix.rows; j++) {
        V in[matrix.rows], out[matrix.columns];
#pragma GCC unroll 8
        for (int i = 0; i < matrix.rows; i++) in[i] = read(i, j);
        contract<matrix>(in, out);
#pragma GCC unroll 8
        for (int i = 0; i < matrix.columns; i++) half[i][j] = out[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < matrix.columns; i++) {
        V out[matrix.columns];
        contract<matrix>(half[i], out);
#pragma GCC unroll 8
        for (int j = 0; j < matrix.columns; j++) write(i, j, out[j]);
    }
}

}  // namespace magmadnn::cpu::winograd
