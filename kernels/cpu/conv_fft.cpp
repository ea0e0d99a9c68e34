// convolution and convolution_input_gradient in the frequency domain, for windows of many taps. A group of
// pairs of tiles goes through three stages: spectra of the source, products, tiles of the target. The input
// gradient is the same with the window turned round, and input and output channels exchanged.
//
// Y(k) = X(k) conj W(k) as a real product for each frequency k:
//     rows of A: (Re X, Im X) -> Re Y and (Im X, -Re X) -> Im Y, per half and pair;   rows of B: Re W, Im W.
#include "conv_fft_tiles.h"
#include "gemm/packing.h"
#include "gemm/part.h"
#include "gemm/tasks.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

constexpr int L = lanes<float>;

/// Bytes of spectra of a group of pairs, and the pairs that repay a pass over the weights' spectra.
constexpr int64_t group_bytes = 8 << 20;
constexpr int64_t fewest_pairs = 12;

/// Frequencies lie this many elements apart: no power of two, which would map them to the same sets of the
/// caches.
constexpr int64_t apart(int64_t elements) { return round_up(elements, 16) + 16; }

class FftConvolution : public Kernel {
  public:
    size_t workspace_bytes() const override {
        return sizeof(float) * static_cast<size_t>(turned_elements_ + weights_elements_ + source_elements_ +
                                                   target_elements_ + threads_ * planes_elements_);
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  protected:
    enum class Direction { forward, input_gradient };
    FftConvolution(const Signature& s, Direction direction, const ConvolutionShape& shape);
    bool bias_ = false, relu_ = false;

  private:
    struct Work {
        const float* weights;  // [tap][source channel][target channel, stride weights_stride_]
        float* weight_spectra;
        float* source_spectra;
        float* target_spectra;
        float* planes;
    };
    void turn_weights(const float* weights, float* turned, ThreadPool& pool) const;
    void transform_weights(const Work& work, int64_t unit, float* planes) const;
    void multiply_frequency(const Work& work, int64_t frequency, int64_t panel, int64_t pairs) const;
    void store_pair(const Work& work, int64_t pair, int64_t in_group, int64_t pairs, int64_t channel,
                    float* planes, const float* bias, float* target) const;

    ConvolutionShape shape_;
    Direction direction_;
    int64_t threads_;
    TileView source_;
    std::array<int64_t, 3> target_extents_;
    int64_t target_channels_;
    FftTiling tiling_;
    Panels<float> panels_;
    Cut groups_;
    int64_t source_lanes_, target_lanes_;  // channels rounded up to whole vectors
    int64_t weights_stride_;
    int64_t weight_frequency_, source_frequency_, target_frequency_;  // elements between frequencies
    int64_t turned_elements_, weights_elements_, source_elements_, target_elements_, planes_elements_;
    std::vector<int32_t> source_rows_, source_columns_, target_rows_;
};

std::array<int64_t, 3> window_span(const ConvolutionShape& shape) {
    std::array<int64_t, 3> span;
    for (int i = 0; i < 3; i++) span[i] = (shape.kernel[i] - 1) * shape.dilation[i] + 1;
    return span;
}

FftConvolution::FftConvolution(const Signature& s, Direction direction, const ConvolutionShape& shape)
    : shape_(shape),
      direction_(direction),
      threads_(s.threads),
      target_extents_(direction == Direction::forward ? shape.output : shape.input),
      target_channels_(direction == Direction::forward ? shape.filters : shape.channels),
      tiling_(shape.images, target_extents_, window_span(shape),
              cheapest_box(shape, target_extents_, false).box),
      panels_(target_channels_) {
    const bool forward = direction == Direction::forward;
    const std::array<int64_t, 3> span = window_span(shape);
    source_ = {forward ? shape.input : shape.output, forward ? shape.channels : shape.filters, shape.low,
               tiling_.box()};
    if (!forward)
        for (int i = 0; i < 3; i++) source_.low[i] = span[i] - 1 - shape.low[i];
    source_lanes_ = round_up(source_.channels, L);
    target_lanes_ = panels_.lanes_in_row();
    weights_stride_ = forward ? shape.filters : target_lanes_;

    const int64_t pair_bytes =
        tiling_.points() * (3 * source_lanes_ + 2 * target_lanes_) * int64_t{sizeof(float)};
    groups_ = Cut::by_length(tiling_.pairs(), std::max(group_bytes / pair_bytes, fewest_pairs));
    const int64_t pairs = groups_.longest();
    weight_frequency_ = apart(2 * source_.channels * target_lanes_);
    source_frequency_ = apart(2 * pairs * 3 * source_lanes_);
    target_frequency_ = apart(2 * pairs * 2 * target_lanes_);
    const auto frequencies = static_cast<int64_t>(tiling_.frequencies().size());
    turned_elements_ = forward ? 0 : round_up(shape.taps() * shape.filters * target_lanes_, 16);
    weights_elements_ = frequencies * weight_frequency_;
    source_elements_ = frequencies * source_frequency_;
    target_elements_ = frequencies * target_frequency_;
    planes_elements_ = round_up(2 * tiling_.points() * L, 16);

    for (int64_t row = 0; row < 2 * pairs; row++)
        for (int64_t part = 0; part < 2; part++) {
            source_rows_.push_back(static_cast<int32_t>((3 * row + part) * source_lanes_));
            target_rows_.push_back(static_cast<int32_t>((2 * row + part) * target_lanes_));
        }
    for (int64_t part = 0; part < 2; part++)
        for (int64_t c = 0; c < source_.channels; c++)
            source_columns_.push_back(static_cast<int32_t>(part * source_lanes_ + c));
}

void FftConvolution::run(const Arguments& arguments, ThreadPool& pool) {
    const float* source = arguments.input<float>(0);
    const float* bias = bias_ ? arguments.input<float>(2) : nullptr;
    float* target = arguments.output<float>(0);
    float* turned = static_cast<float*>(arguments.workspace);
    Work work = {arguments.input<float>(1), turned + turned_elements_, nullptr, nullptr, nullptr};
    work.source_spectra = work.weight_spectra + weights_elements_;
    work.target_spectra = work.source_spectra + source_elements_;
    work.planes = work.target_spectra + target_elements_;
    if (direction_ == Direction::input_gradient) {
        turn_weights(work.weights, turned, pool);
        work.weights = turned;
    }
    const auto share = [&](int64_t units, auto body) {
        const Cut tasks = {units, std::min(units, tasks_wanted(false, threads_))};
        pool.each(tasks.parts, [&](int64_t task, int worker) {
            for (int64_t unit = tasks.begin(task); unit < tasks.begin(task + 1); unit++)
                body(unit, work.planes + worker * planes_elements_);
        });
    };
    const int64_t source_vectors = source_lanes_ / L, target_vectors = target_lanes_ / L;
    share((source_.channels + 1) / 2 * target_vectors,
          [&](int64_t unit, float* planes) { transform_weights(work, unit, planes); });
    for (int64_t group = 0; group < groups_.parts; group++) {
        const int64_t first = groups_.begin(group), pairs = groups_.begin(group + 1) - first;
        share(pairs * source_vectors, [&](int64_t unit, float* planes) {
            const int64_t pair = unit / source_vectors, channel = unit % source_vectors * L;
            load_pair(tiling_, source_, source, first + pair, channel, planes);
            tiling_.forward(planes, tiling_.box());
            store_spectrum(tiling_, planes, source_lanes_, pairs * 3 * source_lanes_, source_frequency_,
                           work.source_spectra + pair * 3 * source_lanes_ + channel);
        });
        share(static_cast<int64_t>(tiling_.frequencies().size()) * panels_.count(),
              [&](int64_t unit, float*) {
                  multiply_frequency(work, unit / panels_.count(), unit % panels_.count(), pairs);
              });
        share(pairs * target_vectors, [&](int64_t unit, float* planes) {
            store_pair(work, first + unit / target_vectors, unit / target_vectors, pairs,
                       unit % target_vectors * L, planes, bias, target);
        });
    }
}

/// [tap][channel][filter] -> [tap][filter][channel].
void FftConvolution::turn_weights(const float* weights, float* turned, ThreadPool& pool) const {
    const int64_t channels = shape_.channels, filters = shape_.filters;
    pool.ranges(shape_.taps(), 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t tap = begin; tap < end; tap++)
            pack_transposed(weights + tap * channels * filters, filters, filters, static_cast<int>(channels),
                            target_lanes_, turned + tap * filters * target_lanes_);
    });
}

