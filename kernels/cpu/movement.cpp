// Ops that move or convert elements and compute nothing: copy, transpose, broadcast_to, concatenate, slice,
// pad, gather, scatter_add, one_hot, cast. Most work on elements of 1, 4 or 8 bytes, whatever their type.
#include "loops.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

constexpr double nanoseconds_per_byte = 0.1;  // a copy: one read, one write

int64_t grain_for_bytes(int64_t bytes_per_item) {
    return grain_for(nanoseconds_per_byte * static_cast<double>(bytes_per_item));
}

int64_t bytes_of(const TensorType& type) { return static_cast<int64_t>(size_of(type.dtype)); }

/// Calls `function` with a value of an unsigned type of this size.
template <class Function>
void dispatch_size(int64_t bytes, Function&& function) {
    if (bytes == 1) return function(uint8_t{});
    if (bytes == 4) return function(uint32_t{});
    function(uint64_t{});
}

/// The bytes of `value` as an element of `dtype`, in the low bits.
uint64_t element_bits(double value, DType dtype) {
    return dispatch(dtype, [&](auto type) -> uint64_t {
        using T = decltype(type);
        const Stored<T> element = convert<T>(value);
        if constexpr (sizeof(T) == 8)
            return __builtin_bit_cast(uint64_t, element);
        else if constexpr (sizeof(T) == 4)
            return __builtin_bit_cast(uint32_t, element);
        else
            return element;
    });
}

// --- strided copy

// Strides are in elements.
using CopyRow = void (*)(const void* source, int64_t source_stride, void* target, int64_t target_stride,
                         int64_t n);
using CopySquare = void (*)(const void* source, int64_t source_x, void* target, int64_t target_y,
                            int64_t height, int64_t width);

template <class E>
void copy_row(const void* source_, int64_t a, void* target_, int64_t b, int64_t n) {
    auto* source = static_cast<const E*>(source_);
    auto* target = static_cast<E*>(target_);
    if (a == 1 && b == 1 && n >= 16)
        std::memcpy(target, source, static_cast<size_t>(n) * sizeof(E));
    else if (a == 0 && b == 1)
        std::fill_n(target, n, *source);
    else
        for (int64_t i = 0; i < n; i++) target[i * b] = source[i * a];
}

/// target[y][x] = source[x][y]
template <class E>
void copy_square(const void* source_, int64_t source_x, void* target_, int64_t target_y, int64_t height,
                 int64_t width) {
    auto* source = static_cast<const E*>(source_);
    auto* target = static_cast<E*>(target_);
    int64_t whole_y = 0, whole_x = 0;
    if constexpr (sizeof(E) == 4) {  // four by four in registers
        typedef uint32_t Four __attribute__((vector_size(16), aligned(4), may_alias));
        whole_y = height / 4 * 4, whole_x = width / 4 * 4;
        for (int64_t y = 0; y < whole_y; y += 4)
            for (int64_t x = 0; x < whole_x; x += 4) {
                Four in[4];
                for (int i = 0; i < 4; i++)
                    in[i] = *reinterpret_cast<const Four*>(source + (x + i) * source_x + y);
                const Four a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
                const Four b = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
                const Four c = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
                const Four d = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
                const Four out[4] = {
                    __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
                    __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
                for (int i = 0; i < 4; i++)
                    *reinterpret_cast<Four*>(target + (y + i) * target_y + x) = out[i];
            }
    }
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = y < whole_y ? whole_x : 0; x < width; x++)
            target[y * target_y + x] = source[x * source_x + y];
}

/// Copies a block of elements between two layouts given by strides. Strides may be 0 or negative at the
/// source.
class StridedCopy {
  public:
    StridedCopy(const Shape& extents, const Shape& source, const Shape& target, int64_t element_bytes)
        : bytes_(element_bytes) {
        walk_ = collapse(extents, {source, target});
        count_ = element_count(walk_.extents);
        Shape& from = walk_.strides[0];
        const int last = walk_.rank() - 1;
        if (walk_.strides[1][last] == 1 && from[last] != 1 && from[last] != 0)
            for (int axis = 0; axis < last && !transposes_; axis++)
                if (from[axis] == 1) {  // contiguous at the source: make it the last but one
                    for (Shape* list : {&walk_.extents, &walk_.strides[0], &walk_.strides[1]})
                        std::rotate(list->begin() + axis, list->begin() + axis + 1, list->end() - 1);
                    transposes_ = true;
                }
        dispatch_size(bytes_, [&](auto element) {
            copy_row_ = copy_row<decltype(element)>;
            copy_square_ = copy_square<decltype(element)>;
        });
    }

