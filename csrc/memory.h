// Memory that tensors and programs live in: where it is, how much of it, and who frees it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "kernel.h"

namespace magmadnn {

enum class MemoryKind : uint8_t { host, pinned, device, managed };

const char* name_of(MemoryKind memory);
/// Throws std::invalid_argument for a name that is none of host, pinned, device, managed.
MemoryKind memory_from_name(std::string_view name);

/// Number of elements and bytes of a shape. Throw std::invalid_argument for a negative extent and
/// std::overflow_error where 64 bits do not hold the result (zero extents do not excuse the others).
int64_t checked_count(const Shape& shape);
size_t checked_bytes(const Shape& shape, DType dtype);

/// A block of memory, freed with the last reference to it. Tensors share it through std::shared_ptr.
class Storage {
  public:
    static constexpr size_t alignment = 64;

    /// Foreign memory: `owner` is released with the storage.
    Storage(void* data, size_t bytes, MemoryKind memory, std::shared_ptr<void> owner)
        : data_(data), bytes_(bytes), memory_(memory), owner_(std::move(owner)) {}

    /// Uninitialised memory. Zero bytes are legal and give a valid pointer. Throws std::runtime_error for
    /// memory that this build has no backend for, a std::bad_alloc that names the size where there is not
    /// enough.
    static std::shared_ptr<Storage> allocate(size_t bytes, MemoryKind memory = MemoryKind::host);

    /// Number of allocate() calls of this process so far.
    static int64_t allocation_count();

    void* data() const { return data_; }
    size_t bytes() const { return bytes_; }
    MemoryKind memory() const { return memory_; }

  private:
    void* data_;
    size_t bytes_;
    MemoryKind memory_;
    std::shared_ptr<void> owner_;
};

}  // namespace magmadnn
