#include "tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace magmadnn {

namespace {

/// Lowest and highest offset, in elements, that a view reaches from its first element.
struct Reach {
    int64_t low = 0;
    int64_t high = 0;
};

Reach reach_of(const Shape& shape, const Shape& strides) {
    Reach reach;
    if (checked_count(shape) == 0) return reach;
    for (size_t axis = 0; axis < shape.size(); axis++) {
        int64_t span;
        int64_t& end = strides[axis] < 0 ? reach.low : reach.high;
        if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &span) ||
            __builtin_add_overflow(end, span, &end))
            throw std::overflow_error("strides: the extent of the view does not fit in 64 bits");
    }
    return reach;
}

/// C conversion, except that a float that an integer type cannot hold gives its lowest value (in C:
/// undefined).
template <class Target, class Source>
Target convert(Source value) {
    if constexpr (std::is_same_v<Target, bool>) {
        return value != Source{0};
    } else if constexpr (std::is_integral_v<Target> && std::is_floating_point_v<Source>) {
        // The highest int64 is no float, but the power of two above it is.
        constexpr auto lowest = std::numeric_limits<Target>::min();
        constexpr Source end = Source{2} * static_cast<Source>(std::numeric_limits<Target>::max() / 2 + 1);
        return value >= static_cast<Source>(lowest) && value < end ? static_cast<Target>(value) : lowest;
    } else {
        return static_cast<Target>(value);
    }
}

/// Foreign bool memory may hold bytes other than 0 and 1, which a C++ bool may not.
template <class T>
T load(const T* p) {
    if constexpr (std::is_same_v<T, bool>)
        return *reinterpret_cast<const uint8_t*>(p) != 0;
    else
        return *p;
}

/// Calls row(offset in a, offset in b, count, stride in a, stride in b) for every innermost row of two
/// layouts of one non-empty shape. Axes that lie behind each other in both layouts are walked as one.
template <class Row>
void for_each_row(const Shape& shape, const Shape& a, const Shape& b, Row&& row) {
    Shape extents, a_strides, b_strides;
    for (size_t axis = 0; axis < shape.size(); axis++) {
        const int64_t extent = shape[axis];
        if (extent == 1) continue;
        if (!extents.empty() && a_strides.back() == a[axis] * extent &&
            b_strides.back() == b[axis] * extent) {
            extents.back() *= extent;
            a_strides.back() = a[axis];
            b_strides.back() = b[axis];
        } else {
            extents.push_back(extent);
            a_strides.push_back(a[axis]);
            b_strides.push_back(b[axis]);
        }
    }
    if (extents.empty()) return row(0, 0, 1, 1, 1);

    const int last = static_cast<int>(extents.size()) - 1;
    Shape index(last, 0);
    int64_t a_offset = 0, b_offset = 0;
    for (int axis = 0; axis >= 0;) {
        row(a_offset, b_offset, extents[last], a_strides[last], b_strides[last]);
        for (axis = last - 1; axis >= 0; axis--) {
            a_offset += a_strides[axis];
            b_offset += b_strides[axis];
            if (++index[axis] < extents[axis]) break;
            a_offset -= a_strides[axis] * extents[axis];
            b_offset -= b_strides[axis] * extents[axis];
            index[axis] = 0;
        }
    }
}

template <class Target, class Source>
void convert_row(Target* target, int64_t target_stride, const Source* source, int64_t source_stride,
                 int64_t count) {
    if (target_stride == 1 && source_stride == 1) {
        if constexpr (std::is_same_v<Target, Source>)
            std::memcpy(target, source, count * sizeof(Target));
        else
            for (int64_t i = 0; i < count; i++) target[i] = convert<Target>(load(source + i));
    } else {
        for (int64_t i = 0; i < count; i++)
            target[i * target_stride] = convert<Target>(load(source + i * source_stride));
    }
}

