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
    bool bias_ = false, residual_ = false, relu_ = false;

  private:
    struct Work {
        const float* weights;  // [tap][source channel][target channel, stride weights_stride_]
        float* weight_spectra;
        float* source_spectra;
        float* target_spectra;
        float* planes;
    };
    struct Epilogue {
        const float* bias;
        const float* residual;  // laid out as the target
    };
    void turn_weights(const float* weights, float* turned, ThreadPool& pool) const;
    void transform_weights(const Work& work, int64_t unit, float* planes) const;
    void multiply_frequency(const Work& work, int64_t frequency, int64_t panel, int64_t pairs) const;
    void store_pair(const Work& work, int64_t pair, int64_t in_group, int64_t pairs, int64_t channel,
                    float* planes, const Epilogue& epilogue, float* target) const;

    ConvolutionShape shape_;
    Direction direction_;
    int64_t threads_;
    TileView source_;
    std::array<int64_t, 3> target_extents_;
    int64_t target_channels_;
    FftTiling tiling_;
    Panels<float> panels_;
    Cut groups_;
    int64_t weights_stride_;
    int64_t weight_frequency_;  // elements between frequencies
    SpectraLayout source_spectra_{1, 3, 1}, target_spectra_{1, 2, 1};
    int64_t turned_elements_, weights_elements_, source_elements_, target_elements_, planes_elements_;
    std::vector<int32_t> source_rows_, source_columns_, target_rows_;
};

FftConvolution::FftConvolution(const Signature& s, Direction direction, const ConvolutionShape& shape)
    : shape_(shape),
      direction_(direction),
      threads_(s.threads),
      target_extents_(direction == Direction::forward ? shape.output : shape.input),
      target_channels_(direction == Direction::forward ? shape.filters : shape.channels),
      tiling_(shape.images, target_extents_, window_span(shape), cheapest_box(shape, target_extents_).box),
      panels_(target_channels_) {
    const bool forward = direction == Direction::forward;
    const std::array<int64_t, 3> span = window_span(shape);
    source_ = {forward ? shape.input : shape.output, forward ? shape.channels : shape.filters, shape.low,
               tiling_.box()};
    if (!forward)
        for (int i = 0; i < 3; i++) source_.low[i] = span[i] - 1 - shape.low[i];
    weights_stride_ = forward ? shape.filters : panels_.lanes_in_row();
    groups_ = fft_groups(tiling_, 3 * source_.channels + 2 * target_channels_);
    const int64_t pairs = groups_.longest();
    source_spectra_ = SpectraLayout(source_.channels, 3, pairs);
    target_spectra_ = SpectraLayout(target_channels_, 2, pairs);
    weight_frequency_ = apart(2 * source_.channels * panels_.lanes_in_row());
    const auto frequencies = static_cast<int64_t>(tiling_.frequencies().size());
    turned_elements_ = forward ? 0 : round_up(shape.taps() * shape.filters * panels_.lanes_in_row(), 16);
    weights_elements_ = frequencies * weight_frequency_;
    source_elements_ = frequencies * source_spectra_.frequency;
    target_elements_ = frequencies * target_spectra_.frequency;
    planes_elements_ = round_up(2 * tiling_.points() * L, 16);

    for (int64_t row = 0; row < 2 * pairs; row++)
        for (int64_t part = 0; part < 2; part++) {
            source_rows_.push_back(
                static_cast<int32_t>(row * source_spectra_.pair() + part * source_spectra_.channels));
            target_rows_.push_back(
                static_cast<int32_t>(row * target_spectra_.pair() + part * target_spectra_.channels));
        }
    for (int64_t part = 0; part < 2; part++)
        for (int64_t c = 0; c < source_.channels; c++)
            source_columns_.push_back(static_cast<int32_t>(part * source_spectra_.channels + c));
}

void FftConvolution::run(const Arguments& arguments, ThreadPool& pool) {
    const float* source = arguments.input<float>(0);
    const Epilogue epilogue = {bias_ ? arguments.input<float>(2) : nullptr,
                               residual_ ? arguments.input<float>(2 + bias_) : nullptr};
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
        share_units(pool, units, threads_,
                    [&](int64_t unit, int worker) { body(unit, work.planes + worker * planes_elements_); });
    };
    const int64_t source_vectors = source_spectra_.channels / L, target_vectors = panels_.lanes_in_row() / L;
    share((source_.channels + 1) / 2 * target_vectors,
          [&](int64_t unit, float* planes) { transform_weights(work, unit, planes); });
    for (int64_t group = 0; group < groups_.parts; group++) {
        const int64_t first = groups_.begin(group), pairs = groups_.begin(group + 1) - first;
        share(pairs * source_vectors, [&](int64_t unit, float* planes) {
            const int64_t pair = unit / source_vectors, channel = unit % source_vectors * L;
            load_pair(tiling_, source_, source, first + pair, channel, planes);
            tiling_.forward(planes, tiling_.box());
            store_spectrum(tiling_, planes, source_spectra_, pairs,
                           work.source_spectra + pair * source_spectra_.pair() + channel);
        });
        share(static_cast<int64_t>(tiling_.frequencies().size()) * panels_.count(),
              [&](int64_t unit, float*) {
                  multiply_frequency(work, unit / panels_.count(), unit % panels_.count(), pairs);
              });
        share(pairs * target_vectors, [&](int64_t unit, float* planes) {
            store_pair(work, first + unit / target_vectors, unit / target_vectors, pairs,
                       unit % target_vectors * L, planes, epilogue, target);
        });
    }
}

