// normalize and its gradient, for batch, layer, group and instance normalization alike. The tensor is seen as
//   x[outer][rows][width], width = groups * size: statistics over rows and size, one for each outer and
//   group; scale and offset depend on the position in the width alone.
// With rows == 1 (layer-norm) a group is one contiguous segment; otherwise columns are summed and then put
// together.
//   k outer index, g group, w position in the width, rstd 1 / sqrt(variance + epsilon)
#include <cmath>

#include "loops.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

struct Layout {
    int64_t outer = 1, rows = 1, groups = 1, size = 1, width = 1;
    int64_t fold = 1;                  // rows taken as one where the width fills no vectors
    std::vector<int64_t> scale_index;  // of each position in the width; empty where it is the position itself
    int64_t scale_size = 1;

    int64_t folded_width() const { return width * fold; }
    int64_t scale_at(int64_t w) const { return scale_index.empty() ? w : scale_index[w]; }
    double count() const { return static_cast<double>(rows * size); }

    /// False where the axes and the shape of the scale do not fit the form above.
    bool find(const Shape& x, const Shape& scale, const std::vector<int64_t>& axes) {
        Shape extents, scale_extents;
        std::vector<bool> reduced;
        for (size_t i = 0; i < x.size(); i++) {
            if (x[i] == 1) continue;
            extents.push_back(x[i]);
            scale_extents.push_back(scale[i]);
            reduced.push_back(std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end());
        }
        const int rank = static_cast<int>(extents.size());
        if (rank == 0) return true;
        int split = 0;  // where the width starts: not after an axis along which the scale varies
        while (split < rank - 1 && scale_extents[split] == 1) split++;
        while (split >= 0 &&
               !(kept_then_reduced(reduced, 0, split) && kept_then_reduced(reduced, split, rank)))
            split--;
        if (split < 0) return false;
        for (int i = 0; i < rank; i++) {
            if (i < split)
                (reduced[i] ? rows : outer) *= extents[i];
            else
                (reduced[i] ? size : groups) *= extents[i];
        }
        width = groups * size;
        if (width < 32 && rows >= 64) fold = 16;
        index_scale({extents.begin() + split, extents.end()},
                    {scale_extents.begin() + split, scale_extents.end()});
        return true;
    }

  private:
    static bool kept_then_reduced(const std::vector<bool>& reduced, int begin, int end) {
        for (int i = begin + 1; i < end; i++)
            if (reduced[i - 1] && !reduced[i]) return false;
        return true;
    }
    void index_scale(const Shape& extents, const Shape& scale_extents) {
        scale_size = element_count(scale_extents);
        if (scale_size == width) return;
        const Shape strides = broadcast_strides(scale_extents, extents);
        for (int64_t w = 0; w < width; w++) {
            Odometer position;
            position.set(w, extents.data(), strides.data(), static_cast<int>(extents.size()));
            scale_index.push_back(position.offset);
        }
    }
};

constexpr int64_t row_block = 64;  // rows whose sums are taken in T before they join the totals in double

// --- loops over columns

/// Calls strip(w, vectors) over the width in strips of four, then one vector, then column(w) for what is
/// left.
template <class T, class Strip, class Column>
inline void each_strip(int64_t width, Strip&& strip, Column&& column) {
    constexpr int L = lanes<T>;
    int64_t w = 0;
    for (; w + 4 * L <= width; w += 4 * L) strip(w, std::integral_constant<int, 4>{});
    for (; w + L <= width; w += L) strip(w, std::integral_constant<int, 1>{});
    for (; w < width; w++) column(w);
}

/// Mean and summed squared deviation of each column over a few rows, in two passes.
template <class T>
void block_moments(const T* x, int64_t rows, int64_t width, T* mean, T* m2) {
    constexpr int L = lanes<T>;
    const T share = T(1) / static_cast<T>(rows);
    each_strip<T>(
        width,
        [&](int64_t w, auto vectors) {
            Vector<T> sum[vectors], square[vectors], center[vectors];
            for (int j = 0; j < vectors; j++) sum[j] = square[j] = Vector<T>{};
            for (int64_t r = 0; r < rows; r++)
                for (int j = 0; j < vectors; j++) sum[j] += load(x + r * width + w + j * L);
            for (int j = 0; j < vectors; j++) center[j] = sum[j] * share;
            for (int64_t r = 0; r < rows; r++)
                for (int j = 0; j < vectors; j++) {
                    const Vector<T> d = load(x + r * width + w + j * L) - center[j];
                    square[j] += d * d;
                }
            for (int j = 0; j < vectors; j++) {
                store(mean + w + j * L, center[j]);
                store(m2 + w + j * L, square[j]);
            }
        },
        [&](int64_t w) {
            T sum = 0, square = 0;
            for (int64_t r = 0; r < rows; r++) sum += x[r * width + w];
            const T center = sum * share;
            for (int64_t r = 0; r < rows; r++)
                square += (x[r * width + w] - center) * (x[r * width + w] - center);
            mean[w] = center;
            m2[w] = square;
        });
}

