// reduce and arg_reduce. Axes are merged until kept and reduced ones alternate; what counts then is whether
// the innermost is reduced (sums along rows) or kept (sums of columns). float32 is added up in float32 over
// short blocks and in double across them, so long sums stay exact enough. The other types, and any and all of
// every type, are widened to int64 in short pieces and reduced as that.
//   A accumulator across blocks: double for float types, else int64
#include <cmath>
#include <limits>

#include "loops.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

// --- the functions

struct Sum {
    template <class T>
    static T first() {
        return T(0);
    }
    template <class V>
    static V combine(V a, V b) {
        return a + b;
    }
    static int64_t combine(int64_t a, int64_t b) {  // wraps, as in NumPy
        return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
};
struct Product {
    template <class T>
    static T first() {
        return T(1);
    }
    template <class V>
    static V combine(V a, V b) {
        return a * b;
    }
    static int64_t combine(int64_t a, int64_t b) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    }
};
struct Max {
    template <class T>
    static T first() {
        return std::is_integral_v<T> ? std::numeric_limits<T>::min() : -std::numeric_limits<T>::infinity();
    }
    template <class V>
    static V combine(V a, V b) {
        return (b > a) | (b != b) ? b : a;
    }  // a NaN stays, on either side
};
struct Min {
    template <class T>
    static T first() {
        return std::is_integral_v<T> ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
    }
    template <class V>
    static V combine(V a, V b) {
        return (b < a) | (b != b) ? b : a;
    }
};
struct Any {
    template <class T>
    static T first() {
        return 0;
    }
    static int64_t combine(int64_t a, int64_t b) { return a | b; }
};
struct All {
    template <class T>
    static T first() {
        return 1;
    }
    static int64_t combine(int64_t a, int64_t b) { return a & b; }
};

// --- loops over elements

constexpr int64_t row_block = 8192;    // elements of a row added up in their own type
constexpr int64_t column_block = 128;  // rows added up in their own type
constexpr int64_t widened = 512;       // elements turned into int64 at a time

/// Turns elements into int64, or into their truth for any and all.
using Widen = void (*)(const void* x, int64_t* y, int64_t n);

template <class T>
void widen_values(const void* x, int64_t* y, int64_t n) {
    convert_loop<T, int64_t>(static_cast<const Stored<T>*>(x), y, n);
}
template <class T>
void widen_truths(const void* x, int64_t* y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = static_cast<const Stored<T>*>(x)[i] != 0;
}

/// What is reduced: its element size and, unless it is reduced as it is, how it becomes int64.
struct Elements {
    int64_t bytes;
    Widen widen;
};

/// The loops of a function for one input type. Totals are arrays of A (eight bytes each).
struct Loops {
    void (*clear)(void* totals, int64_t n);
    /// totals[r] = combine(totals[r], elements of row r), rows `stride` elements apart
    void (*rows)(const void* x, Elements elements, int64_t rows, int64_t stride, int64_t n, void* totals);
    /// totals[c] = combine(totals[c], x[r][c] over rows r)
    void (*columns)(const void* x, Elements elements, int64_t rows, int64_t stride, int64_t width,
                    void* totals);
    void (*combine)(void* totals, const void* others, int64_t n);
    void (*store)(const void* totals, void* y, int64_t n, double count);
};

template <class F, class A>
void clear_totals(void* totals, int64_t n) {
    std::fill_n(static_cast<A*>(totals), n, F::template first<A>());
}

template <class F, class A>
void combine_totals(void* totals, const void* others, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        static_cast<A*>(totals)[i] = F::combine(static_cast<A*>(totals)[i], static_cast<const A*>(others)[i]);
}

template <class A, class Out>
void store_totals(const void* totals, void* y, int64_t n, double) {
    for (int64_t i = 0; i < n; i++)
        static_cast<Stored<Out>*>(y)[i] = convert<Out>(static_cast<const A*>(totals)[i]);
}
template <class A, class Out>
void store_means(const void* totals, void* y, int64_t n, double count) {
    for (int64_t i = 0; i < n; i++) {
        const double mean = static_cast<double>(static_cast<const A*>(totals)[i]) / count;
        static_cast<Stored<Out>*>(y)[i] = convert<Out>(std::is_integral_v<Out> && count == 0 ? 0.0 : mean);
    }
}

