// Max and average pooling over 1 to 3 spatial dimensions, channels last, and their gradients.
//   n image, d h w spatial position in the input, od oh ow in the output, kd kh kw in the window, c channel
// The gradients go through the cells of dx and gather from the windows that cover each: every cell is written
// once.
#include <limits>

#include "loops.h"
#include "positions.h"
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
};

/// Calls strip(c, number of vectors) over the channels, four vectors at a time while they last; the last
/// vector overlaps the one before. Fewer channels than lanes: one vector that reaches into what follows, if
/// `room` says that it may, else channel(c) for each. So outputs have to be written in ascending order.
template <class T, class Strip, class Channel>
inline void each_channel(int64_t channels, bool room, Strip&& strip, Channel&& channel) {
    constexpr int L = lanes<T>;
    constexpr std::integral_constant<int, 4> four;
    constexpr std::integral_constant<int, 1> one;
    if (channels >= L) {
        int64_t c = 0;
        for (; c + 4 * L <= channels; c += 4 * L) strip(c, four);
        for (; c + L <= channels; c += L) strip(c, one);
        if (c < channels) strip(channels - L, one);
    } else if (room) {
        strip(0, one);
    } else {
        for (int64_t c = 0; c < channels; c++) channel(c);
    }
}

/// A cell of a window, seen from the window's first cell; or a window that covers a cell of x, seen from dy.
template <class T>
struct Cell {
    int64_t offset;
    Position<T> position;
    T scale;
};

// --- max_pool, average_pool

/// Lists the cells of windows that lie in the input, once for all windows of a row that see the same.
template <class T>
class WindowCells {
  public:
    WindowCells(const Geometry& g, Cell<T>* cells) : g_(g), cells_(cells) {}

    void start_row(int64_t od, int64_t oh) {
        d_first_ = g_.d.first_cell(od), d_last_ = g_.d.last_cell(od);
        h_first_ = g_.h.first_cell(oh), h_last_ = g_.h.last_cell(oh);
        w_first_ = w_last_ = -1;
    }
    void move_to(int64_t ow) {
        const int64_t first = g_.w.first_cell(ow), last = g_.w.last_cell(ow);
        if (first == w_first_ && last == w_last_) return;
        w_first_ = first, w_last_ = last, count_ = 0;
        for (int64_t kd = d_first_; kd < d_last_; kd++)
            for (int64_t kh = h_first_; kh < h_last_; kh++)
                for (int64_t kw = first; kw < last; kw++)
                    cells_[count_++] = {((kd * g_.h.in + kh) * g_.w.in + kw) * g_.c,
                                        static_cast<Position<T>>((kd * g_.h.window + kh) * g_.w.window + kw),
                                        T(1)};
    }
    const Cell<T>* begin() const { return cells_; }
    const Cell<T>* end() const { return cells_ + count_; }
    int64_t count() const { return count_; }

  private:
    const Geometry& g_;
    Cell<T>* cells_;
    int64_t count_ = 0, d_first_, d_last_, h_first_, h_last_, w_first_, w_last_;
};

/// Walks the windows: window(x, cells, y offset, room to read and write a whole vector).
template <class T>
class PoolKernel : public Kernel {
  public:
    size_t workspace_bytes() const override {
        return static_cast<size_t>(threads_ * g_.window_cells()) * sizeof(Cell<T>);
    }

  protected:
    explicit PoolKernel(const Signature& s)
        : g_(s.attributes, s.inputs[0].shape, s.outputs[0].shape), threads_(s.threads) {}

    template <class Window>
    void each_window(const Arguments& arguments, double cost_of_cell, ThreadPool& pool,
                     Window&& window) const {
        const double cost = (cost_of_cell * static_cast<double>(g_.window_cells()) + 0.5) * sizeof(T) / 4;
        const T* x = arguments.input<T>(0);
        const T* x_end = x + g_.x_rows() * g_.w.in * g_.c;
        pool.ranges(g_.y_rows(), grain_for(cost * static_cast<double>(g_.w.out * g_.c)),
                    [&](int64_t begin, int64_t end, int worker) {
                        WindowCells<T> cells(
                            g_, static_cast<Cell<T>*>(arguments.workspace) + worker * g_.window_cells());
                        const int64_t y_end = end * g_.w.out * g_.c;  // where this thread's part ends
                        for (int64_t row = begin; row < end; row++) {
                            const int64_t oh = row % g_.h.out, od = row / g_.h.out % g_.d.out;
                            const int64_t n = row / g_.h.out / g_.d.out;
                            const T* line = x + ((n * g_.d.in + g_.d.start(od)) * g_.h.in + g_.h.start(oh)) *
                                                    g_.w.in * g_.c;
                            cells.start_row(od, oh);
                            for (int64_t ow = 0; ow < g_.w.out; ow++) {
                                cells.move_to(ow);
                                const T* corner = line + g_.w.start(ow) * g_.c;
                                const int64_t y = (row * g_.w.out + ow) * g_.c;
                                const bool room = y + lanes<T> <= y_end && cells.count() > 0 &&
                                                  corner + (cells.end() - 1)->offset + lanes<T> <= x_end;
                                window(corner, cells, y, room);
                            }
                        }
                    });
    }

