// The kernels this process can run: read from one kernel library, chosen by instruction set.
#pragma once
#include <string>
#include <vector>

#include "kernel.h"

namespace magmadnn {

class Registry {
  public:
    static Registry& instance();

    /// Opens a kernel library and takes its kernels in place of any before. Throws std::runtime_error where
    /// it cannot be opened.
    void load(const std::string& path);

    /// The kernel to use: the supported one of greatest preference, or of the given algorithm if that is not
    /// empty. Null where there is none.
    const KernelEntry* find(const Signature& signature, const std::string& algorithm = "") const;

    /// All algorithms that support the signature, the preferred one first.
    std::vector<const KernelEntry*> candidates(const Signature& signature) const;

    const std::vector<KernelEntry>& entries() const { return entries_; }

  private:
    std::vector<KernelEntry> entries_;
};

}  // namespace magmadnn