    void run(const char* source, char* target, ThreadPool& pool) const {
        if (count_ == 0) return;
        if (transposes_)
            run_squares(source, target, pool);
        else
            run_rows(source, target, pool);
    }

  private:
    // Units are pieces of the last axis (rows) or bands of the last but one (squares), so that threads can
    // share the work even where the outer axes are short.
    static constexpr int64_t piece = 16384;
    static constexpr int64_t band = 32;

    /// body(source offset, target offset, unit) for all units of all positions of the outer axes.
    template <class Body>
    void each_unit(int64_t units, int64_t elements_per_unit, int inner_axes, ThreadPool& pool,
                   Body&& body) const {
        const int rank = walk_.rank() - inner_axes;
        const int64_t* extents = walk_.extents.data();
        const int64_t *source = walk_.strides[0].data(), *target = walk_.strides[1].data();
        int64_t outer = 1;
        for (int axis = 0; axis < rank; axis++) outer *= extents[axis];
        pool.ranges(outer * units, grain_for_bytes(elements_per_unit * bytes_),
                    [&](int64_t begin, int64_t end, int) {
                        Odometer from, to;
                        from.set(begin / units, extents, source, rank);
                        to.set(begin / units, extents, target, rank);
                        int64_t unit = begin % units;
                        for (int64_t i = begin; i < end; i++) {
                            body(from.offset, to.offset, unit);
                            if (++unit < units) continue;
                            unit = 0;
                            from.next(extents, source, rank);
                            to.next(extents, target, rank);
                        }
                    });
    }

    void run_rows(const char* source, char* target, ThreadPool& pool) const {
        const int last = walk_.rank() - 1;
        const int64_t extent = walk_.extents[last], a = walk_.strides[0][last], b = walk_.strides[1][last];
        each_unit((extent + piece - 1) / piece, std::min(extent, piece), 1, pool,
                  [&](int64_t from, int64_t to, int64_t unit) {
                      const int64_t start = unit * piece;
                      copy_row_(source + (from + start * a) * bytes_, a, target + (to + start * b) * bytes_,
                                b, std::min(piece, extent - start));
                  });
    }

    /// target[y][x] = source[x][y], in squares that stay in the cache.
    void run_squares(const char* source, char* target, ThreadPool& pool) const {
        const int x_axis = walk_.rank() - 1, y_axis = x_axis - 1;
        const int64_t width = walk_.extents[x_axis], height = walk_.extents[y_axis];
        const int64_t source_x = walk_.strides[0][x_axis], target_y = walk_.strides[1][y_axis];
        each_unit((height + band - 1) / band, band * width, 2, pool,
                  [&](int64_t from, int64_t to, int64_t unit) {
                      const int64_t top = unit * band;
                      for (int64_t left = 0; left < width; left += band)
                          copy_square_(source + (from + top + left * source_x) * bytes_, source_x,
                                       target + (to + top * target_y + left) * bytes_, target_y,
                                       std::min(band, height - top), std::min(band, width - left));
                  });
    }

    Walk walk_;
    int64_t bytes_, count_;
    bool transposes_ = false;
    CopyRow copy_row_;
    CopySquare copy_square_;
};

/// An op that is one strided copy, from an offset in the source.
class CopyKernel : public Kernel {
  public:
    CopyKernel(const Signature& s, const Shape& strides, int64_t offset = 0)
        : copy_(s.outputs[0].shape, strides, strides_of(s.outputs[0].shape), bytes_of(s.outputs[0])),
          offset_(offset * bytes_of(s.outputs[0])) {}
    void run(const Arguments& arguments, ThreadPool& pool) override {
        if (arguments.inputs[0] == arguments.outputs[0]) return;  // a copy in place
        copy_.run(arguments.input<char>(0) + offset_, arguments.output<char>(0), pool);
    }

  private:
    StridedCopy copy_;
    int64_t offset_;
};

