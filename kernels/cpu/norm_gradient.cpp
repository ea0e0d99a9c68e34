// normalize_gradient. One pass over dy and x for the sums, a second one for dx.
// With g = dy * scale, xhat = (x - mean) * rstd and means over a group:
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)),  dscale = sum of dy * xhat,  doffset = sum of dy
#include "norm.h"

namespace magmadnn::cpu {
namespace {

/// What tells the gradient where a ReLU let values pass: nothing (there is none), x, or y.
enum class Mask { none, from_x, from_y };

/// How dx follows from dy and x: dx = factor * dy - along_x * (x - center) - constant. The offset is that of
/// the values, read with Mask::from_x.
template <class T>
struct Slopes {
    T *center, *factor, *offset, *along_x, *constant;
};

/// Adds to totals[w] the sum of dy and to totals[width + w] the sum of dy * (x - center[w]), over some rows.
/// With Mask::from_y the masked dy are also stored, at `kept`, which may lie where dy does.
template <Mask mask, class T>
void block_products(const T* dy, const T* x, const T* y, const Slopes<T>& slopes, int64_t rows, int64_t width,
                    double* totals, T* kept) {
    constexpr int L = lanes<T>;
    each_strip<T>(
        width,
        [&](int64_t w, auto vectors) {
            Vector<T> sum[vectors], product[vectors], center[vectors], factor[vectors], offset[vectors];
            for (int j = 0; j < vectors; j++) {
                sum[j] = product[j] = Vector<T>{};
                center[j] = load(slopes.center + w + j * L);
                if constexpr (mask == Mask::from_x) {
                    factor[j] = load(slopes.factor + w + j * L);
                    offset[j] = load(slopes.offset + w + j * L);
                }
            }
            for (int64_t r = 0; r < rows; r++)
                for (int j = 0; j < vectors; j++) {
                    const int64_t i = r * width + w + j * L;
                    const Vector<T> xi = load(x + i);
                    Vector<T> d = load(dy + i);
                    if constexpr (mask == Mask::from_x)
                        d = normal(xi, center[j], factor[j], offset[j]) > Vector<T>{} ? d : Vector<T>{};
                    if constexpr (mask == Mask::from_y) {
                        d = load(y + i) > Vector<T>{} ? d : Vector<T>{};
                        store(kept + i, d);
                    }
                    sum[j] += d;
                    product[j] += d * (xi - center[j]);
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
                T d = dy[i];
                if constexpr (mask == Mask::from_x)
                    d = normal(x[i], slopes.center[w], slopes.factor[w], slopes.offset[w]) > 0 ? d : T(0);
                if constexpr (mask == Mask::from_y) kept[i] = d = y[i] > 0 ? d : T(0);
                sum += d;
                product += d * (x[i] - slopes.center[w]);
            }
            totals[w] += static_cast<double>(sum);
            totals[width + w] += static_cast<double>(product);
        });
}

/// One row of gradients; dx may lie where dy or x does. With Mask::from_y, dy is masked already.
template <Mask mask, class T>
void gradient_row(const T* dy, const T* x, const Slopes<T>& slopes, T* dx, int64_t width) {
    const T *center = slopes.center, *factor = slopes.factor, *offset = slopes.offset;
    const T *along_x = slopes.along_x, *constant = slopes.constant;
#pragma GCC ivdep
    for (int64_t w = 0; w < width; w++) {
        T d = dy[w];
        if constexpr (mask == Mask::from_x) d = normal(x[w], center[w], factor[w], offset[w]) > 0 ? d : T(0);
        dx[w] = factor[w] * d - along_x[w] * (x[w] - center[w]) - constant[w];
    }
}

template <class T>
class NormalizeGradient final : public Normalization<T> {
    using Base = Normalization<T>;
    using Base::l_;

  public:
    explicit NormalizeGradient(const Signature& s)
        : Base(s, s.inputs[1], s.inputs[2]),
          mask_(this->residual_ ? Mask::from_y
                : this->relu_   ? Mask::from_x
                                : Mask::none) {
        products_ = mask_ == Mask::from_y   ? block_products<Mask::from_y, T>
                    : mask_ == Mask::from_x ? block_products<Mask::from_x, T>
                                            : block_products<Mask::none, T>;
        row_ = mask_ == Mask::from_x ? gradient_row<Mask::from_x, T> : gradient_row<Mask::none, T>;
    }

    size_t workspace_bytes() const override {
        Carver carver;
        carve(carver, nullptr, nullptr);
        return carver.used();
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        Carver carver(arguments.workspace);
        const T* dy = arguments.input<T>(0);
        T* dx = arguments.output<T>(0);
        Tensors t{dy,
                  arguments.input<T>(1),
                  mask_ == Mask::from_y ? arguments.input<T>(5) : dy,
                  nullptr,
                  nullptr,
                  arguments.input<T>(3),
                  arguments.input<T>(4),
                  dx,
                  mask_ == Mask::from_y ? arguments.output<T>(3) : dx};
        Part* parts = carve(carver, &t.scale, &t.offset);
        t.scale = this->spread(arguments.input<T>(2), const_cast<T*>(t.scale));
        t.offset =
            mask_ == Mask::from_x ? this->spread(arguments.input<T>(5), const_cast<T*>(t.offset)) : t.scale;
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
        const T *dy, *x, *y, *scale, *offset, *mean, *variance;
        T *dx, *dresidual;
    };
    // Pairs of arrays over the width: the sums of dy first, those of dy * (x - mean) behind.
    struct Part {
        double* totals;     // of one outer index, over the folded width
        double* gradients;  // doffset and dscale so far
        T* block;           // the same over a few outer indices (rows == 1)
        Slopes<T> slopes;   // over the folded width
    };

