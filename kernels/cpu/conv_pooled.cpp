// Gradients of a convolution whose output was max-pooled, from the pooled gradient and the positions of the
// maxima.
//
// At most one cell of each pooling window has a gradient, and none where a ReLU was closed, so lists of the
// non-zero values replace the dense gradient: the same sums with a quarter of the work or less. Nothing is
// approximated. Both gradients are sums of kernel rows times one number; the letters are those of
// conv_pooled.h.
#include "conv_pooled.h"
#include "positions.h"

#include <array>
#include <utility>

namespace magmadnn::cpu {

namespace {

constexpr int max_accumulators = 12;  // vectors of a tile, so that it stays in registers
constexpr int max_rows = 6;
constexpr int lane_count = lanes<float>;
constexpr int64_t weight_limit =
    512 << 10;  // bytes: above, the packed weights leave the L2 cache and dense wins

/// One non-zero value of the gradient, and the rows it multiplies.
struct Entry {
    const float* rows;
    float value;
};

/// Calls body(k) for the non-zero values of [first, last), in order: looking for them by bits of a mask takes
/// time for those alone.
template <class Body>
void each_nonzero(const float* values, int64_t first, int64_t last, Body&& body) {
    for (int64_t k = first; k < last; k += 64) {
        const int64_t count = std::min<int64_t>(last - k, 64);
        uint64_t mask = 0;
        int64_t i = 0;
        for (; i + lane_count <= count; i += lane_count) mask |= nonzero_lanes(load(values + k + i)) << i;
        for (; i < count; i++) mask |= static_cast<uint64_t>(values[k + i] != 0) << i;
        for (; mask != 0; mask &= mask - 1) body(k + __builtin_ctzll(mask));
    }
}

/// target[i][j] += sum over the entries of value * rows[i][j], for a tile of Rows x Columns vectors.
template <int Rows, int Columns>
void accumulate(const Entry* entries, int64_t count, int64_t offset, int64_t row_stride, float* target,
                int64_t target_stride) {
    Vector<float> sum[Rows][Columns];
    for (int i = 0; i < Rows; i++)
        for (int j = 0; j < Columns; j++) sum[i][j] = load(target + i * target_stride + j * lane_count);
    for (int64_t e = 0; e < count; e++) {
        const float* rows = entries[e].rows + offset;
        const float value = entries[e].value;
        for (int i = 0; i < Rows; i++)
            for (int j = 0; j < Columns; j++)
                sum[i][j] += value * load(rows + i * row_stride + j * lane_count);
    }
    for (int i = 0; i < Rows; i++)
        for (int j = 0; j < Columns; j++) store(target + i * target_stride + j * lane_count, sum[i][j]);
}

using Accumulate = void (*)(const Entry*, int64_t, int64_t, int64_t, float*, int64_t);

template <int Rows, int... Columns>
constexpr std::array<Accumulate, max_accumulators> row_of_table(std::integer_sequence<int, Columns...>) {
    return {accumulate<Rows, Columns + 1>...};
}

template <int... Rows>
constexpr auto make_table(std::integer_sequence<int, Rows...>) {
    return std::array<std::array<Accumulate, max_accumulators>, max_rows>{
        row_of_table<Rows + 1>(std::make_integer_sequence<int, max_accumulators / (Rows + 1)>{})...};
}

/// accumulators[rows - 1][columns - 1], for rows * columns <= max_accumulators.
constexpr auto accumulators = make_table(std::make_integer_sequence<int, max_rows>{});

/// Calls body(first row, rows, first number of the row, columns) for tiles that cover a kernel.
template <class Body>
void tiles(const PooledImages& g, Body&& body) {
    const int64_t chunks = (g.vectors + max_accumulators - 1) / max_accumulators;
    const int64_t columns = (g.vectors + chunks - 1) / chunks;
    const int64_t rows = std::clamp<int64_t>(max_accumulators / columns, 1, std::min<int64_t>(g.r, max_rows));
    for (int64_t i = 0; i < g.r; i += rows)
        for (int64_t j = 0; j < g.vectors; j += columns)
            body(i, std::min(rows, g.r - i), j * lane_count, std::min(columns, g.vectors - j));
}

/// x, pooled gradient, positions -> weight gradient. Threads own output channels, so nothing is summed across
/// them.
class PooledWeightGradient : public Kernel {
  public:
    explicit PooledWeightGradient(const Signature& signature)
        : g_(signature, signature.inputs[0].shape, signature.outputs[0].shape, signature.inputs[1].shape),
          threads_(signature.threads) {
        // Few enough images that they stay in the L1 cache and their lists in the L2 cache.
        const int64_t list_bytes = g_.windows() * g_.k / threads_ * sizeof(Entry) + 1;
        group_ =
            std::clamp<int64_t>(std::min((24 << 10) / (g_.image_floats * 4), (96 << 10) / list_bytes), 1, 16);
        packed_floats_ = g_.k * g_.packed_kernel();
        const int64_t channels = (g_.k + threads_ - 1) / threads_;
        counts_bytes_ = (channels * sizeof(int64_t) + 63) / 64 * 64;
        lists_bytes_ = (channels * group_ * g_.windows() * sizeof(Entry) + 63) / 64 * 64;
        images_bytes_ = (group_ * g_.image_floats * sizeof(float) + 63) / 64 * 64;
    }