bool keeps_dtype(const Signature& s) {
    for (const TensorType& input : s.inputs)
        if (input.dtype != s.outputs[0].dtype || input.rank() > max_rank) return false;
    return s.outputs[0].rank() <= max_rank;
}

std::unique_ptr<Kernel> create_copy(const Signature& s) {
    return std::make_unique<CopyKernel>(s, strides_of(s.outputs[0].shape));
}
bool supports_copy(const Signature& s) {
    return s.inputs[0].dtype == s.outputs[0].dtype && s.inputs[0].size() == s.outputs[0].size();
}

std::unique_ptr<Kernel> create_transpose(const Signature& s) {
    const Shape own = strides_of(s.inputs[0].shape);
    Shape strides;
    for (int64_t axis : s.attributes.integers("permutation")) strides.push_back(own[axis]);
    return std::make_unique<CopyKernel>(s, strides);
}

std::unique_ptr<Kernel> create_broadcast_to(const Signature& s) {
    return std::make_unique<CopyKernel>(s, broadcast_strides(s.inputs[0].shape, s.outputs[0].shape));
}

std::unique_ptr<Kernel> create_slice(const Signature& s) {
    Shape strides = strides_of(s.inputs[0].shape);
    int64_t offset = 0;
    for (size_t axis = 0; axis < strides.size(); axis++) {
        offset += s.attributes.integers("starts")[axis] * strides[axis];
        strides[axis] *= s.attributes.integers("steps")[axis];
    }
    return std::make_unique<CopyKernel>(s, strides, offset);
}

const Registration copy_("copy", "memcpy", 10, supports_copy, create_copy);
const Registration transpose("transpose", "squares", 10, keeps_dtype, create_transpose);
const Registration broadcast_to("broadcast_to", "rows", 10, keeps_dtype, create_broadcast_to);
const Registration slice("slice", "rows", 10, keeps_dtype, create_slice);

// --- concatenate

class Concatenate final : public Kernel {
  public:
    explicit Concatenate(const Signature& s) {
        const auto axis = static_cast<size_t>(s.attributes.integer("axis"));
        const Shape& shape = s.outputs[0].shape;
        int64_t inner = bytes_of(s.outputs[0]);
        for (size_t i = axis + 1; i < shape.size(); i++) inner *= shape[i];
        for (size_t i = 0; i < axis; i++) outer_ *= shape[i];
        for (const TensorType& input : s.inputs) pieces_.push_back(input.shape[axis] * inner);
        row_ = shape[axis] * inner;
    }

    /// Threads own ranges of the output's bytes, so that few long rows and many short ones are shared alike.
    void run(const Arguments& arguments, ThreadPool& pool) override {
        pool.ranges(outer_ * row_, grain_for_bytes(1), [&](int64_t begin, int64_t end, int) {
            auto* target = arguments.output<char>(0);
            for (int64_t outer = begin / row_; outer * row_ < end; outer++) {
                int64_t start = outer * row_;
                for (size_t i = 0; i < pieces_.size(); i++) {
                    const int64_t from = std::max(start, begin), to = std::min(start + pieces_[i], end);
                    const char* source = arguments.input<char>(static_cast<int>(i)) + outer * pieces_[i];
                    if (from < to)
                        std::memcpy(target + from, source + (from - start), static_cast<size_t>(to - from));
                    start += pieces_[i];
                }
            }
        });
    }

  private:
    int64_t outer_ = 1, row_;
    std::vector<int64_t> pieces_;  // bytes of each input in a row of the output
};

const Registration concatenate("concatenate", "rows", 10, keeps_dtype, create_kernel<Concatenate>);

// --- pad