/// Joins the moments of `n_block` further rows to those of n (Chan, Golub, LeVeque 1979).
template <class B>
void merge_moments(double* mean, double* m2, double n, const B* block_mean, const B* block_m2, double n_block,
                   int64_t width) {
    const double share = n_block / (n + n_block), weight = n * share;
    for (int64_t w = 0; w < width; w++) {
        const double delta = static_cast<double>(block_mean[w]) - mean[w];
        mean[w] += delta * share;
        m2[w] += static_cast<double>(block_m2[w]) + delta * delta * weight;
    }
}

/// dy, with a ReLU only where y is positive.
template <bool Relu, class T>
inline Vector<T> masked(Vector<T> dy, const T* y) {
    if constexpr (Relu)
        return load(y) > Vector<T>{} ? dy : Vector<T>{};
    else
        return dy;
}
template <bool Relu, class T>
inline T masked(T dy, const T* y) {
    return Relu && !(*y > 0) ? T(0) : dy;
}

/// Adds to totals[w] the sum of dy and to totals[width + w] the sum of dy * (x - mean[w]), over some rows.
/// With Keep, the masked dy go to `kept`, which may lie where dy does.
template <bool Relu, bool Keep, class T>
void block_products(const T* dy, const T* x, const T* y, const T* mean, int64_t rows, int64_t width,
                    double* totals, T* kept) {
    constexpr int L = lanes<T>;
    each_strip<T>(
        width,
        [&](int64_t w, auto vectors) {
            Vector<T> sum[vectors], product[vectors], center[vectors];
            for (int j = 0; j < vectors; j++) {
                sum[j] = product[j] = Vector<T>{};
                center[j] = load(mean + w + j * L);
            }
            for (int64_t r = 0; r < rows; r++)
                for (int j = 0; j < vectors; j++) {
                    const int64_t i = r * width + w + j * L;
                    const Vector<T> d = masked<Relu>(load(dy + i), y + i);
                    if constexpr (Keep) store(kept + i, d);
                    sum[j] += d;
                    product[j] += d * (load(x + i) - center[j]);
                }
            T lane[L];
            for (int j = 0; j < vectors; j++) {
                store(lane, sum[j]);
                for (int i = 0; i < L; i++) totals[w + j * L + i] += static_cast<double>(lane[i]);
                store(lane, product[j]);
                for (int i = 0; i < L; i++) totals[width + w + j * L + i] += static_cast<double>(lane[i]);
            }
        },
        [&](int64_t w) {
            T sum = 0, product = 0;
            for (int64_t r = 0; r < rows; r++) {
                const int64_t i = r * width + w;
                const T d = masked<Relu>(dy[i], y + i);
                if constexpr (Keep) kept[i] = d;
                sum += d;
                product += d * (x[i] - mean[w]);
            }
            totals[w] += static_cast<double>(sum);
            totals[width + w] += static_cast<double>(product);
        });
}

/// One row of results; `residual` is read only with Residual.
template <bool Residual, bool Relu, class T>
void normalize_row(const T* x, const T* center, const T* factor, const T* offset, const T* residual, T* y,
                   int64_t width) {
#pragma GCC ivdep
    for (int64_t w = 0; w < width; w++) {
        T v = (x[w] - center[w]) * factor[w] + offset[w];
        if constexpr (Residual) v += residual[w];
        if constexpr (Relu) v = v < 0 ? T(0) : v;
        y[w] = v;
    }
}

/// How dx follows from dy and x: dx = along_dy * dy - along_x * (x - center) - constant.
template <class T>
struct Slopes {
    T *center, *along_dy, *along_x, *constant;
};

