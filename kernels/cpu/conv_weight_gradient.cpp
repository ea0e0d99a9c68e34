// convolution_weight_gradient as products of indexed matrices: rows are (tap, input channel), the depth runs
// over output pixels, columns are filters. x is read where it is; dy is the second operand.
#include "conv_geometry.h"
#include "gemm/packing.h"
#include "gemm/tasks.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

template <class T>
class WeightGradient : public Kernel {
  public:
    explicit WeightGradient(const Signature& s);
    size_t workspace_bytes() const override {
        return sizeof(T) *
               static_cast<size_t>((image_parts_ - 1) * sums_elements_ + threads_ * worker_.total());
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  private:
    /// Elements of one worker's scratch: a copy of a padded block, packed panels of dy, packed x.
    struct Scratch {
        int64_t copy, panels, x;
        int64_t total() const { return copy + panels + x; }
    };
    /// A task's share: the (group, panel) units, and whether their sums hold something already.
    struct Share {
        int64_t first_unit, end_unit;
        bool accumulate;
        T* sums;
    };
    void choose_chunks();
    void run_part(const T* x, const T* dy, int64_t image_part, int64_t column_part, T* scratch,
                  T* sums) const;
    void run_block(const T* x, const T* dy, const Block& block, const Share& share, T* scratch) const;
    void pack_pixels(const T* x, int64_t depth, T* packed) const;
    bool dy_in_place(const Block& block) const;
    void multiply_panels(Product<T> product, const T* x, int64_t first_panel, int64_t end_panel, T* packed_x,
                         T* sums) const;

    ConvolutionShape shape_;
    Axes axes_;
    Phase phase_;
    bool serial_;
    int64_t threads_;
    Panels<T> panels_;
    // Threads share out either the (group, panel) units, where the sums are large, or the blocks: then each
    // part has sums of its own, which are added up at the end in a fixed order.
    bool share_columns_;
    int64_t image_parts_ = 1, column_parts_ = 1;
    BlockedSource source_;
    PixelStrides dy_;
    int64_t sums_elements_;
    Scratch worker_;
    std::vector<int32_t> x_rows_, x_columns_, sum_rows_;
    Runs x_runs_;
    // Where pixels of x lie far apart, they are packed for one tap at a time, in chunks of channels.
    bool pack_x_;
    std::vector<int32_t> chunk_rows_;
};

template <class T>
WeightGradient<T>::WeightGradient(const Signature& s)
    : shape_(s.attributes, s.inputs[0].shape, s.outputs[0].shape, s.inputs[1].shape),
      axes_(forward_axes(shape_)),
      phase_(combinations(axes_)[0]),
      serial_(shape_.work() <= serial_work),
      threads_(s.threads),
      panels_(shape_.group_filters()),
      share_columns_(!serial_ && shape_.groups * panels_.count() >= 2 * threads_ &&
                     s.outputs[0].bytes() > level_2_bytes),
      source_(axes_, shape_.images, shape_.channels, sizeof(T),
              {weight_gradient_depth, share_columns_ ? 4 * level_2_bytes : level_2_bytes,
               share_columns_ ? 1 : tasks_wanted(serial_, threads_)}),
      dy_(shape_.output, shape_.filters),
      x_rows_(source_.taps(phase_, shape_.group_channels())),
      x_columns_(source_.positions(phase_)),
      x_runs_(runs_of(x_columns_)) {
    for (size_t i = 0; i < x_rows_.size(); i++)
        sum_rows_.push_back(static_cast<int32_t>(static_cast<int64_t>(i) * shape_.filters));
    sums_elements_ = round_up(s.outputs[0].size(), 16);
    if (share_columns_)
        column_parts_ = std::min(tasks_wanted(serial_, threads_), shape_.groups * panels_.count());
    else if (!serial_)
        image_parts_ = std::clamp<int64_t>(source_.blocks(), 1, threads_);
    choose_chunks();
    const int64_t depth = static_cast<int64_t>(x_columns_.size());
    const int64_t panels = std::min(panels_.lanes_in_row(), panel_group * panel_lanes<T>);
    worker_ = {round_up(source_.copy_elements(), 16), round_up(depth * panels, 16),
               pack_x_ ? depth * round_up(shape_.group_channels(), chunk_rows) : 0};
}

template <class T>
void WeightGradient<T>::choose_chunks() {
    const int64_t channels = shape_.group_channels();
    const int64_t distance = shape_.channels * shape_.stride[2] * static_cast<int64_t>(sizeof(T));
    pack_x_ = distance >= far_bytes && channels >= chunk_rows && panels_.count() >= 4;
    if (!pack_x_) return;
    for (int32_t i = 0; i < chunk_rows; i++) chunk_rows_.push_back(i);
}

template <class T>
void WeightGradient<T>::run(const Arguments& arguments, ThreadPool& pool) {
    const T* x = arguments.input<T>(0);
    const T* dy = arguments.input<T>(1);
    T* dw = arguments.output<T>(0);
    T* scratch = static_cast<T*>(arguments.workspace);
    T* more_sums = scratch + threads_ * worker_.total();
    const int64_t size = static_cast<int64_t>(x_rows_.size()) * shape_.filters;
    if (source_.blocks() == 0) {
        std::fill_n(dw, size, T{0});
        return;
    }
    run_tasks(pool, serial_, image_parts_ * column_parts_, [&](int64_t task, int worker) {
        const int64_t image_part = task % image_parts_;
        run_part(x, dy, image_part, task / image_parts_, scratch + worker * worker_.total(),
                 image_part == 0 ? dw : more_sums + (image_part - 1) * sums_elements_);
    });
    if (image_parts_ == 1) return;
    pool.ranges(size, 1 << 14, [&](int64_t begin, int64_t end, int) {
        for (int64_t part = 0; part < image_parts_ - 1; part++)
            for (int64_t i = begin; i < end; i++) dw[i] += more_sums[part * sums_elements_ + i];
    });
}

template <class T>
void WeightGradient<T>::run_part(const T* x, const T* dy, int64_t image_part, int64_t column_part, T* scratch,
                                 T* sums) const {
    const Cut blocks = {source_.blocks(), image_parts_};
    const Cut units = {shape_.groups * panels_.count(), column_parts_};
    const int64_t first = blocks.begin(image_part);
    for (int64_t i = first; i < blocks.begin(image_part + 1); i++) {
        const Block block = source_.block(i);
        const T* start = source_.prepare(x, block, scratch);
        run_block(start, dy, block, {units.begin(column_part), units.begin(column_part + 1), i > first, sums},
                  scratch + worker_.copy);
    }
}

/// Few rows do not repay the packing of dy. Reading whole vectors in place passes the end of a pixel, which
/// only at the last one passes the end of the tensor.
template <class T>
bool WeightGradient<T>::dy_in_place(const Block& block) const {
    const bool last = block.image + block.images == shape_.images && block.end == shape_.output;
    return static_cast<int64_t>(x_rows_.size()) <= few_rows &&
           (!last || panels_.lanes_in_row() == shape_.group_filters());
}

/// Packs dy of a block, a few panels of one group at a time, and multiplies x of the same block by them.
template <class T>
void WeightGradient<T>::run_block(const T* x, const T* dy, const Block& block, const Share& share,
                                  T* scratch) const {
    // Only the outermost axis of a block that is longer than one is cut: its pixels of dy are contiguous.
    const T* pixels = dy + target_start(block, phase_, dy_);
    Product<T> product;
    product.b = scratch;
    product.c_rows = sum_rows_.data();
    product.depth = block.rows(phase_);
    product.accumulate = share.accumulate;
    for (int64_t unit = share.first_unit; unit < share.end_unit;) {
        const int64_t group = unit / panels_.count();
        const int64_t first = unit % panels_.count();
        const int64_t end = std::min({first + panel_group, panels_.count(), first + share.end_unit - unit});
        const int64_t filter = group * shape_.group_filters();
        const bool in_place = dy_in_place(block);
        product.b = in_place ? pixels + filter + panels_.first(first) : scratch;
        if (!in_place)
            pack_panels(panels_, first, end, pixels + filter, shape_.filters, product.depth, scratch);
        product.b_stride = in_place ? shape_.filters : 0;
        multiply_panels(product, x + group * shape_.group_channels(), first, end, scratch + worker_.panels,
                        share.sums + filter);
        unit += end - first;
    }
}

template <class T>
void WeightGradient<T>::multiply_panels(Product<T> product, const T* x, int64_t first_panel,
                                        int64_t end_panel, T* packed_x, T* sums) const {
    const T* dy = product.b;
    const int64_t dy_stride = product.b_stride;  // zero: packed
    const auto multiply_rows = [&](int64_t first_row, int64_t rows) {
        product.rows = rows;
        for (int64_t panel = first_panel; panel < end_panel; panel++) {
            product.b =
                dy + (panels_.first(panel) - panels_.first(first_panel)) * (dy_stride ? 1 : product.depth);
            product.b_stride = dy_stride ? dy_stride : panels_.packed_lanes(panel);
            product.c = sums + first_row * shape_.filters + panels_.first(panel);
            product.columns = panels_.columns_of(panel);
            multiply(product);
        }
    };
    if (!pack_x_) {
        product.a = x;
        product.a_rows = x_rows_.data();
        product.a_columns = x_columns_.data();
        product.runs = x_runs_;
        multiply_rows(0, static_cast<int64_t>(x_rows_.size()));
        return;
    }
    product.a_rows = chunk_rows_.data();
    product.a_columns = &no_offset;
    product.runs = {product.depth, chunk_rows};
    const int64_t channels = shape_.group_channels();
    for (int64_t tap = 0; tap < shape_.taps(); tap++) {
        pack_pixels(x + x_rows_[tap * channels], product.depth, packed_x);
        for (int64_t c = 0; c < channels; c += chunk_rows) {
            product.a = packed_x + c * product.depth;
            multiply_rows(tap * channels + c, std::min(chunk_rows, channels - c));
        }
    }
}

/// Packs the channels of pixels as chunks [depth][chunk_rows], pixel by pixel: as memory is read best.
template <class T>
void WeightGradient<T>::pack_pixels(const T* x, int64_t depth, T* packed) const {
    const int64_t channels = shape_.group_channels();
    for (int64_t k = 0; k < depth; k++)
        for (int64_t c = 0; c < channels; c += chunk_rows)
            pack_indexed(x + c, &x_columns_[k], 1, static_cast<int>(std::min(chunk_rows, channels - c)),
                         chunk_rows, packed + c * depth + k * chunk_rows);
}

template <class T>
bool supports(const Signature& s) {
    return all_of_type<T>(s) && tables_reach(s);
}

const Registration float_entry("convolution_weight_gradient", "direct", 10, supports<float>,
                               create_kernel<WeightGradient<float>>);
const Registration double_entry("convolution_weight_gradient", "direct", 10, supports<double>,
                                create_kernel<WeightGradient<double>>);

}  // namespace
}  // namespace magmadnn::cpu