class Pad final : public Kernel {
  public:
    explicit Pad(const Signature& s) {
        const Shape& shape = s.inputs[0].shape;
        bytes_ = bytes_of(s.inputs[0]);
        for (size_t i = 0; i < shape.size(); i++) {
            const Axis axis{shape[i], s.attributes.integers("low")[i], s.attributes.integers("high")[i],
                            s.attributes.integers("interior")[i] + 1};
            const bool plain = axis.low == 0 && axis.high == 0 && axis.step == 1;
            if (plain && !axes_.empty() && axes_.back().step == 1)
                axes_.back().scale(axis.extent);
            else
                axes_.push_back(axis);
        }
        if (axes_.empty()) axes_.push_back({1, 0, 0, 1});
        row_ = axes_.back();
        axes_.pop_back();
        for (const Axis& axis : axes_) padded_.push_back(axis.padded());
        Shape extents;
        for (const Axis& axis : axes_) extents.push_back(axis.extent);
        extents.push_back(row_.extent);
        strides_ = strides_of(extents);
        rows_ = s.outputs[0].size() / std::max<int64_t>(row_.padded(), 1);
        value_ = element_bits(s.attributes.number("value"), s.inputs[0].dtype);
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        if (row_.padded() == 0) return;
        pool.ranges(rows_, grain_for_bytes(row_.padded() * bytes_), [&](int64_t begin, int64_t end, int) {
            dispatch_size(bytes_, [&](auto element) {
                using E = decltype(element);
                for (int64_t r = begin; r < end; r++)
                    fill_row(arguments.input<E>(0), arguments.output<E>(0) + r * row_.padded(), r,
                             static_cast<E>(value_));
            });
        });
    }

  private:
    struct Axis {
        int64_t extent, low, high, step;  // step: 1 + elements put between neighbours

        int64_t padded() const { return low + std::max<int64_t>((extent - 1) * step + 1, 0) + high; }
        void scale(int64_t factor) {  // takes in an inner axis that is not padded
            extent *= factor;
            low *= factor;
            high *= factor;
        }
        /// Index in the source of a padded index, or -1 for padding.
        int64_t source(int64_t index) const {
            index -= low;
            return index >= 0 && index % step == 0 && index / step < extent ? index / step : -1;
        }
    };

    template <class E>
    void fill_row(const E* source, E* target, int64_t row, E value) const {
        int64_t offset = 0;
        for (int axis = static_cast<int>(axes_.size()) - 1; axis >= 0; axis--) {
            const int64_t index = axes_[axis].source(row % padded_[axis]);
            row /= padded_[axis];
            if (index < 0 || row_.extent == 0) {
                std::fill_n(target, row_.padded(), value);
                return;
            }
            offset += index * strides_[axis];
        }
        std::fill_n(target, row_.low, value);
        target += row_.low;
        if (row_.step == 1) {
            std::memcpy(target, source + offset, static_cast<size_t>(row_.extent) * sizeof(E));
            target += row_.extent;
        } else if (row_.extent > 0) {
            std::fill_n(target, (row_.extent - 1) * row_.step + 1, value);
            for (int64_t i = 0; i < row_.extent; i++) target[i * row_.step] = source[offset + i];
            target += (row_.extent - 1) * row_.step + 1;
        }
        std::fill_n(target, row_.high, value);
    }

    std::vector<Axis> axes_;  // outer ones
    Shape padded_, strides_;
    Axis row_;
    int64_t rows_, bytes_;
    uint64_t value_;
};

const Registration pad("pad", "rows", 10, keeps_dtype, create_kernel<Pad>);

// --- gather, scatter_add

/// Reads index i of an int32 or int64 tensor; negative indices count from the end.
class Indices {
  public:
    Indices(const char* op, const void* data, DType dtype, int64_t extent)
        : op_(op), data_(data), wide_(dtype == DType::int64), extent_(extent) {}

    int64_t operator[](int64_t i) const {
        const int64_t index =
            wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
        if (index < -extent_ || index >= extent_)
            throw std::out_of_range(std::string(op_) + ": indices: got " + std::to_string(index) +
                                    ", wanted -" + std::to_string(extent_) + " to " +
                                    std::to_string(extent_ - 1));
        return index < 0 ? index + extent_ : index;
    }

  private:
    const char* op_;
    const void* data_;
    bool wide_;
    int64_t extent_;
};

/// A tensor as [outer, axis, inner].
struct AxisView {
    int64_t outer = 1, extent, inner = 1;

    AxisView(const Shape& shape, int64_t axis) : extent(shape[axis]) {
        for (int64_t i = 0; i < axis; i++) outer *= shape[i];
        for (size_t i = axis + 1; i < shape.size(); i++) inner *= shape[i];
    }
};

bool has_indices(const TensorType& type) { return type.dtype == DType::int32 || type.dtype == DType::int64; }