/// One row of gradients; dx may lie where dy or x does.
template <bool Relu, class T>
void gradient_row(const T* dy, const T* x, const T* y, const Slopes<T>& slopes, T* dx, int64_t width) {
    const T *center = slopes.center, *a = slopes.along_dy, *b = slopes.along_x, *c = slopes.constant;
#pragma GCC ivdep
    for (int64_t w = 0; w < width; w++)
        dx[w] = a[w] * masked<Relu>(dy[w], y + w) - b[w] * (x[w] - center[w]) - c[w];
}

/// Repeats the first `width` elements until there are `fold` times as many.
template <class T>
void repeat(T* values, int64_t width, int64_t fold) {
    for (int64_t i = width; i < width * fold; i++) values[i] = values[i - width];
}

/// Sum of f(i) over [0, n) with f returning vectors: in T over blocks of a few hundred, in double across
/// them.
template <class T, class F>
double sum_segment(const int64_t n, F&& f) {
    constexpr int64_t block = 32 * lanes<T>;
    double total = 0;
    int64_t i = 0;
    while (i + lanes<T> <= n) {
        Vector<T> sum{};
        for (const int64_t end = std::min(i + block, n); i + lanes<T> <= end; i += lanes<T>)
            sum += f(i, lanes<T>);
        total += static_cast<double>(sum_lanes<T>(sum));
    }
    if (i < n) total += static_cast<double>(sum_lanes<T>(f(i, static_cast<int>(n - i))));
    return total;
}

/// The vector at p + i of which `count` elements exist; the rest is 0.
template <class T>
inline Vector<T> part(const T* p, int64_t i, int count) {
    return count == lanes<T> ? load(p + i) : load_partial(p + i, count);
}
template <class T>
inline void store_part(T* p, int64_t i, int count, Vector<T> v) {
    if (count == lanes<T>)
        store(p + i, v);
    else
        store_partial(p + i, v, count);
}
template <class T, class F>
inline void each_part(int64_t n, F&& f) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) f(i, lanes<T>);
    if (i < n) f(i, static_cast<int>(n - i));
}

// --- both kernels

/// What the two kernels share: the layout, and how rows are cut for the threads.
template <class T>
class Normalization : public Kernel {
  protected:
    Normalization(const Signature& s, const TensorType& x, const TensorType& scale)
        : threads_(s.threads),
          epsilon_(s.attributes.number("epsilon")),
          residual_(s.attributes.flag("residual")),
          relu_(s.attributes.text("activation") == "relu") {
        l_.find(x.shape, scale.shape, s.attributes.integers("axes"));
    }

    double rstd(double variance) const { return 1 / std::sqrt(variance + epsilon_); }

    /// Scale or offset spread over the width, in `buffer` unless it has that form already.
    const T* spread(const T* values, T* buffer) const {
        if (l_.scale_index.empty()) return values;
        for (int64_t w = 0; w < l_.width; w++) buffer[w] = values[l_.scale_index[w]];
        return buffer;
    }

    /// Parts of the rows of one outer index, in whole folds, for `streams` passes over memory.
    Parts cut_rows(int streams, ThreadPool& pool) const {
        const double cost =
            0.1 * streams * static_cast<double>(l_.folded_width() * static_cast<int64_t>(sizeof(T)) / 4);
        return Parts((l_.rows + l_.fold - 1) / l_.fold, grain_for(cost), pool.size());
    }
    int64_t row_of(int64_t folded) const { return std::min(folded * l_.fold, l_.rows); }
    double cost_of_outer(int streams) const {
        return 0.1 * streams * static_cast<double>(l_.rows * l_.width * static_cast<int64_t>(sizeof(T)) / 4);
    }

    /// body(first row, rows, width) for rows [begin, end) in blocks; folded rows count as one, of the folded
    /// width.
    template <class Body>
    void each_block(int64_t begin, int64_t end, Body&& body) const {
        const int64_t folded = (end - begin) / l_.fold;
        for (int64_t r = 0; r < folded; r += row_block)
            body(begin + r * l_.fold, std::min(row_block, folded - r), l_.folded_width());
        const int64_t rest = (end - begin) - folded * l_.fold;
        if (rest > 0) body(end - rest, rest, l_.width);
    }

    Layout l_;
    int threads_;
    double epsilon_;
    bool residual_, relu_;
};