void copy_values(const Tensor& target, const Tensor& source) {
    dispatch(target.dtype(), [&](auto target_value) {
        dispatch(source.dtype(), [&](auto source_value) {
            auto* to = static_cast<decltype(target_value)*>(target.data());
            const auto* from = static_cast<const decltype(source_value)*>(source.data());
            for_each_row(target.shape(), target.strides(), source.strides(),
                         [&](int64_t a, int64_t b, int64_t count, int64_t a_stride, int64_t b_stride) {
                             convert_row(to + a, a_stride, from + b, b_stride, count);
                         });
        });
    });
}

template <class Value>
void fill_values(const Tensor& target, Value value) {
    if (target.size() == 0) return;
    dispatch(target.dtype(), [&](auto element) {
        using T = decltype(element);
        const T converted = convert<T>(value);
        T* to = static_cast<T*>(target.data());
        for_each_row(target.shape(), target.strides(), target.strides(),
                     [&](int64_t offset, int64_t, int64_t count, int64_t stride, int64_t) {
                         for (int64_t i = 0; i < count; i++) to[offset + i * stride] = converted;
                     });
    });
}

/// Whether the address ranges of two non-empty tensors meet.
bool may_overlap(const Tensor& a, const Tensor& b) {
    auto range = [](const Tensor& tensor) {
        const Reach reach = reach_of(tensor.shape(), tensor.strides());
        const auto item = static_cast<int64_t>(size_of(tensor.dtype()));
        const auto base = reinterpret_cast<intptr_t>(tensor.data());
        return std::pair(base + reach.low * item, base + (reach.high + 1) * item);
    };
    const auto [a_begin, a_end] = range(a);
    const auto [b_begin, b_end] = range(b);
    return a_begin < b_end && b_begin < a_end;
}

int checked_axis(const char* method, int axis, int rank) {
    if (axis < -rank || axis >= rank)
        throw std::invalid_argument(std::string(method) + ": axis is " + std::to_string(axis) +
                                    ", wanted one of a tensor of rank " + std::to_string(rank));
    return axis < 0 ? axis + rank : axis;
}

/// `shape` with its -1 replaced by what makes it `size` elements.
Shape resolved(const Shape& from, Shape shape) {
    const auto fail = [&] {
        throw std::invalid_argument("reshape: shape is " + to_string(shape) +
                                    ", which does not hold the elements of a tensor of shape " +
                                    to_string(from));
    };
    const int64_t size = element_count(from);
    const auto unknown = std::find(shape.begin(), shape.end(), -1);
    if (unknown != shape.end()) {
        Shape known = shape;
        known.erase(known.begin() + (unknown - shape.begin()));
        if (std::find(known.begin(), known.end(), -1) != known.end())
            throw std::invalid_argument("reshape: shape is " + to_string(shape) + ", wanted at most one -1");
        const int64_t count = checked_count(known);
        if (count == 0 || size % count != 0) fail();
        shape[unknown - shape.begin()] = size / count;
    } else if (checked_count(shape) != size) {
        fail();
    }
    return shape;
}

}  // namespace

std::string to_string(const Shape& shape) {
    std::string text = "(";
    for (size_t i = 0; i < shape.size(); i++) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

Shape row_major_strides(const Shape& shape) {
    Shape strides(shape.size());
    int64_t stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
        strides[axis] = stride;
        stride *= std::max<int64_t>(shape[axis], 1);
    }
    return strides;
}

Tensor::Tensor(const TensorType& type, MemoryKind memory)
    : dtype_(type.dtype),
      shape_(type.shape),
      storage_(Storage::allocate(checked_bytes(type.shape, type.dtype), memory)) {
    strides_ = row_major_strides(shape_);
}

