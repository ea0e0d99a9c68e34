// What kernels see of the thread pool. The implementation lives in thread_pool.cpp; kernels reach it through
// the virtual call only, so a kernel library needs no symbol of the core.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace magmadnn {

class ThreadPool {
  public:
    using Task = void (*)(void* context, int64_t index, int worker);

    virtual ~ThreadPool() = default;

    /// Number of threads that take part, the caller included.
    virtual int size() const = 0;

    /// Runs task(context, i, worker) for every i in [0, count) and returns when all are done. Indices are
    /// handed out one at a time; worker is in [0, size()). The first exception of a task is rethrown.
    virtual void run(int64_t count, Task task, void* context) = 0;

    /// body(index, worker) for each index, handed out dynamically: for tasks of uneven length.
    template <class Body>
    void each(int64_t count, Body&& body) {
        if (count == 1 || size() == 1) {
            for (int64_t i = 0; i < count; i++) body(i, 0);
            return;
        }
        auto task = [](void* context, int64_t index, int worker) {
            (*static_cast<std::remove_reference_t<Body>*>(context))(index, worker);
        };
        run(count, task, &body);
    }

    /// body(begin, end, worker) on at most size() equal contiguous ranges of [0, count), none smaller than
    /// `grain` where it can be avoided. The cut depends on count, grain and size() alone.
    template <class Body>
    void ranges(int64_t count, int64_t grain, Body&& body) {
        if (count <= 0) return;
        const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, size());
        each(parts, [&](int64_t part, int worker) {
            body(count * part / parts, count * (part + 1) / parts, worker);
        });
    }
};

}  // namespace magmadnn