// --- normalize

template <class T>
class Normalize final : public Normalization<T> {
    using Base = Normalization<T>;
    using Base::l_;

  public:
    explicit Normalize(const Signature& s) : Base(s, s.inputs[0], s.inputs[1]) {
        row_ = this->residual_ ? this->relu_ ? normalize_row<true, true, T> : normalize_row<true, false, T>
               : this->relu_   ? normalize_row<false, true, T>
                               : normalize_row<false, false, T>;
    }

    size_t workspace_bytes() const override {
        Carver carver;
        carve(carver, nullptr, nullptr);
        return carver.used();
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        Carver carver(arguments.workspace);
        const T* x = arguments.input<T>(0);
        Tensors t{x,
                  nullptr,
                  nullptr,
                  this->residual_ ? arguments.input<T>(3) : x,
                  arguments.output<T>(0),
                  arguments.output<T>(1),
                  arguments.output<T>(2)};
        Part* parts = carve(carver, &t.scale, &t.offset);
        t.scale = this->spread(arguments.input<T>(1), const_cast<T*>(t.scale));
        t.offset = this->spread(arguments.input<T>(2), const_cast<T*>(t.offset));
        if (l_.rows == 1) {
            pool.ranges(l_.outer * l_.groups, grain_for(0.3 * static_cast<double>(l_.size)),
                        [&](int64_t begin, int64_t end, int) {
                            for (int64_t i = begin; i < end; i++) segment(t, i);
                        });
        } else if (l_.outer >= pool.size()) {
            pool.ranges(l_.outer, grain_for(this->cost_of_outer(4)),
                        [&](int64_t begin, int64_t end, int worker) {
                            const Part part = part_of(parts, worker);
                            for (int64_t k = begin; k < end; k++) {
                                measure(t, k, 0, l_.rows, part);
                                finish(t, k, part);
                                apply(t, k, 0, l_.rows, part);
                            }
                        });
        } else {
            for (int64_t k = 0; k < l_.outer; k++) together(t, k, parts, pool);
        }
    }

  private:
    struct Tensors {
        const T *x, *scale, *offset, *residual;
        T *y, *mean, *variance;
    };
    // Of a thread: moments of the columns (of the folded width while it counts), of a block, and the final
    // factors.
    struct Part {
        double *mean, *m2;
        T *block_mean, *block_m2;
        T *center, *factor, *offset;
    };

    /// Lays the workspace out: scale and offset over the width, and an array of parts, described by the
    /// first.
    Part* carve(Carver& carver, const T** scale, const T** offset) const {
        T* a = carver.take<T>(l_.width);
        T* b = carver.take<T>(l_.width);
        if (scale) *scale = a, *offset = b;
        Part* parts = carver.take<Part>(this->threads_);
        for (int i = 0; i < this->threads_ && l_.rows > 1; i++) {
            const int64_t n = l_.folded_width();
            Part part;
            part.mean = carver.take<double>(n), part.m2 = carver.take<double>(n);
            part.block_mean = carver.take<T>(n), part.block_m2 = carver.take<T>(n);
            part.center = carver.take<T>(n), part.factor = carver.take<T>(n), part.offset = carver.take<T>(n);
            if (scale) parts[i] = part;
        }
        return parts;
    }
    static const Part& part_of(const Part* parts, int64_t i) { return parts[i]; }

    /// One group that lies in one piece: its mean, its variance around that mean, its values.
    void segment(const Tensors& t, int64_t i) const {
        const int64_t n = l_.size, first = i % l_.groups * n;
        const T* x = t.x + i * n;
        const double mean =
            sum_segment<T>(n, [&](int64_t j, int count) { return part(x, j, count); }) / l_.count();
        const T center = static_cast<T>(mean);
        const double squares = sum_segment<T>(n, [&](int64_t j, int count) {
            const Vector<T> d =
                part(x, j, count) - (count == lanes<T> ? broadcast(center) : leading(center, count));
            return d * d;
        });
        t.mean[i] = center;
        t.variance[i] = static_cast<T>(squares / l_.count());
        const T factor = static_cast<T>(this->rstd(squares / l_.count()));
        each_part<T>(n, [&](int64_t j, int count) {
            const Vector<T> scale = part(t.scale + first, j, count) * factor;
            Vector<T> v = (part(x, j, count) - center) * scale + part(t.offset + first, j, count);
            if (this->residual_) v += part(t.residual + i * n, j, count);
            if (this->relu_) v = v < Vector<T>{} ? Vector<T>{} : v;
            store_part(t.y + i * n, j, count, v);
        });
    }
    static Vector<T> leading(T value, int count) {
        T elements[lanes<T>] = {};
        std::fill_n(elements, count, value);
        return load(elements);
    }

