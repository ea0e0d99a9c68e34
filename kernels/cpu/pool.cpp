// Max and average pooling over 1 to 3 spatial dimensions, channels last, and their gradients.
//   n image, d h w spatial position in the input, od oh ow in the output, kd kh kw in the window, c channel
// The gradients go through dx row by row: a row is finished, from the output rows whose windows cover it, before the
// next one starts. So threads never meet, and where windows do not overlap every cell is written exactly once.
#include <limits>

#include "loops.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

/// The arithmetic of windows along one spatial axis.
struct Axis {
    int64_t in = 1, out = 1, window = 1, stride = 1, low = 0;

    int64_t start(int64_t o) const { return o * stride - low; }
    /// Window cells [first, last) of output o that lie in the input.
    int64_t first_cell(int64_t o) const { return std::max<int64_t>(-start(o), 0); }
    int64_t last_cell(int64_t o) const { return std::min(window, in - start(o)); }
    int64_t cells(int64_t o) const { return std::max<int64_t>(last_cell(o) - first_cell(o), 0); }
    /// Outputs [first, last) whose window covers input i.
    int64_t first_output(int64_t i) const {
        const int64_t reach = i + low - window + 1;
        return reach <= 0 ? 0 : (reach + stride - 1) / stride;
    }
    int64_t last_output(int64_t i) const { return std::min(out, (i + low) / stride + 1); }
};

/// x is [n, d, h, w, c] and y [n, od, oh, ow, c]; missing spatial axes have extent 1.
struct Geometry {
    int64_t n, c;
    Axis d, h, w;

    Geometry(const Attributes& attributes, const Shape& x, const Shape& y) : n(x.front()), c(x.back()) {
        const auto& window = attributes.integers("window");
        const auto& strides = attributes.integers("strides");
        const auto& padding = attributes.integers("padding");
        const int rank = static_cast<int>(window.size());
        Axis* axes[] = {&d, &h, &w};
        for (int i = 0; i < rank; i++)
            *axes[3 - rank + i] = {x[i + 1], y[i + 1], window[i], strides[i], padding[2 * i]};
    }
    int64_t window_cells() const { return d.window * h.window * w.window; }
    int64_t x_rows() const { return n * d.in * h.in; }
    int64_t y_rows() const { return n * d.out * h.out; }
    /// Windows that cover a cell of x, on average.
    double overlap() const {
        double cells = 1;
        for (const Axis* axis : {&d, &h, &w}) cells *= std::max(1.0, double(axis->window) / double(axis->stride));
        return cells;
    }
};

/// Positions inside windows, one per lane of T.
template <class T>
using Position = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
template <class T>
using Positions = Vector<Position<T>>;

template <class T, class P>
struct StoredPositions {
    typedef P type __attribute__((vector_size(lanes<T> * sizeof(P)), aligned(alignof(P)), may_alias));
};

template <class T, class P>
void store_positions(P* p, Positions<T> v) {
    using Narrow = typename StoredPositions<T, P>::type;
    *reinterpret_cast<Narrow*>(p) = __builtin_convertvector(v, Narrow);
}
template <class T, class P>
Positions<T> load_positions(const P* p) {
    using Narrow = typename StoredPositions<T, P>::type;
    return __builtin_convertvector(*reinterpret_cast<const Narrow*>(p), Positions<T>);
}

/// The lanes of a vector that starts at channel c and are new where the last vector overlaps the one before it.
template <class T>
Positions<T> lanes_from(int64_t first, int64_t last) {
    Positions<T> mask{};
    for (int i = 0; i < lanes<T>; i++) mask[i] = i >= first && i < last ? -1 : 0;
    return mask;
}

/// Calls vector(c, fresh) for vectors of channels from c on, where `fresh` masks the lanes not covered before; the
/// last vector overlaps the one before. Fewer channels than lanes: one vector that reaches into what follows, if
/// `room` says that it may, else channel(c) for each.
template <class T, class VectorBody, class ChannelBody>
inline void each_channel(int64_t channels, bool room, VectorBody&& vector, ChannelBody&& channel) {
    constexpr int L = lanes<T>;
    if (channels >= L) {
        int64_t c = 0;
        for (; c + L <= channels; c += L) vector(c, ~Positions<T>{});
        if (c < channels) vector(channels - L, lanes_from<T>(L - (channels - c), L));
    } else if (room) {
        vector(0, lanes_from<T>(0, channels));
    } else {
        for (int64_t c = 0; c < channels; c++) channel(c);
    }
}

