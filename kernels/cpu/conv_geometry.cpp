#include "conv_geometry.h"

#include <algorithm>
#include <cstring>

namespace magmadnn::cpu {
namespace {

/// Entries of a per-axis attribute or of a shape's spatial part, with leading `missing` up to rank three.
std::array<int64_t, 3> at_rank_three(const int64_t* first, size_t rank, int64_t missing, size_t step = 1) {
    std::array<int64_t, 3> result = {missing, missing, missing};
    for (size_t i = 0; i < rank; i++) result[3 - rank + i] = first[i * step];
    return result;
}

AxisPhase input_gradient_phase(const ConvolutionShape& shape, int axis, int64_t first) {
    const int64_t stride = shape.stride[axis];
    AxisPhase phase = {(shape.input[axis] - first + stride - 1) / stride, first, stride, {}};
    // Input position p meets tap r where p + low - r * dilation is a multiple of the stride. Taps are listed
    // from the last, so that their places in dy ascend.
    for (int64_t r = shape.kernel[axis] - 1; r >= 0; r--) {
        const int64_t distance = first + shape.low[axis] - r * shape.dilation[axis];
        if (distance % stride == 0) phase.taps.push_back({r, distance / stride});
    }
    return phase;
}

}  // namespace

ConvolutionShape::ConvolutionShape(const Attributes& attributes, const Shape& x, const Shape& w,
                                   const Shape& y)
    : images(x[0]), channels(x.back()), filters(w.back()), groups(attributes.integer("groups")) {
    const size_t rank = x.size() - 2;
    input = at_rank_three(x.data() + 1, rank, 1);
    output = at_rank_three(y.data() + 1, rank, 1);
    kernel = at_rank_three(w.data(), rank, 1);
    stride = at_rank_three(attributes.integers("strides").data(), rank, 1);
    dilation = at_rank_three(attributes.integers("dilation").data(), rank, 1);
    low = at_rank_three(attributes.integers("padding").data(), rank, 0, 2);
}

bool tables_reach(const Signature& s) {
    for (const auto* types : {&s.inputs, &s.outputs})
        for (const TensorType& type : *types)
            if (type.rank() > 1 && type.size() / std::max<int64_t>(type.shape[0], 1) > INT32_MAX / 2)
                return false;
    return true;
}

bool epilogue_is_known(const Signature& s) {
    const std::string& activation = s.attributes.text("activation");
    return activation == "linear" || activation == "relu";
}

Axes forward_axes(const ConvolutionShape& shape) {
    Axes axes;
    for (int i = 0; i < 3; i++) {
        AxisPhase phase = {shape.output[i], 0, 1, {}};
        for (int64_t r = 0; r < shape.kernel[i]; r++)
            phase.taps.push_back({r, r * shape.dilation[i] - shape.low[i]});
        axes[i] = {shape.input[i], shape.stride[i], {phase}};
    }
    return axes;
}

Axes input_gradient_axes(const ConvolutionShape& shape) {
    Axes axes;
    for (int i = 0; i < 3; i++) {
        axes[i] = {shape.output[i], 1, {input_gradient_phase(shape, i, 0)}};
        for (int64_t first = 1; first < std::min(shape.stride[i], shape.input[i]); first++)
            axes[i].phases.push_back(input_gradient_phase(shape, i, first));
    }
    return axes;
}

std::vector<Phase> combinations(const Axes& axes) {
    std::vector<Phase> all;
    for (const AxisPhase& t : axes[0].phases)
        for (const AxisPhase& h : axes[1].phases)
            for (const AxisPhase& w : axes[2].phases) all.push_back({&t, &h, &w});
    return all;
}

int64_t Block::rows(const Phase& phase) const {
    int64_t rows = images;
    for (int i = 0; i < 3; i++)
        rows *= std::max<int64_t>(std::min(end[i], phase[i]->positions) - begin[i], 0);
    return rows;
}

PixelStrides::PixelStrides(const std::array<int64_t, 3>& extents, int64_t channels) {
    axis[2] = channels;
    axis[1] = axis[2] * extents[2];
    axis[0] = axis[1] * extents[1];
    image = axis[0] * extents[0];
}

BlockedSource::BlockedSource(const Axes& axes, int64_t images, int64_t channels, int64_t element_bytes,
                             const Limits& limits)
    : channels_(channels) {
    all_[0] = images;
    for (int i = 0; i < 3; i++) {
        const Axis& axis = axes[i];
        all_[i + 1] = axis.positions();
        extent_[i] = axis.source_extent;
        step_[i] = axis.source_step;
        bool found = false;
        for (const AxisPhase& phase : axis.phases)
            for (const Tap& tap : phase.taps) {
                lowest_[i] = found ? std::min(lowest_[i], tap.offset) : tap.offset;
                highest_[i] = found ? std::max(highest_[i], tap.offset) : tap.offset;
                found = true;
                const int64_t last = tap.offset + (phase.positions - 1) * step_[i];
                if (phase.positions > 0 && (tap.offset < 0 || last >= extent_[i])) padded_ = true;
            }
        if (!found) lowest_[i] = highest_[i] = 0;
    }
    choose_size(limits, element_bytes);
    source_strides_ = PixelStrides(extent_, channels_);
    strides_ = source_strides_;
    if (padded_)
        strides_ = PixelStrides({span(0, size_[1]), span(1, size_[2]), span(2, size_[3])}, channels_);
}

void BlockedSource::choose_size(const Limits& limits, int64_t element_bytes) {
    constexpr int64_t fewest = 96;  // below this a block no longer repays the passes over the weights
    for (int64_t target = limits.rows;; target /= 2) {
        size_ = {1, 1, 1, 1};
        counts_ = all_;
        for (int axis = 3; axis >= 0; axis--) {
            const auto fits = [&](int64_t length) {
                const int64_t inner = size_[0] * size_[1] * size_[2] * size_[3];
                const int64_t rows_of_image = axis == 3 ? 2 * target : target;  // halos make cut rows dear
                int64_t bytes = channels_ * element_bytes * (axis == 0 ? length : 1);
                for (int i = 0; i < 3; i++) bytes *= span(i, axis == i + 1 ? length : size_[i + 1]);
                return inner * length <= rows_of_image && bytes <= limits.bytes;
            };
            int64_t length = all_[axis];
            while (length > 1 && !fits(length)) length = (length + 1) / 2;
            counts_[axis] = length > 0 ? (all_[axis] + length - 1) / length : 0;
            size_[axis] = counts_[axis] > 0 ? (all_[axis] + counts_[axis] - 1) / counts_[axis] : 0;
            if (size_[axis] > 0) counts_[axis] = (all_[axis] + size_[axis] - 1) / size_[axis];
            if (size_[axis] < all_[axis]) break;
        }
        if (blocks() >= limits.blocks || target <= fewest) return;
    }
}

Block BlockedSource::block(int64_t index) const {
    std::array<int64_t, 4> begin, end;
    for (int axis = 3; axis >= 0; axis--) {
        begin[axis] = index % counts_[axis] * size_[axis];
        end[axis] = std::min(begin[axis] + size_[axis], all_[axis]);
        index /= counts_[axis];
    }
    return {begin[0], end[0] - begin[0], {begin[1], begin[2], begin[3]}, {end[1], end[2], end[3]}};
}

std::vector<int32_t> BlockedSource::positions(const Phase& phase) const {
    const Block block = largest();
    std::vector<int32_t> table;
    for (int64_t n = 0; n < block.images; n++)
        for (int64_t t = 0; t < std::min(block.end[0], phase[0]->positions); t++)
            for (int64_t h = 0; h < std::min(block.end[1], phase[1]->positions); h++)
                for (int64_t w = 0; w < std::min(block.end[2], phase[2]->positions); w++)
                    table.push_back(
                        static_cast<int32_t>(strides_.offset(n, t * step_[0], h * step_[1], w * step_[2])));
    return table;
}

std::vector<int32_t> BlockedSource::taps(const Phase& phase, int64_t channels) const {
    const std::array<int64_t, 3> origin = padded_ ? lowest_ : std::array<int64_t, 3>{0, 0, 0};
    std::vector<int32_t> table;
    for (const Tap& t : phase[0]->taps)
        for (const Tap& h : phase[1]->taps)
            for (const Tap& w : phase[2]->taps)
                for (int64_t c = 0; c < channels; c++)
                    table.push_back(static_cast<int32_t>(
                        strides_.offset(0, t.offset - origin[0], h.offset - origin[1], w.offset - origin[2]) +
                        c));
    return table;
}

template <class T>
const T* BlockedSource::prepare(const T* source, const Block& block, T* copy) const {
    std::array<int64_t, 3> first;
    for (int i = 0; i < 3; i++) first[i] = block.begin[i] * step_[i];
    if (!padded_) return source + source_strides_.offset(block.image, first[0], first[1], first[2]);

    std::array<int64_t, 3> length;
    for (int i = 0; i < 3; i++) {
        first[i] += lowest_[i];
        length[i] = span(i, block.end[i] - block.begin[i]);
    }
    // Columns [left, right) of a row come from the source, the others are zeros.
    const int64_t left = std::clamp<int64_t>(-first[2], 0, length[2]);
    const int64_t right = std::clamp<int64_t>(extent_[2] - first[2], left, length[2]);
    for (int64_t n = 0; n < block.images; n++)
        for (int64_t t = 0; t < length[0]; t++)
            for (int64_t h = 0; h < length[1]; h++) {
                T* row = copy + strides_.offset(n, t, h, 0);
                const int64_t st = first[0] + t, sh = first[1] + h;
                if (st < 0 || st >= extent_[0] || sh < 0 || sh >= extent_[1] || left == right) {
                    std::fill_n(row, length[2] * channels_, T{0});
                    continue;
                }
                std::fill_n(row, left * channels_, T{0});
                std::memcpy(row + left * channels_,
                            source + source_strides_.offset(block.image + n, st, sh, first[2] + left),
                            static_cast<size_t>((right - left) * channels_) * sizeof(T));
                std::fill_n(row + right * channels_, (length[2] - right) * channels_, T{0});
            }
    return copy;
}

template const float* BlockedSource::prepare(const float*, const Block&, float*) const;
template const double* BlockedSource::prepare(const double*, const Block&, double*) const;

std::vector<int32_t> target_positions(const Block& block, const Phase& phase, const PixelStrides& target) {
    std::vector<int32_t> table;
    for (int64_t n = 0; n < block.images; n++)
        for (int64_t t = 0; t < std::min(block.end[0], phase[0]->positions); t++)
            for (int64_t h = 0; h < std::min(block.end[1], phase[1]->positions); h++)
                for (int64_t w = 0; w < std::min(block.end[2], phase[2]->positions); w++)
                    table.push_back(static_cast<int32_t>(target.offset(
                        n, t * phase[0]->target_step, h * phase[1]->target_step, w * phase[2]->target_step)));
    return table;
}

int64_t target_start(const Block& block, const Phase& phase, const PixelStrides& target) {
    std::array<int64_t, 3> first;
    for (int i = 0; i < 3; i++) first[i] = phase[i]->target_first + block.begin[i] * phase[i]->target_step;
    return target.offset(block.image, first[0], first[1], first[2]);
}

}  // namespace magmadnn::cpu