template <class F, class T>
double real_row(const T* x, int64_t n, double total) {
    constexpr int L = lanes<T>;
    for (int64_t begin = 0; begin < n; begin += row_block) {
        const int64_t end = std::min(begin + row_block, n);
        Vector<T> sums[4];
        for (auto& sum : sums) sum = Vector<T>{} + F::template first<T>();
        int64_t i = begin;
        for (; i + 4 * L <= end; i += 4 * L)
            for (int j = 0; j < 4; j++) sums[j] = F::combine(sums[j], load(x + i + j * L));
        for (; i + L <= end; i += L) sums[0] = F::combine(sums[0], load(x + i));
        T lane[L];
        store(lane, F::combine(F::combine(sums[0], sums[1]), F::combine(sums[2], sums[3])));
        for (; i < end; i++) lane[i % L] = F::combine(lane[i % L], x[i]);
        for (int width = L / 2; width > 0; width /= 2)
            for (int j = 0; j < width; j++) lane[j] = F::combine(lane[j], lane[j + width]);
        total = F::combine(total, static_cast<double>(lane[0]));
    }
    return total;
}

/// One element of as many rows as a vector has lanes.
template <class T>
inline Vector<T> load_strided(const T* x, int64_t stride) {
    T elements[lanes<T>];
    for (int r = 0; r < lanes<T>; r++) elements[r] = x[r * stride];
    return load(elements);
}

/// Short rows: one per lane, so that no sum across lanes is needed.
template <class F, class T>
void short_rows(const T* x, int64_t stride, int64_t n, double* totals) {
    Vector<T> sums = load_strided(x, stride);
    for (int64_t i = 1; i < n; i++) sums = F::combine(sums, load_strided(x + i, stride));
    for (int r = 0; r < lanes<T>; r++) totals[r] = F::combine(totals[r], static_cast<double>(sums[r]));
}

template <class F, class T>
void real_rows(const void* x_, Elements, int64_t rows, int64_t stride, int64_t n, void* totals_) {
    auto* x = static_cast<const T*>(x_);
    auto* totals = static_cast<double*>(totals_);
    int64_t r = 0;
    if (n > 0 && n < 4 * lanes<T>)
        for (; r + lanes<T> <= rows; r += lanes<T>) short_rows<F, T>(x + r * stride, stride, n, totals + r);
    for (; r < rows; r++) totals[r] = real_row<F, T>(x + r * stride, n, totals[r]);
}

template <class F, class T, int vectors>
void real_column_strip(const T* x, int64_t rows, int64_t stride, double* totals) {
    constexpr int L = lanes<T>;
    Vector<T> sums[vectors];
    for (auto& sum : sums) sum = Vector<T>{} + F::template first<T>();
    for (int64_t r = 0; r < rows; r++)
        for (int j = 0; j < vectors; j++) sums[j] = F::combine(sums[j], load(x + r * stride + j * L));
    T lane[vectors * L];
    for (int j = 0; j < vectors; j++) store(lane + j * L, sums[j]);
    for (int j = 0; j < vectors * L; j++) totals[j] = F::combine(totals[j], static_cast<double>(lane[j]));
}

template <class F, class T>
void real_columns(const void* x_, Elements, int64_t rows, int64_t stride, int64_t width, void* totals_) {
    constexpr int L = lanes<T>;
    auto* x = static_cast<const T*>(x_);
    auto* totals = static_cast<double*>(totals_);
    for (int64_t begin = 0; begin < rows; begin += column_block) {
        const int64_t n = std::min(column_block, rows - begin);
        const T* block = x + begin * stride;
        int64_t c = 0;
        for (; c + 4 * L <= width; c += 4 * L) real_column_strip<F, T, 4>(block + c, n, stride, totals + c);
        for (; c + L <= width; c += L) real_column_strip<F, T, 1>(block + c, n, stride, totals + c);
        for (; c < width; c++) {
            T sum = F::template first<T>();
            for (int64_t r = 0; r < n; r++) sum = F::combine(sum, block[r * stride + c]);
            totals[c] = F::combine(totals[c], static_cast<double>(sum));
        }
    }
}

