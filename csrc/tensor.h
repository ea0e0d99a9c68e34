// Tensor: a strided view of a storage. Copying the C++ object gives another view of the same memory; copy()
// gives new memory. Arithmetic is not done here but by programs.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "kernel.h"
#include "memory.h"

namespace magmadnn {

/// "(2, 3)", as Python prints it.
std::string to_string(const Shape& shape);

/// Strides of a contiguous row-major tensor, in elements.
Shape row_major_strides(const Shape& shape);

class Tensor {
  public:
    /// New, uninitialised, contiguous row-major memory.
    explicit Tensor(const TensorType& type, MemoryKind memory = MemoryKind::host);

    /// A view of `storage`; strides and offset count elements. Throws std::out_of_range where an element
    /// would lie outside of the storage.
    Tensor(DType dtype, Shape shape, Shape strides, int64_t offset, std::shared_ptr<Storage> storage);

    /// A view of foreign host memory whose element [0, ..., 0] is at `data`; `owner` is kept while any view
    /// lives. Throws std::invalid_argument where `data` is not aligned to the element type.
    static Tensor wrap(void* data, DType dtype, Shape shape, Shape strides, std::shared_ptr<void> owner);

    DType dtype() const { return dtype_; }
    const Shape& shape() const { return shape_; }
    const Shape& strides() const { return strides_; }
    int64_t offset() const { return offset_; }
    const std::shared_ptr<Storage>& storage() const { return storage_; }
    MemoryKind memory() const { return storage_->memory(); }
    TensorType type() const { return {dtype_, shape_}; }
    int rank() const { return static_cast<int>(shape_.size()); }
    int64_t size() const { return element_count(shape_); }
    size_t bytes() const { return static_cast<size_t>(size()) * size_of(dtype_); }
    bool is_contiguous() const;

    /// Address of element [0, ..., 0].
    void* data() const {
        return static_cast<char*>(storage_->data()) + offset_ * static_cast<int64_t>(size_of(dtype_));
    }

    /// New contiguous tensors.
    Tensor copy() const { return astype(dtype_); }
    Tensor astype(DType dtype) const;
    /// *this where it is contiguous already, else a copy.
    Tensor contiguous() const { return is_contiguous() ? *this : copy(); }

    /// Views. Axes may be negative; a bad one is a std::invalid_argument, a bad index a std::out_of_range.
    Tensor select(int axis, int64_t index) const;
    /// `count` elements of an axis from `start`, `step` apart (as PySlice_AdjustIndices gives them).
    Tensor slice(int axis, int64_t start, int64_t step, int64_t count) const;
    Tensor transpose(const std::vector<int>& axes) const;
    Tensor squeeze(std::optional<int> axis) const;
    Tensor expand_dims(int axis) const;
    /// A view where the strides allow one, else a copy. One extent may be -1.
    Tensor reshape(Shape shape) const;

    void fill(double value);
    void fill(int64_t value);

    /// Copies values, converting the dtype (see convert in tensor.cpp). Shapes must be equal; the two may
    /// overlap.
    void copy_from(const Tensor& source);

  private:
    /// The strides of this tensor under another shape of equal size, if no copy is needed.
    std::optional<Shape> strides_for(const Shape& shape) const;

    DType dtype_;
    Shape shape_;
    Shape strides_;
    int64_t offset_ = 0;
    std::shared_ptr<Storage> storage_;
};

}  // namespace magmadnn