// ------------------------------------------------------------------------------------------------------ max_pool

/// Keeps the better of a value and the best so far; the first maximum wins, and so does the first NaN.
template <class V, class P>
void keep_better(V value, P position, V& best, P& at) {
    const auto take = ~(value <= best) & (best == best);
    best = take ? value : best;
    at = take ? position : at;
}

template <class T, class P>
class MaxPool final : public Kernel {
  public:
    explicit MaxPool(const Signature& s) : g_(s.attributes, s.inputs[0].shape, s.outputs[0].shape) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        const double cost = (0.4 * static_cast<double>(g_.window_cells()) + 0.5) * static_cast<double>(sizeof(T)) / 4;
        pool.ranges(g_.y_rows(), grain_for(cost * static_cast<double>(g_.w.out * g_.c)),
                    [&](int64_t begin, int64_t end, int) {
                        for (int64_t row = begin; row < end; row++) one_row(arguments, row, end);
                    });
    }

  private:
    // The part of a window that lies in the input: cells [begin, end) along each axis, x at its cell (0, 0, 0).
    struct Window {
        const T* x;
        int64_t d_begin, d_end, h_begin, h_end, w_begin, w_end;
    };

    void one_row(const Arguments& arguments, int64_t row, int64_t end) const {
        const int64_t oh = row % g_.h.out, od = row / g_.h.out % g_.d.out, n = row / g_.h.out / g_.d.out;
        Window window;
        window.d_begin = g_.d.first_cell(od), window.d_end = g_.d.last_cell(od);
        window.h_begin = g_.h.first_cell(oh), window.h_end = g_.h.last_cell(oh);
        const int64_t start = (n * g_.d.in + g_.d.start(od)) * g_.h.in + g_.h.start(oh);
        T* y = arguments.output<T>(0) + row * g_.w.out * g_.c;
        P* positions = arguments.output<P>(1) + row * g_.w.out * g_.c;
        const T* y_end = arguments.output<T>(0) + end * g_.w.out * g_.c;  // where this thread's part ends
        const T* x_end = arguments.input<T>(0) + g_.x_rows() * g_.w.in * g_.c;
        const int64_t reach =
            (((g_.d.window - 1) * g_.h.in + g_.h.window - 1) * g_.w.in + g_.w.window - 1) * g_.c + lanes<T>;
        for (int64_t ow = 0; ow < g_.w.out; ow++, y += g_.c, positions += g_.c) {
            window.w_begin = g_.w.first_cell(ow), window.w_end = g_.w.last_cell(ow);
            window.x = arguments.input<T>(0) + (start * g_.w.in + g_.w.start(ow)) * g_.c;
            const bool room = y + lanes<T> <= y_end && window.x + reach <= x_end;
            each_channel<T>(
                g_.c, room, [&](int64_t c, Positions<T>) { vector_of_channels(window, c, y, positions); },
                [&](int64_t c) { one_channel(window, c, y, positions); });
        }
    }

    template <class Body>
    void each_cell(const Window& v, Body&& body) const {
        for (int64_t kd = v.d_begin; kd < v.d_end; kd++)
            for (int64_t kh = v.h_begin; kh < v.h_end; kh++) {
                const T* x = v.x + (kd * g_.h.in + kh) * g_.w.in * g_.c;
                const int64_t position = (kd * g_.h.window + kh) * g_.w.window;
                for (int64_t kw = v.w_begin; kw < v.w_end; kw++) body(x + kw * g_.c, position + kw);
            }
    }
    int64_t first_position(const Window& v) const {
        return (v.d_begin * g_.h.window + v.h_begin) * g_.w.window + v.w_begin;
    }

    void vector_of_channels(const Window& window, int64_t c, T* y, P* positions) const {
        Vector<T> best = Vector<T>{} - std::numeric_limits<T>::infinity();
        Positions<T> at = broadcast(static_cast<Position<T>>(first_position(window)));
        each_cell(window, [&](const T* x, int64_t position) {
            keep_better<Vector<T>, Positions<T>>(load(x + c), broadcast(static_cast<Position<T>>(position)), best, at);
        });
        store(y + c, best);
        store_positions<T, P>(positions + c, at);
    }

    void one_channel(const Window& window, int64_t c, T* y, P* positions) const {
        T best = -std::numeric_limits<T>::infinity();
        int64_t at = first_position(window);
        each_cell(window, [&](const T* x, int64_t position) {
            const bool take = !(x[c] <= best) & (best == best);
            best = take ? x[c] : best;
            at = take ? position : at;
        });
        y[c] = best;
        positions[c] = static_cast<P>(at);
    }

    Geometry g_;
};

