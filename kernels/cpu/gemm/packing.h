// The operands of a product as the micro-kernel wants them. The second is cut into panels a few vectors wide,
// each stored [depth][lanes], the first may be cut into strips of few rows. Lanes past the last column hold
// anything: no column of the product depends on another.
#pragma once
#include <algorithm>
#include <cstdint>

#include "gemm/micro_kernel.h"

namespace magmadnn::cpu {

/// `columns` columns cut into panels whose widths, in vectors, differ by one at most.
template <class T>
class Panels {
  public:
    explicit Panels(int64_t columns = 0)
        : columns_(columns),
          vectors_((columns + lanes<T> - 1) / lanes<T>),
          count_((vectors_ + register_tile.max_vectors - 1) / register_tile.max_vectors) {}

    int64_t count() const { return count_; }
    int64_t columns() const { return columns_; }
    /// Elements of a packed row over all panels: the columns, and what fills the last vector.
    int64_t lanes_in_row() const { return vectors_ * lanes<T>; }
    /// First column of a panel; packed with depth k, the panel starts at element k * first(panel).
    int64_t first(int64_t panel) const { return vectors_ * panel / count_ * lanes<T>; }
    int64_t packed_lanes(int64_t panel) const { return first(panel + 1) - first(panel); }
    int columns_of(int64_t panel) const {
        return static_cast<int>(std::min(first(panel + 1), columns_) - first(panel));
    }

  private:
    int64_t columns_;
    int64_t vectors_;
    int64_t count_;
};

/// packed[k][j] = b[k * stride + j] for j < columns, up to packed_lanes anything.
template <class T>
void pack(const T* b, int64_t stride, int64_t depth, int columns, int64_t packed_lanes, T* packed);

/// Packs panels [first, end) of b, a few rows of all of them at a time, as memory is read best.
template <class T>
void pack_panels(const Panels<T>& panels, int64_t first, int64_t end, const T* b, int64_t stride,
                 int64_t depth, T* packed);

/// packed[k][j] = b[index[k] + j] for j < columns, up to packed_lanes anything.
template <class T>
void pack_indexed(const T* b, const int32_t* index, int64_t depth, int columns, int64_t packed_lanes,
                  T* packed);

/// packed[k][j] = b[j * stride + k] for j < columns, up to packed_lanes anything. Writes up to a vector past
/// the end where packed_lanes is not whole vectors.
template <class T>
void pack_transposed(const T* b, int64_t stride, int64_t depth, int columns, int64_t packed_lanes, T* packed);

/// The strips of `rows` rows of a: A(i,k) = a[i * stride + k], or transposed a[k * stride + i].
template <class T>
void pack_strips(const T* a, int64_t stride, bool transposed, int64_t rows, int64_t depth, T* packed);

/// Elements that pack_strips writes.
template <class T>
int64_t strip_elements(int64_t rows, int64_t depth) {
    return tiles_of(rows).parts * strip_rows * depth + lanes<T>;
}

}  // namespace magmadnn::cpu
