// convolution and convolution_input_gradient as products of indexed matrices: rows are positions of the
// target, the depth runs over (tap, source channel), columns are target channels. No im2col matrix is made.
#include "conv_geometry.h"
#include "gemm/packing.h"
#include "gemm/tasks.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

template <class T>
class DirectConvolution : public Kernel {
  public:
    size_t workspace_bytes() const override {
        return sizeof(T) * static_cast<size_t>(packed_elements_ + threads_ * copy_elements_);
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  protected:
    enum class Direction { forward, input_gradient };
    DirectConvolution(const Signature& s, Direction direction, const ConvolutionShape& shape);

    bool bias_ = false, residual_ = false, relu_ = false;

  private:
    struct PhaseTables {
        Phase phase;
        std::vector<int32_t> source_rows, source_columns, target_rows;
        int64_t packed_start;  // of the phase's weights within those of a group
    };
    struct PackedTap {
        const PhaseTables* tables;
        int64_t place, index;  // among the phase's taps, and in the weights
    };
    void add_phase(const Phase& phase);
    void pack_tap(const T* weights, int64_t unit, T* packed) const;
    void run_block(const T* source, const Block& block, int64_t first_unit, int64_t end_unit, const T* packed,
                   const T* bias, const T* residual, T* target) const;

    ConvolutionShape shape_;
    Direction direction_;
    int64_t depth_, columns_;  // channels of a group: of the source (per tap) and of the target
    Axes axes_;
    bool serial_;
    int64_t threads_;
    BlockedSource source_;
    PixelStrides target_;
    Panels<T> panels_;
    std::vector<PhaseTables> phases_;
    std::vector<PackedTap> packed_taps_;
    int64_t column_parts_;
    int64_t packed_group_ = 0, packed_elements_ = 0, copy_elements_ = 0;
};

template <class T>
DirectConvolution<T>::DirectConvolution(const Signature& s, Direction direction,
                                        const ConvolutionShape& shape)
    : shape_(shape),
      direction_(direction),
      depth_(direction == Direction::forward ? shape.group_channels() : shape.group_filters()),
      columns_(direction == Direction::forward ? shape.group_filters() : shape.group_channels()),
      axes_(direction == Direction::forward ? forward_axes(shape) : input_gradient_axes(shape)),
      serial_(shape.work() <= serial_work),
      threads_(s.threads),
      source_(axes_, shape.images, depth_ * shape.groups, sizeof(T),
              {block_rows, 2 * level_2_bytes, tasks_wanted(serial_, threads_)}),
      target_(direction == Direction::forward ? shape.output : shape.input, columns_ * shape.groups),
      panels_(columns_) {
    const std::vector<Phase> phases = combinations(axes_);
    phases_.reserve(phases.size());  // packed_taps_ points into it
    for (const Phase& phase : phases) add_phase(phase);
    const int64_t units = shape_.groups * panels_.count();
    const int64_t blocks = std::max<int64_t>(source_.blocks(), 1);
    column_parts_ =
        std::clamp<int64_t>(tasks_wanted(serial_, threads_) / blocks, 1, std::max<int64_t>(units, 1));
    packed_elements_ = round_up(shape_.groups * packed_group_, 16);
    copy_elements_ = round_up(source_.copy_elements(), 16);
}

template <class T>
void DirectConvolution<T>::add_phase(const Phase& phase) {
    phases_.push_back({phase, source_.positions(phase), source_.taps(phase, depth_),
                       target_positions(source_.largest(), phase, target_), packed_group_});
    const PhaseTables& tables = phases_.back();
    packed_group_ += panels_.lanes_in_row() * static_cast<int64_t>(tables.source_columns.size());
    int64_t place = 0;
    for (const Tap& t : phase[0]->taps)
        for (const Tap& h : phase[1]->taps)
            for (const Tap& w : phase[2]->taps)
                packed_taps_.push_back(
                    {&tables, place++, (t.index * shape_.kernel[1] + h.index) * shape_.kernel[2] + w.index});
}

/// Packs the weights of one (group, panel, tap).
template <class T>
void DirectConvolution<T>::pack_tap(const T* weights, int64_t unit, T* packed) const {
    const int64_t taps = static_cast<int64_t>(packed_taps_.size());
    const PackedTap& tap = packed_taps_[unit % taps];
    const int64_t panel = unit / taps % panels_.count();
    const int64_t group = unit / taps / panels_.count();
    const int64_t first = panels_.first(panel);
    const int64_t packed_lanes = panels_.packed_lanes(panel);
    packed += group * packed_group_ + tap.tables->packed_start +
              first * static_cast<int64_t>(tap.tables->source_columns.size()) +
              tap.place * depth_ * packed_lanes;
    // Weights are [tap][channel of the group][filter].
    weights += tap.index * shape_.group_channels() * shape_.filters + group * shape_.group_filters();
    if (direction_ == Direction::forward)
        pack(weights + first, shape_.filters, depth_, panels_.columns_of(panel), packed_lanes, packed);
    else
        pack_transposed(weights + first * shape_.filters, shape_.filters, depth_, panels_.columns_of(panel),
                        packed_lanes, packed);
}

template <class T>
void DirectConvolution<T>::run(const Arguments& arguments, ThreadPool& pool) {
    const T* source = arguments.input<T>(0);
    const T* weights = arguments.input<T>(1);
    const T* bias = bias_ ? arguments.input<T>(2) : nullptr;
    const T* residual = residual_ ? arguments.input<T>(2 + bias_) : nullptr;
    T* target = arguments.output<T>(0);
    T* packed = static_cast<T*>(arguments.workspace);
    T* copies = packed + packed_elements_;

    const int64_t units = shape_.groups * panels_.count();
    const int64_t tap_units = units * static_cast<int64_t>(packed_taps_.size());
    const Cut pack_tasks = {tap_units, packed_elements_ <= serial_work ? 1 : threads_};
    run_tasks(pool, pack_tasks.parts == 1, pack_tasks.parts, [&](int64_t task, int) {
        for (int64_t unit = pack_tasks.begin(task); unit < pack_tasks.begin(task + 1); unit++)
            pack_tap(weights, unit, packed);
    });
    run_tasks(pool, serial_, source_.blocks() * column_parts_, [&](int64_t task, int worker) {
        const Cut columns = {units, column_parts_};
        const int64_t part = task % column_parts_;
        const Block block = source_.block(task / column_parts_);
        const T* start = source_.prepare(source, block, copies + worker * copy_elements_);
        run_block(start, block, columns.begin(part), columns.begin(part + 1), packed, bias, residual, target);
    });
}

/// A block of positions times some of the (group, panel) units.
template <class T>
void DirectConvolution<T>::run_block(const T* source, const Block& block, int64_t first_unit,
                                     int64_t end_unit, const T* packed, const T* bias, const T* residual,
                                     T* target) const {
    for (const PhaseTables& tables : phases_) {
        Product<T> product;
        product.a_rows = tables.source_rows.data();
        product.a_columns = tables.source_columns.data();
        product.c_rows = tables.target_rows.data();
        product.rows = block.rows(tables.phase);
        product.depth = static_cast<int64_t>(tables.source_columns.size());
        product.relu = relu_;
        const int64_t start = target_start(block, tables.phase, target_);
        for (int64_t unit = first_unit; unit < end_unit; unit++) {
            const int64_t group = unit / panels_.count();
            const int64_t panel = unit % panels_.count();
            const int64_t column = group * columns_ + panels_.first(panel);
            product.a = source + group * depth_;
            product.b =
                packed + group * packed_group_ + tables.packed_start + panels_.first(panel) * product.depth;
            product.b_stride = panels_.packed_lanes(panel);
            product.c = target + start + column;
            product.columns = panels_.columns_of(panel);
            product.bias = bias ? bias + column : nullptr;
            product.residual = residual ? residual + start + column : nullptr;
            multiply(product);
        }
    }
}

template <class T>
class Forward : public DirectConvolution<T> {
  public:
    explicit Forward(const Signature& s)
        : DirectConvolution<T>(s, DirectConvolution<T>::Direction::forward,
                               {s.attributes, s.inputs[0].shape, s.inputs[1].shape, s.outputs[0].shape}) {
        this->bias_ = s.attributes.flag("bias");
        this->residual_ = s.attributes.flag("residual");
        this->relu_ = s.attributes.text("activation") == "relu";
    }
};

template <class T>
class InputGradient : public DirectConvolution<T> {
  public:
    explicit InputGradient(const Signature& s)
        : DirectConvolution<T>(s, DirectConvolution<T>::Direction::input_gradient,
                               {s.attributes, s.outputs[0].shape, s.inputs[1].shape, s.inputs[0].shape}) {}
};

template <class T>
bool supports_forward(const Signature& s) {
    return all_of_type<T>(s) && tables_reach(s) && epilogue_is_known(s);
}

template <class T>
bool supports_input_gradient(const Signature& s) {
    return all_of_type<T>(s) && tables_reach(s);
}

const Registration entries_of_this_file[] = {
    {"convolution", "direct", 10, supports_forward<float>, create_kernel<Forward<float>>},
    {"convolution", "direct", 10, supports_forward<double>, create_kernel<Forward<double>>},
    {"convolution_input_gradient", "direct", 10, supports_input_gradient<float>,
     create_kernel<InputGradient<float>>},
    {"convolution_input_gradient", "direct", 10, supports_input_gradient<double>,
     create_kernel<InputGradient<double>>},
};

}  // namespace
}  // namespace magmadnn::cpu