/// The spectra of the windows from two source channels to one vector of target channels: the second as
/// imaginary part, taken apart by symmetry. They come out twice as large as they are.
void FftConvolution::transform_weights(const Work& work, int64_t unit, float* planes) const {
    const int64_t target_vectors = target_lanes_ / L;
    const int64_t c = unit / target_vectors * 2, target = unit % target_vectors * L;
    const bool two = c + 1 < source_.channels;
    const int count = static_cast<int>(std::min<int64_t>(weights_stride_ - target, L));
    float* imaginary = planes + tiling_.points() * L;
    std::fill_n(planes, 2 * tiling_.points() * L, 0.0f);
    const auto& [kt, kh, kw] = shape_.kernel;
    const auto& dilation = shape_.dilation;
    const auto& box = tiling_.box();
    for (int64_t tap = 0; tap < shape_.taps(); tap++) {
        const int64_t place = direction_ == Direction::forward ? tap : shape_.taps() - 1 - tap;
        const int64_t t = place / (kh * kw) * dilation[0], h = place / kw % kh * dilation[1],
                      w = place % kw * dilation[2];
        const int64_t point = ((t * box[1] + h) * box[2] + w) * L;
        const float* weights = work.weights + (tap * source_.channels + c) * weights_stride_ + target;
        store(planes + point, load_part(weights, count));
        if (two) store(imaginary + point, load_part(weights + weights_stride_, count));
    }
    tiling_.forward(planes, window_span(shape_));

    int64_t panel = 0;
    while (panels_.first(panel + 1) <= target) panel++;
    const int64_t stride = panels_.packed_lanes(panel), part = source_.channels * stride;
    float* packed = work.weight_spectra + panels_.first(panel) * 2 * source_.channels + c * stride + target -
                    panels_.first(panel);
    for (const FftTiling::Frequency& f : tiling_.frequencies()) {
        const Vector<float> re = load(planes + f.point * L), mirror_re = load(planes + f.mirror * L);
        const Vector<float> im = load(imaginary + f.point * L), mirror_im = load(imaginary + f.mirror * L);
        store(packed, re + mirror_re);
        store(packed + part, im - mirror_im);
        if (two) {
            store(packed + stride, im + mirror_im);
            store(packed + part + stride, mirror_re - re);
        }
        packed += weight_frequency_;
    }
}

