// convolution and convolution_input_gradient by Winograd's minimal filtering: tiles of the source are
// transformed, multiplied by the transformed weights, frequency by frequency, and transformed back.
#include "conv_winograd.h"
#include "gemm/packing.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace winograd {
namespace {

/// Bytes of transformed weights, and of a transformed batch of source tiles, that are kept for all threads.
constexpr int64_t shared_bytes = 10 << 20;

/// Tiles of a task where weights are shared: as many as fill the level-2 cache, between these.
constexpr int64_t fewest_tiles = 24, most_tiles = 96;

/// Panels of a task where source tiles are shared.
constexpr int64_t usual_panels = 4;

/// Source channels whose weights are transformed at a time, in the level-1 cache nearly.
constexpr int64_t weight_depth = 16;

/// Source channels that a product sums before it adds to the others: bounds the rounding error, which the
/// transform back enlarges, and keeps a panel of weights in the level-1 cache.
constexpr int64_t product_depth = 128;

enum class Direction { forward, input_gradient };

ConvolutionShape shape_of(const Signature& s, Direction direction) {
    const bool forward = direction == Direction::forward;
    const Shape& x = forward ? s.inputs[0].shape : s.outputs[0].shape;
    const Shape& y = forward ? s.outputs[0].shape : s.inputs[0].shape;
    return {s.attributes, x, s.inputs[1].shape, y};
}

/// Either all weights are transformed first and each task transforms some tiles of the source, or, where
/// there are fewer tiles than target channels, all tiles (of a batch) first and each task some of the
/// weights: the larger of the two operands then never leaves the cache of the thread that uses it.
template <int m, Direction direction>
class WinogradConvolution : public Kernel {
  public:
    explicit WinogradConvolution(const Signature& s);
    size_t workspace_bytes() const override {
        return sizeof(float) * static_cast<size_t>(shared_ + threads_ * worker_);
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  private:
    static constexpr int n = m + 2;
    static constexpr bool forward = direction == Direction::forward;

    struct Operands {
        const float* source;
        const float* weights;
        const float* bias;
        const float* residual;
        float* target;
    };
    /// What one task works on; each part has n x n frequencies.
    struct Buffers {
        float* source;
        float* weights;
        float* target;
        float* outside;  // a pixel that is written outside of the target
        float* staging;  // a few weights before and after their transform
    };
    void choose_cuts();
    Buffers buffers(float* workspace, int worker) const;
    void transform_source(const float* source, Range tiles, float* transformed) const;
    void transform_weights(const float* w, int64_t panel, Range depth, float* staging,
                           float* transformed) const;
    void multiply_tiles(int64_t tiles, Range panels, const Buffers& b) const;
    void write_tiles(const Operands& o, Range tiles, Range panels, const Buffers& b) const;

    ConvolutionShape shape_;
    Images source_, target_;
    int64_t shift_[2];  // from a tile's first target position to its first source position
    Tiles<m> tiles_;
    Panels<float> panels_;
    bool serial_, relu_ = false, bias_ = false, residual_ = false;
    int64_t threads_;
    int64_t depth_lanes_;  // elements of a transformed pixel of the source
    bool weights_first_;
    Cut tile_cut_, panel_cut_;  // tasks or batches of tiles; tasks of panels
    Cut depth_cut_;             // of source channels, for the transform of weights
    int64_t target_lanes_;
    int64_t source_frequency_, weights_frequency_, target_frequency_;
    int64_t shared_, worker_;  // elements
    std::vector<int32_t> source_rows_, source_columns_, target_rows_;
    std::vector<float> zeros_;  // a pixel outside of the source
};

template <int m, Direction direction>
WinogradConvolution<m, direction>::WinogradConvolution(const Signature& s)
    : shape_(shape_of(s, direction)),
      source_(s.inputs[0].shape),
      target_(s.outputs[0].shape),
      tiles_(target_),
      panels_(target_.channels),
      serial_(shape_.work() <= serial_work),
      threads_(s.threads),
      depth_lanes_(round_up(source_.channels, lanes<float>)),
      depth_cut_(Cut::by_length(source_.channels, weight_depth)),
      zeros_(static_cast<size_t>(source_.channels)) {
    for (int i = 0; i < 2; i++) shift_[i] = forward ? -shape_.low[i + 1] : shape_.low[i + 1] - 2;
    if constexpr (forward) {
        bias_ = s.attributes.flag("bias");
        residual_ = s.attributes.flag("residual");
        relu_ = s.attributes.text("activation") == "relu";
    }
    choose_cuts();
    const int64_t tiles = tile_cut_.longest();
    target_lanes_ = panel_cut_.longest() * panel_lanes<float>;
    source_frequency_ = frequency_step(tiles * depth_lanes_);
    weights_frequency_ = frequency_step(source_.channels * target_lanes_);
    target_frequency_ = frequency_step(tiles * target_lanes_);
    const int64_t own = weights_first_ ? source_frequency_ : weights_frequency_;
    shared_ = n * n * (weights_first_ ? weights_frequency_ : source_frequency_);
    worker_ = n * n * (own + target_frequency_) + round_up(target_lanes_, 16) +
              (9 + n * n) * weight_depth * panel_lanes<float>;
    for (int64_t t = 0; t < tiles; t++) {
        source_rows_.push_back(static_cast<int32_t>(t * depth_lanes_));
        target_rows_.push_back(static_cast<int32_t>(t * target_lanes_));
    }
    for (int64_t c = 0; c < source_.channels; c++) source_columns_.push_back(static_cast<int32_t>(c));
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::choose_cuts() {
    const int64_t tiles = tiles_.count();
    const int64_t threads = serial_ ? 1 : threads_;
    const int64_t size = n * n * static_cast<int64_t>(sizeof(float));
    const int64_t columns = panels_.lanes_in_row();
    weights_first_ = tiles >= columns && size * source_.channels * columns <= shared_bytes;
    if (weights_first_) {
        const int64_t in_cache = 2 * level_2_bytes / (size * (depth_lanes_ + columns));
        tile_cut_ = Cut::by_length(tiles, std::clamp(in_cache, fewest_tiles, most_tiles));
        if (tile_cut_.parts < 4 * threads)
            tile_cut_.parts = std::min(round_up(tile_cut_.parts, threads), tiles);
        panel_cut_ = {panels_.count(), 1};
    } else {
        tile_cut_ = Cut::by_length(tiles, std::max<int64_t>(shared_bytes / (size * depth_lanes_), 1));
        panel_cut_ =
            Cut::by_length(panels_.count(), std::clamp<int64_t>(panels_.count() / threads, 1, usual_panels));
    }
}

template <int m, Direction direction>
auto WinogradConvolution<m, direction>::buffers(float* workspace, int worker) const -> Buffers {
    float* const own = workspace + shared_ + worker * worker_;
    float* const target = own + n * n * (weights_first_ ? source_frequency_ : weights_frequency_);
    float* const outside = target + n * n * target_frequency_;
    return {weights_first_ ? own : workspace, weights_first_ ? workspace : own, target, outside,
            outside + round_up(target_lanes_, 16)};
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::run(const Arguments& arguments, ThreadPool& pool) {
    const Operands o = {
        arguments.input<float>(0), arguments.input<float>(1), bias_ ? arguments.input<float>(2) : nullptr,
        residual_ ? arguments.input<float>(bias_ ? 3 : 2) : nullptr, arguments.output<float>(0)};
    float* const workspace = static_cast<float*>(arguments.workspace);
    if (weights_first_) {
        const Range all = {0, panels_.count()};
        run_tasks(pool, serial_, all.end * depth_cut_.parts, [&](int64_t task, int worker) {
            const int64_t panel = task / depth_cut_.parts;
            const Buffers b = buffers(workspace, worker);
            transform_weights(o.weights, panel, part(depth_cut_, task % depth_cut_.parts), b.staging,
                              b.weights + panels_.first(panel) * source_.channels);
        });
        run_tasks(pool, serial_, tile_cut_.parts, [&](int64_t task, int worker) {
            const Buffers b = buffers(workspace, worker);
            const Range tiles = part(tile_cut_, task);
            transform_source(o.source, tiles, b.source);
            multiply_tiles(tiles.length(), all, b);
            write_tiles(o, tiles, all, b);
        });
        return;
    }
    for (int64_t batch = 0; batch < tile_cut_.parts; batch++) {
        const Range tiles = part(tile_cut_, batch);
        const Cut few = {tiles.length(), std::min(tiles.length(), 4 * threads_)};
        run_tasks(pool, serial_, few.parts, [&](int64_t task, int) {
            const Range some = part(few, task);
            transform_source(o.source, {tiles.begin + some.begin, tiles.begin + some.end},
                             workspace + source_rows_[some.begin]);
        });
        run_tasks(pool, serial_, panel_cut_.parts, [&](int64_t task, int worker) {
            const Buffers b = buffers(workspace, worker);
            const Range panels = part(panel_cut_, task);
            for (int64_t panel = panels.begin; panel < panels.end; panel++)
                for (int64_t d = 0; d < depth_cut_.parts; d++)
                    transform_weights(
                        o.weights, panel, part(depth_cut_, d), b.staging,
                        b.weights + (panels_.first(panel) - panels_.first(panels.begin)) * source_.channels);
            multiply_tiles(tiles.length(), panels, b);
            write_tiles(o, tiles, panels, b);
        });
    }
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::transform_source(const float* source, Range tiles,
                                                         float* transformed) const {
    const auto square = [&](int64_t t) {
        const Place place = tiles_.place(t);
        return Square<n, const float>(source_, source,
                                      {place.image, place.h + shift_[0], place.w + shift_[1]}, zeros_.data());
    };
    auto next = square(tiles.begin);
    for (int64_t t = tiles.begin; t < tiles.end; t++) {
        const auto present = next;
        if (t + 1 < tiles.end) next = square(t + 1);
        next.prefetch(source_.channels);
        expand_pixels<source_matrix<m>>(present, source_.channels,
                                        transformed + source_rows_[t - tiles.begin], source_frequency_,
                                        lanes<float>);
    }
}

/// Transforms the weights of some source channels and a panel of target channels, [frequency][channel][lane]:
/// by way of `staging`, since reading 9 and writing n x n far places in turn would wait for each.
template <int m, Direction direction>
void WinogradConvolution<m, direction>::transform_weights(const float* w, int64_t panel, Range depth,
                                                          float* staging, float* transformed) const {
    const int64_t packed_lanes = panels_.packed_lanes(panel);
    const int columns = panels_.columns_of(panel);
    const int64_t elements = depth.length() * packed_lanes;
    for (int i = 0; i < 9; i++) {
        const float* tap = w + (forward ? i : 8 - i) * shape_.channels * shape_.filters;
        if (forward)
            pack(tap + depth.begin * shape_.filters + panels_.first(panel), shape_.filters, depth.length(),
                 columns, packed_lanes, staging + i * elements);
        else
            pack_transposed(tap + panels_.first(panel) * shape_.filters + depth.begin, shape_.filters,
                            depth.length(), columns, packed_lanes, staging + i * elements);
    }
    float* const near = staging + 9 * elements;
    for (int64_t k = 0; k < depth.length(); k++)
        expand_pixels<weight_matrix<m>>({staging + k * packed_lanes, 3 * elements, elements}, packed_lanes,
                                        near + k * packed_lanes, elements, lanes<float>);
    for (int x = 0; x < n * n; x++)
        std::memcpy(transformed + x * weights_frequency_ + depth.begin * packed_lanes, near + x * elements,
                    static_cast<size_t>(elements) * sizeof(float));
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::multiply_tiles(int64_t tiles, Range panels, const Buffers& b) const {
    Product<float> product;
    product.a_rows = source_rows_.data();
    product.a_columns = source_columns_.data();
    product.c_rows = target_rows_.data();
    product.rows = tiles;
    const Cut depths = Cut::by_length(source_.channels, product_depth);
    for (int x = 0; x < n * n; x++)
        for (int64_t panel = panels.begin; panel < panels.end; panel++) {
            const int64_t lane = panels_.first(panel) - panels_.first(panels.begin);
            product.b_stride = panels_.packed_lanes(panel);
            product.c = b.target + x * target_frequency_ + lane;
            product.columns = static_cast<int>(panels_.packed_lanes(panel));  // none is narrow
            for (int64_t d = 0; d < depths.parts; d++) {
                const Range depth = part(depths, d);
                product.a = b.source + x * source_frequency_ + depth.begin;
                product.b = b.weights + x * weights_frequency_ + lane * source_.channels +
                            depth.begin * product.b_stride;
                product.depth = depth.length();
                product.accumulate = d > 0;
                multiply(product);
            }
        }
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::write_tiles(const Operands& o, Range tiles, Range panels,
                                                    const Buffers& b) const {
    const int64_t first = panels_.first(panels.begin);
    const int64_t channels = std::min(panels_.first(panels.end), target_.channels) - first;
    const auto square = [&](int64_t t) {
        return Square<m, float>(target_, o.target + first, tiles_.place(t), b.outside);
    };
    Epilogue<m> epilogue;
    epilogue.bias = o.bias ? o.bias + first : nullptr;
    epilogue.relu = relu_;
    epilogue.add_residual = residual_;
    auto next = square(tiles.begin);
    for (int64_t t = tiles.begin; t < tiles.end; t++) {
        const auto present = next;
        if (t + 1 < tiles.end) next = square(t + 1);
        next.prefetch(channels);
        if (residual_) epilogue.residual = {target_, o.residual + first, tiles_.place(t), b.outside};
        contract_pixels<target_matrix<m>>(b.target + target_rows_[t - tiles.begin], target_frequency_,
                                          epilogue, channels, present);
    }
}

template <Direction direction>
bool supports_direction(const Signature& s) {
    if (!supports(s)) return false;
    if constexpr (direction == Direction::input_gradient) return true;
    const std::string& activation = s.attributes.text("activation");
    return activation == "linear" || activation == "relu";
}

template <int m, Direction direction>
int preference_of(const Signature& s) {
    return preference(Images(s.outputs[0].shape), s.inputs[0].shape[3], s.outputs[0].shape[3], m);
}

template <int m, Direction direction>
Registration entry(const char* op, const char* algorithm) {
    return {op, algorithm, preference_of<m, direction>, supports_direction<direction>,
            create_kernel<WinogradConvolution<m, direction>>};
}

const Registration entries_of_this_file[] = {
    entry<2, Direction::forward>("convolution", "winograd2"),
    entry<4, Direction::forward>("convolution", "winograd4"),
    entry<2, Direction::input_gradient>("convolution_input_gradient", "winograd2"),
    entry<4, Direction::input_gradient>("convolution_input_gradient", "winograd4"),
};

}  // namespace
}  // namespace winograd
}  // namespace magmadnn::cpu
