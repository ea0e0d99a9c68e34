// What the convolution kernels share: the window of each axis, blocks of positions, and index tables.
//
// n: image; t h w: spatial axes (leading ones have extent 1 below rank 3); c: input channel; f: output
// channel. A convolution and both of its gradients read an image ("source") at positions
//     q * source_step + tap offset,     q in [0, positions) on each axis,
// so that one description serves all three. An input gradient with stride s has s "phases" per axis: input
// positions p = phase + q * s, each of which sees only every s-th tap of the kernel.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "kernel.h"

namespace magmadnn::cpu {

/// Attributes and shapes of a convolution, the spatial rank made three.
struct ConvolutionShape {
    int64_t images, channels, filters, groups;
    std::array<int64_t, 3> input, output, kernel, stride, low, dilation;

    int64_t group_channels() const { return channels / groups; }
    int64_t group_filters() const { return filters / groups; }
    int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    int64_t input_pixels() const { return input[0] * input[1] * input[2]; }
    int64_t output_pixels() const { return output[0] * output[1] * output[2]; }
    int64_t work() const { return images * output_pixels() * taps() * group_channels() * filters; }

    /// From the attributes, and the shapes of the convolution's input, weights and output.
    ConvolutionShape(const Attributes& attributes, const Shape& x, const Shape& w, const Shape& y);
};

/// Whether the images and weights of a signature are within reach of 32-bit index tables.
bool tables_reach(const Signature& s);

/// Whether a convolution's epilogue is one that the kernels know: bias, residual, and then perhaps a ReLU.
bool epilogue_is_known(const Signature& s);

/// One kernel tap of an axis: its index in the weights, and its place in the source relative to position 0.
struct Tap {
    int64_t index, offset;
};

/// The positions of one axis that see the same taps.
struct AxisPhase {
    int64_t positions;                  // q in [0, positions)
    int64_t target_first, target_step;  // position q is element target_first + q * target_step of the target
    std::vector<Tap> taps;
};

struct Axis {
    int64_t source_extent, source_step;
    std::vector<AxisPhase> phases;
    int64_t positions() const { return phases[0].positions; }  // the first phase has the most
};

using Axes = std::array<Axis, 3>;
Axes forward_axes(const ConvolutionShape& shape);
Axes input_gradient_axes(const ConvolutionShape& shape);

/// One phase of each axis.
using Phase = std::array<const AxisPhase*, 3>;

/// All combinations of the axes' phases, in row-major order.
std::vector<Phase> combinations(const Axes& axes);

/// A block of positions: images and position ranges [begin, end).
struct Block {
    int64_t image, images;
    std::array<int64_t, 3> begin, end;

    /// Positions that belong to a phase.
    int64_t rows(const Phase& phase) const;
};

/// Element strides of a channels-last tensor.
struct PixelStrides {
    int64_t image;
    std::array<int64_t, 3> axis;

    PixelStrides() = default;
    PixelStrides(const std::array<int64_t, 3>& extents, int64_t channels);
    int64_t offset(int64_t n, int64_t t, int64_t h, int64_t w) const {
        return n * image + t * axis[0] + h * axis[1] + w * axis[2];
    }
};

/// All positions of a batch cut into blocks, and the part of the source that a block reads. Where taps reach
/// past the border of the source, each block works on a zero-padded copy of its part. Axes inside the
/// outermost cut one are whole in every block: index tables made for the largest block, cut short, then serve
/// the smaller ones at the border too.
class BlockedSource {
  public:
    /// What bounds a block: about `rows` positions, `bytes` of source; smaller where there would be few
    /// blocks.
    struct Limits {
        int64_t rows, bytes, blocks;
    };
    BlockedSource(const Axes& axes, int64_t images, int64_t channels, int64_t element_bytes,
                  const Limits& limits);

    int64_t blocks() const { return counts_[0] * counts_[1] * counts_[2] * counts_[3]; }
    Block block(int64_t index) const;
    Block largest() const { return {0, size_[0], {0, 0, 0}, {size_[1], size_[2], size_[3]}}; }
    /// Elements of the padded copy of one block; 0 if blocks are read in place.
    int64_t copy_elements() const { return padded_ ? size_[0] * strides_.image : 0; }

    /// Source offset of each position of the largest block that belongs to a phase.
    std::vector<int32_t> positions(const Phase& phase) const;
    /// Source offset of each (tap, channel) of a phase, taps in row-major order, for the first `channels`
    /// ones.
    std::vector<int32_t> taps(const Phase& phase, int64_t channels) const;

    /// The address that the tables' offsets count from: in the source, or in `copy`, which is filled.
    template <class T>
    const T* prepare(const T* source, const Block& block, T* copy) const;

  private:
    void choose_size(const Limits& limits, int64_t element_bytes);
    int64_t span(int axis, int64_t positions) const {
        return positions > 0 ? (positions - 1) * step_[axis] + highest_[axis] - lowest_[axis] + 1 : 0;
    }

    std::array<int64_t, 3> extent_, step_, lowest_, highest_;
    int64_t channels_;
    bool padded_ = false;
    std::array<int64_t, 4> all_, size_, counts_;  // n t h w: positions in all, in a block, and blocks
    PixelStrides source_strides_, strides_;       // strides_: of what the tables point into
};

/// Target offset of each position of a block that starts at position zero.
std::vector<int32_t> target_positions(const Block& block, const Phase& phase, const PixelStrides& target);

/// Target offset of the first position of a block in a phase.
int64_t target_start(const Block& block, const Phase& phase, const PixelStrides& target);

}  // namespace magmadnn::cpu
