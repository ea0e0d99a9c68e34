// convolution_weight_gradient by Winograd's minimal filtering: tiles of x and dy are transformed; per
// frequency, the products [input channel][tile] x [tile][filter] are summed over all tiles, and the sums
// transformed back to 3x3 weights.
#include "conv_winograd.h"
#include "gemm/packing.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace winograd {
namespace {

/// Bytes of sums that each thread holds for itself, to share out tiles.
constexpr int64_t own_sums_bytes = 3 << 20;

/// Otherwise bytes of transformed tiles of x that are kept for all threads, which share out panels.
constexpr int64_t shared_bytes = 10 << 20;

/// Panels of a task then.
constexpr int64_t usual_panels = 4;

/// Tiles of a block, the depth of its products.
constexpr int64_t block_tiles = 64;

template <int m>
class WinogradWeightGradient : public Kernel {
  public:
    explicit WinogradWeightGradient(const Signature& s);
    size_t workspace_bytes() const override {
        return sizeof(float) * static_cast<size_t>(shared_x_ + sums_count_ * sums_ + threads_ * worker_);
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  private:
    static constexpr int n = m + 2;

    void choose_cuts();
    void run_by_tiles(const Arguments& arguments, ThreadPool& pool) const;
    void run_by_panels(const Arguments& arguments, ThreadPool& pool) const;
    void transform_x(const float* x, Range tiles, float* transformed) const;
    void transform_dy(const float* dy, Range tiles, Range panels, float* transformed) const;
    void multiply_block(const float* x, const float* dy, int64_t tiles, Range panels, bool accumulate,
                        float* sums) const;
    void write_channel(int64_t c, Range panels, const float* sums, float* dw) const;

    ConvolutionShape shape_;
    Images x_, dy_;
    Tiles<m> tiles_;
    Panels<float> panels_;
    bool serial_;
    int64_t threads_;
    // Small sums: each thread has its own and takes a part of the tiles. Large ones: each takes some panels,
    // and x is transformed for all of them, a batch of tiles at a time.
    bool by_tiles_;
    Cut tile_cut_, panel_cut_;  // parts or batches of tiles; tasks of panels
    int64_t block_tiles_, sum_lanes_;
    int64_t x_frequency_, dy_frequency_, sums_frequency_;
    int64_t shared_x_, sums_count_, sums_, worker_;  // elements, and how many sums there are
    std::vector<int32_t> x_rows_, x_columns_, sum_rows_;
    std::vector<float> zeros_;  // a pixel outside of x or dy
};

template <int m>
WinogradWeightGradient<m>::WinogradWeightGradient(const Signature& s)
    : shape_(s.attributes, s.inputs[0].shape, s.outputs[0].shape, s.inputs[1].shape),
      x_(s.inputs[0].shape),
      dy_(s.inputs[1].shape),
      tiles_(dy_),
      panels_(dy_.channels),
      serial_(shape_.work() <= serial_work),
      threads_(s.threads),
      zeros_(static_cast<size_t>(std::max(x_.channels, dy_.channels))) {
    choose_cuts();
    constexpr int L = lanes<float>;
    block_tiles_ = Cut::by_length(tile_cut_.longest(), block_tiles).longest();
    sum_lanes_ = panel_cut_.longest() * panel_lanes<float>;
    x_frequency_ = frequency_step(block_tiles_ * round_up(x_.channels, L));
    dy_frequency_ = frequency_step(block_tiles_ * sum_lanes_);
    sums_frequency_ = frequency_step(x_.channels * sum_lanes_);
    sums_ = n * n * sums_frequency_;
    sums_count_ = by_tiles_ ? tile_cut_.parts : panel_cut_.parts;
    const int64_t blocks = Cut::by_length(tile_cut_.longest(), block_tiles_).parts;
    shared_x_ = by_tiles_ ? 0 : blocks * n * n * x_frequency_;
    worker_ = n * n * (dy_frequency_ + (by_tiles_ ? x_frequency_ : 0));
    for (int64_t c = 0; c < x_.channels; c++) {
        x_rows_.push_back(static_cast<int32_t>(c / L * block_tiles_ * L + c % L));
        sum_rows_.push_back(static_cast<int32_t>(c * sum_lanes_));
    }
    for (int64_t t = 0; t < block_tiles_; t++) x_columns_.push_back(static_cast<int32_t>(t * L));
}

template <int m>
void WinogradWeightGradient<m>::choose_cuts() {
    const int64_t size = n * n * static_cast<int64_t>(sizeof(float));
    const int64_t threads = serial_ ? 1 : threads_;
    by_tiles_ = size * x_.channels * panels_.lanes_in_row() <= own_sums_bytes;
    if (by_tiles_) {
        tile_cut_ = {tiles_.count(), std::min(threads, tiles_.count())};
        panel_cut_ = {panels_.count(), 1};
    } else {
        tile_cut_ =
            Cut::by_length(tiles_.count(), std::max(shared_bytes / (size * x_.channels), block_tiles));
        panel_cut_ =
            Cut::by_length(panels_.count(), std::clamp<int64_t>(panels_.count() / threads, 1, usual_panels));
    }
}

template <int m>
void WinogradWeightGradient<m>::run(const Arguments& arguments, ThreadPool& pool) {
    if (by_tiles_)
        run_by_tiles(arguments, pool);
    else
        run_by_panels(arguments, pool);
}

template <int m>
void WinogradWeightGradient<m>::run_by_tiles(const Arguments& arguments, ThreadPool& pool) const {
    float* const sums = static_cast<float*>(arguments.workspace);
    const Range all = {0, panels_.count()};
    run_tasks(pool, serial_, tile_cut_.parts, [&](int64_t task, int worker) {
        float* const x = sums + sums_count_ * sums_ + worker * worker_;
        float* const dy = x + n * n * x_frequency_;
        const Range tiles = part(tile_cut_, task);
        for (int64_t first = tiles.begin; first < tiles.end; first += block_tiles_) {
            const Range block = {first, std::min(first + block_tiles_, tiles.end)};
            transform_x(arguments.input<float>(0), block, x);
            transform_dy(arguments.input<float>(1), block, all, dy);
            multiply_block(x, dy, block.length(), all, first > tiles.begin, sums + task * sums_);
        }
    });
    run_tasks(pool, serial_, x_.channels, [&](int64_t c, int) {
        for (int i = 0; i < n * n; i++) {
            float* const sum = sums + i * sums_frequency_ + c * sum_lanes_;
            for (int64_t other = 1; other < sums_count_; other++)
                for (int64_t f = 0; f < panels_.lanes_in_row(); f += lanes<float>)
                    store(sum + f, load(sum + f) + load(sum + other * sums_ + f));
        }
        write_channel(c, all, sums, arguments.output<float>(0));
    });
}

template <int m>
void WinogradWeightGradient<m>::run_by_panels(const Arguments& arguments, ThreadPool& pool) const {
    float* const x = static_cast<float*>(arguments.workspace);
    float* const all_sums = x + shared_x_;
    for (int64_t batch = 0; batch < tile_cut_.parts; batch++) {
        const Range tiles = part(tile_cut_, batch);
        const auto block = [&](int64_t i) {
            const int64_t first = tiles.begin + i * block_tiles_;
            return Range{first, std::min(first + block_tiles_, tiles.end)};
        };
        const int64_t blocks = Cut::by_length(tiles.length(), block_tiles_).parts;
        run_tasks(pool, serial_, blocks * 4, [&](int64_t task, int) {
            const Range whole = block(task / 4);
            const Range some = part({whole.length(), 4}, task % 4);
            transform_x(arguments.input<float>(0), {whole.begin + some.begin, whole.begin + some.end},
                        x + task / 4 * n * n * x_frequency_ + some.begin * lanes<float>);
        });
        run_tasks(pool, serial_, panel_cut_.parts, [&](int64_t task, int worker) {
            float* const sums = all_sums + task * sums_;
            float* const dy = all_sums + sums_count_ * sums_ + worker * worker_;
            const Range panels = part(panel_cut_, task);
            for (int64_t i = 0; i < blocks; i++) {
                transform_dy(arguments.input<float>(1), block(i), panels, dy);
                multiply_block(x + i * n * n * x_frequency_, dy, block(i).length(), panels, batch + i > 0,
                               sums);
            }
            if (batch + 1 == tile_cut_.parts)
                for (int64_t c = 0; c < x_.channels; c++)
                    write_channel(c, panels, sums, arguments.output<float>(0));
        });
    }
}

/// To [frequency][vector of channels][tile][lane].
template <int m>
void WinogradWeightGradient<m>::transform_x(const float* x, Range tiles, float* transformed) const {
    for (int64_t t = tiles.begin; t < tiles.end; t++, transformed += lanes<float>) {
        const Place place = tiles_.place(t);
        const Square<n, const float> square(
            x_, x, {place.image, place.h - shape_.low[1], place.w - shape_.low[2]}, zeros_.data());
        expand_pixels<source_matrix<m>>(square, x_.channels, transformed, x_frequency_,
                                        block_tiles_ * lanes<float>);
    }
}

/// To [frequency][panel][tile][lane].
template <int m>
void WinogradWeightGradient<m>::transform_dy(const float* dy, Range tiles, Range panels,
                                             float* transformed) const {
    for (int64_t t = tiles.begin; t < tiles.end; t++)
        for (int64_t panel = panels.begin; panel < panels.end; panel++)
            expand_pixels<target_matrix<m>>(
                {dy_, dy + panels_.first(panel), tiles_.place(t), zeros_.data()}, panels_.columns_of(panel),
                transformed + (panels_.first(panel) - panels_.first(panels.begin)) * block_tiles_ +
                    (t - tiles.begin) * panels_.packed_lanes(panel),
                dy_frequency_, lanes<float>);
}

template <int m>
void WinogradWeightGradient<m>::multiply_block(const float* x, const float* dy, int64_t tiles, Range panels,
                                               bool accumulate, float* sums) const {
    Product<float> product;
    product.a_rows = x_rows_.data();
    product.a_columns = x_columns_.data();
    product.c_rows = sum_rows_.data();
    product.rows = x_.channels;
    product.depth = tiles;
    product.accumulate = accumulate;
    for (int i = 0; i < n * n; i++) {
        product.a = x + i * x_frequency_;
        for (int64_t panel = panels.begin; panel < panels.end; panel++) {
            const int64_t lane = panels_.first(panel) - panels_.first(panels.begin);
            product.b = dy + i * dy_frequency_ + lane * block_tiles_;
            product.b_stride = panels_.packed_lanes(panel);
            product.c = sums + i * sums_frequency_ + lane;
            product.columns = static_cast<int>(panels_.packed_lanes(panel));  // none is narrow
            multiply(product);
        }
    }
}

template <int m>
void WinogradWeightGradient<m>::write_channel(int64_t c, Range panels, const float* sums, float* dw) const {
    const int64_t first = panels_.first(panels.begin);
    const int64_t tap = x_.channels * dy_.channels;
    contract_pixels<weight_matrix<m>>(sums + c * sum_lanes_, sums_frequency_, {},
                                      std::min(panels_.first(panels.end), dy_.channels) - first,
                                      {dw + c * dy_.channels + first, 3 * tap, tap});
}

template <int m>
int preference_of(const Signature& s) {
    return preference(Images(s.inputs[1].shape), s.inputs[0].shape[3], s.inputs[1].shape[3], m);
}

template <int m>
Registration entry(const char* algorithm) {
    return {"convolution_weight_gradient", algorithm, preference_of<m>, supports,
            create_kernel<WinogradWeightGradient<m>>};
}

const Registration entries_of_this_file[] = {entry<2>("winograd2"), entry<4>("winograd4")};

}  // namespace
}  // namespace winograd
}  // namespace magmadnn::cpu