class Gather final : public Kernel {
  public:
    explicit Gather(const Signature& s)
        : view_(s.inputs[0].shape, s.attributes.integer("axis")),
          index_dtype_(s.inputs[1].dtype),
          count_(s.inputs[1].size()),
          bytes_(bytes_of(s.inputs[0])) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        const Indices indices("gather", arguments.inputs[1], index_dtype_, view_.extent);
        const double cost = 2 + nanoseconds_per_byte * static_cast<double>(view_.inner * bytes_);
        pool.ranges(view_.outer * count_, grain_for(cost), [&](int64_t begin, int64_t end, int) {
            if (view_.inner != 1) return rows(arguments, indices, begin, end);
            dispatch_size(bytes_, [&](auto element) { singles(element, arguments, indices, begin, end); });
        });
    }

  private:
    void rows(const Arguments& arguments, const Indices& indices, int64_t begin, int64_t end) const {
        const int64_t bytes = view_.inner * bytes_;
        for (int64_t row = begin; row < end; row++)
            std::memcpy(
                arguments.output<char>(0) + row * bytes,
                arguments.input<char>(0) + (row / count_ * view_.extent + indices[row % count_]) * bytes,
                static_cast<size_t>(bytes));
    }
    template <class E>
    void singles(E, const Arguments& arguments, const Indices& indices, int64_t begin, int64_t end) const {
        int64_t outer = begin / count_, i = begin % count_;
        for (int64_t row = begin; row < end; row++) {
            arguments.output<E>(0)[row] = arguments.input<E>(0)[outer * view_.extent + indices[i]];
            if (++i == count_) i = 0, outer++;
        }
    }

    AxisView view_;
    DType index_dtype_;
    int64_t count_, bytes_;
};

bool supports_gather(const Signature& s) {
    return s.inputs[0].dtype == s.outputs[0].dtype && has_indices(s.inputs[1]);
}

const Registration gather("gather", "rows", 10, supports_gather, create_kernel<Gather>);

using AddRow = void (*)(const void* update, void* target, int64_t n);

template <class T>
void add_row(const void* update_, void* target_, int64_t n) {
    auto* __restrict update = static_cast<const Stored<T>*>(update_);
    auto* __restrict target = static_cast<Stored<T>*>(target_);
    for (int64_t i = 0; i < n; i++) {
        if constexpr (std::is_same_v<T, bool>)
            target[i] |= update[i];
        else if constexpr (std::is_integral_v<T>)  // wraps, as in NumPy
            target[i] = static_cast<T>(static_cast<uint64_t>(target[i]) + static_cast<uint64_t>(update[i]));
        else
            target[i] += update[i];
    }
}

class ScatterAdd final : public Kernel {
  public:
    explicit ScatterAdd(const Signature& s)
        : view_(s.outputs[0].shape, s.attributes.integer("axis")),
          index_dtype_(s.inputs[0].dtype),
          count_(s.inputs[0].size()),
          bytes_(bytes_of(s.outputs[0])) {
        add_row_ =
            dispatch(s.outputs[0].dtype, [](auto value) -> AddRow { return add_row<decltype(value)>; });
    }

    /// Each thread owns a part of the output - outer indices, else columns, else rows - and adds to it in the
    /// order of the indices, so the sums do not depend on the threads.
    void run(const Arguments& arguments, ThreadPool& pool) override {
        const Indices indices("scatter_add", arguments.inputs[0], index_dtype_, view_.extent);
        if (view_.extent == 0 && count_ > 0) (void)indices[0];  // nothing to add to: reports the index
        const int64_t columns = 64 / bytes_, blocks = (view_.inner + columns - 1) / columns;
        const bool by_outer = view_.outer >= pool.size(), by_column = blocks >= pool.size();
        const int64_t units = by_outer ? view_.outer : by_column ? blocks : view_.extent;
        const double elements = static_cast<double>(view_.outer * view_.inner);
        const double work =
            elements * (0.5 * static_cast<double>(count_) + 0.1 * static_cast<double>(view_.extent)) +
            2.0 * static_cast<double>(count_);
        const int64_t grain = grain_for(work / static_cast<double>(std::max<int64_t>(units, 1)));
        pool.ranges(units, grain, [&](int64_t begin, int64_t end, int) {
            Range outer{0, view_.outer}, rows{0, view_.extent}, inner{0, view_.inner};
            if (by_outer)
                outer = {begin, end};
            else if (by_column)
                inner = {begin * columns, std::min(end * columns, view_.inner)};
            else
                rows = {begin, end};
            add(arguments, indices, outer, rows, inner);
        });
    }