void FftConvolution::multiply_frequency(const Work& work, int64_t frequency, int64_t panel,
                                        int64_t pairs) const {
    Product<float> product = {};
    product.a = work.source_spectra + frequency * source_frequency_;
    product.a_rows = source_rows_.data();
    product.a_columns = source_columns_.data();
    product.c_rows = target_rows_.data();
    product.rows = 2 * pairs * tiling_.frequencies()[frequency].halves();
    product.depth = 2 * source_.channels;
    product.b = work.weight_spectra + frequency * weight_frequency_ + panels_.first(panel) * product.depth;
    product.b_stride = panels_.packed_lanes(panel);
    product.c = work.target_spectra + frequency * target_frequency_ + panels_.first(panel);
    product.columns = static_cast<int>(product.b_stride);  // the spectra have room for the excess
    multiply(product);
}

/// Transforms the products of a pair back and stores both tiles, as far as they lie within the target.
void FftConvolution::store_pair(const Work& work, int64_t pair, int64_t in_group, int64_t pairs,
                                int64_t channel, float* planes, const float* bias, float* target) const {
    float* imaginary = planes + tiling_.points() * L;
    const float* spectra = work.target_spectra + in_group * 2 * target_lanes_ + channel;
    for (const FftTiling::Frequency& f : tiling_.frequencies()) {
        for (int64_t mirror = 0; mirror < f.halves(); mirror++) {
            const float* rows = spectra + mirror * pairs * 2 * target_lanes_;
            const int64_t point = (mirror ? f.mirror : f.point) * L;
            const Vector<float> im = load(rows + target_lanes_);
            store(planes + point, load(rows));
            store(imaginary + point, mirror ? -im : im);
        }
        spectra += target_frequency_;
    }
    const auto& step = tiling_.step();
    tiling_.inverse(planes, step);

    const float scale = 0.5f / static_cast<float>(tiling_.points());
    const int count = static_cast<int>(std::min<int64_t>(target_channels_ - channel, L));
    const Vector<float> added = bias ? load_part(bias + channel, count) : Vector<float>{};
    const auto& extents = target_extents_;
    const auto& box = tiling_.box();
    for (int part = 0; part < 2; part++, planes = imaginary) {
        const FftTiling::Place place = tiling_.place(2 * pair + part);
        if (place.image < 0) continue;
        std::array<int64_t, 3> length;
        for (int i = 0; i < 3; i++) length[i] = std::min(step[i], extents[i] - place.first[i]);
        for (int64_t t = 0; t < length[0]; t++)
            for (int64_t h = 0; h < length[1]; h++)
                for (int64_t w = 0; w < length[2]; w++) {
                    Vector<float> v = scale * load(planes + ((t * box[1] + h) * box[2] + w) * L) + added;
                    if (relu_) v = v < Vector<float>{} ? Vector<float>{} : v;
                    const int64_t row =
                        (place.image * extents[0] + place.first[0] + t) * extents[1] + place.first[1] + h;
                    store_part(target + (row * extents[2] + place.first[2] + w) * target_channels_ + channel,
                               v, count);
                }
    }
}