Tensor::Tensor(DType dtype, Shape shape, Shape strides, int64_t offset, std::shared_ptr<Storage> storage)
    : dtype_(dtype),
      shape_(std::move(shape)),
      strides_(std::move(strides)),
      offset_(offset),
      storage_(std::move(storage)) {
    if (strides_.size() != shape_.size())
        throw std::invalid_argument("strides: got " + to_string(strides_) +
                                    ", wanted one for each extent of " + to_string(shape_));
    const Reach reach = reach_of(shape_, strides_);
    const auto capacity = static_cast<int64_t>(storage_->bytes() / size_of(dtype_));
    const int64_t last = checked_bytes(shape_, dtype_) == 0 ? -1 : reach.high;
    if (offset_ < 0 || offset_ > capacity || reach.low < -offset_ || last >= capacity - offset_)
        throw std::out_of_range("tensor: shape " + to_string(shape_) + " with strides " +
                                to_string(strides_) + " at offset " + std::to_string(offset_) +
                                " reaches outside of a storage of " + std::to_string(capacity) + " elements");
}

Tensor Tensor::wrap(void* data, DType dtype, Shape shape, Shape strides, std::shared_ptr<void> owner) {
    const Reach reach = reach_of(shape, strides);
    const auto item = static_cast<int64_t>(size_of(dtype));
    const bool empty = checked_bytes(shape, dtype) == 0;
    if (!empty && reinterpret_cast<uintptr_t>(data) % item != 0)
        throw std::invalid_argument("tensor: the data is not aligned to its " + std::to_string(item) +
                                    "-byte elements");
    int64_t bytes = 0;
    if (!empty && (__builtin_sub_overflow(reach.high, reach.low, &bytes) ||
                   __builtin_add_overflow(bytes, 1, &bytes) || __builtin_mul_overflow(bytes, item, &bytes)))
        throw std::overflow_error("strides: the extent of the view does not fit in 64 bits");
    void* base = empty ? data : static_cast<char*>(data) + reach.low * item;
    auto storage =
        std::make_shared<Storage>(base, static_cast<size_t>(bytes), MemoryKind::host, std::move(owner));
    return {dtype, std::move(shape), std::move(strides), -reach.low, std::move(storage)};
}

bool Tensor::is_contiguous() const {
    if (size() == 0) return true;
    const Shape wanted = row_major_strides(shape_);
    for (int axis = 0; axis < rank(); axis++)
        if (shape_[axis] != 1 && strides_[axis] != wanted[axis]) return false;
    return true;
}

Tensor Tensor::astype(DType dtype) const {
    Tensor result({dtype, shape_}, memory());
    if (size() != 0) copy_values(result, *this);
    return result;
}

Tensor Tensor::select(int axis, int64_t index) const {
    axis = checked_axis("index", axis, rank());
    const int64_t extent = shape_[axis];
    if (index < -extent || index >= extent)
        throw std::out_of_range("index: got " + std::to_string(index) + " for axis " + std::to_string(axis) +
                                " of a tensor of shape " + to_string(shape_));
    Tensor view = *this;
    view.offset_ += (index < 0 ? index + extent : index) * strides_[axis];
    view.shape_.erase(view.shape_.begin() + axis);
    view.strides_.erase(view.strides_.begin() + axis);
    return view;
}

Tensor Tensor::slice(int axis, int64_t start, int64_t step, int64_t count) const {
    axis = checked_axis("slice", axis, rank());
    const int64_t extent = shape_[axis];
    Tensor view = *this;
    view.shape_[axis] = count;
    if (count == 0) return view;
    // |step| > extent is legal with one element, and would overflow the stride.
    const int64_t last = count == 1 ? start : start + (count - 1) * step;
    if (count < 0 || start < 0 || start >= extent || last < 0 || last >= extent)
        throw std::out_of_range("slice: " + std::to_string(count) + " elements from " +
                                std::to_string(start) + " leave axis " + std::to_string(axis) + " of " +
                                to_string(shape_));
    view.offset_ += start * strides_[axis];
    if (count > 1) view.strides_[axis] *= step;
    return view;
}

