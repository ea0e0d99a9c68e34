// convolution_max_pool with Winograd's algorithm F(2x2, rxr): a tile of its output is a window, so the output
// transform leaves the four cells in registers, where they are pooled.
//
//   Y = At [ (G g Gt) * (Bt d B) ] A      d: e x e patch of the input, e = r + 1; g: r x r kernel
// (Lavin and Gray, arXiv:1509.09308). The product * is, for each of the e*e places of a patch, a matrix
// product over channels. Points of F(2, 5): 0, +-3/4, +-3/2, infinity; their numbers are exact in binary and
// the errors those of a plain sum.
#include "conv_max_pool.h"
#include "gemm/packing.h"

namespace magmadnn::cpu {
namespace {

template <int Rows, int Columns>
using Matrix = std::array<std::array<float, Columns>, Rows>;

template <int R>
struct Transforms;

template <>
struct Transforms<3> {
    static constexpr Matrix<4, 4> input = {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}};
    static constexpr Matrix<4, 3> weights = {{{1, 0, 0}, {.5f, .5f, .5f}, {.5f, -.5f, .5f}, {0, 0, 1}}};
    static constexpr Matrix<2, 4> output = {{{1, 1, 1, 0}, {0, 1, -1, -1}}};
};

constexpr std::array<float, 5> powers(float p, float divisor) {
    return {1 / divisor, p / divisor, p * p / divisor, p * p * p / divisor, p * p * p * p / divisor};
}

template <>
struct Transforms<5> {
    static constexpr float a = .75f, b = 1.5f, a2 = a * a, b2 = b * b;
    static constexpr Matrix<6, 6> input = {{{a2 * b2, 0, -a2 - b2, 0, 1, 0},
                                            {0, -a * b2, -b2, a, 1, 0},
                                            {0, a * b2, -b2, -a, 1, 0},
                                            {0, -b * a2, -a2, b, 1, 0},
                                            {0, b * a2, -a2, -b, 1, 0},
                                            {0, a2 * b2, 0, -a2 - b2, 0, 1}}};
    static constexpr float at_a = 2 * a2 * (a2 - b2), at_b = 2 * b2 * (b2 - a2);
    static constexpr Matrix<6, 5> weights = {{powers(0, a2* b2),
                                              powers(a, at_a),
                                              powers(-a, at_a),
                                              powers(b, at_b),
                                              powers(-b, at_b),
                                              {0, 0, 0, 0, 1}}};
    static constexpr Matrix<2, 6> output = {{{1, 1, 1, 1, 1, 0}, {0, a, -a, b, -b, 1}}};
};

/// m times a vector of vectors x[0], x[stride], ..., to y likewise. The numbers of m are known when this is
/// compiled: its zeros cost nothing.
template <const auto& m, int XStride, int YStride>
inline void multiply_by(const Vector<float>* x, Vector<float>* y) {
    constexpr int rows = static_cast<int>(m.size()), columns = static_cast<int>(m[0].size());
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        Vector<float> sum{};
#pragma GCC unroll 6
        for (int j = 0; j < columns; j++)
            if (m[i][j] != 0) sum = m[i][j] * x[j * XStride] + sum;
        y[i * YStride] = sum;
    }
}

/// m x mt of a square of vectors.
template <const auto& m>
inline void transform(const Vector<float>* x, Vector<float>* y) {
    constexpr int rows = static_cast<int>(m.size()), columns = static_cast<int>(m[0].size());
    Vector<float> half[rows * columns];
#pragma GCC unroll 6
    for (int j = 0; j < columns; j++) multiply_by<m, columns, columns>(x + j, half + j);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) multiply_by<m, 1, 1>(half + i * columns, y + i * rows);
}

/// Windows whose patches are transformed and multiplied together: few, so that they stay in the level-1 cache
/// while the weights stream by; whole tiles of the product.
constexpr int64_t group = 2 * register_tile.rows[2];

template <int R>
class WinogradMaxPool : public Kernel {
    static constexpr int extent = R + 1, places = extent * extent;
    static constexpr int panel_width = 2 * lanes<float>;

  public:
    explicit WinogradMaxPool(const Signature& s)
        : signature_(s),
          channels_(s.inputs[0].shape[3]),
          filters_(s.inputs[1].shape[3]),
          geometry_(s, {block_rows, 2 * level_2_bytes}),
          panels_(filters_),
          windows_(geometry_.window_offsets()),
          numbers_(geometry_.window_numbers()),
          patch_(geometry_.tap_offsets(extent, extent, 1)) {
        for (int64_t c = 0; c < channels_; c++) columns_.push_back(static_cast<int32_t>(c));
        for (int64_t i = 0; i < group; i++) {
            patch_rows_.push_back(static_cast<int32_t>(i * channels_));
            for (int vectors = 1; vectors <= 2; vectors++)
                product_rows_[vectors - 1].push_back(static_cast<int32_t>(i * vectors * lanes<float>));
        }
        copy_floats_ = round_up(geometry_.source().copy_elements(), 16);
        patches_floats_ = round_up(places * group * channels_, 16);
        products_floats_ = round_up(places * group * panel_width, 16);
    }

