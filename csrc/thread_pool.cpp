#include "thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "thread_count.h"
#include "worker_pool.h"

namespace magmadnn {

namespace {

using Clock = std::chrono::steady_clock;

/// The pool whose task this thread is in, if any, and its number there.
struct Current {
    const WorkerPool* pool = nullptr;
    int worker = 0;
};
thread_local Current current;

void pause_thread() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Polls `done` for at most `duration`; returns whether it came true.
template <class Done>
bool spin(Clock::duration duration, Done&& done) {
    const auto end = Clock::now() + duration;
    do {
        for (int i = 0; i < 64; i++) {
            if (done()) return true;
            pause_thread();
        }
    } while (Clock::now() < end);
    return done();
}

/// The exception of the lowest index that threw.
class Failure {
  public:
    void note(int64_t index, std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        if (index < index_) {
            index_ = index;
            error_.swap(error);
        }
    }
    std::exception_ptr take() {
        index_ = std::numeric_limits<int64_t>::max();
        return std::exchange(error_, nullptr);
    }

  private:
    std::mutex mutex_;
    int64_t index_ = std::numeric_limits<int64_t>::max();
    std::exception_ptr error_;
};

void run_alone(int64_t count, ThreadPool::Task task, void* context, int worker) {
    std::exception_ptr first;
    for (int64_t index = 0; index < count; index++) {
        try {
            task(context, index, worker);
        } catch (...) {
            if (!first) first = std::current_exception();
        }
    }
    if (first) std::rethrow_exception(first);
}

void check_threads(int threads) {
    if (threads < 1 || threads > max_threads)
        throw std::invalid_argument("threads: got " + std::to_string(threads) + ", wanted 1 to " +
                                    std::to_string(max_threads));
}

}  // namespace

// The workers and the run they share. A run is published by storing its count in `unclaimed`. Whoever takes a
// positive number from there owns one index, and the run cannot end, nor the next one begin, before that
// index is counted off `unfinished`: so a worker that comes late can only fail to claim, or claim from the
// present run.
struct WorkerPool::Team {
    explicit Team(const WorkerPool* pool) : pool(pool) {}
    ~Team() { stop(); }

    const WorkerPool* pool;
    std::mutex running;  // one run, start or stop at a time
    std::vector<std::thread> workers;
    Clock::duration patience{};  // time a thread waits hot

    Task task = nullptr;
    void* context = nullptr;
    int64_t count = 0;
    Failure failure;

    alignas(64) std::atomic<int64_t> unclaimed{0};
    alignas(64) std::atomic<int64_t> unfinished{0};
    alignas(64) std::atomic<int> bell{0};  // what sleeping workers wait on
    std::atomic<int> sleepers{0};
    std::atomic<bool> stopping{false};

    void start(int threads) {
        // Where threads share a core, waiting hot takes time from the one that works.
        patience = std::chrono::microseconds(threads > available_cores() ? 2 : 50);
        try {
            for (int worker = 1; worker < threads; worker++)
                workers.emplace_back([this, worker] { serve(worker); });
        } catch (...) {
            stop();
            throw;
        }
    }

    void stop() {
        stopping = true;
        wake(static_cast<int64_t>(workers.size()));
        for (std::thread& worker : workers) worker.join();
        workers.clear();
        stopping = false;
    }

    std::exception_ptr run(int64_t tasks, Task function, void* its_context) {
        task = function;
        context = its_context;
        count = tasks;
        unfinished.store(tasks, std::memory_order_relaxed);
        unclaimed.store(tasks);
        wake(tasks - 1);
        take_part(0);
        const auto finished = [this] { return unfinished.load(std::memory_order_acquire) == 0; };
        if (!spin(patience, finished))
            for (int64_t left; (left = unfinished.load(std::memory_order_acquire)) != 0;)
                unfinished.wait(left);
        return failure.take();
    }

    void serve(int worker) {
        current = {pool, worker};
        const auto called = [this] { return unclaimed.load() > 0 || stopping.load(); };
        while (!stopping) {
            if (spin(patience, called)) {
                take_part(worker);
                continue;
            }
            // Either this worker sees the new run here, or run() sees the sleeper and rings: both orders are
            // sequentially consistent.
            const int heard = bell.load();
            sleepers.fetch_add(1);
            if (!called()) bell.wait(heard);
            sleepers.fetch_sub(1);
        }
    }

    void wake(int64_t wanted) {
        const int asleep = sleepers.load();
        if (asleep == 0) return;
        bell.fetch_add(1);
        if (wanted >= asleep)
            bell.notify_all();
        else
            for (int64_t i = 0; i < wanted; i++) bell.notify_one();
    }

    void take_part(int worker) {
        int64_t done = 0;
        while (unclaimed.load(std::memory_order_relaxed) > 0) {
            const int64_t left = unclaimed.fetch_sub(1, std::memory_order_acq_rel);
            if (left <= 0) break;
            const int64_t index = count - left;
            try {
                task(context, index, worker);
            } catch (...) {
                failure.note(index, std::current_exception());
            }
            done++;
        }
        if (done > 0 && unfinished.fetch_sub(done, std::memory_order_acq_rel) == done && worker != 0)
            unfinished.notify_one();
    }
};

// In the child of a fork the workers do not exist and the locks may be held by threads that do not exist
// either, so every pool gets a new team there and the old one is left as it is.
struct ForkHandlers {
    std::mutex mutex;
    std::vector<WorkerPool*> pools;

    static ForkHandlers& instance() {
        static ForkHandlers& handlers = *[] {
            pthread_atfork([] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); }, renew_teams);
            return new ForkHandlers;
        }();
        return handlers;
    }

    static void renew_teams() {
        for (WorkerPool* pool : instance().pools) pool->team_ = new WorkerPool::Team(pool);
        instance().mutex.unlock();
    }
};

WorkerPool::WorkerPool(int threads) : size_(threads), team_(nullptr) {
    check_threads(threads);
    team_ = new Team(this);
    ForkHandlers& handlers = ForkHandlers::instance();
    const std::lock_guard lock(handlers.mutex);
    handlers.pools.push_back(this);
}

WorkerPool::~WorkerPool() {
    ForkHandlers& handlers = ForkHandlers::instance();
    {
        const std::lock_guard lock(handlers.mutex);
        std::erase(handlers.pools, this);
    }
    delete team_;
}

void WorkerPool::run(int64_t count, Task task, void* context) {
    if (count <= 0) return;
    if (current.pool) return run_alone(count, task, context, current.pool == this ? current.worker : 0);
    if (count == 1 || size() == 1) return run_alone(count, task, context, 0);

    std::exception_ptr error;
    {
        const std::lock_guard lock(team_->running);
        if (team_->workers.empty()) team_->start(size());
        current = {this, 0};
        error = team_->run(count, task, context);
        current = {};
    }
    if (error) std::rethrow_exception(error);
}

void WorkerPool::resize(int threads) {
    check_threads(threads);
    if (current.pool) throw std::runtime_error("threads: the number of threads cannot change inside a task");
    const std::lock_guard lock(team_->running);
    if (threads == size()) return;
    team_->stop();
    size_.store(threads);
}

WorkerPool& default_pool() {
    static WorkerPool& pool = *new WorkerPool(default_threads());
    return pool;
}

}  // namespace magmadnn
