// Depthwise convolution (one filter per channel) and its gradients: the vectors run over channels, and a few
// pixels or taps share each load.
#include "conv_geometry.h"
#include "gemm/blocking.h"
#include "gemm/tasks.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

/// Positions of a block: tall ones read fewer rows twice, and no packed operand wants its share of the cache.
constexpr int64_t tall_block_rows = 4 * block_rows;

// Channels are taken two vectors at a time, then one, and the last few one by one: `Width` elements per
// access.
template <int Width, class T>
inline auto load_lanes(const T* p) {
    if constexpr (Width == 1)
        return *p;
    else
        return load(p);
}

template <class T>
inline void store_lanes(T* p, T value) {
    *p = value;
}
template <class T>
inline void store_lanes(T* p, Vector<T> value) {
    store(p, value);
}

/// Calls body.template operator()<Width, Accesses>(channel) for successive channels.
template <class T, class Body>
inline void for_channels(int64_t channels, Body body) {
    constexpr int L = lanes<T>;
    int64_t c = 0;
    for (; c + 2 * L <= channels; c += 2 * L) body.template operator()<L, 2>(c);
    for (; c + L <= channels; c += L) body.template operator()<L, 1>(c);
    for (; c < channels; c++) body.template operator()<1, 1>(c);
}

/// Index tables of one phase. Taps are listed with their place in the source and in the weights.
struct PhaseTables {
    Phase phase;
    std::vector<int32_t> source_rows, source_taps, target_rows;
    std::vector<int64_t> weight_taps;
};

PhaseTables make_tables(const BlockedSource& source, const Phase& phase, const PixelStrides& target,
                        const ConvolutionShape& shape) {
    PhaseTables tables = {phase,
                          source.positions(phase),
                          source.taps(phase, 1),
                          target_positions(source.largest(), phase, target),
                          {}};
    for (const Tap& t : phase[0]->taps)
        for (const Tap& h : phase[1]->taps)
            for (const Tap& w : phase[2]->taps)
                tables.weight_taps.push_back(
                    ((t.index * shape.kernel[1] + h.index) * shape.kernel[2] + w.index) * shape.channels);
    return tables;
}

template <class T>
struct Operands {
    const T* source;
    const T* weights;
    const T* bias;
    const T* residual;  // laid out as the target
    T* target;
    bool relu;
};

/// target[row][c] = sum over taps of source[row + tap][c] * weights[tap][c] for `Rows` rows and a few
/// channels.
template <int Width, int Accesses, int Rows, class T>
inline void multiply_rows(const PhaseTables& tables, int64_t row, int64_t c, const Operands<T>& o) {
    using V = decltype(load_lanes<Width>(o.source));
    V sum[Rows][Accesses];
    const T* source[Rows];
    for (int i = 0; i < Rows; i++) {
        source[i] = o.source + c + tables.source_rows[row + i];
        for (int j = 0; j < Accesses; j++)
            sum[i][j] = o.bias ? load_lanes<Width>(o.bias + c + j * Width) : V{};
    }
    const int32_t* const taps = tables.source_taps.data();
    const int64_t* const weight_taps = tables.weight_taps.data();
    const int64_t count = static_cast<int64_t>(tables.source_taps.size());
    for (int64_t k = 0; k < count; k++) {
        const int64_t tap = taps[k];
        const T* weights = o.weights + c + weight_taps[k];
        V w[Accesses];
        for (int j = 0; j < Accesses; j++) w[j] = load_lanes<Width>(weights + j * Width);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; i++)
#pragma GCC unroll 2
            for (int j = 0; j < Accesses; j++)
                sum[i][j] += w[j] * load_lanes<Width>(source[i] + tap + j * Width);
    }
    for (int i = 0; i < Rows; i++)
        for (int j = 0; j < Accesses; j++) {
            const int64_t place = tables.target_rows[row + i] + c + j * Width;
            if (o.residual) sum[i][j] += load_lanes<Width>(o.residual + place);
            if (o.relu) sum[i][j] = sum[i][j] < V{} ? V{} : sum[i][j];
            store_lanes(o.target + place, sum[i][j]);
        }
}

template <class T>
void multiply_block(const PhaseTables& tables, int64_t rows, int64_t channels, const Operands<T>& operands) {
    constexpr int tall = 6;
    int64_t row = 0;
    for (; row + tall <= rows; row += tall)
        for_channels<T>(channels, [&]<int Width, int Accesses>(int64_t c) {
            multiply_rows<Width, Accesses, tall>(tables, row, c, operands);
        });
    for (; row < rows; row++)
        for_channels<T>(channels, [&]<int Width, int Accesses>(int64_t c) {
            multiply_rows<Width, Accesses, 1>(tables, row, c, operands);
        });
}