    size_t workspace_bytes() const override {
        return packed_floats_ * sizeof(float) + 64 +
               threads_ * (counts_bytes_ + lists_bytes_ + images_bytes_);
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        float* packed = static_cast<float*>(arguments.workspace);
        std::memset(packed, 0, packed_floats_ * sizeof(float));
        char* scratch =
            static_cast<char*>(arguments.workspace) + (packed_floats_ * sizeof(float) + 63) / 64 * 64;
        pool.ranges(g_.k, 1, [&](int64_t first, int64_t last, int worker) {
            char* own = scratch + worker * (counts_bytes_ + lists_bytes_ + images_bytes_);
            for (int64_t n = 0; n < g_.n; n += group_)
                add_images(arguments, n, std::min(group_, g_.n - n), first, last, packed, own);
        });
        unpack(packed, arguments.output<float>(0), pool);
    }

  private:
    void add_images(const Arguments& arguments, int64_t first_image, int64_t images, int64_t first,
                    int64_t last, float* packed, char* own) const {
        auto* counts = reinterpret_cast<int64_t*>(own);
        auto* lists = reinterpret_cast<Entry*>(own + counts_bytes_);
        auto* scratch = reinterpret_cast<float*>(own + counts_bytes_ + lists_bytes_);
        const int64_t capacity = group_ * g_.windows();
        const int64_t* in_window = g_.in_window.data();
        std::memset(counts, 0, (last - first) * sizeof(int64_t));
        for (int64_t i = 0; i < images; i++) {
            const float* image =
                g_.padded(arguments.input<float>(0), first_image + i, scratch + i * g_.image_floats);
            for (int64_t p = 0; p < g_.windows(); p++) {
                const int64_t at = ((first_image + i) * g_.windows() + p) * g_.k;
                const float* value = arguments.input<float>(1) + at;
                const uint8_t* position = arguments.input<uint8_t>(2) + at;
                const float* corner = image + g_.corner(p);
                each_nonzero(value, first, last, [&](int64_t k) {
                    Entry* list = lists + (k - first) * capacity;
                    list[counts[k - first]++] = {corner + in_window[position[k]], value[k]};
                });
            }
        }
        for (int64_t k = first; k < last; k++)
            tiles(g_, [&](int64_t i, int64_t rows, int64_t j, int64_t columns) {
                accumulators[rows - 1][columns - 1](
                    lists + (k - first) * capacity, counts[k - first], i * g_.image_row() + j, g_.image_row(),
                    packed + k * g_.packed_kernel() + i * g_.packed_row() + j, g_.packed_row());
            });
    }

