#include "program.h"

#include <chrono>
#include <cstring>

#include "registry.h"
#include "worker_pool.h"

namespace magmadnn {

namespace {

template <class From, class To>
void convert_row(const void* source, void* destination, int64_t count) {
    const From* from = static_cast<const From*>(source);
    To* to = static_cast<To*>(destination);
    for (int64_t i = 0; i < count; i++) to[i] = static_cast<To>(from[i]);
}

using RowCopy = void (*)(const void*, void*, int64_t);

RowCopy row_copy(DType from, DType to) {
    return dispatch(from, [&](auto a) {
        return dispatch(to, [](auto b) -> RowCopy { return convert_row<decltype(a), decltype(b)>; });
    });
}

int64_t row_elements(const Tensor& tensor) {
    return tensor.shape()[0] == 0 ? 0 : tensor.size() / tensor.shape()[0];
}

void gather(const Feed& feed, char* destination, const Batches& batches, int64_t step, ThreadPool& pool) {
    const int64_t row = row_elements(feed.source);
    const size_t source_row = row * size_of(feed.source.dtype()), row_bytes = row * size_of(feed.dtype);
    const auto copy = row_copy(feed.source.dtype(), feed.dtype);
    const char* source = static_cast<const char*>(feed.source.data());
    const int64_t first = batches.first + step * batches.batch;
    pool.ranges(batches.batch, 16384 / std::max<int64_t>(row, 1) + 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; i++) {
            const int64_t index = batches.order ? batches.order[first + i] : first + i;
            const char* from = source + index * source_row;
            char* to = destination + i * row_bytes;
            if (feed.dtype == feed.source.dtype())
                std::memcpy(to, from, row_bytes);
            else
                copy(from, to, row);
        }
    });
}

void check(const std::vector<Feed>& feeds, const std::vector<Drain>& drains, const Batches& b) {
    const int64_t last = b.first + b.batch * b.steps;
    if (b.first < 0 || b.batch < 0 || b.steps < 0) throw std::invalid_argument("batches: a negative number");
    if (b.order && last > b.order_length) throw std::out_of_range("batches: more rows than the order has");
    for (const Feed& feed : feeds) {
        const int64_t rows = feed.source.shape().at(0);
        if (!b.order && last > rows) throw std::out_of_range("batches: more rows than the source has");
        for (int64_t i = b.first; b.order && i < last; i++)
            if (b.order[i] < 0 || b.order[i] >= rows)
                throw std::out_of_range("batches: row " + std::to_string(b.order[i]) + " of a source of " +
                                        std::to_string(rows) + " rows");
    }
    for (const Drain& drain : drains)
        if (last > drain.destination.shape().at(0))
            throw std::out_of_range("batches: more rows than the destination has");
}

}  // namespace

Program::Program(int slots, int threads) : threads_(threads), slots_(slots) {}

void Program::add(Step step, const std::string& label, std::vector<Location> inputs,
                  std::vector<Location> outputs) {
    step.input_count = inputs.size();
    step.locations = std::move(inputs);
    step.locations.insert(step.locations.end(), outputs.begin(), outputs.end());
    for (const Location& location : step.locations)
        if (location.slot < 1 || location.slot >= static_cast<int>(slots_.size()))
            throw std::out_of_range(label + ": slot " + std::to_string(location.slot) + " does not exist");
    steps_.push_back(std::move(step));
    labels_.push_back(label);
    resolved_ = false;
}

void Program::add_kernel(const std::string& label, const Signature& signature, const std::string& algorithm,
                         std::vector<Location> inputs, std::vector<Location> outputs) {
    const KernelEntry* entry = Registry::instance().find(signature, algorithm);
    if (!entry) throw std::invalid_argument(label + ": no kernel '" + signature.op + "' for these types");
    Step step;
    step.kernel = entry->create(signature);
    workspace_bytes_ = std::max(workspace_bytes_, step.kernel->workspace_bytes());
    add(std::move(step), label, std::move(inputs), std::move(outputs));
}

void Program::add_callback(const std::string& label, Callback callback, std::vector<Location> inputs,
                           std::vector<Location> outputs) {
    Step step;
    step.callback = std::move(callback);
    add(std::move(step), label, std::move(inputs), std::move(outputs));
}

void Program::bind(int slot, const Tensor& tensor) {
    if (!tensor.is_contiguous()) throw std::invalid_argument("bind: the tensor is not contiguous");
    slots_.at(slot) = std::make_unique<Tensor>(tensor);
    resolved_ = false;
}

void* Program::resolve(const Location& location) const {
    const auto& tensor = slots_.at(location.slot);
    if (!tensor) throw std::logic_error("program: slot " + std::to_string(location.slot) + " is not bound");
    return static_cast<char*>(tensor->data()) + location.offset;
}

void Program::prepare() {
    if (default_pool().size() != threads_)
        throw std::logic_error("program: built for " + std::to_string(threads_) + " threads, now there are " +
                               std::to_string(default_pool().size()));
    if (resolved_) return;
    if (workspace_bytes_ && (!slots_[0] || slots_[0]->bytes() < workspace_bytes_))
        throw std::logic_error("program: the workspace is not bound");
    for (Step& step : steps_) {
        step.pointers.clear();
        for (const Location& location : step.locations) step.pointers.push_back(resolve(location));
    }
    resolved_ = true;
}

void Program::run_step(size_t index) {
    Step& step = steps_[index];
    void* const* inputs = step.pointers.data();
    void* const* outputs = inputs + step.input_count;
    if (!step.kernel) return step.callback(inputs, outputs);
    const Arguments arguments{inputs, outputs, slots_[0] ? slots_[0]->data() : nullptr};
    try {
        step.kernel->run(arguments, default_pool());
    } catch (const std::out_of_range& error) {
        throw std::out_of_range(labels_[index] + ": " + error.what());
    } catch (const std::exception& error) {
        throw std::runtime_error(labels_[index] + ": " + error.what());
    }
}

void Program::run() {
    prepare();
    for (size_t i = 0; i < steps_.size(); i++) run_step(i);
}

void Program::run_batches(const std::vector<Feed>& feeds, const std::vector<Drain>& drains,
                          const Batches& batches, std::vector<double>* seconds) {
    prepare();
    check(feeds, drains, batches);
    if (seconds) seconds->resize(steps_.size());
    for (int64_t step = 0; step < batches.steps; step++) {
        for (const Feed& feed : feeds)
            gather(feed, static_cast<char*>(resolve(feed.destination)), batches, step, default_pool());
        if (seconds)
            run_timed(*seconds);
        else
            for (size_t i = 0; i < steps_.size(); i++) run_step(i);
        for (const Drain& drain : drains) {
            const size_t bytes = row_elements(drain.destination) * size_of(drain.destination.dtype());
            char* to = static_cast<char*>(drain.destination.data());
            std::memcpy(to + (batches.first + step * batches.batch) * bytes, resolve(drain.source),
                        bytes * batches.batch);
        }
    }
}

void Program::run_timed(std::vector<double>& seconds) {
    using Clock = std::chrono::steady_clock;
    for (size_t i = 0; i < steps_.size(); i++) {
        const auto start = Clock::now();
        run_step(i);
        seconds[i] += std::chrono::duration<double>(Clock::now() - start).count();
    }
}

}  // namespace magmadnn
