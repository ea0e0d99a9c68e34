#include "registry.h"

#include <dlfcn.h>

#include <algorithm>

namespace magmadnn {

Registry& Registry::instance() {
    static Registry registry;
    return registry;
}

void Registry::load(const std::string& path) {
    // Never closed: programs hold kernels whose code is in it.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error("kernel library: " + std::string(dlerror()));
    using List = const std::vector<KernelEntry>* (*)();
    const auto list = reinterpret_cast<List>(dlsym(library, "magmadnn_kernels"));
    if (!list) throw std::runtime_error("kernel library " + path + ": no symbol magmadnn_kernels");
    entries_ = *list();
}

std::vector<const KernelEntry*> Registry::candidates(const Signature& signature) const {
    std::vector<std::pair<int, const KernelEntry*>> found;
    for (const KernelEntry& entry : entries_)
        if (signature.op == entry.op && entry.supports(signature))
            found.emplace_back(entry.preference(signature), &entry);
    std::stable_sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.first > b.first; });
    std::vector<const KernelEntry*> ordered;
    for (const auto& [preference, entry] : found) ordered.push_back(entry);
    return ordered;
}

const KernelEntry* Registry::find(const Signature& signature, const std::string& algorithm) const {
    for (const KernelEntry* entry : candidates(signature))
        if (algorithm.empty() || algorithm == entry->algorithm) return entry;
    return nullptr;
}

}  // namespace magmadnn