    void unpack(const float* packed, float* weights, ThreadPool& pool) const {
        pool.ranges(g_.r, 1, [&](int64_t first, int64_t last, int) {
            for (int64_t i = first; i < last; i++)
                for (int64_t j = 0; j < g_.row; j++)
                    for (int64_t k = 0; k < g_.k; k++)
                        weights[(i * g_.row + j) * g_.k + k] =
                            packed[k * g_.packed_kernel() + i * g_.packed_row() + j];
        });
    }

    PooledImages g_;
    int threads_;
    int64_t group_, packed_floats_, counts_bytes_, lists_bytes_, images_bytes_;
};

/// pooled gradient, positions, weights -> input gradient. Threads own images.
///
/// The lists of a column of cells lie one behind the other, so that all that reaches a row of the image is
/// one range of them: the r lists of the cells r - 1 rows above and below. In an entry of row y, `rows` is y
/// rows before its weights; seen from row Y of the image, their row Y - y is then Y rows further for all
/// entries.
class PooledInputGradient : public Kernel {
  public:
    explicit PooledInputGradient(const Signature& signature)
        : g_(signature, signature.outputs[0].shape, signature.inputs[2].shape, signature.inputs[0].shape),
          threads_(signature.threads),
          cells_h_(g_.windows_h * g_.window_h),
          cells_w_(g_.windows_w * g_.window_w) {
        slack_ = cells_h_ * g_.packed_row();
        packed_bytes_ = whole_lines((slack_ + g_.k * g_.packed_kernel()) * sizeof(float));
        starts_bytes_ = whole_lines(cells_w_ * (cells_h_ + 1) * sizeof(int64_t));
        window_bytes_ = whole_lines(g_.in_window.size() * g_.k * sizeof(Entry));
        lists_bytes_ = whole_lines(cells_w_ * cells_h_ * g_.k * sizeof(Entry));
        image_bytes_ = whole_lines(g_.image_floats * sizeof(float));
    }

    size_t workspace_bytes() const override { return packed_bytes_ + threads_ * own_bytes(); }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        float* packed = static_cast<float*>(arguments.workspace) + slack_;
        pack(arguments.input<float>(2), packed, pool);
        char* scratch = static_cast<char*>(arguments.workspace) + packed_bytes_;
        pool.ranges(g_.n, 1, [&](int64_t first, int64_t last, int worker) {
            char* own = scratch + worker * own_bytes();
            for (int64_t n = first; n < last; n++) image_gradient(arguments, n, packed, own);
        });
    }

  private:
    static size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }
    size_t own_bytes() const { return starts_bytes_ + window_bytes_ + lists_bytes_ + image_bytes_; }

    void pack(const float* weights, float* packed, ThreadPool& pool) const {
        pool.ranges(g_.k, 8, [&](int64_t first, int64_t last, int) {
            for (int64_t k = first; k < last; k++)
                for (int64_t i = 0; i < g_.r; i++) {
                    float* to = packed + k * g_.packed_kernel() + i * g_.packed_row();
                    const float* from = weights + i * g_.row * g_.k + k;
                    for (int64_t j = 0; j < g_.row; j++) to[j] = from[j * g_.k];
                    std::fill(to + g_.row, to + g_.packed_row(), 0.0f);
                }
        });
    }

