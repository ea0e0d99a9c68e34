// Softmax along the last axis and the cross-entropy losses on it.
//   m largest logit of a row, s sum of exp(x - m) over the row, n classes, labels are dense or class numbers
#include <cmath>
#include <limits>

#include "loops.h"
#include "registration.h"
#include "vector_math.h"

namespace magmadnn::cpu {
namespace {

/// A row of n elements as whole vectors and a tail that is filled up.
template <class T>
struct Row {
    static constexpr int L = lanes<T>;
    int64_t n;
    int64_t whole;  // elements in whole vectors
    explicit Row(int64_t n) : n(n), whole(n / L * L) {}

    Vector<T> tail(const T* x, T fill) const { return load_partial(x + whole, n - whole, fill); }
    bool has_tail() const { return whole < n; }
};

template <class T>
Vector<T> maximum(Vector<T> a, Vector<T> b) {
    return (b > a) | (b != b) ? b : a;
}

template <class T>
T largest(const T* x, const Row<T>& row) {
    const T lowest = -std::numeric_limits<T>::infinity();
    Vector<T> best = Vector<T>{} + lowest;
    for (int64_t i = 0; i < row.whole; i += row.L) best = maximum<T>(best, load(x + i));
    if (row.has_tail()) best = maximum<T>(best, row.tail(x, lowest));
    T result = best[0];
    for (int i = 1; i < row.L; i++) result = best[i] > result || best[i] != best[i] ? best[i] : result;
    return result;
}

/// y = exp(x - m), or only the sum of it where y is null.
template <class T>
T exponentials(const T* x, T m, const Row<T>& row, T* y) {
    Vector<T> sum{};
    for (int64_t i = 0; i < row.whole; i += row.L) {
        const Vector<T> e = math::exp(load(x + i) - m);
        if (y) store(y + i, e);
        sum += e;
    }
    if (row.has_tail()) {
        const Vector<T> e = math::exp(row.tail(x, -std::numeric_limits<T>::infinity()) - m);
        if (y) store_partial(y + row.whole, e, row.n - row.whole);
        sum += e;
    }
    return sum_lanes<T>(sum);
}

/// y[i] = f(y[i], other[i])
template <class T, class F>
void update(T* y, const T* other, const Row<T>& row, F&& f) {
    for (int64_t i = 0; i < row.whole; i += row.L) store(y + i, f(load(y + i), load(other + i)));
    if (row.has_tail())
        store_partial(y + row.whole, f(row.tail(y, T(0)), row.tail(other, T(0))), row.n - row.whole);
}

/// As many short rows as a vector has lanes, one per lane: with few classes, rows would fill no vectors.
template <class T>
struct NarrowRows {
    static constexpr int L = lanes<T>;
    static constexpr int64_t most_classes = 4 * L - 1;

    int64_t n;
    T elements[most_classes * L];

    NarrowRows(const T* x, int64_t rows, int64_t n) : n(n) {
        if (rows < L) std::fill_n(elements, n * L, T(0));
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < n; c++) elements[c * L + r] = x[r * n + c];
    }
    void write(T* y, int64_t rows) const {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < n; c++) y[r * n + c] = elements[c * L + r];
    }
    Vector<T> operator[](int64_t c) const { return load(elements + c * L); }
    template <class F>
    void update(F&& f) {
        for (int64_t c = 0; c < n; c++) store(elements + c * L, f((*this)[c], c));
    }
    Vector<T> largest() const {
        Vector<T> m = Vector<T>{} - std::numeric_limits<T>::infinity();
        for (int64_t c = 0; c < n; c++) m = maximum<T>(m, (*this)[c]);
        return m;
    }
    /// Turns every element into exp(x - m) and returns the sum of them.
    Vector<T> exponentials(Vector<T> m) {
        Vector<T> sum{};
        update([&](Vector<T> x, int64_t) {
            const Vector<T> e = math::exp(x - m);
            sum += e;
            return e;
        });
        return sum;
    }
};

/// Calls narrow(first row, rows) for groups of rows of a vector's width, or wide(row) for each where rows are
/// long.
template <class T, class Narrow, class Wide>
void each_row(int64_t rows, int64_t n, ThreadPool& pool, Narrow&& narrow, Wide&& wide) {
    const double cost = 5 + 1.2 * static_cast<double>(n);
    if (n > NarrowRows<T>::most_classes) {
        pool.ranges(rows, grain_for(cost), [&](int64_t begin, int64_t end, int) {
            for (int64_t r = begin; r < end; r++) wide(r);
        });
        return;
    }
    const int64_t groups = (rows + lanes<T> - 1) / lanes<T>;
    pool.ranges(groups, grain_for(cost * lanes<T>), [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; i++)
            narrow(i * lanes<T>, std::min<int64_t>(lanes<T>, rows - i * lanes<T>));
    });
}

int64_t rows_of(const TensorType& x) { return x.size() == 0 ? 0 : x.size() / x.shape.back(); }
bool is_last(const Signature& s) {
    const int64_t axis = s.attributes.integer("axis"), rank = s.inputs[0].rank();
    return rank > 0 && (axis == rank - 1 || axis == -1);
}