Tensor Tensor::transpose(const std::vector<int>& axes) const {
    const auto fail = [&] {
        throw std::invalid_argument("transpose: axes are " + to_string(Shape(axes.begin(), axes.end())) +
                                    ", wanted each axis of a tensor of rank " + std::to_string(rank()) +
                                    " once");
    };
    if (axes.size() != shape_.size()) fail();
    Tensor view = *this;
    std::vector<bool> used(axes.size());
    for (size_t i = 0; i < axes.size(); i++) {
        const int axis = checked_axis("transpose", axes[i], rank());
        if (used[axis]) fail();
        used[axis] = true;
        view.shape_[i] = shape_[axis];
        view.strides_[i] = strides_[axis];
    }
    return view;
}

Tensor Tensor::squeeze(std::optional<int> axis) const {
    if (axis) {
        const int one = checked_axis("squeeze", *axis, rank());
        if (shape_[one] != 1)
            throw std::invalid_argument("squeeze: axis " + std::to_string(*axis) + " of a tensor of shape " +
                                        to_string(shape_) + " is not of extent 1");
        return select(one, 0);
    }
    Tensor view = *this;
    for (int i = rank() - 1; i >= 0; i--)
        if (shape_[i] == 1) view = view.select(i, 0);
    return view;
}

Tensor Tensor::expand_dims(int axis) const {
    axis = checked_axis("expand_dims", axis, rank() + 1);
    Tensor view = *this;
    view.shape_.insert(view.shape_.begin() + axis, 1);
    view.strides_.insert(view.strides_.begin() + axis, axis < rank() ? shape_[axis] * strides_[axis] : 1);
    return view;
}

Tensor Tensor::reshape(Shape shape) const {
    shape = resolved(shape_, std::move(shape));
    Tensor view = *this;
    if (auto strides = strides_for(shape)) {
        view.shape_ = std::move(shape);
        view.strides_ = std::move(*strides);
        return view;
    }
    view = copy();
    view.strides_ = row_major_strides(shape);
    view.shape_ = std::move(shape);
    return view;
}

// Both shapes are cut into the smallest groups of axes of equal size; a group needs no copy if the old axes
// in it lie behind each other in memory.
std::optional<Shape> Tensor::strides_for(const Shape& shape) const {
    if (is_contiguous()) return row_major_strides(shape);
    Shape old_shape, old_strides;
    for (int axis = 0; axis < rank(); axis++) {
        if (shape_[axis] == 1) continue;
        old_shape.push_back(shape_[axis]);
        old_strides.push_back(strides_[axis]);
    }
    Shape strides(shape.size(), 1);
    size_t old_end = 0, new_end = 0;
    while (old_end < old_shape.size()) {
        const size_t old_begin = old_end, new_begin = new_end;
        int64_t old_count = old_shape[old_end++], new_count = shape[new_end++];
        while (old_count != new_count) {
            if (old_count < new_count)
                old_count *= old_shape[old_end++];
            else
                new_count *= shape[new_end++];
        }
        for (size_t axis = old_begin; axis + 1 < old_end; axis++)
            if (old_strides[axis] != old_shape[axis + 1] * old_strides[axis + 1]) return std::nullopt;
        int64_t stride = old_strides[old_end - 1];
        for (size_t axis = new_end; axis-- > new_begin;) {
            strides[axis] = stride;
            stride *= shape[axis];
        }
    }
    return strides;
}

void Tensor::fill(double value) { fill_values(*this, value); }
void Tensor::fill(int64_t value) { fill_values(*this, value); }

void Tensor::copy_from(const Tensor& source) {
    if (source.shape_ != shape_)
        throw std::invalid_argument("copy_from: got shape " + to_string(source.shape_) + ", wanted " +
                                    to_string(shape_));
    if (size() == 0) return;
    copy_values(*this, may_overlap(*this, source) ? source.copy() : source);
}

}  // namespace magmadnn