    Part* carve(Carver& carver, const T** scale, const T** offset) const {
        T* a = carver.take<T>(l_.width);
        T* b = carver.take<T>(l_.width);
        if (scale) *scale = a, *offset = b;
        Part* parts = carver.take<Part>(this->threads_);
        for (int i = 0; i < this->threads_; i++) {
            const int64_t n = l_.folded_width();
            Part part{};
            part.gradients = carver.take<double>(2 * l_.width);
            if (l_.rows == 1) {
                part.block = carver.take<T>(2 * l_.width);
            } else {
                part.totals = carver.take<double>(2 * n);
                for (T** values : {&part.slopes.center, &part.slopes.factor, &part.slopes.offset,
                                   &part.slopes.along_x, &part.slopes.constant})
                    *values = carver.take<T>(n);
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
        const T center = t.mean[i];
        const double rstd = this->rstd(t.variance[i]);
        const T factor = static_cast<T>(rstd);
        const auto dy = [&](int64_t j, int count) {
            const Vector<T> d = part(t.dy + i * n, j, count);
            if (mask_ == Mask::none) return d;
            const Vector<T> y = mask_ == Mask::from_y ? part(t.y + i * n, j, count)
                                                      : normal(part(x, j, count), broadcast(center),
                                                               part(scale, j, count) * factor,
                                                               part(t.offset + first, j, count));
            return y > Vector<T>{} ? d : Vector<T>{};
        };
        const double sum =
            sum_segment<T>(n, [&](int64_t j, int count) { return dy(j, count) * part(scale, j, count); });
        const double product = sum_segment<T>(n, [&](int64_t j, int count) {
            return dy(j, count) * part(scale, j, count) * (part(x, j, count) - center);
        });
        const T constant = static_cast<T>(rstd * sum / l_.count());
        const T along_x = static_cast<T>(rstd * rstd * rstd * product / l_.count());
        T *offsets = block + first, *scales = block + l_.width + first;
        each_part<T>(n, [&](int64_t j, int count) {
            const Vector<T> d = dy(j, count), centered = part(x, j, count) - center;
            store_part(t.dx + i * n, j, count,
                       d * part(scale, j, count) * factor - centered * along_x - constant);
            if (mask_ == Mask::from_y) store_part(t.dresidual + i * n, j, count, d);
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
            part.slopes = parts[0].slopes;
            measure(t, k, this->row_of(cut.begin(i)), this->row_of(cut.end(i)), part);
        });
        for (int64_t i = 1; i < cut.parts; i++)
            for (int64_t w = 0; w < 2 * l_.width; w++) parts[0].totals[w] += parts[i].totals[w];
        finish(t, k, parts[0]);
        pool.each(cut.parts, [&](int64_t i, int) {
            apply(t, k, this->row_of(cut.begin(i)), this->row_of(cut.end(i)), parts[0]);
        });
    }

    /// What the sums need: the center of each column, and what its sign before the ReLU follows from.
    void place_centers(const Tensors& t, int64_t k, const Part& p) const {
        for (int64_t w = 0; w < l_.width; w++) {
            const int64_t i = k * l_.groups + w / l_.size;
            p.slopes.center[w] = t.mean[i];
            p.slopes.factor[w] = this->factor(t.variance[i], t.scale[w]);
            p.slopes.offset[w] = t.offset[w];
        }
        for (T* values : {p.slopes.center, p.slopes.factor, p.slopes.offset})
            repeat(values, l_.width, l_.fold);
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
            products_(t.dy + first, t.x + first, t.y + first, p.slopes, rows, width, p.totals,
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
            const double rstd = this->rstd(t.variance[k * l_.groups + g]);
            double sum = 0, product = 0;
            for (int64_t w = g * l_.size; w < (g + 1) * l_.size; w++) {
                sum += static_cast<double>(t.scale[w]) * sums[w];
                product += static_cast<double>(t.scale[w]) * products[w];
                p.gradients[w] += sums[w];
                p.gradients[l_.width + w] += rstd * products[w];
            }
            for (int64_t w = g * l_.size; w < (g + 1) * l_.size; w++) {
                p.slopes.along_x[w] = static_cast<T>(rstd * rstd * rstd * product / l_.count());
                p.slopes.constant[w] = static_cast<T>(rstd * sum / l_.count());
            }
        }
        for (T* values : {p.slopes.along_x, p.slopes.constant}) repeat(values, l_.width, l_.fold);
    }

    void apply(const Tensors& t, int64_t k, int64_t begin, int64_t end, const Part& p) const {
        const T* dy = mask_ == Mask::from_y ? t.dresidual : t.dy;
        this->each_block(begin, end, [&](int64_t row, int64_t rows, int64_t width) {
            const int64_t first = (k * l_.rows + row) * l_.width;
            for (int64_t i = first; i < first + rows * width; i += width)
                row_(dy + i, t.x + i, p.slopes, t.dx + i, width);
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

    Mask mask_;
    decltype(&block_products<Mask::none, T>) products_;
    decltype(&gradient_row<Mask::none, T>) row_;
};

template <class T>
bool supports(const Signature& s) {
    return fits_normalization<T>(s, s.inputs[1], s.inputs[2], s.outputs[2]);
}

const Registration entries_of_this_file[] = {
    {"normalize_gradient", "columns_float32", 10, supports<float>, create_kernel<NormalizeGradient<float>>},
    {"normalize_gradient", "columns_float64", 10, supports<double>, create_kernel<NormalizeGradient<double>>},
};

}  // namespace
}  // namespace magmadnn::cpu
