// Pieces that the memory-bound kernels share: partial vectors, conversions, walks over axes, cutting work up.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernel.h"
#include "simd.h"

namespace magmadnn::cpu {

/// The first `count` < lanes<T> elements at p; the other lanes hold `fill`.
template <class T>
inline Vector<T> load_partial(const T* p, int64_t count, T fill = T{}) {
    T elements[lanes<T>];
    for (int i = 0; i < lanes<T>; i++) elements[i] = fill;
    for (int i = 0; i < count; i++) elements[i] = p[i];
    return load(elements);
}

template <class T>
inline void store_partial(T* p, Vector<T> v, int64_t count) {
    T elements[lanes<T>];
    store(elements, v);
    for (int i = 0; i < count; i++) p[i] = elements[i];
}

/// Sum of the lanes, as a tree: the order is the same whatever the compiler does around it.
template <class T>
inline T sum_lanes(Vector<T> v) {
    T elements[lanes<T>];
    store(elements, v);
    for (int width = lanes<T> / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) elements[i] += elements[i + width];
    return elements[0];
}

/// The type a dtype is read and written as: a bool is a byte that is 0 or 1.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

/// C conversion of an element; to bool it is x != 0.
template <class To, class From>
inline Stored<To> convert(From x) {
    if constexpr (std::is_same_v<To, bool>)
        return x != From(0);
    else
        return static_cast<To>(x);
}

template <class From, class To>
inline void convert_loop(const Stored<From>* __restrict in, Stored<To>* __restrict out, int64_t n) {
    if constexpr (std::is_same_v<From, To>)
        std::memcpy(out, in, static_cast<size_t>(n) * sizeof(From));
    else
        for (int64_t i = 0; i < n; i++) out[i] = convert<To>(in[i]);
}

/// Items per thread below which waking another thread costs more than it saves.
inline int64_t grain_for(double nanoseconds_per_item) {
    return std::max<int64_t>(1, static_cast<int64_t>(10000.0 / std::max(nanoseconds_per_item, 1e-3)));
}

/// A cut of [0, count) in equal contiguous parts that have a number, for kernels that keep partial sums per
/// part.
struct Parts {
    int64_t count;
    int64_t parts;

    Parts(int64_t count, int64_t grain, int threads)
        : count(count), parts(std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, threads)) {}
    int64_t begin(int64_t part) const { return count * part / parts; }
    int64_t end(int64_t part) const { return count * (part + 1) / parts; }
};

/// Hands out pieces of a kernel's workspace, each 64-byte aligned. Without a base it only adds up the bytes.
class Carver {
  public:
    explicit Carver(void* base = nullptr) : base_(static_cast<char*>(base)) {}

    template <class T>
    T* take(int64_t count) {
        T* piece = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
        used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
        return piece;
    }
    size_t used() const { return used_; }

  private:
    char* base_;
    size_t used_ = 0;
};

/// Row-major strides, in elements.
inline Shape strides_of(const Shape& shape) {
    Shape strides(shape.size(), 1);
    for (int i = static_cast<int>(shape.size()) - 2; i >= 0; i--) strides[i] = strides[i + 1] * shape[i + 1];
    return strides;
}

/// Strides with which a tensor of `shape` is walked as if it were `target` (NumPy broadcasting): 0 on
/// repeated axes.
inline Shape broadcast_strides(const Shape& shape, const Shape& target) {
    const Shape own = strides_of(shape);
    Shape strides(target.size(), 0);
    const size_t shift = target.size() - shape.size();
    for (size_t i = 0; i < shape.size(); i++)
        if (shape[i] == target[i + shift] && shape[i] != 1) strides[i + shift] = own[i];
    return strides;
}

/// Axes that several tensors are walked over together.
struct Walk {
    Shape extents;
    std::vector<Shape> strides;  // of each tensor
    int rank() const { return static_cast<int>(extents.size()); }
};

/// Drops axes of extent 1 and merges neighbours that every tensor walks as one. Leaves at least one axis.
inline Walk collapse(const Shape& extents, const std::vector<Shape>& strides) {
    Walk walk{{}, std::vector<Shape>(strides.size())};
    for (size_t axis = 0; axis < extents.size(); axis++) {
        if (extents[axis] == 1) continue;
        bool merges = !walk.extents.empty();
        for (size_t t = 0; t < strides.size() && merges; t++)
            merges = walk.strides[t].back() == strides[t][axis] * extents[axis];
        if (merges)
            walk.extents.back() *= extents[axis];
        else
            walk.extents.push_back(extents[axis]);
        for (size_t t = 0; t < strides.size(); t++) {
            if (!merges) walk.strides[t].push_back(0);
            walk.strides[t].back() = strides[t][axis];
        }
    }
    if (walk.extents.empty()) {
        walk.extents.push_back(1);
        for (Shape& s : walk.strides) s.push_back(0);
    }
    return walk;
}

inline constexpr int max_rank = 16;

/// A position in a walk over `rank` axes: the index along each, and the offset of one tensor.
struct Odometer {
    int64_t index[max_rank];
    int64_t offset = 0;

    void set(int64_t position, const int64_t* extents, const int64_t* strides, int rank) {
        offset = 0;
        for (int axis = rank - 1; axis >= 0; axis--) {
            index[axis] = position % extents[axis];
            position /= extents[axis];
            offset += index[axis] * strides[axis];
        }
    }
    void next(const int64_t* extents, const int64_t* strides, int rank) {
        for (int axis = rank - 1; axis >= 0; axis--) {
            offset += strides[axis];
            if (++index[axis] < extents[axis]) return;
            offset -= extents[axis] * strides[axis];
            index[axis] = 0;
        }
    }
};

}  // namespace magmadnn::cpu
