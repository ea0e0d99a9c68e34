#include "conv_fft_tiles.h"

#include <algorithm>

#include "fft.h"
#include "gemm/part.h"

namespace magmadnn::cpu {
namespace {

constexpr int L = lanes<float>;

/// The place of frequency k in the order that the transform leaves, and the other way round.
int64_t bit_reversed(int64_t k, int64_t length) {
    int64_t reversed = 0;
    for (int64_t bit = 1; bit < length; bit *= 2) reversed = 2 * reversed + (k & bit ? 1 : 0);
    return reversed;
}

int64_t mirrored(int64_t place, int64_t length) {
    return bit_reversed((length - bit_reversed(place, length)) % length, length);
}

/// Transforms along one axis all lines that start within `lines`, an extent per axis.
template <bool Inverse>
void transform_axis(float* planes, const std::array<int64_t, 3>& box, int axis,
                    std::array<int64_t, 3> lines) {
    const std::array<int64_t, 3> stride = {box[1] * box[2] * L, box[2] * L, L};
    float* const imaginary = planes + box[0] * stride[0];
    lines[axis] = 1;
    for (int64_t t = 0; t < lines[0]; t++)
        for (int64_t h = 0; h < lines[1]; h++)
            for (int64_t w = 0; w < lines[2]; w++) {
                const int64_t start = t * stride[0] + h * stride[1] + w * stride[2];
                float* re = planes + start;
                float* im = imaginary + start;
                if (box[axis] == 8) transform_line<8, Inverse>(re, im, stride[axis]);
                if (box[axis] == 16) transform_line<16, Inverse>(re, im, stride[axis]);
                if (box[axis] == 32) transform_line<32, Inverse>(re, im, stride[axis]);
            }
}

}  // namespace

FftTiling::FftTiling(int64_t images, const std::array<int64_t, 3>& target, const std::array<int64_t, 3>& span,
                     const std::array<int64_t, 3>& box)
    : box_(box), tiles_(images) {
    for (int i = 0; i < 3; i++) {
        step_[i] = box_[i] - span[i] + 1;
        counts_[i] = (target[i] + step_[i] - 1) / step_[i];
        tiles_ *= counts_[i];
    }
    for (int64_t t = 0; t < box_[0]; t++)
        for (int64_t h = 0; h < box_[1]; h++)
            for (int64_t w = 0; w < box_[2]; w++) {
                const int64_t point = (t * box_[1] + h) * box_[2] + w;
                const int64_t mirror =
                    (mirrored(t, box_[0]) * box_[1] + mirrored(h, box_[1])) * box_[2] + mirrored(w, box_[2]);
                if (point <= mirror) frequencies_.push_back({point, mirror});
            }
}

FftTiling::Place FftTiling::place(int64_t tile) const {
    if (tile >= tiles_) return {-1, {}};
    Place place = {};
    for (int i = 2; i >= 0; i--) {
        place.first[i] = tile % counts_[i] * step_[i];
        tile /= counts_[i];
    }
    place.image = tile;
    return place;
}

void FftTiling::forward(float* planes, const std::array<int64_t, 3>& used) const {
    transform_axis<false>(planes, box_, 2, used);
    transform_axis<false>(planes, box_, 1, {used[0], 1, box_[2]});
    transform_axis<false>(planes, box_, 0, {1, box_[1], box_[2]});
}

void FftTiling::inverse(float* planes, const std::array<int64_t, 3>& used) const {
    transform_axis<true>(planes, box_, 0, {1, box_[1], box_[2]});
    transform_axis<true>(planes, box_, 1, {used[0], 1, box_[2]});
    transform_axis<true>(planes, box_, 2, used);
}

void load_pair(const FftTiling& tiling, const TileView& view, const float* tensor, int64_t pair,
               int64_t channel, float* planes) {
    const auto& box = tiling.box();
    const auto& extents = view.extents;
    const int count = static_cast<int>(std::min<int64_t>(view.channels - channel, L));
    std::fill_n(planes, 2 * tiling.points() * L, 0.0f);
    for (int part = 0; part < 2; part++, planes += tiling.points() * L) {
        const FftTiling::Place place = tiling.place(2 * pair + part);
        if (place.image < 0) continue;
        const float* image =
            tensor + place.image * extents[0] * extents[1] * extents[2] * view.channels + channel;
        std::array<int64_t, 3> origin, begin, end;
        for (int i = 0; i < 3; i++) {
            origin[i] = place.first[i] - view.low[i];
            begin[i] = std::clamp<int64_t>(-origin[i], 0, view.length[i]);
            end[i] = std::clamp<int64_t>(extents[i] - origin[i], begin[i], view.length[i]);
        }
        for (int64_t t = begin[0]; t < end[0]; t++)
            for (int64_t h = begin[1]; h < end[1]; h++)
                for (int64_t w = begin[2]; w < end[2]; w++) {
                    const float* pixel =
                        image +
                        (((origin[0] + t) * extents[1] + origin[1] + h) * extents[2] + origin[2] + w) *
                            view.channels;
                    store(planes + ((t * box[1] + h) * box[2] + w) * L,
                          count == L ? load(pixel) : load_part(pixel, count));
                }
    }
}

SpectraLayout::SpectraLayout(int64_t channels, int64_t rows, int64_t pairs)
    : channels(round_up(channels, L)), rows(rows), frequency(apart(2 * pairs * rows * this->channels)) {}

void store_spectrum(const FftTiling& tiling, const float* planes, const SpectraLayout& layout, int64_t pairs,
                    float* spectra) {
    const float* imaginary = planes + tiling.points() * L;
    for (const FftTiling::Frequency& f : tiling.frequencies()) {
        for (int64_t mirror = 0; mirror < f.halves(); mirror++) {
            const int64_t point = (mirror ? f.mirror : f.point) * L;
            const Vector<float> re = load(planes + point), im = load(imaginary + point);
            float* rows = spectra + mirror * pairs * layout.pair();
            store(rows, re);
            store(rows + layout.channels, mirror ? -im : im);
            if (layout.rows == 3) store(rows + 2 * layout.channels, -re);
        }
        spectra += layout.frequency;
    }
}

void load_spectrum(const FftTiling& tiling, const float* spectra, const SpectraLayout& layout, int64_t pairs,
                   float* planes) {
    float* imaginary = planes + tiling.points() * L;
    for (const FftTiling::Frequency& f : tiling.frequencies()) {
        for (int64_t mirror = 0; mirror < f.halves(); mirror++) {
            const int64_t point = (mirror ? f.mirror : f.point) * L;
            const float* rows = spectra + mirror * pairs * layout.pair();
            const Vector<float> im = load(rows + layout.channels);
            store(planes + point, load(rows));
            store(imaginary + point, mirror ? -im : im);
        }
        spectra += layout.frequency;
    }
}

Cut fft_groups(const FftTiling& tiling, int64_t elements) {
    constexpr int64_t group_bytes = 8 << 20, fewest_pairs = 12;
    const int64_t pair_bytes = tiling.points() * elements * static_cast<int64_t>(sizeof(float));
    return Cut::by_length(tiling.pairs(), std::max(group_bytes / pair_bytes, fewest_pairs));
}

std::array<int64_t, 3> window_span(const ConvolutionShape& shape) {
    std::array<int64_t, 3> span;
    for (int i = 0; i < 3; i++) span[i] = (shape.kernel[i] - 1) * shape.dilation[i] + 1;
    return span;
}

int64_t tap_point(const ConvolutionShape& shape, const FftTiling& tiling, int64_t tap) {
    const auto& [kt, kh, kw] = shape.kernel;
    const auto& dilation = shape.dilation;
    const auto& box = tiling.box();
    return (tap / (kh * kw) * dilation[0] * box[1] + tap / kw % kh * dilation[1]) * box[2] +
           tap % kw * dilation[2];
}

FftCost cheapest_box(const ConvolutionShape& shape, const std::array<int64_t, 3>& target) {
    constexpr int64_t most_points = 1024;       // planes of a pair stay in the level-2 cache
    constexpr int64_t most_elements = 1 << 26;  // of the weights' spectra
    // Measured: a complex product, the passes over a number of a spectrum, and those over one of a weight's,
    // as multiply-adds of the direct algorithm.
    constexpr double product = 2.5, passes = 75, weight_passes = 60;
    const std::array<int64_t, 3> span = window_span(shape);
    const auto channels = static_cast<double>(shape.channels), filters = static_cast<double>(shape.filters);
    std::array<std::array<int64_t, 3>, 3> lengths;
    for (int i = 0; i < 3; i++)
        lengths[i] = span[i] == 1 ? std::array<int64_t, 3>{1, 1, 1} : std::array<int64_t, 3>{8, 16, 32};
    FftCost best = {};
    for (const int64_t t : lengths[0])
        for (const int64_t h : lengths[1])
            for (const int64_t w : lengths[2]) {
                const std::array<int64_t, 3> box = {t, h, w};
                const int64_t points = t * h * w;
                if (t < span[0] || h < span[1] || w < span[2] || points > most_points ||
                    points * shape.channels * shape.filters > most_elements)
                    continue;
                int64_t tiles = shape.images;
                for (int i = 0; i < 3; i++) {
                    const int64_t step = box[i] - span[i] + 1;
                    tiles *= (target[i] + step - 1) / step;
                }
                const auto tiles_in_pairs = static_cast<double>(tiles + tiles % 2);
                const double products =
                    static_cast<double>(points) *
                    (tiles_in_pairs * (product * channels * filters + passes * (channels + filters)) +
                     weight_passes * channels * filters);
                if (best.products == 0 || products < best.products) best = {box, products};
            }
    return best;
}

bool fft_supports(const ConvolutionShape& shape, const std::array<int64_t, 3>& target) {
    return shape.groups == 1 && shape.work() > 0 && shape.taps() > 1 &&
           shape.stride == std::array<int64_t, 3>{1, 1, 1} && cheapest_box(shape, target).products > 0;
}

int fft_preference(const ConvolutionShape& shape, const std::array<int64_t, 3>& target) {
    return cheapest_box(shape, target).products < 0.8 * static_cast<double>(shape.work()) ? 12 : 5;
}

}  // namespace magmadnn::cpu