template <class T>
bool supports_max_pool(const Signature& s) {
    return s.inputs[0].dtype == DTypeOf<T>::value && s.inputs[0].rank() >= 3 && s.inputs[0].rank() <= 5;
}

template <template <class, class> class Pool, class T>
std::unique_ptr<Kernel> create_for_positions(const Signature& s, DType positions) {
    if (positions == DType::uint8) return create_kernel<Pool<T, uint8_t>>(s);
    return create_kernel<Pool<T, int32_t>>(s);
}
template <class T>
std::unique_ptr<Kernel> create_max_pool(const Signature& s) {
    return create_for_positions<MaxPool, T>(s, s.outputs[1].dtype);
}

const Registration max_float("max_pool", "channels_float32", 10, supports_max_pool<float>, create_max_pool<float>);
const Registration max_double("max_pool", "channels_float64", 10, supports_max_pool<double>, create_max_pool<double>);

// ------------------------------------------------------------------------------------------------------ gradients

/// dx[cell] = the sum, over the windows that cover the cell, of what `Term` says the window gives it:
/// term.window(od, oh, ow, y) with y the window's offset in dy is asked vector(c) or channel(c), and that at(position).
template <class T, class Term>
class GradientRows {
  public:
    GradientRows(const Geometry& g, const Term& term, T* dx, int64_t y_size) : g_(g), term_(term), dx_(dx), y_size_(y_size) {}

    void run(double cost, ThreadPool& pool) const {
        pool.ranges(g_.x_rows(), grain_for(cost * static_cast<double>(g_.w.in * g_.c)),
                    [&](int64_t begin, int64_t end, int) {
                        for (int64_t row = begin; row < end; row++) one_row(row, dx_ + end * g_.w.in * g_.c);
                    });
    }

  private:
    void one_row(int64_t row, const T* dx_end) const {
        const int64_t h = row % g_.h.in, d = row / g_.h.in % g_.d.in, n = row / g_.h.in / g_.d.in;
        T* dx = dx_ + row * g_.w.in * g_.c;
        bool assigned = g_.w.stride < g_.w.window;  // windows overlap along the row: it starts from zeros
        if (assigned) std::fill_n(dx, g_.w.in * g_.c, T(0));
        for (int64_t od = g_.d.first_output(d); od < g_.d.last_output(d); od++)
            for (int64_t oh = g_.h.first_output(h); oh < g_.h.last_output(h); oh++) {
                const int64_t position = ((d - g_.d.start(od)) * g_.h.window + h - g_.h.start(oh)) * g_.w.window;
                if (assigned)
                    row_of_windows<true>(n, od, oh, position, dx, dx_end);
                else
                    row_of_windows<false>(n, od, oh, position, dx, dx_end);
                assigned = true;
            }
        if (!assigned) std::fill_n(dx, g_.w.in * g_.c, T(0));
    }

