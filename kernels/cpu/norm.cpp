// normalize. One pass over x for the statistics, a second one for the values, residual and ReLU included.
#include "norm.h"

namespace magmadnn::cpu {
namespace {

/// Sums of x - first and of its square for each column over a few rows, where first is the first row: a
/// number of the column's own size, so that little is lost however far from zero the column lies.
template <class T>
void block_sums(const T* x, int64_t rows, int64_t width, T* sums, T* squares) {
    constexpr int L = lanes<T>;
    each_strip<T>(
        width,
        [&](int64_t w, auto vectors) {
            Vector<T> first[vectors], sum[vectors], square[vectors];
            for (int j = 0; j < vectors; j++) {
                first[j] = load(x + w + j * L);
                sum[j] = square[j] = Vector<T>{};
            }
            for (int64_t r = 1; r < rows; r++)
                for (int j = 0; j < vectors; j++) {
                    const Vector<T> d = load(x + r * width + w + j * L) - first[j];
                    sum[j] += d;
                    square[j] += d * d;
                }
            for (int j = 0; j < vectors; j++) {
                store(sums + w + j * L, sum[j]);
                store(squares + w + j * L, square[j]);
            }
        },
        [&](int64_t w) {
            T sum = 0, square = 0;
            for (int64_t r = 1; r < rows; r++) {
                const T d = x[r * width + w] - x[w];
                sum += d;
                square += d * d;
            }
            sums[w] = sum;
            squares[w] = square;
        });
}

/// Joins the mean and the summed squared deviation of `rows` further rows to those of n (Chan, Golub, LeVeque
/// 1979).
struct Merge {
    double share, weight;
    Merge(double n, double rows) : share(rows / (n + rows)), weight(n * share) {}
    void operator()(double& mean, double& m2, double further_mean, double further_m2) const {
        const double delta = further_mean - mean;
        mean += delta * share;
        m2 += further_m2 + delta * delta * weight;
    }
};

void merge_moments(double* mean, double* m2, double n, const double* further_mean, const double* further_m2,
                   double rows, int64_t width) {
    const Merge merge(n, rows);
    for (int64_t w = 0; w < width; w++) merge(mean[w], m2[w], further_mean[w], further_m2[w]);
}

/// The same for rows whose sums were taken around their first one.
template <class T>
void merge_sums(double* mean, double* m2, double n, const T* first, const T* sums, const T* squares,
                double rows, int64_t width) {
    const Merge merge(n, rows);
    for (int64_t w = 0; w < width; w++) {
        const auto sum = static_cast<double>(sums[w]);
        const double from_first = sum / rows;
        merge(mean[w], m2[w], static_cast<double>(first[w]) + from_first,
              static_cast<double>(squares[w]) - sum * from_first);
    }
}

/// One row of results; `residual` is read only with Residual.
template <bool Residual, bool Relu, class T>
void normalize_row(const T* x, const T* center, const T* factor, const T* offset, const T* residual, T* y,
                   int64_t width) {
#pragma GCC ivdep
    for (int64_t w = 0; w < width; w++) {
        T v = normal(x[w], center[w], factor[w], offset[w]);
        if constexpr (Residual) v += residual[w];
        if constexpr (Relu) v = v < 0 ? T(0) : v;
        y[w] = v;
    }
}

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
        T *sums, *squares;
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
            part.sums = carver.take<T>(n), part.squares = carver.take<T>(n);
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
        const T factor = static_cast<T>(this->rstd(t.variance[i]));
        each_part<T>(n, [&](int64_t j, int count) {
            const Vector<T> scale = part(t.scale + first, j, count) * factor;
            Vector<T> v =
                normal(part(x, j, count), broadcast(center), scale, part(t.offset + first, j, count));
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
            const T* first = x + row * l_.width;
            block_sums(first, rows, width, p.sums, p.squares);
            merge_sums(p.mean, p.m2, n, first, p.sums, p.squares, static_cast<double>(rows), width);
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
            const T variance = static_cast<T>(*m2 / l_.count());
            t.mean[k * l_.groups + g] = static_cast<T>(*mean);
            t.variance[k * l_.groups + g] = variance;
            for (int64_t w = g * l_.size; w < (g + 1) * l_.size; w++) {
                p.center[w] = static_cast<T>(*mean);
                p.factor[w] = this->factor(variance, t.scale[w]);
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

template <class T>
bool supports(const Signature& s) {
    return fits_normalization<T>(s, s.inputs[0], s.inputs[1], s.inputs[2]);
}

const Registration entries_of_this_file[] = {
    {"normalize", "columns_float32", 10, supports<float>, create_kernel<Normalize<float>>},
    {"normalize", "columns_float64", 10, supports<double>, create_kernel<Normalize<double>>},
};

}  // namespace
}  // namespace magmadnn::cpu