    Geometry g_;
    int threads_;
};

template <class T, class P>
class MaxPool final : public PoolKernel<T> {
  public:
    explicit MaxPool(const Signature& s) : PoolKernel<T>(s) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        T* y = arguments.output<T>(0);
        P* positions = arguments.output<P>(1);
        this->each_window(arguments, 0.4, pool, [&](const T* x, const auto& cells, int64_t first, bool room) {
            each_channel<T>(
                this->g_.c, room,
                [&](int64_t c, auto vectors) {
                    strip<vectors>(x + c, cells, y + first + c, positions + first + c);
                },
                [&](int64_t c) { channel(x + c, cells, y + first + c, positions + first + c); });
        });
    }

  private:
    // The first maximum wins, and so does the first NaN: a value is taken unless it is <= the best or that is
    // NaN.
    template <int vectors>
    static void strip(const T* x, const WindowCells<T>& cells, T* y, P* positions) {
        Vector<T> best[vectors];
        Positions<T> at[vectors];
        const Position<T> first = cells.count() ? cells.begin()->position : 0;
        for (int j = 0; j < vectors; j++) {
            best[j] = Vector<T>{} - std::numeric_limits<T>::infinity();
            at[j] = broadcast(first);
        }
        for (const Cell<T>& cell : cells)
            for (int j = 0; j < vectors; j++) {
                const Vector<T> value = load(x + cell.offset + j * lanes<T>);
                const auto take = ~(value <= best[j]) & (best[j] == best[j]);
                best[j] = take ? value : best[j];
                at[j] = take ? broadcast(cell.position) : at[j];
            }
        for (int j = 0; j < vectors; j++) {
            store(y + j * lanes<T>, best[j]);
            store_positions<T, P>(positions + j * lanes<T>, at[j]);
        }
    }
    static void channel(const T* x, const WindowCells<T>& cells, T* y, P* position) {
        *y = -std::numeric_limits<T>::infinity();
        *position = cells.count() ? static_cast<P>(cells.begin()->position) : P(0);
        for (const Cell<T>& cell : cells) {
            const T value = x[cell.offset];
            if (value <= *y || *y != *y) continue;
            *y = value;
            *position = static_cast<P>(cell.position);
        }
    }
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

const Registration max_float("max_pool", "channels_float32", 10, supports_max_pool<float>,
                             create_max_pool<float>);
const Registration max_double("max_pool", "channels_float64", 10, supports_max_pool<double>,
                              create_max_pool<double>);

template <class T>
class AveragePool final : public PoolKernel<T> {
  public:
    explicit AveragePool(const Signature& s)
        : PoolKernel<T>(s), count_padding_(s.attributes.flag("count_include_padding")) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        T* y = arguments.output<T>(0);
        this->each_window(arguments, 0.1, pool, [&](const T* x, const auto& cells, int64_t first, bool room) {
            const int64_t counted = count_padding_ ? this->g_.window_cells() : cells.count();
            const T scale = counted ? T(1) / static_cast<T>(counted) : T(0);
            each_channel<T>(
                this->g_.c, room,
                [&](int64_t c, auto vectors) {
                    Vector<T> sum[vectors] = {};
                    for (const Cell<T>& cell : cells)
                        for (int j = 0; j < vectors; j++) sum[j] += load(x + cell.offset + c + j * lanes<T>);
                    for (int j = 0; j < vectors; j++) store(y + first + c + j * lanes<T>, sum[j] * scale);
                },
                [&](int64_t c) {
                    T sum = 0;
                    for (const Cell<T>& cell : cells) sum += x[cell.offset + c];
                    y[first + c] = sum * scale;
                });
        });
    }

  private:
    bool count_padding_;
};

template <class T>
bool supports_average_pool(const Signature& s) {
    return all_of_type<T>(s) && s.inputs[0].rank() >= 3 && s.inputs[0].rank() <= 5;
}

const Registration average_float("average_pool", "channels_float32", 10, supports_average_pool<float>,
                                 create_kernel<AveragePool<float>>);
const Registration average_double("average_pool", "channels_float64", 10, supports_average_pool<double>,
                                  create_kernel<AveragePool<double>>);

