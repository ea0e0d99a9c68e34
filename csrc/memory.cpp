#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

namespace magmadnn {

namespace {

constexpr const char* memory_names[] = {"host", "pinned", "device", "managed"};

std::atomic<int64_t> allocations{0};

/// Large tensors lie in huge pages, where the system has them: a walk down their columns meets far fewer
/// pages.
constexpr size_t huge_page = 2 << 20;

class OutOfMemory : public std::bad_alloc {
  public:
    explicit OutOfMemory(size_t bytes)
        : message_("memory: cannot allocate " + std::to_string(bytes) + " bytes of host memory") {}
    const char* what() const noexcept override { return message_.c_str(); }

  private:
    std::string message_;
};

// Zero extents count as one, so that the strides of an empty tensor are in range as well.
int64_t checked_product(const Shape& shape, int64_t item_bytes) {
    int64_t product = item_bytes;
    for (int64_t extent : shape) {
        if (extent < 0)
            throw std::invalid_argument("shape: got an extent of " + std::to_string(extent) +
                                        ", wanted 0 or more");
        if (__builtin_mul_overflow(product, std::max<int64_t>(extent, 1), &product))
            throw std::overflow_error("shape: the size of the tensor does not fit in 64 bits");
    }
    for (int64_t extent : shape)
        if (extent == 0) return 0;
    return product;
}

}  // namespace

const char* name_of(MemoryKind memory) { return memory_names[static_cast<int>(memory)]; }

MemoryKind memory_from_name(std::string_view name) {
    for (int i = 0; i < 4; i++)
        if (name == memory_names[i]) return static_cast<MemoryKind>(i);
    throw std::invalid_argument("memory: got '" + std::string(name) +
                                "', wanted one of host, pinned, device, managed");
}

int64_t checked_count(const Shape& shape) { return checked_product(shape, 1); }

size_t checked_bytes(const Shape& shape, DType dtype) {
    return static_cast<size_t>(checked_product(shape, static_cast<int64_t>(size_of(dtype))));
}

std::shared_ptr<Storage> Storage::allocate(size_t bytes, MemoryKind memory) {
    if (memory != MemoryKind::host)
        throw std::runtime_error(std::string("memory: got '") + name_of(memory) +
                                 "', but the CUDA backend is not part of this build; wanted 'host'");
    const size_t boundary = bytes >= 2 * huge_page ? huge_page : alignment;
    // aligned_alloc wants a multiple of the alignment.
    const size_t padded = (std::max<size_t>(bytes, 1) + boundary - 1) / boundary * boundary;
    void* data = padded < bytes ? nullptr : std::aligned_alloc(boundary, padded);
    if (!data) throw OutOfMemory(bytes);
    if (boundary == huge_page) madvise(data, padded, MADV_HUGEPAGE);  // advice only: may fail
    allocations.fetch_add(1, std::memory_order_relaxed);
    return std::make_shared<Storage>(data, bytes, memory, std::shared_ptr<void>(data, std::free));
}

int64_t Storage::allocation_count() { return allocations.load(std::memory_order_relaxed); }

}  // namespace magmadnn