    /// Adds one row of windows to a row of dx; without `accumulate` it sets the row, zeros between windows included.
    template <bool accumulate>
    void row_of_windows(int64_t n, int64_t od, int64_t oh, int64_t position, T* dx, const T* dx_end) const {
        int64_t done = 0;  // cells of the row that are set
        for (int64_t ow = 0; ow < g_.w.out; ow++) {
            const int64_t start = g_.w.start(ow), first = g_.w.first_cell(ow), last = g_.w.last_cell(ow);
            if (last <= first) continue;
            if (!accumulate) std::fill_n(dx + done * g_.c, (start + first - done) * g_.c, T(0));
            done = start + last;
            const int64_t y = (((n * g_.d.out + od) * g_.h.out + oh) * g_.w.out + ow) * g_.c;
            const auto window = term_.window(od, oh, ow, y);
            T* cells = dx + start * g_.c;
            const bool room = y + lanes<T> <= y_size_ && cells + (last - 1) * g_.c + lanes<T> <= dx_end;
            each_channel<T>(
                g_.c, room,
                [&](int64_t c, Positions<T> fresh) {
                    const auto values = window.vector(c);
                    for (int64_t k = first; k < last; k++) {
                        T* cell = cells + k * g_.c + c;
                        const Vector<T> value = values.at(position + k);
                        store(cell, accumulate ? load(cell) + (fresh ? value : Vector<T>{}) : value);
                    }
                },
                [&](int64_t c) {
                    const auto values = window.channel(c);
                    for (int64_t k = first; k < last; k++) {
                        T* cell = cells + k * g_.c + c;
                        *cell = accumulate ? *cell + values.at(position + k) : values.at(position + k);
                    }
                });
        }
        if (!accumulate) std::fill_n(dx + done * g_.c, (g_.w.in - done) * g_.c, T(0));
    }

    const Geometry& g_;
    const Term& term_;
    T* dx_;
    int64_t y_size_;
};

template <class T, class P>
class MaxPoolGradient final : public Kernel {
  public:
    explicit MaxPoolGradient(const Signature& s)
        : g_(s.attributes, s.outputs[0].shape, s.inputs[0].shape), y_size_(s.inputs[0].size()) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        const Term term{arguments.input<T>(0), arguments.input<P>(1)};
        GradientRows<T, Term>(g_, term, arguments.output<T>(0), y_size_).run(0.3 + 0.4 * g_.overlap(), pool);
    }

  private:
    struct Values {
        Vector<T> dy;
        Positions<T> chosen;
        Vector<T> at(int64_t position) const { return chosen == static_cast<Position<T>>(position) ? dy : Vector<T>{}; }
    };
    struct Value {
        T dy;
        int64_t chosen;
        T at(int64_t position) const { return chosen == position ? dy : T(0); }
    };
    struct Window {
        const T* dy;
        const P* positions;
        Values vector(int64_t c) const { return {load(dy + c), load_positions<T, P>(positions + c)}; }
        Value channel(int64_t c) const { return {dy[c], positions[c]}; }
    };
    struct Term {
        const T* dy;
        const P* positions;
        Window window(int64_t, int64_t, int64_t, int64_t y) const { return {dy + y, positions + y}; }
    };

    Geometry g_;
    int64_t y_size_;
};

template <class T>
std::unique_ptr<Kernel> create_max_pool_gradient(const Signature& s) {
    return create_for_positions<MaxPoolGradient, T>(s, s.inputs[1].dtype);
}

const Registration max_gradient_float("max_pool_gradient", "rows_float32", 10, supports_max_pool<float>,
                                      create_max_pool_gradient<float>);
const Registration max_gradient_double("max_pool_gradient", "rows_float64", 10, supports_max_pool<double>,
                                       create_max_pool_gradient<double>);

// -------------------------------------------------------------------------------------------------- average_pool

/// What the sum of a window is multiplied with: 1 / the cells that count.
template <class T>
T scale_of_window(const Geometry& g, bool count_padding, int64_t od, int64_t oh, int64_t ow) {
    const int64_t cells = count_padding ? g.window_cells() : g.d.cells(od) * g.h.cells(oh) * g.w.cells(ow);
    return cells ? T(1) / static_cast<T>(cells) : T(0);
}