    size_t workspace_bytes() const override {
        return (weights_floats() + signature_.threads * own_floats()) * sizeof(float);
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        float* weights = static_cast<float*>(arguments.workspace);
        float* scratch = weights + weights_floats();
        run_tasks(pool, geometry_.serial(), channels_,
                  [&](int64_t c, int) { transform_weights(arguments.input<float>(1), c, weights); });
        const PoolEpilogue epilogue(signature_, arguments);
        const float* bias = signature_.attributes.flag("bias") ? arguments.input<float>(2) : nullptr;
        run_tasks(pool, geometry_.serial(), geometry_.source().blocks(), [&](int64_t task, int worker) {
            float* copy = scratch + worker * own_floats();
            float* patches = copy + copy_floats_;
            const Block block = geometry_.source().block(task);
            const float* source = geometry_.source().prepare(arguments.input<float>(0), block, copy);
            const int64_t windows = geometry_.windows(block), number = geometry_.first_window(block);
            for (int64_t first = 0; first < windows; first += group) {
                const Group some = {first, std::min(group, windows - first), number};
                transform_patches(source, some, patches);
                for (int64_t panel = 0; panel < panels_.count(); panel++)
                    finish_panel(some, panel, weights, patches, bias, epilogue, patches + patches_floats_);
            }
        });
    }

  private:
    struct Group {
        int64_t first, count;  // windows of the block
        int64_t block_number;  // of the block's first window
    };

    int64_t weights_floats() const { return round_up(places * channels_ * panels_.lanes_in_row(), 16); }
    int64_t own_floats() const { return copy_floats_ + patches_floats_ + products_floats_; }

    /// To [panel][place][c][lanes of the panel].
    void transform_weights(const float* weights, int64_t c, float* transformed) const {
        for (int64_t panel = 0; panel < panels_.count(); panel++) {
            const int64_t first = panels_.first(panel), width = panels_.packed_lanes(panel);
            float* to = transformed + first * places * channels_ + c * width;
            for (int64_t j = 0; j < width; j += lanes<float>) {
                Vector<float> taps[R * R], result[places];
                const int count = static_cast<int>(std::min<int64_t>(filters_ - first - j, lanes<float>));
                for (int tap = 0; tap < R * R; tap++)
                    taps[tap] = load_part(weights + (tap * channels_ + c) * filters_ + first + j, count);
                transform<Transforms<R>::weights>(taps, result);
                for (int place = 0; place < places; place++)
                    store(to + place * channels_ * width + j, result[place]);
            }
        }
    }

    /// To [place][window][c].
    void transform_patches(const float* source, const Group& some, float* patches) const {
        const int64_t place_stride = some.count * channels_;
        for (int64_t window = 0; window < some.count; window++)
            for (int64_t first = 0; first < channels_; first += lanes<float>) {
                // The last vector overlaps the one before.
                const int64_t c = std::min(first, channels_ - lanes<float>);
                const float* from = source + windows_[some.first + window] + c;
                Vector<float> patch[places], result[places];
#pragma GCC unroll 36
                for (int place = 0; place < places; place++) patch[place] = load(from + patch_[place]);
                transform<Transforms<R>::input>(patch, result);
                float* to = patches + window * channels_ + c;
#pragma GCC unroll 36
                for (int place = 0; place < places; place++) store(to + place * place_stride, result[place]);
            }
    }

    /// Some windows times the filters of a panel.
    void finish_panel(const Group& some, int64_t panel, const float* weights, const float* patches,
                      const float* bias, const PoolEpilogue& epilogue, float* products) const {
        const int64_t windows = some.count;
        const int64_t first = panels_.first(panel), width = panels_.packed_lanes(panel);
        weights += first * places * channels_;
        Product<float> product;
        product.a_rows = patch_rows_.data();
        product.a_columns = columns_.data();
        product.b_stride = width;
        product.c_rows = product_rows_[width / lanes<float> - 1].data();
        product.rows = windows;
        product.depth = channels_;
        product.columns = static_cast<int>(width);
        for (int place = 0; place < places; place++) {
            product.a = patches + place * windows * channels_;
            product.b = weights + place * channels_ * width;
            product.c = products + place * windows * width;
            multiply(product);
        }
        for (int64_t j = 0; j < width; j += lanes<float>) {
            const int64_t k = first + j;
            const int count = static_cast<int>(std::min<int64_t>(filters_ - k, lanes<float>));
            const Vector<float> b = bias ? load_part(bias + k, count) : Vector<float>{};
            for (int64_t window = 0; window < windows; window++) {
                Vector<float> sums[places], cells[window_cells];
#pragma GCC unroll 36
                for (int place = 0; place < places; place++)
                    sums[place] = load(products + (place * windows + window) * width + j);
                transform<Transforms<R>::output>(sums, cells);
                epilogue.finish(cells, b, some.block_number + numbers_[some.first + window], k);
            }
        }
    }

    Signature signature_;
    int64_t channels_, filters_;
    PooledGeometry geometry_;
    Panels<float> panels_;
    std::vector<int32_t> windows_, numbers_, patch_, columns_, patch_rows_;
    std::array<std::vector<int32_t>, 2> product_rows_;
    int64_t copy_floats_, patches_floats_, products_floats_;
};

template <int R>
bool supports(const Signature& s) {
    if (!supports_pooled_convolution(s)) return false;
    const std::vector<int64_t> ones = {1, 1};
    const Shape& w = s.inputs[1].shape;
    return w[0] == R && w[1] == R && w[2] >= lanes<float> && s.attributes.integers("strides") == ones &&
           s.attributes.integers("dilation") == ones;
}

const Registration kernels_of_this_file[] = {
    {"convolution_max_pool", "winograd", 20, supports<3>, create_kernel<WinogradMaxPool<3>>},
    {"convolution_max_pool", "winograd", 20, supports<5>, create_kernel<WinogradMaxPool<5>>},
};

}  // namespace
}  // namespace magmadnn::cpu