    /// Moments of the columns over rows [begin, end) of outer index k, unfolded.
    void measure(const Tensors& t, int64_t k, int64_t begin, int64_t end, const Part& p) const {
        std::fill_n(p.mean, l_.folded_width(), 0.0);
        std::fill_n(p.m2, l_.folded_width(), 0.0);
        double n = 0;
        const T* x = t.x + k * l_.rows * l_.width;
        bool folded = l_.fold > 1;
        this->each_block(begin, end, [&](int64_t row, int64_t rows, int64_t width) {
            if (folded && width == l_.width) {  // the rows that make no whole fold come last
                n = unfold(p, n);
                folded = false;
            }
            block_moments(x + row * l_.width, rows, width, p.block_mean, p.block_m2);
            merge_moments(p.mean, p.m2, n, p.block_mean, p.block_m2, static_cast<double>(rows), width);
            n += static_cast<double>(rows);
        });
        if (folded) unfold(p, n);
    }
    /// Merges the columns that stand for one another; returns the rows they then have.
    double unfold(const Part& p, double n) const {
        for (int64_t i = 1; i < l_.fold && n > 0; i++)
            merge_moments(p.mean, p.m2, n * static_cast<double>(i), p.mean + i * l_.width,
                          p.m2 + i * l_.width, n, l_.width);
        return n * static_cast<double>(l_.fold);
    }

    /// Merges the columns of each group, stores the statistics, and works out y = (x - center) * factor +
    /// offset.
    void finish(const Tensors& t, int64_t k, const Part& p) const {
        const auto rows = static_cast<double>(l_.rows);
        for (int64_t g = 0; g < l_.groups; g++) {
            double* mean = p.mean + g * l_.size;
            double* m2 = p.m2 + g * l_.size;
            for (int64_t j = 1; j < l_.size; j++)
                merge_moments(mean, m2, rows * static_cast<double>(j), mean + j, m2 + j, rows, 1);
            const double variance = *m2 / l_.count();
            t.mean[k * l_.groups + g] = static_cast<T>(*mean);
            t.variance[k * l_.groups + g] = static_cast<T>(variance);
            for (int64_t w = g * l_.size; w < (g + 1) * l_.size; w++) {
                p.center[w] = static_cast<T>(*mean);
                p.factor[w] = static_cast<T>(this->rstd(variance) * static_cast<double>(t.scale[w]));
                p.offset[w] = t.offset[w];
            }
        }
        for (T* values : {p.center, p.factor, p.offset}) repeat(values, l_.width, l_.fold);
    }

    void apply(const Tensors& t, int64_t k, int64_t begin, int64_t end, const Part& p) const {
        this->each_block(begin, end, [&](int64_t row, int64_t rows, int64_t width) {
            const int64_t first = (k * l_.rows + row) * l_.width;
            for (int64_t i = first; i < first + rows * width; i += width)
                row_(t.x + i, p.center, p.factor, p.offset, t.residual + i, t.y + i, width);
        });
    }

    /// All threads on one outer index: each measures a part of the rows, and the parts are merged in order.
    void together(const Tensors& t, int64_t k, Part* parts, ThreadPool& pool) const {
        const Parts cut = this->cut_rows(2, pool);
        pool.each(cut.parts, [&](int64_t i, int) {
            measure(t, k, this->row_of(cut.begin(i)), this->row_of(cut.end(i)), parts[i]);
        });
        for (int64_t i = 1; i < cut.parts; i++) {
            const int64_t before = this->row_of(cut.begin(i)), rows = this->row_of(cut.end(i)) - before;
            merge_moments(parts[0].mean, parts[0].m2, static_cast<double>(before), parts[i].mean, parts[i].m2,
                          static_cast<double>(rows), l_.width);
        }
        finish(t, k, parts[0]);
        pool.each(cut.parts, [&](int64_t i, int) {
            apply(t, k, this->row_of(cut.begin(i)), this->row_of(cut.end(i)), parts[0]);
        });
    }

