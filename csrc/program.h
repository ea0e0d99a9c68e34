// A Program: a flat list of kernel calls over a few blocks of memory, and the executor that runs it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel.h"
#include "tensor.h"

namespace magmadnn {

/// Where a tensor lives: a slot (a block of memory bound to the program) and a byte offset in it.
struct Location {
    int slot;
    int64_t offset;
};

/// Rows of a dataset that are copied into the program before each step, converted to the input's dtype.
struct Feed {
    Location destination;
    DType dtype;
    Tensor source;  // contiguous, rows along the first axis
};

/// An output that is copied after each step to the next rows of an array.
struct Drain {
    Location source;
    Tensor destination;  // contiguous, of the output's dtype, rows along the first axis
};

/// Which rows the steps of a run take: step s takes rows [first + s*batch, first + (s+1)*batch) of the feeds,
/// or of `order` where that is given (row numbers, length `order_length`).
struct Batches {
    int64_t first = 0;
    int64_t batch = 0;
    int64_t steps = 0;
    const int64_t* order = nullptr;
    int64_t order_length = 0;
};

class Program {
  public:
    using Callback = std::function<void(void* const* inputs, void* const* outputs)>;

    /// Slot 0 is the workspace, which the program sizes itself; the others are bound by the caller.
    Program(int slots, int threads);

    /// Appends a kernel call. Throws std::invalid_argument where no kernel fits (`algorithm` empty: the
    /// preferred one).
    void add_kernel(const std::string& label, const Signature& signature, const std::string& algorithm,
                    std::vector<Location> inputs, std::vector<Location> outputs);
    /// Appends a call back into Python, for an op without a kernel.
    void add_callback(const std::string& label, Callback callback, std::vector<Location> inputs,
                      std::vector<Location> outputs);

    /// The slot's memory from now on. The tensor must be contiguous; the program keeps it alive.
    void bind(int slot, const Tensor& tensor);

    /// Runs all steps once.
    void run();
    /// Runs once per batch: feeds, steps, drains. If `seconds` is given, what each step took is added to it.
    void run_batches(const std::vector<Feed>& feeds, const std::vector<Drain>& drains, const Batches& batches,
                     std::vector<double>* seconds = nullptr);

    int threads() const { return threads_; }
    size_t workspace_bytes() const { return workspace_bytes_; }
    const std::vector<std::string>& labels() const { return labels_; }

  private:
    struct Step {
        std::unique_ptr<Kernel> kernel;  // null: a callback
        Callback callback;
        std::vector<Location> locations;  // inputs, then outputs
        size_t input_count = 0;
        std::vector<void*> pointers;  // resolved locations
    };

    void add(Step step, const std::string& label, std::vector<Location> inputs,
             std::vector<Location> outputs);
    void* resolve(const Location& location) const;
    void prepare();
    void run_step(size_t index);
    void run_timed(std::vector<double>& seconds);

    int threads_;
    std::vector<std::unique_ptr<Tensor>> slots_;
    std::vector<Step> steps_;
    std::vector<std::string> labels_;
    size_t workspace_bytes_ = 0;
    bool resolved_ = false;
};

}  // namespace magmadnn