template <class T>
class DepthwiseConvolution : public Kernel {
  public:
    size_t workspace_bytes() const override {
        return sizeof(T) * static_cast<size_t>(threads_ * source_.copy_elements());
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  protected:
    DepthwiseConvolution(const Signature& s, const ConvolutionShape& shape, Axes axes,
                         const std::array<int64_t, 3>& target)
        : shape_(shape),
          axes_(std::move(axes)),
          serial_(shape.work() <= serial_work),
          threads_(s.threads),
          source_(axes_, shape.images, shape.channels, sizeof(T),
                  {tall_block_rows, level_2_bytes, tasks_wanted(serial_, threads_)}),
          target_(target, shape.channels) {
        for (const Phase& phase : combinations(axes_))
            phases_.push_back(make_tables(source_, phase, target_, shape_));
    }
    bool bias_ = false, residual_ = false, relu_ = false;

  private:
    ConvolutionShape shape_;
    Axes axes_;
    bool serial_;
    int64_t threads_;
    BlockedSource source_;
    PixelStrides target_;
    std::vector<PhaseTables> phases_;
};

template <class T>
void DepthwiseConvolution<T>::run(const Arguments& arguments, ThreadPool& pool) {
    const T* weights = arguments.input<T>(1);
    const T* bias = bias_ ? arguments.input<T>(2) : nullptr;
    const T* residual = residual_ ? arguments.input<T>(2 + bias_) : nullptr;
    T* workspace = static_cast<T*>(arguments.workspace);
    run_tasks(pool, serial_, source_.blocks(), [&](int64_t task, int worker) {
        const Block block = source_.block(task);
        const T* source =
            source_.prepare(arguments.input<T>(0), block, workspace + worker * source_.copy_elements());
        for (const PhaseTables& tables : phases_) {
            const int64_t start = target_start(block, tables.phase, target_);
            multiply_block<T>(tables, block.rows(tables.phase), shape_.channels,
                              {source, weights, bias, residual ? residual + start : nullptr,
                               arguments.output<T>(0) + start, relu_});
        }
    });
}

template <class T>
struct Forward : DepthwiseConvolution<T> {
    explicit Forward(const Signature& s)
        : Forward(s, {s.attributes, s.inputs[0].shape, s.inputs[1].shape, s.outputs[0].shape}) {}
    Forward(const Signature& s, const ConvolutionShape& shape)
        : DepthwiseConvolution<T>(s, shape, forward_axes(shape), shape.output) {
        this->bias_ = s.attributes.flag("bias");
        this->residual_ = s.attributes.flag("residual");
        this->relu_ = s.attributes.text("activation") == "relu";
    }
};

template <class T>
struct InputGradient : DepthwiseConvolution<T> {
    explicit InputGradient(const Signature& s)
        : InputGradient(s, {s.attributes, s.outputs[0].shape, s.inputs[1].shape, s.inputs[0].shape}) {}
    InputGradient(const Signature& s, const ConvolutionShape& shape)
        : DepthwiseConvolution<T>(s, shape, input_gradient_axes(shape), shape.input) {}
};

/// sums[tap][c] += sum over rows of x[row + tap][c] * dy[row][c] for `Taps` taps and a few channels.
template <int Width, int Accesses, int Taps, class T>
inline void sum_taps(const int32_t* rows, int64_t count, const int32_t* taps, const T* x, const T* dy,
                     int64_t channels, T* sums) {
    using V = decltype(load_lanes<Width>(x));
    V sum[Taps][Accesses];
    for (int k = 0; k < Taps; k++)
        for (int j = 0; j < Accesses; j++) sum[k][j] = load_lanes<Width>(sums + k * channels + j * Width);
    for (int64_t i = 0; i < count; i++) {
        V d[Accesses];
        for (int j = 0; j < Accesses; j++) d[j] = load_lanes<Width>(dy + i * channels + j * Width);
        const T* pixel = x + rows[i];
#pragma GCC unroll 8
        for (int k = 0; k < Taps; k++)
#pragma GCC unroll 2
            for (int j = 0; j < Accesses; j++)
                sum[k][j] += d[j] * load_lanes<Width>(pixel + taps[k] + j * Width);
    }
    for (int k = 0; k < Taps; k++)
        for (int j = 0; j < Accesses; j++) store_lanes(sums + k * channels + j * Width, sum[k][j]);
}

template <class T>
void sum_block(const PhaseTables& tables, int64_t rows, const T* x, const T* dy, int64_t channels, T* sums) {
    constexpr int many = 5;
    const int32_t* taps = tables.source_taps.data();
    const int64_t count = static_cast<int64_t>(tables.source_taps.size());
    for_channels<T>(channels, [&]<int Width, int Accesses>(int64_t c) {
        int64_t k = 0;
        for (; k + many <= count; k += many)
            sum_taps<Width, Accesses, many>(tables.source_rows.data(), rows, taps + k, x + c, dy + c,
                                            channels, sums + c + k * channels);
        for (; k < count; k++)
            sum_taps<Width, Accesses, 1>(tables.source_rows.data(), rows, taps + k, x + c, dy + c, channels,
                                         sums + c + k * channels);
    });
}

template <class T>
class WeightGradient : public Kernel {
  public:
    explicit WeightGradient(const Signature& s)
        : shape_(s.attributes, s.inputs[0].shape, s.outputs[0].shape, s.inputs[1].shape),
          axes_(forward_axes(shape_)),
          serial_(shape_.work() <= serial_work),
          source_(axes_, shape_.images, shape_.channels, sizeof(T),
                  {block_rows, level_2_bytes, tasks_wanted(serial_, s.threads)}),
          dy_(shape_.output, shape_.channels),
          parts_(serial_ ? 1 : std::clamp<int64_t>(source_.blocks(), 1, s.threads)),
          size_(s.outputs[0].size()),
          tables_(make_tables(source_, combinations(axes_)[0], dy_, shape_)) {}
    size_t workspace_bytes() const override {
        return sizeof(T) * static_cast<size_t>(parts_ * source_.copy_elements() + (parts_ - 1) * size_);
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  private:
    void run_part(const T* x, const T* dy, int64_t part, T* copy, T* sums) const;

    ConvolutionShape shape_;
    Axes axes_;
    bool serial_;
    BlockedSource source_;
    PixelStrides dy_;
    int64_t parts_, size_;  // parts of the batch, each with sums of its own
    PhaseTables tables_;
};

template <class T>
void WeightGradient<T>::run(const Arguments& arguments, ThreadPool& pool) {
    T* dw = arguments.output<T>(0);
    T* copies = static_cast<T*>(arguments.workspace);
    T* more_sums = copies + parts_ * source_.copy_elements();
    run_tasks(pool, serial_, parts_, [&](int64_t part, int) {
        run_part(arguments.input<T>(0), arguments.input<T>(1), part, copies + part * source_.copy_elements(),
                 part == 0 ? dw : more_sums + (part - 1) * size_);
    });
    for (int64_t part = 0; part < parts_ - 1; part++)
        for (int64_t i = 0; i < size_; i++) dw[i] += more_sums[part * size_ + i];
}

template <class T>
void WeightGradient<T>::run_part(const T* x, const T* dy, int64_t part, T* copy, T* sums) const {
    std::fill_n(sums, size_, T{0});
    const Cut blocks = {source_.blocks(), parts_};
    for (int64_t i = blocks.begin(part); i < blocks.begin(part + 1); i++) {
        const Block block = source_.block(i);
        const T* start = source_.prepare(x, block, copy);
        const T* pixels = dy + target_start(block, tables_.phase, dy_);
        sum_block(tables_, block.rows(tables_.phase), start, pixels, shape_.channels, sums);
    }
}

/// One filter per channel; the channels are the last axis of x, w and dx alike.
template <class T>
bool supports(const Signature& s) {
    const int64_t groups = s.attributes.integer("groups");
    const bool weights_wanted = s.op == "convolution_weight_gradient";
    const Shape& w = weights_wanted ? s.outputs[0].shape : s.inputs[1].shape;
    return all_of_type<T>(s) && tables_reach(s) && groups > 1 && w.back() == groups && w[w.size() - 2] == 1 &&
           (s.op == "convolution_input_gradient" ? s.outputs : s.inputs)[0].shape.back() == groups;
}

template <class T>
bool supports_forward(const Signature& s) {
    return supports<T>(s) && epilogue_is_known(s);
}

const Registration entries_of_this_file[] = {
    {"convolution", "depthwise", 20, supports_forward<float>, create_kernel<Forward<float>>},
    {"convolution", "depthwise", 20, supports_forward<double>, create_kernel<Forward<double>>},
    {"convolution_input_gradient", "depthwise", 20, supports<float>, create_kernel<InputGradient<float>>},
    {"convolution_input_gradient", "depthwise", 20, supports<double>, create_kernel<InputGradient<double>>},
    {"convolution_weight_gradient", "depthwise", 20, supports<float>, create_kernel<WeightGradient<float>>},
    {"convolution_weight_gradient", "depthwise", 20, supports<double>, create_kernel<WeightGradient<double>>},
};

}  // namespace
}  // namespace magmadnn::cpu