template <class F>
void integer_rows(const void* x, Elements elements, int64_t rows, int64_t stride, int64_t n, void* totals) {
    int64_t values[widened];
    for (int64_t r = 0; r < rows; r++) {
        int64_t total = static_cast<int64_t*>(totals)[r];
        for (int64_t i = 0; i < n; i += widened) {
            const int64_t count = std::min(widened, n - i);
            elements.widen(static_cast<const char*>(x) + (r * stride + i) * elements.bytes, values, count);
            for (int64_t j = 0; j < count; j++) total = F::combine(total, values[j]);
        }
        static_cast<int64_t*>(totals)[r] = total;
    }
}

template <class F>
void integer_columns(const void* x, Elements elements, int64_t rows, int64_t stride, int64_t width,
                     void* totals) {
    int64_t values[widened];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c += widened) {
            const int64_t count = std::min(widened, width - c);
            elements.widen(static_cast<const char*>(x) + (r * stride + c) * elements.bytes, values, count);
            combine_totals<F, int64_t>(static_cast<int64_t*>(totals) + c, values, count);
        }
}

template <class F, class T>
Loops real_loops() {
    return {clear_totals<F, double>, real_rows<F, T>, real_columns<F, T>, combine_totals<F, double>,
            store_totals<double, T>};
}
template <class F>
Loops integer_loops() {
    return {clear_totals<F, int64_t>, integer_rows<F>, integer_columns<F>, combine_totals<F, int64_t>,
            nullptr};
}

/// The loops of a function, and the elements they go over.
void find_loops(const std::string& function, DType dtype, Loops& loops, Elements& elements) {
    const bool mean = function == "mean", logical = function == "any" || function == "all";
    dispatch(dtype, [&](auto value) {
        using T = decltype(value);
        elements = {sizeof(T), logical ? widen_truths<T> : widen_values<T>};
        if constexpr (std::is_floating_point_v<T>) {
            if (function == "prod") loops = real_loops<Product, T>();
            if (function == "max") loops = real_loops<Max, T>();
            if (function == "min") loops = real_loops<Min, T>();
            if (function == "sum" || mean) loops = real_loops<Sum, T>();
            if (mean) loops.store = store_means<double, T>;
            if (!logical) return;
        }
        if (function == "prod") loops = integer_loops<Product>();
        if (function == "max") loops = integer_loops<Max>();
        if (function == "min") loops = integer_loops<Min>();
        if (function == "any") loops = integer_loops<Any>();
        if (function == "all") loops = integer_loops<All>();
        if (function == "sum" || mean) loops = integer_loops<Sum>();
        loops.store = logical ? store_totals<int64_t, bool>
                      : mean  ? store_means<int64_t, T>
                              : store_totals<int64_t, T>;
    });
}

// --- reduce

class Reduce final : public Kernel {
  public:
    explicit Reduce(const Signature& s)
        : threads_(s.threads),
          in_bytes_(static_cast<int64_t>(size_of(s.inputs[0].dtype))),
          out_bytes_(static_cast<int64_t>(size_of(s.outputs[0].dtype))),
          outputs_(s.outputs[0].size()),
          count_(s.inputs[0].size() / std::max<int64_t>(outputs_, 1)) {
        find_loops(s.attributes.text("function"), s.inputs[0].dtype, loops_, elements_);
        if (s.inputs[0].size() == 0) return;
        const Shape& shape = s.inputs[0].shape;
        std::vector<bool> reduced(shape.size(), false);
        for (int64_t axis : s.attributes.integers("axes")) reduced[axis] = true;
        merge_axes(shape, reduced);
        fold_narrow_columns();
    }

    size_t workspace_bytes() const override {
        if (count_ == 0) return 8 * static_cast<size_t>(outputs_);
        return 8 * static_cast<size_t>(threads_) * static_cast<size_t>(padded_width());
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        if (outputs_ == 0) return;
        if (count_ == 0) {  // nothing to reduce: every output is the function's neutral element
            loops_.clear(arguments.workspace, outputs_);
            loops_.store(arguments.workspace, arguments.outputs[0], outputs_, 0);
            return;
        }
        if (rows_reduced_ && repeats_ == 1 && kept_extents_.size() == 1 && outer_ >= pool.size()) {
            pool.ranges(
                outer_, grain_for(cost() * static_cast<double>(count_) + 1),
                [&](int64_t begin, int64_t end, int worker) { reduce_rows(arguments, begin, end, worker); });
            return;
        }
        const int64_t strips = (width_ + strip - 1) / strip;
        const double nanoseconds = cost() * static_cast<double>(count_ * std::min(width_, strip));
        if (outer_ * strips >= pool.size() || nanoseconds < 20000) {
            pool.ranges(outer_ * strips, grain_for(nanoseconds + 20),
                        [&](int64_t begin, int64_t end, int worker) {
                            for (int64_t i = begin; i < end; i++)
                                reduce_alone(arguments, i / strips, i % strips * strip, worker);
                        });
        } else {
            for (int64_t k = 0; k < outer_; k++) reduce_together(arguments, k, pool);
        }
    }