// --- gradients

/// Walks the cells of dx with the windows that cover them. `Term` says what a window gives to a cell:
/// strip<vectors>(window, c, sums) adds it for vectors of channels, channel(window, c) returns it for one.
template <class T, class Term>
class GradientKernel : public Kernel {
  public:
    explicit GradientKernel(const Signature& s)
        : g_(s.attributes, s.outputs[0].shape, s.inputs[0].shape),
          y_size_(s.inputs[0].size()),
          threads_(s.threads) {
        for (int64_t w = 0; w < g_.w.in; w++) columns_.push_back({g_.w.first_output(w), g_.w.last_output(w)});
        for (const Axis* axis : {&g_.d, &g_.h, &g_.w}) most_windows_ *= (axis->window - 1) / axis->stride + 1;
        apart_ = most_windows_ == 1;
    }

    size_t workspace_bytes() const override {
        return static_cast<size_t>(threads_ * 2 * most_windows_) * sizeof(Cell<T>);
    }

  protected:
    void run(const Arguments& arguments, const Term& term, ThreadPool& pool) const {
        const double cost = (0.4 + 0.3 * static_cast<double>(most_windows_)) * sizeof(T) / 4;
        pool.ranges(g_.x_rows(), grain_for(cost * static_cast<double>(g_.w.in * g_.c)),
                    [&](int64_t begin, int64_t end, int worker) {
                        Cell<T>* list =
                            static_cast<Cell<T>*>(arguments.workspace) + worker * 2 * most_windows_;
                        T* dx = arguments.output<T>(0);
                        for (int64_t row = begin; row < end; row++)
                            one_row(row, term, list, dx, dx + end * g_.w.in * g_.c);
                    });
    }

    Geometry g_;

  private:
    void one_row(int64_t row, const Term& term, Cell<T>* list, T* dx, const T* dx_end) const {
        const int64_t h = row % g_.h.in, d = row / g_.h.in % g_.d.in, n = row / g_.h.in / g_.d.in;
        Cell<T>* lines = list + most_windows_;  // rows of windows that cover this row
        int64_t line_count = 0;
        for (int64_t od = g_.d.first_output(d); od < g_.d.last_output(d); od++)
            for (int64_t oh = g_.h.first_output(h); oh < g_.h.last_output(h); oh++)
                lines[line_count++] = {
                    ((n * g_.d.out + od) * g_.h.out + oh) * g_.w.out,
                    static_cast<Position<T>>(((d - g_.d.start(od)) * g_.h.window + h - g_.h.start(oh)) *
                                             g_.w.window),
                    term.scale(g_, od, oh)};
        T* cells = dx + row * g_.w.in * g_.c;
        if (line_count == 0)
            std::fill_n(cells, g_.w.in * g_.c, T(0));
        else if (apart_)
            row_of_windows(lines[0], term, cells, dx_end);
        else
            row_of_cells(lines, line_count, term, list, cells, dx_end);
    }

    /// Windows that do not overlap, one after the other: each cell has at most one.
    void row_of_windows(const Cell<T>& line, const Term& term, T* cells, const T* dx_end) const {
        int64_t done = 0;
        for (int64_t ow = 0; ow < g_.w.out; ow++) {
            const int64_t start = g_.w.start(ow), first = start + g_.w.first_cell(ow),
                          end = start + g_.w.last_cell(ow);
            if (end <= first) continue;
            std::fill_n(cells + done * g_.c, (first - done) * g_.c, T(0));
            Cell<T> window{(line.offset + ow) * g_.c, line.position + static_cast<Position<T>>(first - start),
                           line.scale * term.scale_of_column(g_, ow)};
            for (int64_t w = first; w < end; w++, window.position++)
                fill_cell(&window, 1, term, cells + w * g_.c, dx_end);
            done = end;
        }
        std::fill_n(cells + done * g_.c, (g_.w.in - done) * g_.c, T(0));
    }

    void row_of_cells(const Cell<T>* lines, int64_t line_count, const Term& term, Cell<T>* list, T* cells,
                      const T* dx_end) const {
        for (int64_t w = 0; w < g_.w.in; w++) {
            int64_t count = 0;
            for (int64_t i = 0; i < line_count; i++)
                for (int64_t ow = columns_[w].first; ow < columns_[w].last; ow++)
                    list[count++] = {(lines[i].offset + ow) * g_.c,
                                     lines[i].position + static_cast<Position<T>>(w - g_.w.start(ow)),
                                     lines[i].scale * term.scale_of_column(g_, ow)};
            fill_cell(list, count, term, cells + w * g_.c, dx_end);
        }
    }

