// convolution_max_pool with the direct algorithm: the four cells of a window times a few vectors of filters
// are summed in registers and pooled there, so that the convolution's result is never written.
#include "conv_max_pool.h"
#include "gemm/packing.h"

namespace magmadnn::cpu {
namespace {

/// Vectors of filters per pass: with four cells each, and a row of weights, they fill the registers.
#if MAGMADNN_VECTOR_BYTES == 64 || defined(__aarch64__)
constexpr int most_vectors = 4;
#else
constexpr int most_vectors = 3;
#endif

/// A panel of filters over the windows of a block.
struct PanelProduct {
    const float* source;
    const int32_t* windows;
    const int32_t* numbers;
    int64_t count, first_number;
    std::array<int32_t, window_cells> cells;
    const int32_t* taps;
    int64_t depth;
    const float* weights;  // [depth][vectors * lanes]
    const float* bias;     // [vectors * lanes]
    int64_t first_filter;
};

template <int Windows, int Vectors>
void convolve(const PanelProduct& p, int64_t window, const PoolEpilogue& epilogue) {
    constexpr int rows = Windows * window_cells;
    const float* a[rows];
    Vector<float> sum[rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        a[i] = p.source + p.windows[window + i / window_cells] + p.cells[i % window_cells];
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; j++) sum[i][j] = Vector<float>{};
    }
    const float* b = p.weights;
    for (const int32_t *tap = p.taps, *end = tap + p.depth; tap != end; tap++, b += Vectors * lanes<float>) {
        Vector<float> w[Vectors];
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; j++) w[j] = load(b + j * lanes<float>);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < Vectors; j++) sum[i][j] += a[i][*tap] * w[j];
    }
#pragma GCC unroll 2
    for (int i = 0; i < Windows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; j++) {
            const auto* cells = &sum[i * window_cells];
            epilogue.finish({cells[0][j], cells[1][j], cells[2][j], cells[3][j]},
                            load(p.bias + j * lanes<float>), p.first_number + p.numbers[window + i],
                            p.first_filter + j * lanes<float>);
        }
}

template <int Vectors>
void convolve_block(const PanelProduct& p, const PoolEpilogue& epilogue) {
    constexpr int together = Vectors == 1 ? 2 : 1;  // independent sums enough to hide their latency
    int64_t window = 0;
    for (; window + together <= p.count; window += together) convolve<together, Vectors>(p, window, epilogue);
    for (; window < p.count; window++) convolve<1, Vectors>(p, window, epilogue);
}

constexpr std::array<void (*)(const PanelProduct&, const PoolEpilogue&), 4> block_functions = {
    convolve_block<1>, convolve_block<2>, convolve_block<3>, convolve_block<4>};

class DirectMaxPool : public Kernel {
  public:
    explicit DirectMaxPool(const Signature& s)
        : signature_(s),
          geometry_(s, {block_rows, 2 * level_2_bytes}),
          windows_(geometry_.window_offsets()),
          numbers_(geometry_.window_numbers()),
          taps_(geometry_.tap_offsets(geometry_.kernel()[1], geometry_.kernel()[2], geometry_.channels())),
          cells_(geometry_.cell_offsets()) {
        vectors_ = (geometry_.filters() + lanes<float> - 1) / lanes<float>;
        panels_ = (vectors_ + most_vectors - 1) / most_vectors;
        copy_floats_ = round_up(geometry_.source().copy_elements(), 16);
    }

    size_t workspace_bytes() const override {
        return (packed_floats() + signature_.threads * copy_floats_) * sizeof(float);
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        float* packed = static_cast<float*>(arguments.workspace);
        float* copies = packed + packed_floats();
        for (int64_t panel = 0; panel < panels_; panel++) pack_panel(arguments, panel, packed);
        const PoolEpilogue epilogue(signature_, arguments);
        const BlockedSource& source = geometry_.source();
        run_tasks(pool, geometry_.serial(), source.blocks(), [&](int64_t task, int worker) {
            const Block block = source.block(task);
            PanelProduct product;
            product.source = source.prepare(arguments.input<float>(0), block, copies + worker * copy_floats_);
            product.windows = windows_.data();
            product.numbers = numbers_.data();
            product.count = geometry_.windows(block);
            product.first_number = geometry_.first_window(block);
            product.cells = cells_;
            product.taps = taps_.data();
            product.depth = depth();
            for (int64_t panel = 0; panel < panels_; panel++) {
                product.weights = packed + packed_start(panel);
                product.bias = product.weights + depth() * lanes_of(panel);
                product.first_filter = first(panel);
                block_functions[lanes_of(panel) / lanes<float> - 1](product, epilogue);
            }
        });
    }

  private:
    int64_t depth() const { return static_cast<int64_t>(taps_.size()); }
    int64_t first(int64_t panel) const { return vectors_ * panel / panels_ * lanes<float>; }
    int64_t lanes_of(int64_t panel) const { return first(panel + 1) - first(panel); }
    /// A panel's weights are followed by its bias, zeros where there is none.
    int64_t packed_start(int64_t panel) const { return first(panel) * (depth() + 1); }
    int64_t packed_floats() const { return round_up(vectors_ * lanes<float> * (depth() + 1), 16); }

    void pack_panel(const Arguments& arguments, int64_t panel, float* packed) const {
        const int64_t start = first(panel), width = lanes_of(panel);
        const int columns = static_cast<int>(std::min(width, geometry_.filters() - start));
        float* to = packed + packed_start(panel);
        pack(arguments.input<float>(1) + start, geometry_.filters(), depth(), columns, width, to);
        to += depth() * width;
        std::fill_n(to, width, 0.0f);
        if (signature_.attributes.flag("bias")) std::copy_n(arguments.input<float>(2) + start, columns, to);
    }

    Signature signature_;
    PooledGeometry geometry_;
    std::vector<int32_t> windows_, numbers_, taps_;
    std::array<int32_t, window_cells> cells_;
    int64_t vectors_, panels_, copy_floats_;
};

const Registration direct("convolution_max_pool", "direct", 10, supports_pooled_convolution,
                          create_kernel<DirectMaxPool>);

}  // namespace
}  // namespace magmadnn::cpu
