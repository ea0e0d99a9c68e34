// Random tensors from a counter: element i depends on (seed, step, stream, i) alone, so threads and devices
// agree.
#include <cmath>
#include <numbers>

#include "loops.h"
#include "philox.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

constexpr int groups = 3;                              // of Philox blocks made together
constexpr int64_t batch = groups * Philox::words;      // words of such a call
constexpr int64_t batches_per_thread = 12000 / batch;  // about 10 us of work

Philox generator(const Arguments& arguments, int state, int64_t stream) {
    return Philox(arguments.input<int64_t>(state), static_cast<uint32_t>(stream));
}

/// use(words, first word, words of use) for consecutive batches of the words 0 to count.
template <class Use>
void each_batch(const Philox& philox, int64_t count, double cost, ThreadPool& pool, Use&& use) {
    const auto grain =
        std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(batches_per_thread) / cost));
    pool.ranges((count + batch - 1) / batch, grain, [&](int64_t begin, int64_t end, int) {
        uint32_t words[batch];
        for (int64_t i = begin; i < end; i++) {
            philox.generate<groups>(static_cast<uint64_t>(i * batch / 4), words);
            use(words, i * batch, std::min(batch, count - i * batch));
        }
    });
}

/// The uniform number in [0, 1) of each element.
inline float uniform(const uint32_t* words, int64_t i, float) {
    return static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24f;
}
inline double uniform(const uint32_t* words, int64_t i, double) {
    return (static_cast<double>(words[2 * i] >> 5) * 67108864.0 +
            static_cast<double>(words[2 * i + 1] >> 6)) *
           0x1p-53;
}

template <class T>
class RandomUniform final : public Kernel {
  public:
    explicit RandomUniform(const Signature& s)
        : count_(s.outputs[0].size()),
          low_(static_cast<T>(s.attributes.number("low"))),
          range_(static_cast<T>(s.attributes.number("high") - s.attributes.number("low"))),
          stream_(s.attributes.integer("stream")) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        constexpr int64_t words_each = sizeof(T) / 4;
        each_batch(generator(arguments, 0, stream_), count_ * words_each, 1.5, pool,
                   [&](const uint32_t* words, int64_t first, int64_t n) {
                       T* y = arguments.output<T>(0) + first / words_each;
                       for (int64_t i = 0; i < n / words_each; i++)
                           y[i] = low_ + uniform(words, i, T{}) * range_;
                   });
    }

  private:
    int64_t count_;
    T low_, range_;
    int64_t stream_;
};

template <class T>
class RandomNormal final : public Kernel {
  public:
    explicit RandomNormal(const Signature& s)
        : count_(s.outputs[0].size()),
          mean_(s.attributes.number("mean")),
          deviation_(s.attributes.number("stddev")),
          stream_(s.attributes.integer("stream")) {}

    void run(const Arguments& arguments, ThreadPool& pool) override {
        each_batch(generator(arguments, 0, stream_), count_, 30, pool,
                   [&](const uint32_t* words, int64_t first, int64_t n) {
                       T* y = arguments.output<T>(0) + first;
                       for (int64_t i = 0; i < n; i += 2) pair(words + i, y + i, i + 1 < n);
                   });
    }

  private:
    /// Box-Muller in double, whatever T is: two elements from two words.
    void pair(const uint32_t* words, T* y, bool both) const {
        const double u = (static_cast<double>(words[0]) + 1) * 0x1p-32,
                     v = static_cast<double>(words[1]) * 0x1p-32;
        const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
        y[0] = static_cast<T>(mean_ + deviation_ * (radius * std::cos(angle)));
        if (both) y[1] = static_cast<T>(mean_ + deviation_ * (radius * std::sin(angle)));
    }

    int64_t count_;
    double mean_, deviation_;
    int64_t stream_;
};

template <class T>
class Dropout final : public Kernel {
  public:
    explicit Dropout(const Signature& s)
        : count_(s.inputs[0].size()), stream_(s.attributes.integer("stream")) {
        const double rate = s.attributes.number("rate");
        keeps_none_ = rate >= 1;
        threshold_ = keeps_none_ ? 0 : static_cast<uint32_t>(rate * 0x1p32);
        scale_ = static_cast<T>(1 / (1 - rate));
    }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        if (keeps_none_) {
            std::fill_n(arguments.output<T>(0), count_, T(0));
            return;
        }
        each_batch(generator(arguments, 1, stream_), count_, 1, pool,
                   [&](const uint32_t* words, int64_t first, int64_t n) {
                       const T* x = arguments.input<T>(0) + first;
                       T* y = arguments.output<T>(0) + first;
                       const T scale = scale_;
                       const uint32_t threshold = threshold_;
#pragma GCC ivdep
                       for (int64_t i = 0; i < n; i++) y[i] = words[i] >= threshold ? x[i] * scale : T(0);
                   });
    }

  private:
    int64_t count_;
    bool keeps_none_;
    uint32_t threshold_;
    T scale_;
    int64_t stream_;
};

template <class T>
bool makes(const Signature& s) {
    return s.outputs[0].dtype == DTypeOf<T>::value && s.inputs[0].dtype == DType::int64;
}
template <class T>
bool drops(const Signature& s) {
    return s.inputs[0].dtype == DTypeOf<T>::value && s.outputs[0].dtype == DTypeOf<T>::value &&
           s.inputs[1].dtype == DType::int64;
}

const Registration uniform_float("random_uniform", "philox_float32", 10, makes<float>,
                                 create_kernel<RandomUniform<float>>);
const Registration uniform_double("random_uniform", "philox_float64", 10, makes<double>,
                                  create_kernel<RandomUniform<double>>);
const Registration normal_float("random_normal", "philox_float32", 10, makes<float>,
                                create_kernel<RandomNormal<float>>);
const Registration normal_double("random_normal", "philox_float64", 10, makes<double>,
                                 create_kernel<RandomNormal<double>>);
const Registration dropout_float("dropout", "philox_float32", 10, drops<float>,
                                 create_kernel<Dropout<float>>);
const Registration dropout_double("dropout", "philox_float64", 10, drops<double>,
                                  create_kernel<Dropout<double>>);

}  // namespace
}  // namespace magmadnn::cpu
