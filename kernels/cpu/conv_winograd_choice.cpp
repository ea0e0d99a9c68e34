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

int preference(const ConvolutionShape&, int m, bool) { return m; }

}  // namespace magmadnn::cpu::winograd