  private:
    static constexpr int64_t strip = 1024;        // columns whose totals stay in the cache
    static constexpr int64_t rows_at_once = 256;  // outputs, where each is a row

    // The input as [kept..., reduced...] outer axes around rows of `length` elements (innermost axis reduced)
    // or around `length` rows, `stride` apart, of `width` columns (innermost axis kept).
    void merge_axes(const Shape& shape, const std::vector<bool>& reduced) {
        const Shape strides = strides_of(shape);
        struct Axis {
            int64_t extent, stride;
            bool reduced;
        };
        std::vector<Axis> axes;
        for (size_t i = 0; i < shape.size(); i++) {
            if (shape[i] == 1) continue;
            if (!axes.empty() && axes.back().reduced == reduced[i])
                axes.back() = {axes.back().extent * shape[i], strides[i], reduced[i]};
            else
                axes.push_back({shape[i], strides[i], reduced[i]});
        }
        rows_reduced_ = axes.empty() || axes.back().reduced;
        if (!axes.empty()) {
            (rows_reduced_ ? length_ : width_) = axes.back().extent;
            axes.pop_back();
        }
        if (!rows_reduced_ && !axes.empty()) {  // the axis before is a reduced one
            length_ = axes.back().extent;
            stride_ = axes.back().stride;
            axes.pop_back();
        }
        for (const Axis& axis : axes) {
            (axis.reduced ? reduced_extents_ : kept_extents_).push_back(axis.extent);
            (axis.reduced ? reduced_strides_ : kept_strides_).push_back(axis.stride);
        }
        outer_ = element_count(kept_extents_);
        repeats_ = element_count(reduced_extents_);
    }

    /// Few columns fill no vector, so 16 rows are taken as one; their totals are folded at the end.
    void fold_narrow_columns() {
        if (rows_reduced_ || width_ >= 32 || stride_ != width_ || length_ < 64) return;
        fold_ = 16;
    }
    int64_t padded_width() const { return std::max(rows_at_once, (width_ * fold_ + 7) / 8 * 8); }
    double cost() const { return 0.05 * static_cast<double>(in_bytes_); }

    void* totals(const Arguments& arguments, int64_t part) const {
        return static_cast<char*>(arguments.workspace) + 8 * part * padded_width();
    }
    void finish(void* totals, int64_t width, void* y) const {
        for (int64_t i = 1; i < fold_; i++)
            loops_.combine(totals, static_cast<char*>(totals) + 8 * i * width, width);
        loops_.store(totals, y, width, static_cast<double>(count_));
    }

    const char* start(const Arguments& arguments, int64_t k) const {
        Odometer kept;
        kept.set(k, kept_extents_.data(), kept_strides_.data(), static_cast<int>(kept_extents_.size()));
        return arguments.input<char>(0) + kept.offset * in_bytes_;
    }

    /// Adds rows [begin, end) of all `repeats * length` to the totals, or elements if rows are reduced.
    void accumulate(const char* x, int64_t begin, int64_t end, int64_t width, void* totals) const {
        const int rank = static_cast<int>(reduced_extents_.size());
        Odometer position;
        position.set(begin / length_, reduced_extents_.data(), reduced_strides_.data(), rank);
        int64_t from = begin % length_;
        for (int64_t done = begin; done < end; from = 0) {
            const int64_t n = std::min(length_ - from, end - done);
            const char* block = x + (position.offset + from * stride_) * in_bytes_;
            if (rows_reduced_) {
                loops_.rows(block, elements_, 1, 0, n, totals);
            } else {
                const int64_t folded = n / fold_;
                loops_.columns(block, elements_, folded, stride_ * fold_, width * fold_, totals);
                if (folded * fold_ < n)
                    loops_.columns(block + folded * fold_ * stride_ * in_bytes_, elements_,
                                   n - folded * fold_, stride_, width, totals);
            }
            done += n;
            position.next(reduced_extents_.data(), reduced_strides_.data(), rank);
        }
    }