    decltype(&normalize_row<false, false, T>) row_;
};

// --- normalize_gradient

// With g = dy * scale, xhat = (x - mean) * rstd and means over a group:
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)),  dscale = sum of dy * xhat,  doffset = sum of dy
template <class T>
class NormalizeGradient final : public Normalization<T> {
    using Base = Normalization<T>;
    using Base::l_;

  public:
    explicit NormalizeGradient(const Signature& s)
        : Base(s, s.inputs[1], s.inputs[2]),
          row_(this->relu_ && !this->residual_ ? gradient_row<true, T> : gradient_row<false, T>) {
        products_ = this->residual_
                        ? this->relu_ ? block_products<true, true, T> : block_products<false, true, T>
                    : this->relu_ ? block_products<true, false, T>
                                  : block_products<false, false, T>;
    }

    size_t workspace_bytes() const override {
        Carver carver;
        carve(carver, nullptr);
        return carver.used();
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        Carver carver(arguments.workspace);
        const T* dy = arguments.input<T>(0);
        T* dx = arguments.output<T>(0);
        Tensors t{dy,
                  arguments.input<T>(1),
                  this->relu_ ? arguments.input<T>(5) : dy,
                  nullptr,
                  arguments.input<T>(3),
                  arguments.input<T>(4),
                  dx,
                  this->residual_ ? arguments.output<T>(3) : dx};
        Part* parts = carve(carver, &t.scale);
        t.scale = this->spread(arguments.input<T>(2), const_cast<T*>(t.scale));
        int64_t used = 1;  // parts that hold sums for dscale and doffset
        if (l_.rows == 1 || l_.outer >= pool.size()) {
            const Parts cut(l_.outer, grain_for(this->cost_of_outer(5)), pool.size());
            used = cut.parts;
            pool.each(cut.parts, [&](int64_t i, int) {
                clear(parts[i].gradients, l_.width);
                if (l_.rows == 1)
                    segments(t, cut.begin(i), cut.end(i), parts[i]);
                else
                    for (int64_t k = cut.begin(i); k < cut.end(i); k++) alone(t, k, parts[i]);
            });
        } else {
            clear(parts[0].gradients, l_.width);
            for (int64_t k = 0; k < l_.outer; k++) together(t, k, parts, pool);
        }
        for (int64_t i = 1; i < used; i++)
            for (int64_t w = 0; w < 2 * l_.width; w++) parts[0].gradients[w] += parts[i].gradients[w];
        store_gradients(parts[0].gradients, arguments.output<T>(1), arguments.output<T>(2));
        if (l_.rows * l_.size == 1)  // a single value is its own mean: no rounding left over
            std::fill_n(t.dx, l_.outer * l_.groups, T(0));
    }

  private:
    struct Tensors {
        const T *dy, *x, *y, *scale, *mean, *variance;
        T *dx, *dresidual;
    };
    // Pairs of arrays over the width: the sums of dy first, those of dy * (x - mean) behind.
    struct Part {
        double* totals;     // of one outer index, over the folded width
        double* gradients;  // doffset and dscale so far
        T* block;           // the same over a few outer indices (rows == 1)
        Slopes<T> slopes;   // over the folded width
    };

    Part* carve(Carver& carver, const T** scale) const {
        T* a = carver.take<T>(l_.width);
        if (scale) *scale = a;
        Part* parts = carver.take<Part>(this->threads_);
        for (int i = 0; i < this->threads_; i++) {
            const int64_t n = l_.folded_width();
            Part part{};
            part.gradients = carver.take<double>(2 * l_.width);
            if (l_.rows == 1) {
                part.block = carver.take<T>(2 * l_.width);
            } else {
                part.totals = carver.take<double>(2 * n);
                part.slopes = {carver.take<T>(n), carver.take<T>(n), carver.take<T>(n), carver.take<T>(n)};
            }
            if (scale) parts[i] = part;
        }
        return parts;
    }
    template <class U>
    static void clear(U* pair, int64_t width) {
        std::fill_n(pair, 2 * width, U(0));
    }

    // --- groups in one piece

