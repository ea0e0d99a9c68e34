// convolution_weight_gradient in the frequency domain: for each frequency, products of the spectra of x and
// dy summed over the pairs of tiles (conv_fft_tiles.h), and one inverse transform at the end.
//
// With x = a + ib and dy = c + id, the real part of their correlation is that of a and c plus that of b and
// d, which is the sum wanted. Its spectrum is D(k) + conj D(-k), up to a factor of two, D = X conj DY: the
// depth of a product runs over both halves of all pairs.
#include "conv_fft_tiles.h"
#include "gemm/packing.h"
#include "gemm/part.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

constexpr int L = lanes<float>;

class FftWeightGradient : public Kernel {
  public:
    explicit FftWeightGradient(const Signature& s);
    size_t workspace_bytes() const override {
        return sizeof(float) *
               static_cast<size_t>(x_elements_ + dy_elements_ + sums_elements_ + threads_ * planes_elements_);
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  private:
    /// Spectra of x and of dy for a group of pairs, their products summed so far, and the workers' planes.
    struct Work {
        float *x, *dy, *sums, *planes;
    };
    void multiply_frequency(const Work& work, int64_t frequency, int64_t panel, int64_t pairs,
                            bool accumulate) const;
    void store_windows(const float* sums, int64_t channel, int64_t filter, float* planes, float* dw) const;

    ConvolutionShape shape_;
    int64_t threads_;
    FftTiling tiling_;
    TileView x_, dy_;
    Panels<float> panels_;
    Cut groups_;
    SpectraLayout x_spectra_, dy_spectra_;
    int64_t sums_frequency_;  // elements between frequencies of the sums: [frequency][channel][Re Im][filter]
    int64_t x_elements_, dy_elements_, sums_elements_, planes_elements_;
    std::vector<int32_t> x_rows_, x_columns_, sum_rows_;
};

FftWeightGradient::FftWeightGradient(const Signature& s)
    : shape_(s.attributes, s.inputs[0].shape, s.outputs[0].shape, s.inputs[1].shape),
      threads_(s.threads),
      tiling_(shape_.images, shape_.output, window_span(shape_), cheapest_box(shape_, shape_.output).box),
      x_{shape_.input, shape_.channels, shape_.low, tiling_.box()},
      dy_{shape_.output, shape_.filters, {0, 0, 0}, tiling_.step()},
      panels_(shape_.filters),
      groups_(fft_groups(tiling_, 3 * shape_.channels + 2 * shape_.filters)),
      x_spectra_(shape_.channels, 3, groups_.longest()),
      dy_spectra_(shape_.filters, 2, groups_.longest()),
      sums_frequency_(apart(shape_.channels * dy_spectra_.pair())) {
    const auto frequencies = static_cast<int64_t>(tiling_.frequencies().size());
    x_elements_ = frequencies * x_spectra_.frequency;
    dy_elements_ = frequencies * dy_spectra_.frequency;
    sums_elements_ = frequencies * sums_frequency_;
    planes_elements_ = round_up(2 * tiling_.points() * L, 16);
    for (int64_t c = 0; c < shape_.channels; c++)
        for (int64_t part = 0; part < 2; part++) {
            x_rows_.push_back(static_cast<int32_t>(c + part * x_spectra_.channels));
            sum_rows_.push_back(static_cast<int32_t>((2 * c + part) * dy_spectra_.channels));
        }
    for (int64_t row = 0; row < 2 * groups_.longest(); row++)
        for (int64_t part = 0; part < 2; part++)
            x_columns_.push_back(static_cast<int32_t>(row * x_spectra_.pair() + part * x_spectra_.channels));
}

void FftWeightGradient::run(const Arguments& arguments, ThreadPool& pool) {
    float* dw = arguments.output<float>(0);
    Work work = {static_cast<float*>(arguments.workspace), nullptr, nullptr, nullptr};
    work.dy = work.x + x_elements_;
    work.sums = work.dy + dy_elements_;
    work.planes = work.sums + sums_elements_;
    const auto share = [&](int64_t units, auto body) {
        share_units(pool, units, threads_,
                    [&](int64_t unit, int worker) { body(unit, work.planes + worker * planes_elements_); });
    };
    const auto transform = [&](const TileView& view, const float* tensor, const SpectraLayout& layout,
                               int64_t first, int64_t pairs, float* spectra) {
        const int64_t vectors = layout.channels / L;
        share(pairs * vectors, [&](int64_t unit, float* planes) {
            const int64_t pair = unit / vectors, channel = unit % vectors * L;
            load_pair(tiling_, view, tensor, first + pair, channel, planes);
            tiling_.forward(planes, view.length);
            store_spectrum(tiling_, planes, layout, pairs, spectra + pair * layout.pair() + channel);
        });
    };
    for (int64_t group = 0; group < groups_.parts; group++) {
        const int64_t first = groups_.begin(group), pairs = groups_.begin(group + 1) - first;
        transform(x_, arguments.input<float>(0), x_spectra_, first, pairs, work.x);
        transform(dy_, arguments.input<float>(1), dy_spectra_, first, pairs, work.dy);
        const auto frequencies = static_cast<int64_t>(tiling_.frequencies().size());
        share(frequencies * panels_.count(), [&](int64_t unit, float*) {
            multiply_frequency(work, unit / panels_.count(), unit % panels_.count(), pairs, group > 0);
        });
    }
    const int64_t vectors = dy_spectra_.channels / L;
    share((shape_.channels + 1) / 2 * vectors, [&](int64_t unit, float* planes) {
        store_windows(work.sums, unit / vectors * 2, unit % vectors * L, planes, dw);
    });
}

void FftWeightGradient::multiply_frequency(const Work& work, int64_t frequency, int64_t panel, int64_t pairs,
                                           bool accumulate) const {
    Product<float> product = {};
    product.a = work.x + frequency * x_spectra_.frequency;
    product.a_rows = x_rows_.data();
    product.a_columns = x_columns_.data();
    product.c_rows = sum_rows_.data();
    product.rows = 2 * shape_.channels;
    product.depth = 2 * pairs * tiling_.frequencies()[frequency].halves();
    product.b = work.dy + frequency * dy_spectra_.frequency + panels_.first(panel);
    product.b_stride = dy_spectra_.channels;
    product.c = work.sums + frequency * sums_frequency_ + panels_.first(panel);
    product.columns = static_cast<int>(panels_.packed_lanes(panel));
    product.accumulate = accumulate;
    multiply(product);
}

/// The windows of two input channels, the second as imaginary part, for one vector of filters.
void FftWeightGradient::store_windows(const float* sums, int64_t channel, int64_t filter, float* planes,
                                      float* dw) const {
    const int64_t filters = dy_spectra_.channels;
    const bool two = channel + 1 < shape_.channels;
    float* imaginary = planes + tiling_.points() * L;
    sums += channel * 2 * filters + filter;
    for (const FftTiling::Frequency& f : tiling_.frequencies()) {
        const Vector<float> re = load(sums), im = load(sums + filters);
        const Vector<float> second_re = two ? load(sums + 2 * filters) : Vector<float>{};
        const Vector<float> second_im = two ? load(sums + 3 * filters) : Vector<float>{};
        if (f.halves() == 1) {  // D(k) + conj D(k)
            store(planes + f.point * L, 2 * re);
            store(imaginary + f.point * L, 2 * second_re);
        } else {
            store(planes + f.point * L, re - second_im);
            store(imaginary + f.point * L, im + second_re);
            store(planes + f.mirror * L, re + second_im);
            store(imaginary + f.mirror * L, second_re - im);
        }
        sums += sums_frequency_;
    }
    tiling_.inverse(planes, window_span(shape_));
    const float scale = 0.5f / static_cast<float>(tiling_.points());
    const int count = static_cast<int>(std::min<int64_t>(shape_.filters - filter, L));
    for (int64_t tap = 0; tap < shape_.taps(); tap++) {
        const int64_t point = tap_point(shape_, tiling_, tap) * L;
        float* target = dw + (tap * shape_.channels + channel) * shape_.filters + filter;
        store_part(target, scale * load(planes + point), count);
        if (two) store_part(target + shape_.filters, scale * load(imaginary + point), count);
    }
}

ConvolutionShape shape_of(const Signature& s) {
    return {s.attributes, s.inputs[0].shape, s.outputs[0].shape, s.inputs[1].shape};
}

bool supports(const Signature& s) {
    return all_of_type<float>(s) && tables_reach(s) && fft_supports(shape_of(s), shape_of(s).output);
}

int preference(const Signature& s) { return fft_preference(shape_of(s), shape_of(s).output); }

const Registration float_entry("convolution_weight_gradient", "fft", preference, supports,
                               create_kernel<FftWeightGradient>);

}  // namespace
}  // namespace magmadnn::cpu
