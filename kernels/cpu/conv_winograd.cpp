// convolution and convolution_input_gradient by Winograd's minimal filtering: a block of tiles of the source
// is transformed, multiplied by the transformed weights, frequency by frequency, and transformed back.
#include "conv_winograd.h"
#include "gemm/packing.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace winograd {
namespace {

/// Bytes of transformed weights that are made at a time: they stay in the level-3 cache.
constexpr int64_t weight_bytes = 10 << 20;

/// Tiles of a block: at least this many share one pass over the weights, ...
constexpr int64_t fewest_tiles = 24;
/// ... and as many as fill the level-2 cache, or these, where that holds only a few.
constexpr int64_t usual_tiles = 48;

/// Source channels whose weights are transposed at a time.
constexpr int64_t transposed_depth = 64;

enum class Direction { forward, input_gradient };

template <int m, Direction direction>
class WinogradConvolution : public Kernel {
  public:
    explicit WinogradConvolution(const Signature& s);
    size_t workspace_bytes() const override {
        return sizeof(float) * static_cast<size_t>(weights_.total + threads_ * worker_.total());
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
    /// Panels of target channels, and where the first one starts.
    struct Columns {
        int64_t begin, end;
    };
    /// Elements of transformed weights.
    struct Weights {
        int64_t frequency = 0, total = 0;
    };
    /// Elements of one worker's scratch: transformed tiles of the source and the target, a pixel that is
    /// written outside of the target, weights of a panel before they are transformed.
    struct Scratch {
        int64_t source, target, outside, transposed;
        int64_t total() const { return source + target + outside + transposed; }
    };
    void choose_blocks();
    void transform_weights(const float* w, int64_t panel, int64_t first, int64_t depth, float* transposed,
                           float* transformed) const;
    void run_block(const Operands& o, int64_t block, Columns columns, int64_t first_chunk_panel,
                   const float* weights, float* scratch) const;
    void multiply_block(int64_t tiles, Columns columns, int64_t first_chunk_panel, const float* weights,
                        const float* source, float* target) const;
    void write_tile(const Operands& o, const Place& place, Columns columns, const float* values,
                    float* outside) const;

    ConvolutionShape shape_;
    Images source_, target_;
    int64_t shift_[2];  // from a tile's first target position to its first source position
    Tiles<m> tiles_;
    Panels<float> panels_;
    bool serial_, relu_ = false, bias_ = false, residual_ = false;
    int64_t threads_;
    Cut blocks_, chunks_;  // of tiles, and of panels
    int64_t column_parts_ = 1;
    int64_t depth_lanes_, part_lanes_;  // elements of a transformed tile: of the source, of a part's target
    Weights weights_;
    Scratch worker_;
    std::vector<int32_t> source_rows_, source_columns_, target_rows_;
    std::vector<float> zeros_;  // a pixel outside of the source
};

template <int m, Direction direction>
WinogradConvolution<m, direction>::WinogradConvolution(const Signature& s)
    : shape_(forward
                 ? ConvolutionShape(s.attributes, s.inputs[0].shape, s.inputs[1].shape, s.outputs[0].shape)
                 : ConvolutionShape(s.attributes, s.outputs[0].shape, s.inputs[1].shape, s.inputs[0].shape)),
      source_(s.inputs[0].shape),
      target_(s.outputs[0].shape),
      tiles_(target_),
      panels_(target_.channels),
      serial_(shape_.work() <= serial_work),
      threads_(s.threads),
      depth_lanes_(round_up(source_.channels, lanes<float>)),
      zeros_(static_cast<size_t>(source_.channels)) {
    for (int i = 0; i < 2; i++) shift_[i] = forward ? -shape_.low[i + 1] : shape_.low[i + 1] - 2;
    if constexpr (forward) {
        bias_ = s.attributes.flag("bias");
        residual_ = s.attributes.flag("residual");
        relu_ = s.attributes.text("activation") == "relu";
    }
    choose_blocks();
    const int64_t tiles = blocks_.longest();
    const int64_t chunk_lanes = chunks_.longest() * panel_lanes<float>;
    part_lanes_ = Cut{chunks_.longest(), column_parts_}.longest() * panel_lanes<float>;
    weights_.frequency = frequency_step(source_.channels * chunk_lanes);
    weights_.total = n * n * weights_.frequency;
    worker_ = {n * n * frequency_step(tiles * depth_lanes_), n * n * frequency_step(tiles * part_lanes_),
               round_up(part_lanes_, 16), forward ? 0 : 9 * transposed_depth * panel_lanes<float>};
    for (int64_t t = 0; t < tiles; t++) {
        source_rows_.push_back(static_cast<int32_t>(t * depth_lanes_));
        target_rows_.push_back(static_cast<int32_t>(t * part_lanes_));
    }
    for (int64_t c = 0; c < source_.channels; c++) source_columns_.push_back(static_cast<int32_t>(c));
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::choose_blocks() {
    const int64_t panel_elements = source_.channels * panel_lanes<float>;
    const int64_t panel_bytes = n * n * panel_elements * static_cast<int64_t>(sizeof(float));
    chunks_ = Cut::by_length(panels_.count(), std::max<int64_t>(weight_bytes / panel_bytes, 1));

    const int64_t tile_bytes =
        n * n * static_cast<int64_t>(sizeof(float)) * (depth_lanes_ + chunks_.longest() * panel_lanes<float>);
    const int64_t in_cache = 2 * level_2_bytes / tile_bytes;
    blocks_ = Cut::by_length(tiles_.count(),
                             in_cache < fewest_tiles ? usual_tiles : std::min(in_cache, 2 * usual_tiles));
    if (serial_ || threads_ == 1 || blocks_.parts >= 4 * threads_) return;
    blocks_.parts = std::clamp<int64_t>(tiles_.count() / fewest_tiles, 1, round_up(blocks_.parts, threads_));
    if (blocks_.parts % threads_ != 0) column_parts_ = std::min(threads_, chunks_.longest());
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::run(const Arguments& arguments, ThreadPool& pool) {
    const Operands o = {
        arguments.input<float>(0), arguments.input<float>(1), bias_ ? arguments.input<float>(2) : nullptr,
        residual_ ? arguments.input<float>(bias_ ? 3 : 2) : nullptr, arguments.output<float>(0)};
    float* weights = static_cast<float*>(arguments.workspace);
    const auto scratch = [&](int worker) { return weights + weights_.total + worker * worker_.total(); };
    const Cut depths = Cut::by_length(source_.channels, transposed_depth);
    for (int64_t chunk = 0; chunk < chunks_.parts; chunk++) {
        const int64_t first = chunks_.begin(chunk), panels = chunks_.begin(chunk + 1) - first;
        run_tasks(pool, serial_, panels * depths.parts, [&](int64_t task, int worker) {
            const int64_t panel = first + task / depths.parts, part = task % depths.parts;
            const int64_t depth = depths.begin(part);
            const int64_t lane = panels_.first(panel) - panels_.first(first);
            transform_weights(o.weights, panel, depth, depths.begin(part + 1) - depth, scratch(worker),
                              weights + lane * source_.channels + depth * panels_.packed_lanes(panel));
        });
        run_tasks(pool, serial_, blocks_.parts * column_parts_, [&](int64_t task, int worker) {
            const Cut columns = {panels, column_parts_};
            const int64_t part = task % column_parts_;
            run_block(o, task / column_parts_, {first + columns.begin(part), first + columns.begin(part + 1)},
                      first, weights, scratch(worker));
        });
    }
}

/// Transforms the weights between `depth` source channels and a panel of target channels.
template <int m, Direction direction>
void WinogradConvolution<m, direction>::transform_weights(const float* w, int64_t panel, int64_t first,
                                                          int64_t depth, float* transposed,
                                                          float* transformed) const {
    const int64_t tap = shape_.channels * shape_.filters;  // elements from one tap to the next
    const int64_t packed_lanes = panels_.packed_lanes(panel);
    const int columns = panels_.columns_of(panel);
    const int64_t lanes_read = forward ? columns : packed_lanes;
    const int64_t packed_tap = depth * packed_lanes;
    if constexpr (!forward) {  // the taps in reverse order
        w += panels_.first(panel) * shape_.filters + first;
        for (int i = 0; i < 9; i++)
            pack_transposed(w + (8 - i) * tap, shape_.filters, depth, columns, packed_lanes,
                            transposed + i * packed_tap);
    }
    for (int64_t k = 0; k < depth; k++) {
        const Square<3, const float> taps =
            forward ? Square<3, const float>(w + (first + k) * shape_.filters + panels_.first(panel), 3 * tap,
                                             tap)
                    : Square<3, const float>(transposed + k * packed_lanes, 3 * packed_tap, packed_tap);
        expand_pixels<weight_matrix<m>>(taps, lanes_read, transformed + k * packed_lanes, weights_.frequency,
                                        lanes<float>);
    }
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::run_block(const Operands& o, int64_t block, Columns columns,
                                                  int64_t first_chunk_panel, const float* weights,
                                                  float* scratch) const {
    const int64_t first = blocks_.begin(block), tiles = blocks_.begin(block + 1) - first;
    float* const source = scratch;
    float* const target = source + worker_.source;
    float* const outside = target + worker_.target;
    for (int64_t t = 0; t < tiles; t++) {
        Place place = tiles_.place(first + t);
        place.h += shift_[0];
        place.w += shift_[1];
        expand_pixels<source_matrix<m>>({source_, o.source, place, zeros_.data()}, source_.channels,
                                        source + source_rows_[t], worker_.source / (n * n), lanes<float>);
    }
    multiply_block(tiles, columns, first_chunk_panel, weights, source, target);
    for (int64_t t = 0; t < tiles; t++)
        write_tile(o, tiles_.place(first + t), columns, target + target_rows_[t], outside);
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::multiply_block(int64_t tiles, Columns columns,
                                                       int64_t first_chunk_panel, const float* weights,
                                                       const float* source, float* target) const {
    Product<float> product;
    product.a_rows = source_rows_.data();
    product.a_columns = source_columns_.data();
    product.c_rows = target_rows_.data();
    product.rows = tiles;
    product.depth = source_.channels;
    for (int x = 0; x < n * n; x++) {
        product.a = source + x * (worker_.source / (n * n));
        const float* b = weights + x * weights_.frequency;
        float* c = target + x * (worker_.target / (n * n));
        for (int64_t panel = columns.begin; panel < columns.end; panel++) {
            product.b = b + (panels_.first(panel) - panels_.first(first_chunk_panel)) * source_.channels;
            product.b_stride = panels_.packed_lanes(panel);
            product.c = c + panels_.first(panel) - panels_.first(columns.begin);
            product.columns = static_cast<int>(panels_.packed_lanes(panel));  // none is narrow
            multiply(product);
        }
    }
}

template <int m, Direction direction>
void WinogradConvolution<m, direction>::write_tile(const Operands& o, const Place& place, Columns columns,
                                                   const float* values, float* outside) const {
    const int64_t first = panels_.first(columns.begin);
    const int64_t channels = std::min(panels_.first(columns.end), target_.channels) - first;
    Epilogue<m> epilogue;
    epilogue.bias = o.bias ? o.bias + first : nullptr;
    epilogue.relu = relu_;
    epilogue.add_residual = residual_;
    if (residual_) epilogue.residual = {target_, o.residual + first, place, outside};
    contract_pixels<target_matrix<m>>(values, worker_.target / (n * n), epilogue, channels,
                                      {target_, o.target + first, place, outside});
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
    return preference(
        direction == Direction::forward
            ? ConvolutionShape(s.attributes, s.inputs[0].shape, s.inputs[1].shape, s.outputs[0].shape)
            : ConvolutionShape(s.attributes, s.outputs[0].shape, s.inputs[1].shape, s.inputs[0].shape),
        m, false);
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