    void segments(const Tensors& t, int64_t begin, int64_t end, const Part& p) const {
        for (int64_t first = begin; first < end; first += row_block) {
            clear(p.block, l_.width);
            for (int64_t k = first; k < std::min(first + row_block, end); k++)
                for (int64_t g = 0; g < l_.groups; g++) segment(t, k, g, p.block);
            for (int64_t w = 0; w < 2 * l_.width; w++) p.gradients[w] += static_cast<double>(p.block[w]);
        }
    }

    void segment(const Tensors& t, int64_t k, int64_t g, T* block) const {
        const int64_t n = l_.size, first = g * n, i = k * l_.groups + g;
        const T *x = t.x + i * n, *scale = t.scale + first;
        const auto dy = [&](int64_t j, int count) {
            const Vector<T> d = part(t.dy + i * n, j, count);
            if (!this->relu_) return d;
            return part(t.y + i * n, j, count) > Vector<T>{} ? d : Vector<T>{};
        };
        const T center = t.mean[i];
        const double rstd = this->rstd(static_cast<double>(t.variance[i]));
        const double sum =
            sum_segment<T>(n, [&](int64_t j, int count) { return dy(j, count) * part(scale, j, count); });
        const double product = sum_segment<T>(n, [&](int64_t j, int count) {
            return dy(j, count) * part(scale, j, count) * (part(x, j, count) - center);
        });
        const T factor = static_cast<T>(rstd), constant = static_cast<T>(rstd * sum / l_.count());
        const T along_x = static_cast<T>(rstd * rstd * rstd * product / l_.count());
        T *offsets = block + first, *scales = block + l_.width + first;
        each_part<T>(n, [&](int64_t j, int count) {
            const Vector<T> d = dy(j, count), centered = part(x, j, count) - center;
            store_part(t.dx + i * n, j, count,
                       d * part(scale, j, count) * factor - centered * along_x - constant);
            if (this->residual_) store_part(t.dresidual + i * n, j, count, d);
            store_part(offsets, j, count, part(offsets, j, count) + d);
            store_part(scales, j, count, part(scales, j, count) + d * centered * factor);
        });
    }

    // --- groups over rows

    void alone(const Tensors& t, int64_t k, const Part& p) const {
        place_centers(t, k, p);
        measure(t, k, 0, l_.rows, p);
        finish(t, k, p);
        apply(t, k, 0, l_.rows, p);
    }

    void together(const Tensors& t, int64_t k, Part* parts, ThreadPool& pool) const {
        const Parts cut = this->cut_rows(2, pool);
        place_centers(t, k, parts[0]);
        pool.each(cut.parts, [&](int64_t i, int) {
            Part part = parts[i];
            part.slopes.center = parts[0].slopes.center;
            measure(t, k, this->row_of(cut.begin(i)), this->row_of(cut.end(i)), part);
        });
        for (int64_t i = 1; i < cut.parts; i++)
            for (int64_t w = 0; w < 2 * l_.width; w++) parts[0].totals[w] += parts[i].totals[w];
        finish(t, k, parts[0]);
        pool.each(cut.parts, [&](int64_t i, int) {
            apply(t, k, this->row_of(cut.begin(i)), this->row_of(cut.end(i)), parts[0]);
        });
    }

    void place_centers(const Tensors& t, int64_t k, const Part& p) const {
        for (int64_t w = 0; w < l_.width; w++) p.slopes.center[w] = t.mean[k * l_.groups + w / l_.size];
        repeat(p.slopes.center, l_.width, l_.fold);
    }

    /// The two sums of each column over rows [begin, end), unfolded to a pair of arrays over the width.
    void measure(const Tensors& t, int64_t k, int64_t begin, int64_t end, const Part& p) const {
        clear(p.totals, l_.folded_width());
        bool folded = l_.fold > 1;
        this->each_block(begin, end, [&](int64_t row, int64_t rows, int64_t width) {
            if (folded && width == l_.width) {
                unfold(p.totals);
                folded = false;
            }
            const int64_t first = (k * l_.rows + row) * l_.width;
            products_(t.dy + first, t.x + first, t.y + first, p.slopes.center, rows, width, p.totals,
                      t.dresidual + first);
        });
        if (folded) unfold(p.totals);
    }
    void unfold(double* totals) const {
        const int64_t n = l_.folded_width();
        for (int64_t i = l_.width; i < n; i++) totals[i % l_.width] += totals[i];
        for (int64_t i = l_.width; i < n; i++) totals[n + i % l_.width] += totals[n + i];
        std::copy_n(totals + n, l_.width, totals + l_.width);
    }

