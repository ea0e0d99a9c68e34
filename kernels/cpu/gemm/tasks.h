// Cutting work into tasks.
#pragma once
#include <algorithm>
#include <cstdint>

#include "thread_pool.h"

namespace magmadnn::cpu {

/// [0, count) cut into `parts` ranges whose lengths differ by one at most.
struct Cut {
    int64_t count = 0;
    int64_t parts = 1;

    int64_t begin(int64_t part) const { return count * part / parts; }
    int64_t longest() const { return (count + parts - 1) / parts; }
    static Cut by_length(int64_t count, int64_t length) {
        return {count, std::max<int64_t>(1, (count + length - 1) / length)};
    }
};

/// Tasks that keep all threads busy although they end at different times.
inline int64_t tasks_wanted(bool serial, int64_t threads) { return serial || threads == 1 ? 1 : 4 * threads; }

/// Parts of a workspace start at a multiple of 16 elements, a cache line of the narrowest type.
constexpr int64_t round_up(int64_t count, int64_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}

/// body(task, worker) for each task; on the calling thread alone where the work is too small to share.
template <class Body>
void run_tasks(ThreadPool& pool, bool serial, int64_t count, Body body) {
    if (serial)
        for (int64_t task = 0; task < count; task++) body(task, 0);
    else
        pool.each(count, body);
}

}  // namespace magmadnn::cpu
