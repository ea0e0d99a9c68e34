#include "conv_max_pool.h"

namespace magmadnn::cpu {
namespace {

/// Axes along which windows are the positions, and the taps are those of both cells of a window.
Axes window_axes(const ConvolutionShape& shape, const std::array<int64_t, 3>& windows) {
    Axes axes;
    for (int i = 0; i < 3; i++) {
        const int64_t cells = i == 0 ? 1 : 2;
        AxisPhase phase = {windows[i], 0, 1, {}};
        for (int64_t cell = 0; cell < cells; cell++)
            for (int64_t r = 0; r < shape.kernel[i]; r++)
                phase.taps.push_back({r, cell * shape.stride[i] + r * shape.dilation[i] - shape.low[i]});
        axes[i] = {shape.input[i], cells * shape.stride[i], {phase}};
    }
    return axes;
}

Shape unpooled(const Shape& pooled) { return {pooled[0], 2 * pooled[1], 2 * pooled[2], pooled[3]}; }

}  // namespace

PooledGeometry::PooledGeometry(const Signature& s, const Limits& limits)
    : shape_(s.attributes, s.inputs[0].shape, s.inputs[1].shape, unpooled(s.outputs[0].shape)),
      windows_{1, s.outputs[0].shape[1], s.outputs[0].shape[2]},
      axes_(window_axes(shape_, windows_)),
      source_(axes_, shape_.images, shape_.channels, sizeof(float),
              {limits.windows, limits.bytes, tasks_wanted(serial(), s.threads)}),
      phase_{&axes_[0].phases[0], &axes_[1].phases[0], &axes_[2].phases[0]},
      target_(windows_, 1) {}

std::vector<int32_t> PooledGeometry::tap_offsets(int64_t taps_h, int64_t taps_w, int64_t channels) const {
    const std::array<int64_t, 3> counts = {1, taps_h, taps_w};
    std::array<AxisPhase, 3> axes;
    for (int i = 0; i < 3; i++) {
        axes[i] = {windows_[i], 0, 1, {}};
        for (int64_t r = 0; r < counts[i]; r++)
            axes[i].taps.push_back({r, r * shape_.dilation[i] - shape_.low[i]});
    }
    return source_.taps({&axes[0], &axes[1], &axes[2]}, channels);
}

std::array<int32_t, window_cells> PooledGeometry::cell_offsets() const {
    std::array<AxisPhase, 3> axes;
    for (int i = 0; i < 3; i++) {
        axes[i] = {windows_[i], 0, 1, {{0, -shape_.low[i]}}};
        if (i > 0) axes[i].taps.push_back({0, shape_.stride[i] - shape_.low[i]});
    }
    const std::vector<int32_t> places = source_.taps({&axes[0], &axes[1], &axes[2]}, 1);
    std::array<int32_t, window_cells> offsets;
    for (int cell = 0; cell < window_cells; cell++) offsets[cell] = places[cell] - places[0];
    return offsets;
}

bool supports_pooled_convolution(const Signature& s) {
    const std::string& activation = s.attributes.text("activation");
    for (const auto& type : s.inputs)
        if (type.dtype != DType::float32) return false;
    if (s.inputs[0].rank() != 4) return false;
    constexpr int64_t most_weights = 80 << 10;
    const Shape& w = s.inputs[1].shape;
    return s.attributes.integers("window") == std::vector<int64_t>{2, 2} &&
           s.attributes.integer("groups") == 1 && (activation == "linear" || activation == "relu") &&
           tables_reach(s) && (w[0] + 1) * (w[1] + 1) * w[2] * w[3] <= most_weights;
}

}  // namespace magmadnn::cpu