// --- softmax, log_softmax

template <class T, bool logarithm>
class Softmax final : public Kernel {
  public:
    explicit Softmax(const Signature& s) : rows_(rows_of(s.inputs[0])), row_(s.inputs[0].shape.back()) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        const T* x = arguments.input<T>(0);
        T* y = arguments.output<T>(0);
        each_row<T>(
            rows_, row_.n, pool,
            [&](int64_t r, int64_t rows) { narrow_rows(x + r * row_.n, y + r * row_.n, rows); },
            [&](int64_t r) { one_row(x + r * row_.n, y + r * row_.n); });
    }

  private:
    void narrow_rows(const T* x, T* y, int64_t rows) const {
        NarrowRows<T> tile(x, rows, row_.n);
        const Vector<T> m = tile.largest();
        if constexpr (logarithm) {
            NarrowRows<T> copy = tile;
            const Vector<T> log_sum = math::log(copy.exponentials(m));
            tile.update([=](Vector<T> v, int64_t) { return (v - m) - log_sum; });
        } else {
            const Vector<T> scale = T(1) / tile.exponentials(m);
            tile.update([=](Vector<T> v, int64_t) { return v * scale; });
        }
        tile.write(y, rows);
    }

    void one_row(const T* x, T* y) const {
        const T m = largest(x, row_);
        if constexpr (logarithm) {
            const T log_sum = std::log(exponentials<T>(x, m, row_, nullptr));
            if (y != x) std::memmove(y, x, static_cast<size_t>(row_.n) * sizeof(T));
            update(y, y, row_, [=](Vector<T> v, Vector<T>) { return (v - m) - log_sum; });
        } else {
            const T scale = T(1) / exponentials(x, m, row_, y);
            update(y, y, row_, [=](Vector<T> v, Vector<T>) { return v * scale; });
        }
    }

    int64_t rows_;
    Row<T> row_;
};

template <class T>
bool supports_softmax(const Signature& s) {
    return all_of_type<T>(s) && is_last(s);
}

const Registration softmax_float("softmax", "rows_float32", 10, supports_softmax<float>,
                                 create_kernel<Softmax<float, false>>);
const Registration softmax_double("softmax", "rows_float64", 10, supports_softmax<double>,
                                  create_kernel<Softmax<double, false>>);
const Registration log_softmax_float("log_softmax", "rows_float32", 10, supports_softmax<float>,
                                     create_kernel<Softmax<float, true>>);
const Registration log_softmax_double("log_softmax", "rows_float64", 10, supports_softmax<double>,
                                      create_kernel<Softmax<double, true>>);

// --- softmax_cross_entropy

/// The labels of one row: a class number, or a weight for every class.
template <class T>
class Labels {
  public:
    Labels(const char* op, const Signature& s)
        : op_(op),
          sparse_(s.attributes.flag("sparse")),
          wide_(s.inputs[1].dtype == DType::int64),
          row_(s.inputs[0].shape.back()) {}

    bool sparse() const { return sparse_; }

    int64_t class_of(const void* labels, int64_t r) const {
        const int64_t label =
            wide_ ? static_cast<const int64_t*>(labels)[r] : static_cast<const int32_t*>(labels)[r];
        if (label < 0 || label >= row_.n)
            throw std::invalid_argument(std::string(op_) + ": labels: got " + std::to_string(label) +
                                        ", wanted class numbers from 0 to " + std::to_string(row_.n - 1));
        return label;
    }
    const T* weights(const void* labels, int64_t r) const {
        return static_cast<const T*>(labels) + r * row_.n;
    }

  private:
    const char* op_;
    bool sparse_, wide_;
    Row<T> row_;
};

template <class T>
class CrossEntropy final : public Kernel {
  public:
    explicit CrossEntropy(const Signature& s)
        : rows_(rows_of(s.inputs[0])), row_(s.inputs[0].shape.back()), labels_("softmax_cross_entropy", s) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        const T* x = arguments.input<T>(0);
        T* y = arguments.output<T>(0);
        each_row<T>(
            rows_, row_.n, pool,
            [&](int64_t r, int64_t rows) {
                narrow_losses(x + r * row_.n, arguments.inputs[1], r, rows, y + r);
            },
            [&](int64_t r) { y[r] = loss(x + r * row_.n, arguments.inputs[1], r); });
    }

  private:
    void narrow_losses(const T* x, const void* labels, int64_t r, int64_t rows, T* y) const {
        const NarrowRows<T> logits(x, rows, row_.n);
        NarrowRows<T> tile = logits;
        const Vector<T> m = tile.largest();
        const Vector<T> log_sum = math::log(tile.exponentials(m));
        Vector<T> result{};
        if (labels_.sparse()) {
            T chosen[lanes<T>] = {};
            for (int64_t i = 0; i < rows; i++) chosen[i] = x[i * row_.n + labels_.class_of(labels, r + i)];
            result = log_sum + (m - load(chosen));
        } else {
            const NarrowRows<T> weights(labels_.weights(labels, r), rows, row_.n);
            for (int64_t c = 0; c < row_.n; c++) result += weights[c] * (log_sum + (m - logits[c]));
        }
        store_partial<T>(y, result, rows);
    }

    // As log s + (m - x) and not as a difference of two large numbers.
    T loss(const T* x, const void* labels, int64_t r) const {
        const T m = largest(x, row_);
        const T log_sum = std::log(exponentials<T>(x, m, row_, nullptr));
        if (labels_.sparse()) return log_sum + (m - x[labels_.class_of(labels, r)]);
        const T* weights = labels_.weights(labels, r);
        Vector<T> sum{};
        for (int64_t i = 0; i < row_.whole; i += row_.L)
            sum += load(weights + i) * (log_sum + (m - load(x + i)));
        if (row_.has_tail()) sum += row_.tail(weights, T(0)) * (log_sum + (m - row_.tail(x, m)));
        return sum_lanes<T>(sum);
    }

    int64_t rows_;
    Row<T> row_;
    Labels<T> labels_;
};