    /// Outputs [begin, end) where each is one contiguous row.
    void reduce_rows(const Arguments& arguments, int64_t begin, int64_t end, int worker) const {
        void* mine = totals(arguments, worker);
        for (int64_t k = begin; k < end; k += rows_at_once) {
            const int64_t rows = std::min(rows_at_once, end - k);
            loops_.clear(mine, rows);
            loops_.rows(arguments.input<char>(0) + k * kept_strides_[0] * in_bytes_, elements_, rows,
                        kept_strides_[0], length_, mine);
            loops_.store(mine, arguments.output<char>(0) + k * out_bytes_, rows, static_cast<double>(count_));
        }
    }

    /// One group of outputs, or a strip of it, by one thread.
    void reduce_alone(const Arguments& arguments, int64_t k, int64_t first, int worker) const {
        const int64_t width = std::min(strip, width_ - first);
        void* mine = totals(arguments, worker);
        loops_.clear(mine, width * fold_);
        accumulate(start(arguments, k) + first * in_bytes_, 0, repeats_ * length_, width, mine);
        finish(mine, width, arguments.output<char>(0) + (k * width_ + first) * out_bytes_);
    }

    /// One group of outputs by all threads: each takes a part of the rows, and the parts are added in order.
    void reduce_together(const Arguments& arguments, int64_t k, ThreadPool& pool) const {
        const char* x = start(arguments, k);
        const Parts parts(repeats_ * length_, grain_for(cost() * static_cast<double>(width_)), pool.size());
        pool.each(parts.parts, [&](int64_t part, int) {
            void* mine = totals(arguments, part);
            loops_.clear(mine, width_ * fold_);
            accumulate(x, parts.begin(part), parts.end(part), width_, mine);
        });
        for (int64_t part = 1; part < parts.parts; part++)
            loops_.combine(totals(arguments, 0), totals(arguments, part), width_ * fold_);
        finish(totals(arguments, 0), width_, arguments.output<char>(0) + k * width_ * out_bytes_);
    }

    Loops loops_;
    Elements elements_;
    int threads_;
    int64_t in_bytes_, out_bytes_, outputs_;
    int64_t count_;  // elements per output
    bool rows_reduced_ = true;
    int64_t outer_ = 1, repeats_ = 1, length_ = 1, stride_ = 1, width_ = 1, fold_ = 1;
    Shape kept_extents_, kept_strides_, reduced_extents_, reduced_strides_;
};

bool supports_reduce(const Signature& s) {
    const std::string& function = s.attributes.text("function");
    const bool empty = s.inputs[0].size() == 0 && s.outputs[0].size() > 0;
    if (empty && (function == "max" || function == "min"))
        return false;  // an error, which the reference reports
    return s.inputs[0].rank() <= max_rank;
}

const Registration reduce("reduce", "blocks", 10, supports_reduce, create_kernel<Reduce>);

// --- arg_reduce

/// True where the value becomes the extreme: it is better, or the first NaN.
template <class T, bool maximum>
inline bool takes_over(T value, T best) {
    return !(maximum ? value <= best : value >= best) & (best == best);
}

/// Position of the first extreme among n contiguous values.
template <class T, bool maximum>
int32_t position_in_row(const T* x, int64_t n) {
    T best = x[0];
    int64_t at = 0;
    if (std::is_floating_point_v<T> && n >= 4 * lanes<T>) {  // the value in vectors first, then where it is
        if constexpr (std::is_floating_point_v<T>)
            best = static_cast<T>(
                real_row<std::conditional_t<maximum, Max, Min>, T>(x, n, static_cast<double>(best)));
        while (x[at] != best && (best == best || x[at] == x[at])) at++;
    } else {
        for (int64_t i = 1; i < n; i++) {
            const bool take = takes_over<T, maximum>(x[i], best);
            best = take ? x[i] : best;
            at = take ? i : at;
        }
    }
    return static_cast<int32_t>(at);
}

/// As position_in_row for as many short rows as a vector has lanes.
template <class T, bool maximum>
void positions_in_short_rows(const T* x, int64_t n, int32_t* y) {
    Vector<T> best = load_strided(x, n);
    auto at = best != best;
    at ^= at;
    for (int64_t i = 1; i < n; i++) {
        const Vector<T> value = load_strided(x + i, n);
        const auto take = ~(maximum ? value <= best : value >= best) & (best == best);
        best = take ? value : best;
        at = (at & ~take) | (take & static_cast<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>(i));
    }
    for (int r = 0; r < lanes<T>; r++) y[r] = static_cast<int32_t>(at[r]);
}

