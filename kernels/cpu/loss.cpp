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
Vector<T> maximum(Vector<T> a, Vector<T> b) { return (b > a) | (b != b) ? b : a; }

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

double cost_of_row(int64_t n) { return 10 + 1.5 * static_cast<double>(n); }

int64_t rows_of(const TensorType& x) { return x.size() == 0 ? 0 : x.size() / x.shape.back(); }
bool is_last(const Signature& s) {
    const int64_t axis = s.attributes.integer("axis"), rank = s.inputs[0].rank();
    return rank > 0 && (axis == rank - 1 || axis == -1);
}

// ------------------------------------------------------------------------------------------ softmax, log_softmax

template <class T, bool logarithm>
class Softmax final : public Kernel {
  public:
    explicit Softmax(const Signature& s) : rows_(rows_of(s.inputs[0])), row_(s.inputs[0].shape.back()) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        pool.ranges(rows_, grain_for(cost_of_row(row_.n)), [&](int64_t begin, int64_t end, int) {
            for (int64_t r = begin; r < end; r++)
                one_row(arguments.input<T>(0) + r * row_.n, arguments.output<T>(0) + r * row_.n);
        });
    }

  private:
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
bool supports_softmax(const Signature& s) { return all_of_type<T>(s) && is_last(s); }

const Registration softmax_float("softmax", "rows_float32", 10, supports_softmax<float>,
                                 create_kernel<Softmax<float, false>>);
const Registration softmax_double("softmax", "rows_float64", 10, supports_softmax<double>,
                                  create_kernel<Softmax<double, false>>);
const Registration log_softmax_float("log_softmax", "rows_float32", 10, supports_softmax<float>,
                                     create_kernel<Softmax<float, true>>);
const Registration log_softmax_double("log_softmax", "rows_float64", 10, supports_softmax<double>,
                                      create_kernel<Softmax<double, true>>);

// ------------------------------------------------------------------------------------------ softmax_cross_entropy

/// The labels of one row: a class number, or a weight for every class.
template <class T>
class Labels {
  public:
    Labels(const char* op, const Signature& s)
        : op_(op), sparse_(s.attributes.flag("sparse")), wide_(s.inputs[1].dtype == DType::int64),
          row_(s.inputs[0].shape.back()) {}

    bool sparse() const { return sparse_; }

    int64_t class_of(const void* labels, int64_t r) const {
        const int64_t label = wide_ ? static_cast<const int64_t*>(labels)[r] : static_cast<const int32_t*>(labels)[r];
        if (label < 0 || label >= row_.n)
            throw std::out_of_range(std::string(op_) + ": label " + std::to_string(label) +
                                    " is out of range, wanted a class in [0, " + std::to_string(row_.n) + ")");
        return label;
    }
    const T* weights(const void* labels, int64_t r) const { return static_cast<const T*>(labels) + r * row_.n; }

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
        pool.ranges(rows_, grain_for(cost_of_row(row_.n)), [&](int64_t begin, int64_t end, int) {
            for (int64_t r = begin; r < end; r++)
                arguments.output<T>(0)[r] = loss(arguments.input<T>(0) + r * row_.n, arguments.inputs[1], r);
        });
    }

  private:
    // As log s + (m - x) and not as a difference of two large numbers.
    T loss(const T* x, const void* labels, int64_t r) const {
        const T m = largest(x, row_);
        const T log_sum = std::log(exponentials<T>(x, m, row_, nullptr));
        if (labels_.sparse()) return log_sum + (m - x[labels_.class_of(labels, r)]);
        const T* weights = labels_.weights(labels, r);
        Vector<T> sum{};
        for (int64_t i = 0; i < row_.whole; i += row_.L) sum += load(weights + i) * (log_sum + (m - load(x + i)));
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
        : rows_(rows_of(s.inputs[0])), row_(s.inputs[0].shape.back()), labels_("softmax_cross_entropy_gradient", s) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        pool.ranges(rows_, grain_for(cost_of_row(row_.n)), [&](int64_t begin, int64_t end, int) {
            for (int64_t r = begin; r < end; r++)
                one_row(arguments.input<T>(0) + r * row_.n, arguments.inputs[1], r, arguments.input<T>(2)[r],
                        arguments.output<T>(0) + r * row_.n);
        });
    }

  private:
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
const Registration gradient_float("softmax_cross_entropy_gradient", "rows_float32", 10, supports_cross_entropy<float>,
                                  create_kernel<CrossEntropyGradient<float>>);
const Registration gradient_double("softmax_cross_entropy_gradient", "rows_float64", 10,
                                   supports_cross_entropy<double>, create_kernel<CrossEntropyGradient<double>>);

}  // namespace
}  // namespace magmadnn::cpu
