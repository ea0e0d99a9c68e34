#include "registration.h"

namespace magmadnn::cpu {

std::vector<KernelEntry>& entries() {
    static std::vector<KernelEntry> list;
    return list;
}

}  // namespace magmadnn::cpu

/// The one symbol a kernel library exports.
extern "C" __attribute__((visibility("default"))) const std::vector<magmadnn::KernelEntry>*
magmadnn_kernels() {
    return &magmadnn::cpu::entries();
}