/// [tap][channel][filter] -> [tap][filter][channel].
void FftConvolution::turn_weights(const float* weights, float* turned, ThreadPool& pool) const {
    const int64_t channels = shape_.channels, filters = shape_.filters;
    pool.ranges(shape_.taps(), 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t tap = begin; tap < end; tap++)
            pack_transposed(weights + tap * channels * filters, filters, filters, static_cast<int>(channels),
                            panels_.lanes_in_row(), turned + tap * filters * panels_.lanes_in_row());
    });
}

/// The spectra of the windows from two source channels to one vector of target channels: the second as
/// imaginary part, taken apart by symmetry. They come out twice as large as they are.
void FftConvolution::transform_weights(const Work& work, int64_t unit, float* planes) const {
    const int64_t target_vectors = panels_.lanes_in_row() / L;
    const int64_t c = unit / target_vectors * 2, target = unit % target_vectors * L;
    const bool two = c + 1 < source_.channels;
    const int count = static_cast<int>(std::min<int64_t>(weights_stride_ - target, L));
    float* imaginary = planes + tiling_.points() * L;
    std::fill_n(planes, 2 * tiling_.points() * L, 0.0f);
    for (int64_t tap = 0; tap < shape_.taps(); tap++) {
        const int64_t point =
            tap_point(shape_, tiling_, direction_ == Direction::forward ? tap : shape_.taps() - 1 - tap) * L;
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
    product.a = work.source_spectra + frequency * source_spectra_.frequency;
    product.a_rows = source_rows_.data();
    product.a_columns = source_columns_.data();
    product.c_rows = target_rows_.data();
    product.rows = 2 * pairs * tiling_.frequencies()[frequency].halves();
    product.depth = 2 * source_.channels;
    product.b = work.weight_spectra + frequency * weight_frequency_ + panels_.first(panel) * product.depth;
    product.b_stride = panels_.packed_lanes(panel);
    product.c = work.target_spectra + frequency * target_spectra_.frequency + panels_.first(panel);
    product.columns = static_cast<int>(product.b_stride);  // the spectra have room for the excess
    multiply(product);
}

/// Transforms the products of a pair back and stores both tiles, as far as they lie within the target.
void FftConvolution::store_pair(const Work& work, int64_t pair, int64_t in_group, int64_t pairs,
                                int64_t channel, float* planes, const Epilogue& epilogue,
                                float* target) const {
    float* imaginary = planes + tiling_.points() * L;
    load_spectrum(tiling_, work.target_spectra + in_group * target_spectra_.pair() + channel, target_spectra_,
                  pairs, planes);
    const auto& step = tiling_.step();
    tiling_.inverse(planes, step);

    const float scale = 0.5f / static_cast<float>(tiling_.points());
    const int count = static_cast<int>(std::min<int64_t>(target_channels_ - channel, L));
    const Vector<float> added = epilogue.bias ? load_part(epilogue.bias + channel, count) : Vector<float>{};
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
                    const int64_t row =
                        (place.image * extents[0] + place.first[0] + t) * extents[1] + place.first[1] + h;
                    const int64_t at = (row * extents[2] + place.first[2] + w) * target_channels_ + channel;
                    if (epilogue.residual) v += load_part(epilogue.residual + at, count);
                    if (relu_) v = v < Vector<float>{} ? Vector<float>{} : v;
                    store_part(target + at, v, count);
                }
    }
}

struct Forward : FftConvolution {
    explicit Forward(const Signature& s)
        : FftConvolution(s, Direction::forward,
                         {s.attributes, s.inputs[0].shape, s.inputs[1].shape, s.outputs[0].shape}) {
        bias_ = s.attributes.flag("bias");
        residual_ = s.attributes.flag("residual");
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

bool supports_forward(const Signature& s) {
    return all_of_type<float>(s) && tables_reach(s) && epilogue_is_known(s) &&
           fft_supports(shape_of(s), shape_of(s).output);
}
bool supports_input_gradient(const Signature& s) {
    return all_of_type<float>(s) && tables_reach(s) && fft_supports(shape_of(s), shape_of(s).input);
}
int preference_forward(const Signature& s) { return fft_preference(shape_of(s), shape_of(s).output); }
int preference_input_gradient(const Signature& s) { return fft_preference(shape_of(s), shape_of(s).input); }

const Registration entries_of_this_file[] = {
    {"convolution", "fft", preference_forward, supports_forward, create_kernel<Forward>},
    {"convolution_input_gradient", "fft", preference_input_gradient, supports_input_gradient,
     create_kernel<InputGradient>},
};

}  // namespace
}  // namespace magmadnn::cpu
