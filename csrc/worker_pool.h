// The thread pool behind the kernels: workers that wait hot for a moment and then sleep.
#pragma once
#include <atomic>

#include "thread_pool.h"

namespace magmadnn {

/// size() counts the calling thread, so size() - 1 workers are started, at the first run that needs them.
///
/// run() may be called by several threads: their runs follow each other. A run() inside a task is carried out
/// by the thread of that task alone, as its worker. All tasks are run even where some throw; the exception of
/// the lowest index is rethrown. In the child of a fork() the workers are started anew.
class WorkerPool final : public ThreadPool {
  public:
    /// Throws std::invalid_argument unless 1 <= threads <= max_threads.
    explicit WorkerPool(int threads);
    ~WorkerPool() override;
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    int size() const override { return size_.load(std::memory_order_relaxed); }
    void run(int64_t count, Task task, void* context) override;

    /// Waits for the run in progress. Kernels made for another size must not be run afterwards. Throws
    /// std::runtime_error inside a task.
    void resize(int threads);

  private:
    struct Team;
    friend struct ForkHandlers;

    std::atomic<int> size_;
    Team* team_;
};

/// The pool of the process, of default_threads() threads at first; it lives until the process ends.
WorkerPool& default_pool();

}  // namespace magmadnn