struct Forward : FftConvolution {
    explicit Forward(const Signature& s)
        : FftConvolution(s, Direction::forward,
                         {s.attributes, s.inputs[0].shape, s.inputs[1].shape, s.outputs[0].shape}) {
        bias_ = s.attributes.flag("bias");
        relu_ = s.attributes.text("activation") == "relu";
    }
};

struct InputGradient : FftConvolution {
    explicit InputGradient(const Signature& s)
        : FftConvolution(s, Direction::input_gradient,
                         {s.attributes, s.outputs[0].shape, s.inputs[1].shape, s.inputs[0].shape}) {}
};

ConvolutionShape shape_of(const Signature& s) {
    const bool forward = s.op == "convolution";
    return {s.attributes, (forward ? s.inputs : s.outputs)[0].shape, s.inputs[1].shape,
            (forward ? s.outputs : s.inputs)[0].shape};
}

FftCost cost_of(const Signature& s, const ConvolutionShape& shape) {
    return cheapest_box(shape, s.op == "convolution" ? shape.output : shape.input, false);
}

bool supports(const Signature& s) {
    if (!all_of_type<float>(s) || !tables_reach(s)) return false;
    if (s.op == "convolution" && !epilogue_is_known(s)) return false;
    const ConvolutionShape shape = shape_of(s);
    return shape.groups == 1 && shape.work() > 0 && shape.taps() > 1 &&
           shape.stride == std::array<int64_t, 3>{1, 1, 1} && cost_of(s, shape).products > 0;
}

/// Before the direct algorithm where that one has clearly more to multiply.
int preference(const Signature& s) {
    const ConvolutionShape shape = shape_of(s);
    return cost_of(s, shape).products < static_cast<double>(shape.work()) ? 12 : 5;
}

const Registration entries_of_this_file[] = {
    {"convolution", "fft", preference, supports, create_kernel<Forward>},
    {"convolution_input_gradient", "fft", preference, supports, create_kernel<InputGradient>},
};

}  // namespace
}  // namespace magmadnn::cpu