template <class T>
class AveragePool final : public Kernel {
  public:
    explicit AveragePool(const Signature& s)
        : g_(s.attributes, s.inputs[0].shape, s.outputs[0].shape),
          count_padding_(s.attributes.flag("count_include_padding")) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        const double cost = 0.1 * static_cast<double>(g_.window_cells() + 2) * static_cast<double>(sizeof(T)) / 4;
        pool.ranges(g_.y_rows(), grain_for(cost * static_cast<double>(g_.w.out * g_.c)),
                    [&](int64_t begin, int64_t end, int) {
                        for (int64_t row = begin; row < end; row++) one_row(arguments, row);
                    });
    }

  private:
    void one_row(const Arguments& arguments, int64_t row) const {
        const int64_t oh = row % g_.h.out, od = row / g_.h.out % g_.d.out, n = row / g_.h.out / g_.d.out;
        const int64_t start = (n * g_.d.in + g_.d.start(od)) * g_.h.in + g_.h.start(oh);
        T* y = arguments.output<T>(0) + row * g_.w.out * g_.c;
        for (int64_t ow = 0; ow < g_.w.out; ow++, y += g_.c) {
            const T* x = arguments.input<T>(0) + (start * g_.w.in + g_.w.start(ow)) * g_.c;
            const T scale = scale_of_window<T>(g_, count_padding_, od, oh, ow);
            each_channel<T>(
                g_.c, false,
                [&](int64_t c, Positions<T>) {
                    Vector<T> sum{};
                    each_cell(od, oh, ow, [&](int64_t offset) { sum += load(x + offset + c); });
                    store(y + c, sum * scale);
                },
                [&](int64_t c) {
                    T sum = 0;
                    each_cell(od, oh, ow, [&](int64_t offset) { sum += x[offset + c]; });
                    y[c] = sum * scale;
                });
        }
    }

    template <class Body>
    void each_cell(int64_t od, int64_t oh, int64_t ow, Body&& body) const {
        const int64_t w_begin = g_.w.first_cell(ow), w_end = g_.w.last_cell(ow);
        for (int64_t kd = g_.d.first_cell(od); kd < g_.d.last_cell(od); kd++)
            for (int64_t kh = g_.h.first_cell(oh); kh < g_.h.last_cell(oh); kh++)
                for (int64_t kw = w_begin; kw < w_end; kw++) body(((kd * g_.h.in + kh) * g_.w.in + kw) * g_.c);
    }

    Geometry g_;
    bool count_padding_;
};

template <class T>
class AveragePoolGradient final : public Kernel {
  public:
    explicit AveragePoolGradient(const Signature& s)
        : g_(s.attributes, s.outputs[0].shape, s.inputs[0].shape),
          count_padding_(s.attributes.flag("count_include_padding")),
          y_size_(s.inputs[0].size()) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        const Term term{&g_, count_padding_, arguments.input<T>(0)};
        GradientRows<T, Term>(g_, term, arguments.output<T>(0), y_size_).run(0.3 + 0.2 * g_.overlap(), pool);
    }

  private:
    template <class V>
    struct Same {  // every cell of a window gets as much
        V value;
        V at(int64_t) const { return value; }
    };
    struct Window {
        const T* dy;
        T scale;
        Same<Vector<T>> vector(int64_t c) const { return {load(dy + c) * scale}; }
        Same<T> channel(int64_t c) const { return {dy[c] * scale}; }
    };
    struct Term {
        const Geometry* g;
        bool count_padding;
        const T* dy;
        Window window(int64_t od, int64_t oh, int64_t ow, int64_t y) const {
            return {dy + y, scale_of_window<T>(*g, count_padding, od, oh, ow)};
        }
    };

    Geometry g_;
    bool count_padding_;
    int64_t y_size_;
};

template <class T>
bool supports_average_pool(const Signature& s) {
    return all_of_type<T>(s) && s.inputs[0].rank() >= 3 && s.inputs[0].rank() <= 5;
}

const Registration average_float("average_pool", "channels_float32", 10, supports_average_pool<float>,
                                 create_kernel<AveragePool<float>>);
const Registration average_double("average_pool", "channels_float64", 10, supports_average_pool<double>,
                                  create_kernel<AveragePool<double>>);
const Registration average_gradient_float("average_pool_gradient", "rows_float32", 10, supports_average_pool<float>,
                                          create_kernel<AveragePoolGradient<float>>);
const Registration average_gradient_double("average_pool_gradient", "rows_float64", 10, supports_average_pool<double>,
                                           create_kernel<AveragePoolGradient<double>>);

}  // namespace
}  // namespace magmadnn::cpu