  private:
    struct Range {
        int64_t begin, end;
    };

    void add(const Arguments& arguments, const Indices& indices, Range outer, Range rows,
             Range columns) const {
        const int64_t width = columns.end - columns.begin, line = view_.inner * bytes_;
        for (int64_t o = outer.begin; o < outer.end; o++) {
            char* target = arguments.output<char>(0) + o * view_.extent * line + columns.begin * bytes_;
            for (int64_t r = rows.begin; r < rows.end; r++)
                std::memset(target + r * line, 0, static_cast<size_t>(width * bytes_));
            const char* updates = arguments.input<char>(1) + o * count_ * line + columns.begin * bytes_;
            for (int64_t i = 0; i < count_; i++) {
                const int64_t row = indices[i];
                if (row >= rows.begin && row < rows.end)
                    add_row_(updates + i * line, target + row * line, width);
            }
        }
    }

    AxisView view_;
    DType index_dtype_;
    int64_t count_, bytes_;
    AddRow add_row_;
};

bool supports_scatter_add(const Signature& s) {
    return s.inputs[1].dtype == s.outputs[0].dtype && has_indices(s.inputs[0]);
}

const Registration scatter_add("scatter_add", "owned_parts", 10, supports_scatter_add,
                               create_kernel<ScatterAdd>);

// --- one_hot, cast

class OneHot final : public Kernel {
  public:
    explicit OneHot(const Signature& s)
        : rows_(s.inputs[0].size()),
          depth_(s.attributes.integer("depth")),
          bytes_(bytes_of(s.outputs[0])),
          wide_(s.inputs[0].dtype == DType::int64),
          one_(element_bits(1, s.outputs[0].dtype)) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        pool.ranges(rows_, grain_for_bytes(depth_ * bytes_ + 10), [&](int64_t begin, int64_t end, int) {
            dispatch_size(bytes_, [&](auto element) { rows(element, arguments, begin, end); });
        });
    }

  private:
    template <class E>
    void rows(E, const Arguments& arguments, int64_t begin, int64_t end) const {
        E* target = arguments.output<E>(0);
        std::fill(target + begin * depth_, target + end * depth_, E(0));
        for (int64_t row = begin; row < end; row++) {
            const int64_t index = wide_ ? arguments.input<int64_t>(0)[row] : arguments.input<int32_t>(0)[row];
            if (index >= 0 && index < depth_) target[row * depth_ + index] = static_cast<E>(one_);
        }
    }

    int64_t rows_, depth_, bytes_;
    bool wide_;
    uint64_t one_;
};

bool supports_one_hot(const Signature& s) { return has_indices(s.inputs[0]); }

const Registration one_hot("one_hot", "rows", 10, supports_one_hot, create_kernel<OneHot>);

class Cast final : public Kernel {
  public:
    explicit Cast(const Signature& s)
        : count_(s.inputs[0].size()), in_bytes_(bytes_of(s.inputs[0])), out_bytes_(bytes_of(s.outputs[0])) {
        loop_ = dispatch(s.inputs[0].dtype, [&](auto from) {
            return dispatch(s.outputs[0].dtype,
                            [](auto to) -> Loop { return loop<decltype(from), decltype(to)>; });
        });
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        pool.ranges(count_, grain_for_bytes(in_bytes_ + out_bytes_), [&](int64_t begin, int64_t end, int) {
            loop_(arguments.input<char>(0) + begin * in_bytes_,
                  arguments.output<char>(0) + begin * out_bytes_, end - begin);
        });
    }

  private:
    using Loop = void (*)(const void*, void*, int64_t);
    template <class From, class To>
    static void loop(const void* in, void* out, int64_t n) {
        convert_loop<From, To>(static_cast<const Stored<From>*>(in), static_cast<Stored<To>*>(out), n);
    }

    int64_t count_, in_bytes_, out_bytes_;
    Loop loop_;
};

bool always(const Signature&) { return true; }

const Registration cast("cast", "loop", 10, always, create_kernel<Cast>);

}  // namespace
}  // namespace magmadnn::cpu
