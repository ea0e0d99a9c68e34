// When the Winograd kernels may be used, and when they are expected to pay.
#include "conv_winograd.h"
#include "registration.h"

namespace magmadnn::cpu::winograd {

bool supports(const Signature& s) {
    if (!all_of_type<float>(s) || s.inputs[0].rank() != 4 || s.attributes.integer("groups") != 1)
        return false;
    for (const char* name : {"strides", "dilation"})
        for (int64_t value : s.attributes.integers(name))
            if (value != 1) return false;
    const Shape& w = s.op == "convolution_weight_gradient" ? s.outputs[0].shape : s.inputs[1].shape;
    if (w[0] != 3 || w[1] != 3) return false;
    for (const auto* types : {&s.inputs, &s.outputs})
        for (const TensorType& type : *types)
            if (type.size() == 0) return false;
    return true;
}

namespace {

/// Times in products of two vectors at the micro-kernel's speed. A transform waits for memory most of its
/// time: these were measured on layers of VGG-16 and ResNet (AVX2, one core).
struct Costs {
    double tile,
        weight;  // of a vector of channels of one tile; of a vector of the weights between two channels
};
constexpr Costs costs_of(int m) { return m == 2 ? Costs{200, 700} : Costs{700, 1200}; }

/// The start and end of a product cost as much as this many more channels of depth.
constexpr double product_start = 5;

double vectors(int64_t channels) { return static_cast<double>((channels + lanes<float> - 1) / lanes<float>); }

}  // namespace

int preference(const Images& tiled, int64_t source_channels, int64_t target_channels, int m) {
    const double source = static_cast<double>(source_channels), target = vectors(target_channels);
    const auto squares = [&](int64_t size) {
        const int64_t rows = (tiled.height + size - 1) / size, columns = (tiled.width + size - 1) / size;
        return static_cast<double>(tiled.count * rows * columns);
    };
    const double direct = squares(1) * (9 * source + product_start) * target;
    const Costs costs = costs_of(m);
    const double products = (m + 2) * (m + 2) * (source + product_start) * target;
    const double winograd = squares(m) * (products + costs.tile * (vectors(source_channels) + target)) +
                            costs.weight * source * target;
    return static_cast<int>(10 * direct / winograd);
}

}  // namespace magmadnn::cpu::winograd