/// arg_reduce over [outer, length, inner]. Integers and bool are widened to T = int64 first, block by block.
template <class T, bool maximum>
class ArgReduce final : public Kernel {
  public:
    explicit ArgReduce(const Signature& s) : bytes_(static_cast<int64_t>(size_of(s.inputs[0].dtype))) {
        const Shape& shape = s.inputs[0].shape;
        const int64_t axis = s.attributes.integer("axis");
        length_ = shape[axis];
        for (int64_t i = 0; i < axis; i++) outer_ *= shape[i];
        for (size_t i = axis + 1; i < shape.size(); i++) inner_ *= shape[i];
        if (s.inputs[0].dtype != DTypeOf<T>::value)
            widen_ = dispatch(s.inputs[0].dtype,
                              [](auto value) -> Widen { return widen_values<decltype(value)>; });
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        int32_t* y = arguments.output<int32_t>(0);
        const bool rows = inner_ == 1 && !widen_;
        const int64_t strips = (inner_ + strip - 1) / strip;
        const double cost = 0.4 * static_cast<double>(length_ * std::min(inner_, strip));
        pool.ranges(outer_ * strips, grain_for(cost), [&](int64_t begin, int64_t end, int) {
            int64_t i = begin;
            if constexpr (std::is_floating_point_v<T>)
                for (; rows && length_ < 4 * lanes<T> && i + lanes<T> <= end; i += lanes<T>)
                    positions_in_short_rows<T, maximum>(arguments.input<T>(0) + i * length_, length_, y + i);
            for (; i < end; i++) {
                const int64_t outer = i / strips, first = i % strips * strip;
                const char* x = arguments.input<char>(0) + (outer * length_ * inner_ + first) * bytes_;
                if (rows)
                    y[outer] = position_in_row<T, maximum>(reinterpret_cast<const T*>(x), length_);
                else
                    columns(x, std::min(strip, inner_ - first), y + outer * inner_ + first);
            }
        });
    }

  private:
    static constexpr int64_t strip = 128;

    void columns(const char* x, int64_t width, int32_t* __restrict y) const {
        T best[strip], buffer[strip];
        std::fill_n(y, width, 0);
        std::memcpy(best, line(x, 0, width, buffer), static_cast<size_t>(width) * sizeof(T));
        for (int64_t r = 1; r < length_; r++) {
            const T* values = line(x, r, width, buffer);
            for (int64_t c = 0; c < width; c++) {
                const bool take = takes_over<T, maximum>(values[c], best[c]);
                best[c] = take ? values[c] : best[c];
                y[c] = take ? static_cast<int32_t>(r) : y[c];
            }
        }
    }
    const T* line(const char* x, int64_t r, int64_t width, T* buffer) const {
        const char* values = x + r * inner_ * bytes_;
        if constexpr (std::is_same_v<T, int64_t>)
            if (widen_) {
                widen_(values, buffer, width);
                return buffer;
            }
        return reinterpret_cast<const T*>(values);
    }

    int64_t bytes_, outer_ = 1, length_, inner_ = 1;
    Widen widen_ = nullptr;
};

std::unique_ptr<Kernel> create_arg_reduce(const Signature& s) {
    const bool maximum = s.attributes.text("function") == "argmax";
    const DType dtype = s.inputs[0].dtype;
    if (dtype == DType::float32)
        return maximum ? create_kernel<ArgReduce<float, true>>(s) : create_kernel<ArgReduce<float, false>>(s);
    if (dtype == DType::float64)
        return maximum ? create_kernel<ArgReduce<double, true>>(s)
                       : create_kernel<ArgReduce<double, false>>(s);
    return maximum ? create_kernel<ArgReduce<int64_t, true>>(s) : create_kernel<ArgReduce<int64_t, false>>(s);
}

bool supports_arg_reduce(const Signature& s) {
    return s.inputs[0].size() > 0 && s.outputs[0].dtype == DType::int32;
}

const Registration arg_reduce("arg_reduce", "two_passes", 10, supports_arg_reduce, create_arg_reduce);

}  // namespace
}  // namespace magmadnn::cpu