template <class T>
class CrossEntropyGradient final : public Kernel {
  public:
    explicit CrossEntropyGradient(const Signature& s)
        : rows_(rows_of(s.inputs[0])),
          row_(s.inputs[0].shape.back()),
          labels_("softmax_cross_entropy_gradient", s) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        const T *x = arguments.input<T>(0), *dloss = arguments.input<T>(2);
        const void* labels = arguments.inputs[1];
        T* dx = arguments.output<T>(0);
        each_row<T>(
            rows_, row_.n, pool,
            [&](int64_t r, int64_t rows) {
                narrow_rows(x + r * row_.n, labels, r, rows, dloss + r, dx + r * row_.n);
            },
            [&](int64_t r) { one_row(x + r * row_.n, labels, r, dloss[r], dx + r * row_.n); });
    }

  private:
    void narrow_rows(const T* x, const void* labels, int64_t r, int64_t rows, const T* dloss, T* dx) const {
        NarrowRows<T> tile(x, rows, row_.n);
        const Vector<T> s = tile.exponentials(tile.largest()), d = load_partial(dloss, rows);
        if (labels_.sparse()) {
            const Vector<T> scale = d / s;
            tile.update([=](Vector<T> e, int64_t) { return e * scale; });
            tile.write(dx, rows);
            for (int64_t i = 0; i < rows; i++) dx[i * row_.n + labels_.class_of(labels, r + i)] -= dloss[i];
        } else {
            const NarrowRows<T> weights(labels_.weights(labels, r), rows, row_.n);
            Vector<T> total{};
            for (int64_t c = 0; c < row_.n; c++) total += weights[c];
            const Vector<T> scale = total / s;
            tile.update([&](Vector<T> e, int64_t c) { return (e * scale - weights[c]) * d; });
            tile.write(dx, rows);
        }
    }

    void one_row(const T* x, const void* labels, int64_t r, T dloss, T* dx) const {
        const T m = largest(x, row_);
        const T s = exponentials(x, m, row_, dx);
        if (labels_.sparse()) {
            const T scale = dloss / s;
            update(dx, dx, row_, [=](Vector<T> e, Vector<T>) { return e * scale; });
            dx[labels_.class_of(labels, r)] -= dloss;
            return;
        }
        const T* weights = labels_.weights(labels, r);
        Vector<T> total{};
        for (int64_t i = 0; i < row_.whole; i += row_.L) total += load(weights + i);
        if (row_.has_tail()) total += row_.tail(weights, T(0));
        const T scale = sum_lanes<T>(total) / s;
        update(dx, weights, row_, [=](Vector<T> e, Vector<T> w) { return (e * scale - w) * dloss; });
    }

    int64_t rows_;
    Row<T> row_;
    Labels<T> labels_;
};

template <class T>
bool supports_cross_entropy(const Signature& s) {
    if (s.inputs[0].rank() == 0 || s.inputs[0].shape.back() == 0) return false;
    const DType labels = s.inputs[1].dtype;
    const bool sparse = s.attributes.flag("sparse");
    if (sparse ? labels != DType::int32 && labels != DType::int64 : labels != DTypeOf<T>::value) return false;
    return s.inputs[0].dtype == DTypeOf<T>::value && s.outputs[0].dtype == DTypeOf<T>::value;
}

const Registration loss_float("softmax_cross_entropy", "rows_float32", 10, supports_cross_entropy<float>,
                              create_kernel<CrossEntropy<float>>);
const Registration loss_double("softmax_cross_entropy", "rows_float64", 10, supports_cross_entropy<double>,
                               create_kernel<CrossEntropy<double>>);
const Registration gradient_float("softmax_cross_entropy_gradient", "rows_float32", 10,
                                  supports_cross_entropy<float>, create_kernel<CrossEntropyGradient<float>>);
const Registration gradient_double("softmax_cross_entropy_gradient", "rows_float64", 10,
                                   supports_cross_entropy<double>,
                                   create_kernel<CrossEntropyGradient<double>>);

}  // namespace
}  // namespace magmadnn::cpu