    void fill_cell(const Cell<T>* windows, int64_t count, const Term& term, T* cell, const T* dx_end) const {
        const bool room =
            cell + lanes<T> <= dx_end && (count == 0 || windows[count - 1].offset + lanes<T> <= y_size_);
        each_channel<T>(
            g_.c, room,
            [&](int64_t c, auto vectors) {
                Vector<T> sums[vectors] = {};
                for (int64_t i = 0; i < count; i++) term.template strip<vectors>(windows[i], c, sums);
                for (int j = 0; j < vectors; j++) store(cell + c + j * lanes<T>, sums[j]);
            },
            [&](int64_t c) {
                T sum = 0;
                for (int64_t i = 0; i < count; i++) sum += term.channel(windows[i], c);
                cell[c] = sum;
            });
    }

    struct Range {
        int64_t first, last;
    };
    std::vector<Range> columns_;  // outputs along w whose windows cover each w
    int64_t most_windows_ = 1, y_size_;
    bool apart_;
    int threads_;
};

template <class T, class P>
struct MaxTerm {
    const T* dy;
    const P* positions;

    T scale(const Geometry&, int64_t, int64_t) const { return 1; }
    T scale_of_column(const Geometry&, int64_t) const { return 1; }
    template <int vectors>
    void strip(const Cell<T>& window, int64_t c, Vector<T>* sums) const {
        for (int j = 0; j < vectors; j++) {
            const int64_t y = window.offset + c + j * lanes<T>;
            const auto here = load_positions<T, P>(positions + y) == window.position;
            sums[j] += here ? load(dy + y) : Vector<T>{};
        }
    }
    T channel(const Cell<T>& window, int64_t c) const {
        const int64_t y = window.offset + c;
        return static_cast<Position<T>>(positions[y]) == window.position ? dy[y] : T(0);
    }
};

template <class T, class P>
class MaxPoolGradient final : public GradientKernel<T, MaxTerm<T, P>> {
  public:
    explicit MaxPoolGradient(const Signature& s) : GradientKernel<T, MaxTerm<T, P>>(s) {}
    void run(const Arguments& arguments, ThreadPool& pool) override {
        GradientKernel<T, MaxTerm<T, P>>::run(arguments, {arguments.input<T>(0), arguments.input<P>(1)},
                                              pool);
    }
};

template <class T>
std::unique_ptr<Kernel> create_max_pool_gradient(const Signature& s) {
    return create_for_positions<MaxPoolGradient, T>(s, s.inputs[1].dtype);
}

const Registration max_gradient_float("max_pool_gradient", "cells_float32", 10, supports_max_pool<float>,
                                      create_max_pool_gradient<float>);
const Registration max_gradient_double("max_pool_gradient", "cells_float64", 10, supports_max_pool<double>,
                                       create_max_pool_gradient<double>);

template <class T>
struct AverageTerm {
    const T* dy;
    bool count_padding;

    static T inverse(int64_t cells) { return cells > 0 ? T(1) / static_cast<T>(cells) : T(0); }
    T scale(const Geometry& g, int64_t od, int64_t oh) const {
        return inverse(count_padding ? g.d.window * g.h.window : g.d.cells(od) * g.h.cells(oh));
    }
    T scale_of_column(const Geometry& g, int64_t ow) const {
        return inverse(count_padding ? g.w.window : g.w.cells(ow));
    }
    template <int vectors>
    void strip(const Cell<T>& window, int64_t c, Vector<T>* sums) const {
        for (int j = 0; j < vectors; j++)
            sums[j] += load(dy + window.offset + c + j * lanes<T>) * window.scale;
    }
    T channel(const Cell<T>& window, int64_t c) const { return dy[window.offset + c] * window.scale; }
};

template <class T>
class AveragePoolGradient final : public GradientKernel<T, AverageTerm<T>> {
  public:
    explicit AveragePoolGradient(const Signature& s)
        : GradientKernel<T, AverageTerm<T>>(s), count_padding_(s.attributes.flag("count_include_padding")) {}
    void run(const Arguments& arguments, ThreadPool& pool) override {
        GradientKernel<T, AverageTerm<T>>::run(arguments, {arguments.input<T>(0), count_padding_}, pool);
    }

  private:
    bool count_padding_;
};

const Registration average_gradient_float("average_pool_gradient", "cells_float32", 10,
                                          supports_average_pool<float>,
                                          create_kernel<AveragePoolGradient<float>>);
const Registration average_gradient_double("average_pool_gradient", "cells_float64", 10,
                                           supports_average_pool<double>,
                                           create_kernel<AveragePoolGradient<double>>);

}  // namespace
}  // namespace magmadnn::cpu