    void image_gradient(const Arguments& arguments, int64_t n, const float* packed, char* own) const {
        auto* starts = reinterpret_cast<int64_t*>(own);
        auto* window = reinterpret_cast<Entry*>(own + starts_bytes_);
        auto* lists = reinterpret_cast<Entry*>(own + starts_bytes_ + window_bytes_);
        auto* image = reinterpret_cast<float*>(own + starts_bytes_ + window_bytes_ + lists_bytes_);
        const int64_t at = n * g_.windows() * g_.k;
        list_cells(arguments.input<float>(0) + at, arguments.input<uint8_t>(1) + at, packed, starts, window,
                   lists);
        std::memset(image, 0, g_.image_floats * sizeof(float));
        for (int64_t x = 0; x < cells_w_; x++) {
            const int64_t* start = starts + x * (cells_h_ + 1);
            for (int64_t y = 0; y < cells_h_ + g_.r - 1; y++) {
                const int64_t first = start[std::max<int64_t>(y - g_.r + 1, 0)];
                const int64_t last = start[std::min(y + 1, cells_h_)];
                if (first < last)
                    add_row(lists + first, last - first, y * g_.packed_row(),
                            image + y * g_.image_row() + x * g_.c);
            }
        }
        float* dx = arguments.output<float>(0) + n * g_.h * g_.w * g_.c;
        for (int64_t y = 0; y < g_.h; y++)
            std::memcpy(dx + y * g_.w * g_.c, image + (y + g_.top) * g_.image_row() + g_.left * g_.c,
                        g_.w * g_.c * sizeof(float));
    }

    /// The lists of column x are lists[starts[x][0] ... starts[x][cells_h]), row by row.
    void list_cells(const float* dy, const uint8_t* positions, const float* packed, int64_t* starts,
                    Entry* window, Entry* lists) const {
        for (int64_t x = 0; x < cells_w_; x++) starts[x * (cells_h_ + 1)] = x * cells_h_ * g_.k;
        for (int64_t p = 0; p < g_.windows(); p++) {
            const float* value = dy + p * g_.k;
            const uint8_t* position = positions + p * g_.k;
            int64_t counts[256];  // positions are bytes
            std::fill_n(counts, g_.in_window.size(), 0);
            each_nonzero(value, 0, g_.k, [&](int64_t k) {
                const int64_t cell = position[k];
                window[cell * g_.k + counts[cell]++] = {packed + k * g_.packed_kernel(), value[k]};
            });
            for (size_t cell = 0; cell < g_.in_window.size(); cell++) {
                const int64_t y = p / g_.windows_w * g_.window_h + cell / g_.window_w;
                const int64_t x = p % g_.windows_w * g_.window_w + cell % g_.window_w;
                int64_t* start = starts + x * (cells_h_ + 1) + y;
                for (int64_t i = 0; i < counts[cell]; i++) {
                    const Entry& entry = window[cell * g_.k + i];
                    lists[start[0] + i] = {entry.rows - y * g_.packed_row(), entry.value};
                }
                start[1] = start[0] + counts[cell];
            }
        }
    }

    void add_row(const Entry* entries, int64_t count, int64_t offset, float* target) const {
        const int64_t chunks = (g_.vectors + max_accumulators - 1) / max_accumulators;
        for (int64_t chunk = 0; chunk < chunks; chunk++) {
            const int64_t first = g_.vectors * chunk / chunks;
            const int64_t columns = g_.vectors * (chunk + 1) / chunks - first;
            const int64_t j = first * lane_count;
            accumulators[0][columns - 1](entries, count, offset + j, 0, target + j, 0);
        }
    }

    PooledImages g_;
    int threads_;
    int64_t cells_h_, cells_w_, slack_;
    size_t packed_bytes_, starts_bytes_, window_bytes_, lists_bytes_, image_bytes_;
};

bool supports(const Signature& s, int positions, const Shape& kernel) {
    return supports_pooled_gradient(s, positions, kernel) &&
           element_count(kernel) * static_cast<int64_t>(sizeof(float)) <= weight_limit;
}
bool supports_weight(const Signature& s) { return supports(s, 2, s.outputs[0].shape); }
bool supports_input(const Signature& s) { return supports(s, 1, s.inputs[2].shape); }

const Registration weight("pooled_convolution_weight_gradient", "sparse", 0, supports_weight,
                          create_kernel<PooledWeightGradient>);
const Registration input("pooled_convolution_input_gradient", "sparse", 0, supports_input,
                         create_kernel<PooledInputGradient>);

}  // namespace

}  // namespace magmadnn::cpu