    /// Adds to dscale and doffset and works out how dx follows from dy and x.
    void finish(const Tensors& t, int64_t k, const Part& p) const {
        const double *sums = p.totals, *products = p.totals + l_.width;
        for (int64_t g = 0; g < l_.groups; g++) {
            const double rstd = this->rstd(static_cast<double>(t.variance[k * l_.groups + g]));
            double sum = 0, product = 0;
            for (int64_t w = g * l_.size; w < (g + 1) * l_.size; w++) {
                sum += static_cast<double>(t.scale[w]) * sums[w];
                product += static_cast<double>(t.scale[w]) * products[w];
                p.gradients[w] += sums[w];
                p.gradients[l_.width + w] += rstd * products[w];
            }
            for (int64_t w = g * l_.size; w < (g + 1) * l_.size; w++) {
                p.slopes.along_dy[w] = static_cast<T>(rstd * static_cast<double>(t.scale[w]));
                p.slopes.along_x[w] = static_cast<T>(rstd * rstd * rstd * product / l_.count());
                p.slopes.constant[w] = static_cast<T>(rstd * sum / l_.count());
            }
        }
        for (T* values : {p.slopes.along_dy, p.slopes.along_x, p.slopes.constant})
            repeat(values, l_.width, l_.fold);
    }

    void apply(const Tensors& t, int64_t k, int64_t begin, int64_t end, const Part& p) const {
        const T* dy = this->residual_ ? t.dresidual : t.dy;
        this->each_block(begin, end, [&](int64_t row, int64_t rows, int64_t width) {
            const int64_t first = (k * l_.rows + row) * l_.width;
            for (int64_t i = first; i < first + rows * width; i += width)
                row_(dy + i, t.x + i, t.y + i, p.slopes, t.dx + i, width);
        });
    }

    void store_gradients(double* gradients, T* dscale, T* doffset) const {
        if (!l_.scale_index
                 .empty()) {  // positions that share a scale: indices never grow faster than positions
            double *sums = gradients, *products = gradients + l_.width;
            for (int64_t s = 0; s < l_.scale_size; s++) {
                double sum = 0, product = 0;
                for (int64_t w = 0; w < l_.width; w++)
                    if (l_.scale_index[w] == s) sum += sums[w], product += products[w];
                doffset[s] = static_cast<T>(sum);
                dscale[s] = static_cast<T>(product);
            }
            return;
        }
        for (int64_t w = 0; w < l_.width; w++) {
            doffset[w] = static_cast<T>(gradients[w]);
            dscale[w] = static_cast<T>(gradients[l_.width + w]);
        }
    }

    decltype(&block_products<false, false, T>) products_;
    decltype(&gradient_row<false, T>) row_;
};

// --- registration

template <class T>
bool fits(const Signature& s, const TensorType& x, const TensorType& scale, const TensorType& offset) {
    if (!all_of_type<T>(s) || x.size() == 0 || x.rank() > max_rank) return false;
    if (scale.shape != offset.shape || scale.rank() != x.rank()) return false;
    const std::string& activation = s.attributes.text("activation");
    if (activation != "linear" && activation != "relu") return false;
    return Layout().find(x.shape, scale.shape, s.attributes.integers("axes"));
}
template <class T>
bool supports_normalize(const Signature& s) {
    return fits<T>(s, s.inputs[0], s.inputs[1], s.inputs[2]);
}
template <class T>
bool supports_gradient(const Signature& s) {
    return fits<T>(s, s.inputs[1], s.inputs[2], s.outputs[2]);
}

const Registration normalize_float("normalize", "columns_float32", 10, supports_normalize<float>,
                                   create_kernel<Normalize<float>>);
const Registration normalize_double("normalize", "columns_float64", 10, supports_normalize<double>,
                                    create_kernel<Normalize<double>>);
const Registration gradient_float("normalize_gradient", "columns_float32", 10, supports_gradient<float>,
                                  create_kernel<NormalizeGradient<float>>);
const Registration gradient_double("normalize_gradient", "columns_float64", 10, supports_gradient<double>,
                                   create_kernel<NormalizeGradient<double>>);

}  // namespace
}  // namespace magmadnn::cpu
