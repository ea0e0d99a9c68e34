// The contract between the executor and the kernels: a kernel is created once for a signature (op,
// attributes, types, threads) when a program is built, and then run with pointers only. Header-only on
// purpose: each kernel library (one per instruction set) is loaded with dlopen and links to nothing of the
// core.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "dtype.h"
#include "thread_pool.h"

namespace magmadnn {

using Shape = std::vector<int64_t>;

inline int64_t element_count(const Shape& shape) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
}

struct TensorType {
    DType dtype = DType::float32;
    Shape shape;

    int64_t size() const { return element_count(shape); }
    size_t bytes() const { return static_cast<size_t>(size()) * size_of(dtype); }
    int rank() const { return static_cast<int>(shape.size()); }
};

/// An op's attributes, as its Python dataclass holds them: bool and int as int64, tuples of integers (nested
/// ones flattened) as vector<int64>, tuples of text as vector<string>.
class Attributes {
  public:
    using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>>;

    void set(const std::string& name, Value value) { values_[name] = std::move(value); }

    int64_t integer(const std::string& name) const { return get<int64_t>(name); }
    bool flag(const std::string& name) const { return get<int64_t>(name) != 0; }
    const std::string& text(const std::string& name) const { return get<std::string>(name); }
    double number(const std::string& name) const {
        const Value& value = at(name);
        if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
        return get<double>(name);
    }
    // An empty Python tuple has no element type, so an empty list satisfies every list accessor.
    const std::vector<int64_t>& integers(const std::string& name) const {
        return get<std::vector<int64_t>>(name);
    }
    std::vector<std::string> texts(const std::string& name) const {
        if (const auto* list = std::get_if<std::vector<int64_t>>(&at(name)); list && list->empty()) return {};
        return get<std::vector<std::string>>(name);
    }

  private:
    const Value& at(const std::string& name) const {
        const auto found = values_.find(name);
        if (found == values_.end()) throw std::invalid_argument("attribute '" + name + "' is missing");
        return found->second;
    }
    template <class T>
    const T& get(const std::string& name) const {
        const T* value = std::get_if<T>(&at(name));
        if (!value)
            throw std::invalid_argument("attribute '" + name + "' has another type than the kernel wants");
        return *value;
    }

    std::map<std::string, Value> values_;
};

/// Everything a kernel may know before it runs.
struct Signature {
    std::string op;
    Attributes attributes;
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;
    int threads = 1;
};

/// Pointers for one run. Every tensor is contiguous and row-major, laid out as in the signature. An output
/// may be the same buffer as an input only where the op allows it (Op.inplace).
struct Arguments {
    void* const* inputs;
    void* const* outputs;
    void* workspace;  // 64-byte aligned, workspace_bytes() long, contents undefined

    template <class T>
    const T* input(int i) const {
        return static_cast<const T*>(inputs[i]);
    }
    template <class T>
    T* output(int i) const {
        return static_cast<T*>(outputs[i]);
    }
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    virtual size_t workspace_bytes() const { return 0; }
    virtual void run(const Arguments& arguments, ThreadPool& pool) = 0;
};

/// How much an algorithm is wanted where it was not timed: a number, or a rule that gives one for a
/// signature.
struct Preference {
    int constant = 0;
    int (*rule)(const Signature&) = nullptr;

    Preference(int number) : constant(number) {}
    Preference(int (*of)(const Signature&)) : rule(of) {}
    int operator()(const Signature& signature) const { return rule ? rule(signature) : constant; }
};

/// One algorithm for one op. Among those whose `supports` says yes, the greatest preference is taken.
struct KernelEntry {
    const char* op;
    const char* algorithm;
    Preference preference;
    bool (*supports)(const Signature&);
    std::unique_ptr<Kernel> (*create)(const Signature&);
};

template <class T>
std::unique_ptr<Kernel> create_kernel(const Signature& signature) {
    return std::make_unique<T>(signature);
}

}  // namespace magmadnn
