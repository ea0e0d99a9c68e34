// convolution_weight_gradient by Winograd's minimal filtering: blocks of tiles of x and dy are transformed;
// per frequency, the products [input channel][tile] x [tile][filter] are summed over all tiles, and the sums
// transformed back to 3x3 weights.
#include "conv_winograd.h"
#include "gemm/packing.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace winograd {
namespace {

/// Bytes of sums that are made at a time: they stay in the level-3 cache.
constexpr int64_t sums_bytes = 10 << 20;

/// Sums of fewer bytes are held by each thread, which then shares out tiles; larger ones are cut into
/// columns.
constexpr int64_t own_sums_bytes = 3 << 20;

/// Panels of filters that repay a transform of x.
constexpr int64_t fewest_panels = 4;

/// Tiles of a block, the depth of its products.
constexpr int64_t block_tiles = 48;

template <int m>
class WinogradWeightGradient : public Kernel {
  public:
    explicit WinogradWeightGradient(const Signature& s);
    size_t workspace_bytes() const override {
        return sizeof(float) * static_cast<size_t>(tile_parts_ * sums_elements_ + threads_ * worker_.total());
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  private:
    static constexpr int n = m + 2;

    /// Panels of filters, and the first one of the chunk that they belong to.
    struct Columns {
        int64_t begin, end, chunk;
    };
    /// Elements of one worker's scratch: transformed tiles of x and of dy.
    struct Scratch {
        int64_t x, dy;
        int64_t total() const { return x + dy; }
    };
    void choose_parts();
    void sum_tiles(const float* x, const float* dy, int64_t tile_part, Columns columns, float* scratch,
                   float* sums) const;
    void transform_block(const float* x, const float* dy, int64_t first, int64_t tiles, Columns columns,
                         float* scratch) const;
    void multiply_block(int64_t tiles, Columns columns, bool accumulate, const float* scratch,
                        float* sums) const;
    void write_channel(int64_t c, int64_t chunk_panel, int64_t panels, float* sums, float* dw) const;

    ConvolutionShape shape_;
    Images x_, dy_;
    Tiles<m> tiles_;
    Panels<float> panels_;
    bool serial_;
    int64_t threads_;
    Cut chunks_;  // of panels
    int64_t tile_parts_ = 1, column_parts_ = 1;
    int64_t block_tiles_;
    int64_t chunk_lanes_;
    int64_t sums_frequency_, sums_elements_;
    Scratch worker_;
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
    choose_parts();
    block_tiles_ = std::min(block_tiles, Cut{tiles_.count(), tile_parts_}.longest());
    const int64_t part_lanes = Cut{chunks_.longest(), column_parts_}.longest() * panel_lanes<float>;
    worker_ = {n * n * frequency_step(block_tiles_ * round_up(x_.channels, lanes<float>)),
               n * n * frequency_step(block_tiles_ * part_lanes)};
    sums_frequency_ = frequency_step(x_.channels * chunk_lanes_);
    sums_elements_ = n * n * sums_frequency_;
    constexpr int L = lanes<float>;
    for (int64_t c = 0; c < x_.channels; c++) {
        x_rows_.push_back(static_cast<int32_t>(c / L * block_tiles_ * L + c % L));
        sum_rows_.push_back(static_cast<int32_t>(c * chunk_lanes_));
    }
    for (int64_t t = 0; t < block_tiles_; t++) x_columns_.push_back(static_cast<int32_t>(t * L));
}

template <int m>
void WinogradWeightGradient<m>::choose_parts() {
    const int64_t panel_bytes =
        n * n * x_.channels * panel_lanes<float> * static_cast<int64_t>(sizeof(float));
    chunks_ = Cut::by_length(panels_.count(), std::max<int64_t>(sums_bytes / panel_bytes, 1));
    chunk_lanes_ = chunks_.longest() * panel_lanes<float>;
    if (serial_ || threads_ == 1) return;
    if (chunks_.longest() * panel_bytes > own_sums_bytes)
        column_parts_ = std::clamp<int64_t>(chunks_.longest() / fewest_panels, 1, threads_);
    tile_parts_ = std::min((threads_ + column_parts_ - 1) / column_parts_, tiles_.count());
}

template <int m>
void WinogradWeightGradient<m>::run(const Arguments& arguments, ThreadPool& pool) {
    const float* x = arguments.input<float>(0);
    const float* dy = arguments.input<float>(1);
    float* dw = arguments.output<float>(0);
    float* sums = static_cast<float*>(arguments.workspace);
    float* scratch = sums + tile_parts_ * sums_elements_;
    for (int64_t chunk = 0; chunk < chunks_.parts; chunk++) {
        const int64_t first = chunks_.begin(chunk), panels = chunks_.begin(chunk + 1) - first;
        run_tasks(pool, serial_, tile_parts_ * column_parts_, [&](int64_t task, int worker) {
            const Cut columns = {panels, column_parts_};
            const int64_t part = task % column_parts_, tile_part = task / column_parts_;
            sum_tiles(x, dy, tile_part, {first + columns.begin(part), first + columns.begin(part + 1), first},
                      scratch + worker * worker_.total(), sums + tile_part * sums_elements_);
        });
        run_tasks(pool, serial_, x_.channels,
                  [&](int64_t c, int) { write_channel(c, first, panels, sums, dw); });
    }
}

/// The sums of one part of the tiles, for some columns.
template <int m>
void WinogradWeightGradient<m>::sum_tiles(const float* x, const float* dy, int64_t tile_part, Columns columns,
                                          float* scratch, float* sums) const {
    const Cut parts = {tiles_.count(), tile_parts_};
    const int64_t begin = parts.begin(tile_part), end = parts.begin(tile_part + 1);
    for (int64_t first = begin; first < end; first += block_tiles_) {
        const int64_t tiles = std::min(block_tiles_, end - first);
        transform_block(x, dy, first, tiles, columns, scratch);
        multiply_block(tiles, columns, first > begin, scratch, sums);
    }
}

/// x goes to [frequency][vector of channels][tile][lane], dy to [frequency][panel][tile][lane].
template <int m>
void WinogradWeightGradient<m>::transform_block(const float* x, const float* dy, int64_t first, int64_t tiles,
                                                Columns columns, float* scratch) const {
    for (int64_t t = 0; t < tiles; t++) {
        const Place place = tiles_.place(first + t);
        const Place above = {place.image, place.h - shape_.low[1], place.w - shape_.low[2]};
        expand_pixels<source_matrix<m>>({x_, x, above, zeros_.data()}, x_.channels,
                                        scratch + t * lanes<float>, worker_.x / (n * n),
                                        block_tiles_ * lanes<float>);
        for (int64_t panel = columns.begin; panel < columns.end; panel++)
            expand_pixels<target_matrix<m>>(
                {dy_, dy + panels_.first(panel), place, zeros_.data()}, panels_.columns_of(panel),
                scratch + worker_.x + (panels_.first(panel) - panels_.first(columns.begin)) * block_tiles_ +
                    t * panels_.packed_lanes(panel),
                worker_.dy / (n * n), lanes<float>);
    }
}

template <int m>
void WinogradWeightGradient<m>::multiply_block(int64_t tiles, Columns columns, bool accumulate,
                                               const float* scratch, float* sums) const {
    Product<float> product;
    product.a_rows = x_rows_.data();
    product.a_columns = x_columns_.data();
    product.c_rows = sum_rows_.data();
    product.rows = x_.channels;
    product.depth = tiles;
    product.accumulate = accumulate;
    for (int i = 0; i < n * n; i++) {
        product.a = scratch + i * (worker_.x / (n * n));
        const float* b = scratch + worker_.x + i * (worker_.dy / (n * n));
        for (int64_t panel = columns.begin; panel < columns.end; panel++) {
            product.b = b + (panels_.first(panel) - panels_.first(columns.begin)) * block_tiles_;
            product.b_stride = panels_.packed_lanes(panel);
            product.c = sums + i * sums_frequency_ + panels_.first(panel) - panels_.first(columns.chunk);
            product.columns = static_cast<int>(panels_.packed_lanes(panel));  // none is narrow
            multiply(product);
        }
    }
}

/// Adds up the sums of all parts for one input channel, in their order, and transforms them to weights.
template <int m>
void WinogradWeightGradient<m>::write_channel(int64_t c, int64_t chunk_panel, int64_t panels, float* sums,
                                              float* dw) const {
    const int64_t first = panels_.first(chunk_panel);
    const int64_t used = panels_.first(chunk_panel + panels) - first;
    for (int i = 0; i < n * n; i++) {
        float* const sum = sums + i * sums_frequency_ + c * chunk_lanes_;
        for (int64_t part = 1; part < tile_parts_; part++)
            for (int64_t f = 0; f < used; f += lanes<float>)
                store(sum + f, load(sum + f) + load(sum + part * sums_elements_ + f));
    }
    const int64_t tap = x_.channels * dy_.channels;
    contract_pixels<weight_matrix<m>>(sums + c * chunk_lanes_, sums_frequency_, {},
                                      std::min(used, dy_.channels - first),
                                      {dw + c * dy_.channels + first, 3 * tap, tap});
}

template <int m>
int preference_of(const Signature& s) {
    return preference({s.attributes, s.inputs[0].shape, s.outputs[0].shape, s.inputs[1].shape}, m, true);
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
