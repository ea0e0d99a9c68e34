// What the kernels of convolution_max_pool share: windows of 2x2 cells as positions of a blocked source, and
// the pooling of four cells in registers.
//
// c channels in, k filters; a window is one pixel of the pooled result, its cells are four of the
// convolution.
#pragma once
#include <string>
#include <vector>

#include "conv_geometry.h"
#include "gemm/blocking.h"
#include "gemm/part.h"
#include "gemm/tasks.h"
#include "positions.h"
#include "registration.h"

namespace magmadnn::cpu {

inline constexpr int window_cells = 4;

/// Where the cells of all windows lie in the images.
class PooledGeometry {
  public:
    struct Limits {
        int64_t windows, bytes;  // of a block
    };
    PooledGeometry(const Signature& s, const Limits& limits);

    int64_t channels() const { return shape_.channels; }
    int64_t filters() const { return shape_.filters; }
    const std::array<int64_t, 3>& kernel() const { return shape_.kernel; }
    const BlockedSource& source() const { return source_; }
    bool serial() const { return shape_.work() <= serial_work; }

    int64_t windows(const Block& block) const { return block.rows(phase_); }
    /// Number of a block's first window among all windows of the batch.
    int64_t first_window(const Block& block) const { return target_start(block, phase_, target_); }

    /// Source offset of each window's first cell, in a block.
    std::vector<int32_t> window_offsets() const { return source_.positions(phase_); }
    /// Number of each window among those of the batch, counted from the block's first.
    std::vector<int32_t> window_numbers() const {
        return target_positions(source_.largest(), phase_, target_);
    }
    /// Source offset of each (tap, channel) of the kernel's `taps` of both axes, seen from a window's first
    /// cell.
    std::vector<int32_t> tap_offsets(int64_t taps_h, int64_t taps_w, int64_t channels) const;
    /// Offset of each cell from the first one.
    std::array<int32_t, window_cells> cell_offsets() const;

  private:
    ConvolutionShape shape_;
    std::array<int64_t, 3> windows_;  // per axis
    Axes axes_;
    BlockedSource source_;
    Phase phase_;
    PixelStrides target_;
};

/// Whether an op is one for both kernels: float32, two dimensions, windows of 2x2, and few enough weights
/// that they stay in the level-2 cache, even transformed. Larger layers are better served by a plain
/// convolution with larger tiles, beside which the pooling is nothing.
bool supports_pooled_convolution(const Signature& s);

/// What is done with the four cells of a window.
struct PoolEpilogue {
    bool relu;
    int64_t filters;
    float* y;            // [windows][k]
    uint8_t* positions;  // likewise, or null

    PoolEpilogue(const Signature& s, const Arguments& arguments)
        : relu(s.attributes.text("activation") == "relu"),
          filters(s.outputs[0].shape.back()),
          y(arguments.output<float>(0)),
          positions(s.outputs.size() > 1 ? arguments.output<uint8_t>(1) : nullptr) {}

    /// Pools a vector of filters from k on as max_pool does: the first of equal cells, a NaN above all.
    void finish(const Vector<float> (&cells)[window_cells], Vector<float> bias, int64_t window,
                int64_t k) const {
        Vector<float> best = cells[0];
        Positions<float> position{};
#pragma GCC unroll 4
        for (int cell = 1; cell < window_cells; cell++) {
            const auto better = ~(cells[cell] <= best) & (best == best);
            best = better ? cells[cell] : best;
            position = better ? Positions<float>{} + cell : position;
        }
        best += bias;
        if (relu) best = best < Vector<float>{} ? Vector<float>{} : best;
        const int64_t at = window * filters + k;
        const int count = static_cast<int>(std::min<int64_t>(filters - k, lanes<float>));
        if (count == lanes<float>) {
            store(y + at, best);
            if (positions) store_positions<float>(positions + at, position);
            return;
        }
        store_part(y + at, best, count);
        if (!positions) return;
        uint8_t bytes[lanes<float>];
        store_positions<float>(bytes, position);
        for (int i = 0; i < count; i++) positions[at + i] = bytes[i];
    }
};

}  // namespace magmadnn::cpu
