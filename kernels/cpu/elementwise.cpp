// Straight-line elementwise programs. The output is cut into tiles that stay in the first-level cache; each
// instruction runs over a whole tile before the next one starts. Operands that lie in memory as the output
// does are read in place, and results are written in place; only what is broadcast or converted passes
// through a buffer.
//   T compute type: float, double, or int64 for all integer types and bool
#include <array>
#include <cmath>

#include "loops.h"
#include "registration.h"
#include "vector_math.h"

namespace magmadnn::cpu {
namespace {

// --- functions of elements

// Integer arithmetic wraps, as in NumPy; unsigned types make that defined.
template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

// clang-format off
struct Identity   { template <class T> static T apply(T a) { return a; } };
struct Negative   { template <class T> static T apply(T a) { return T(-Wrapping<T>(a)); } };
struct Absolute   { template <class T> static T apply(T a) {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
    else return a < 0 ? T(-uint64_t(a)) : a; } };
struct Sign       { template <class T> static T apply(T a) {
    return a > 0 ? T(1) : a < 0 ? T(-1) : a == 0 ? T(0) : a; } };
struct Square     { template <class T> static T apply(T a) { return T(Wrapping<T>(a) * Wrapping<T>(a)); } };
struct Relu       { template <class T> static T apply(T a) { return a < 0 ? T(0) : a; } };
struct LogicalNot { template <class T> static T apply(T a) { return a == 0 ? T(1) : T(0); } };
struct IsNan      { template <class T> static T apply(T a) { return a != a ? T(1) : T(0); } };
struct IsInf      { template <class T> static T apply(T a) {
    return std::is_floating_point_v<T> && Absolute::apply(a) > std::numeric_limits<T>::max() ? T(1) : T(0);
} };
struct IsFinite   { template <class T> static T apply(T a) {
    return Absolute::apply(a) <= std::numeric_limits<T>::max() ? T(1) : T(0); } };
struct Sqrt       { template <class T> static T apply(T a) { return std::sqrt(a); } };
struct Rsqrt      { template <class T> static T apply(T a) { return T(1) / std::sqrt(a); } };
struct Reciprocal { template <class T> static T apply(T a) { return T(1) / a; } };
struct Floor      { template <class T> static T apply(T a) { return std::floor(a); } };
struct Ceil       { template <class T> static T apply(T a) { return std::ceil(a); } };
struct Round      { template <class T> static T apply(T a) { return std::rint(a); } };

struct Add          { template <class T> static T apply(T a, T b) {
    return T(Wrapping<T>(a) + Wrapping<T>(b)); } };
struct Subtract     { template <class T> static T apply(T a, T b) {
    return T(Wrapping<T>(a) - Wrapping<T>(b)); } };
struct Multiply     { template <class T> static T apply(T a, T b) {
    return T(Wrapping<T>(a) * Wrapping<T>(b)); } };
struct Divide       { template <class T> static T apply(T a, T b) { return a / b; } };
struct Maximum      { template <class T> static T apply(T a, T b) { return (a >= b) | (a != a) ? a : b; } };
struct Minimum      { template <class T> static T apply(T a, T b) { return (a <= b) | (a != a) ? a : b; } };
struct Equal        { template <class T> static T apply(T a, T b) { return a == b ? T(1) : T(0); } };
struct NotEqual     { template <class T> static T apply(T a, T b) { return a != b ? T(1) : T(0); } };
struct Less         { template <class T> static T apply(T a, T b) { return a < b ? T(1) : T(0); } };
struct LessEqual    { template <class T> static T apply(T a, T b) { return a <= b ? T(1) : T(0); } };
struct Greater      { template <class T> static T apply(T a, T b) { return a > b ? T(1) : T(0); } };
struct GreaterEqual { template <class T> static T apply(T a, T b) { return a >= b ? T(1) : T(0); } };
struct LogicalAnd   { template <class T> static T apply(T a, T b) {
    return (a != 0) & (b != 0) ? T(1) : T(0); } };
struct LogicalOr    { template <class T> static T apply(T a, T b) {
    return (a != 0) | (b != 0) ? T(1) : T(0); } };
struct LogicalXor   { template <class T> static T apply(T a, T b) {
    return (a != 0) != (b != 0) ? T(1) : T(0); } };

struct Where            { template <class T> static T apply(T a, T b, T c) { return a != 0 ? b : c; } };
struct MultiplyAdd      { template <class T> static T apply(T a, T b, T c) { return a * b + c; } };
struct MultiplySubtract { template <class T> static T apply(T a, T b, T c) { return a * b - c; } };
struct SubtractProduct  { template <class T> static T apply(T a, T b, T c) { return c - a * b; } };

struct Exp      { template <class V> static V apply(V a) { return math::exp(a); } };
struct Expm1    { template <class V> static V apply(V a) { return math::expm1(a); } };
struct Log      { template <class V> static V apply(V a) { return math::log(a); } };
struct Log1p    { template <class V> static V apply(V a) { return math::log1p(a); } };
struct Sin      { template <class V> static V apply(V a) { return math::sin(a); } };
struct Cos      { template <class V> static V apply(V a) { return math::cos(a); } };
struct Tanh     { template <class V> static V apply(V a) { return math::tanh(a); } };
struct Sigmoid  { template <class V> static V apply(V a) { return math::sigmoid(a); } };
struct Softplus { template <class V> static V apply(V a) { return math::softplus(a); } };
struct Erf      { template <class V> static V apply(V a) { return math::erf(a); } };
// clang-format on

/// Quotient and remainder as NumPy has them: the remainder has the divisor's sign.
template <class T>
void divide_floor(T a, T b, T& quotient, T& remainder) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0 || b == -1) {  // -1 apart because the machine's division traps on the least integer
            quotient = b == 0 ? 0 : Negative::apply(a);
            remainder = 0;
            return;
        }
        quotient = a / b;
        remainder = a % b;
        if (remainder != 0 && (remainder < 0) != (b < 0)) {
            quotient -= 1;
            remainder += b;
        }
    } else {
        remainder = std::fmod(a, b);
        if (b == 0) {
            quotient = a / b;
            return;
        }
        T exact = (a - remainder) / b;
        if (remainder == 0) {
            remainder = std::copysign(T(0), b);
        } else if ((b < 0) != (remainder < 0)) {
            remainder += b;
            exact -= 1;
        }
        quotient = std::floor(exact);
        if (exact - quotient > T(0.5)) quotient += 1;
        if (exact == 0) quotient = std::copysign(T(0), a / b);
    }
}

struct FloorDivide {
    template <class T>
    static T apply(T a, T b) {
        T quotient, remainder;
        divide_floor(a, b, quotient, remainder);
        return quotient;
    }
};
struct Remainder {
    template <class T>
    static T apply(T a, T b) {
        T quotient, remainder;
        divide_floor(a, b, quotient, remainder);
        return remainder;
    }
};
struct Power {
    template <class T>
    static T apply(T a, T b) {
        if constexpr (std::is_floating_point_v<T>) {
            return std::pow(a, b);
        } else {
            if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
            uint64_t result = 1, base = static_cast<uint64_t>(a);
            for (; b > 0; b >>= 1, base *= base)
                if (b & 1) result *= base;
            return static_cast<T>(result);
        }
    }
};

// --- loops

// Loops take untyped pointers, so that all that plans and runs a program exists once and not per compute
// type.

/// out[i] = f(a[i], b[i], c[i]); out may be one of the operands. An operand that is a scalar is read at 0
/// only.
using Loop = void (*)(const void* a, const void* b, const void* c, void* out, int64_t n);

template <class F, class T>
void unary_loop(const void* a_, const void*, const void*, void* out_, int64_t n) {
    auto* a = static_cast<const T*>(a_);
    auto* out = static_cast<T*>(out_);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = F::apply(a[i]);
}

template <class F, class T, bool scalar_a, bool scalar_b>
void binary_loop(const void* a_, const void* b_, const void*, void* out_, int64_t n) {
    auto* a = static_cast<const T*>(a_);
    auto* b = static_cast<const T*>(b_);
    auto* out = static_cast<T*>(out_);
    const T first_a = *a, first_b = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = F::apply(scalar_a ? first_a : a[i], scalar_b ? first_b : b[i]);
}

template <class F, class T, bool scalar_b, bool scalar_c>
void ternary_loop(const void* a_, const void* b_, const void* c_, void* out_, int64_t n) {
    auto* a = static_cast<const T*>(a_);
    auto* b = static_cast<const T*>(b_);
    auto* c = static_cast<const T*>(c_);
    auto* out = static_cast<T*>(out_);
    const T first_b = *b, first_c = *c;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
        const T second = scalar_b ? first_b : b[i], third = scalar_c ? first_c : c[i];
        out[i] = F::apply(a[i], second, third);
    }
}

template <class T>
void fill_loop(const void* a, const void*, const void*, void* out, int64_t n) {
    std::fill_n(static_cast<T*>(out), n, *static_cast<const T*>(a));
}

/// Functions written on vectors.
template <class F, class T>
void vector_loop(const void* a_, const void*, const void*, void* out_, int64_t n) {
    auto* a = static_cast<const T*>(a_);
    auto* out = static_cast<T*>(out_);
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) store(out + i, F::apply(load(a + i)));
    if (i < n) store_partial(out + i, F::apply(load_partial(a + i, n - i, T(1))), n - i);
}

/// A function's loops by which operands are scalars (bit i: operand i), and its cost per element in
/// nanoseconds. Where a loop is missing the scalars are spread over a tile: the less common cases are not
/// worth their code.
struct Function {
    const char* name;
    int arity;
    bool boolean;  // the result is true or false
    double cost;
    Loop loops[8];
};

template <class F, class T>
constexpr Function unary(const char* name, double cost = 0.1) {
    return {name, 1, false, cost, {unary_loop<F, T>}};
}
template <class F, class T>
constexpr Function on_vectors(const char* name, double cost) {
    return {name, 1, false, sizeof(T) == 4 ? cost : 8.0, {vector_loop<F, T>}};
}
template <class F, class T>
constexpr Function binary(const char* name, double cost = 0.1) {
    return {name, 2, false, cost, {binary_loop<F, T, false, false>}};
}
/// With loops for scalar operands, in the compute types that have to be fast.
template <class F, class T>
constexpr Function common_binary(const char* name, double cost = 0.1) {
    Function function = binary<F, T>(name, cost);
    if constexpr (std::is_floating_point_v<T>) {
        function.loops[1] = binary_loop<F, T, true, false>;
        function.loops[2] = binary_loop<F, T, false, true>;
    }
    return function;
}
template <class F, class T>
constexpr Function ternary(const char* name) {
    Function function = {name, 3, false, 0.15, {ternary_loop<F, T, false, false>}};
    if constexpr (std::is_floating_point_v<T>) {
        function.loops[2] = ternary_loop<F, T, true, false>;
        function.loops[4] = ternary_loop<F, T, false, true>;
        function.loops[6] = ternary_loop<F, T, true, true>;
    }
    return function;
}
constexpr Function boolean(Function function) {
    function.boolean = true;
    return function;
}

// Not a program's own. A product and the sum it goes into make one pass over the tile instead of two:
template <class T>
constexpr Function multiply_add = ternary<MultiplyAdd, T>("multiply_add");
template <class T>
constexpr Function multiply_subtract = ternary<MultiplySubtract, T>("multiply_subtract");
template <class T>
constexpr Function subtract_product = ternary<SubtractProduct, T>("subtract_product");
/// Copies a register to an output.
template <class T>
constexpr Function identity = {"identity", 1, false, 0.1, {unary_loop<Identity, T>, fill_loop<T>}};

template <class T>
constexpr Function functions_of_all[] = {
    common_binary<Add, T>("add"),
    common_binary<Subtract, T>("subtract"),
    common_binary<Multiply, T>("multiply"),
    common_binary<Maximum, T>("maximum"),
    common_binary<Minimum, T>("minimum"),
    binary<FloorDivide, T>("floor_divide", 10),
    binary<Remainder, T>("remainder", 10),
    binary<Power, T>("power", 15),
    boolean(common_binary<Greater, T>("greater")),
    boolean(binary<GreaterEqual, T>("greater_equal")),
    boolean(binary<Less, T>("less")),
    boolean(binary<LessEqual, T>("less_equal")),
    boolean(binary<Equal, T>("equal")),
    boolean(binary<NotEqual, T>("not_equal")),
    boolean(binary<LogicalAnd, T>("logical_and")),
    boolean(binary<LogicalOr, T>("logical_or")),
    boolean(binary<LogicalXor, T>("logical_xor")),
    boolean(unary<LogicalNot, T>("logical_not")),
    boolean(unary<IsNan, T>("isnan")),
    boolean(unary<IsInf, T>("isinf")),
    boolean(unary<IsFinite, T>("isfinite")),
    unary<Negative, T>("negative"),
    unary<Absolute, T>("absolute"),
    unary<Sign, T>("sign"),
    unary<Square, T>("square"),
    unary<Relu, T>("relu"),
    ternary<Where, T>("where"),
};

template <class T>
constexpr Function functions_of_reals[] = {
    common_binary<Divide, T>("divide", 0.3),
    unary<Sqrt, T>("sqrt", 0.3),
    unary<Rsqrt, T>("rsqrt", 0.6),
    unary<Reciprocal, T>("reciprocal", 0.3),
    unary<Floor, T>("floor"),
    unary<Ceil, T>("ceil"),
    unary<Round, T>("round"),
    on_vectors<Exp, T>("exp", 0.7),
    on_vectors<Expm1, T>("expm1", 0.8),
    on_vectors<Log, T>("log", 0.9),
    on_vectors<Log1p, T>("log1p", 1.2),
    on_vectors<Sin, T>("sin", 1.0),
    on_vectors<Cos, T>("cos", 1.0),
    on_vectors<Tanh, T>("tanh", 1.0),
    on_vectors<Sigmoid, T>("sigmoid", 1.0),
    on_vectors<Softplus, T>("softplus", 1.8),
    on_vectors<Erf, T>("erf", 1.2),
};

constexpr Function functions_of_integers[] = {
    unary<Identity, int64_t>("floor"),
    unary<Identity, int64_t>("ceil"),
    unary<Identity, int64_t>("round"),
};

/// Calls `function` with a value of the type that programs of `dtype` are computed in.
template <class F>
decltype(auto) dispatch_compute(DType dtype, F&& function) {
    if (dtype == DType::float32) return function(float{});
    if (dtype == DType::float64) return function(double{});
    return function(int64_t{});
}

template <size_t count>
const Function* search(const Function (&table)[count], const std::string& name) {
    for (const Function& function : table)
        if (name == function.name) return &function;
    return nullptr;
}

const Function* find_function(const std::string& name, DType dtype) {
    return dispatch_compute(dtype, [&](auto value) {
        using T = decltype(value);
        if (const Function* function = search(functions_of_all<T>, name)) return function;
        if constexpr (std::is_floating_point_v<T>)
            return search(functions_of_reals<T>, name);
        else
            return search(functions_of_integers, name);
    });
}

// --- between memory and registers

using Copy = void (*)(const void* in, void* out, int64_t n);

/// From memory of type `from` to a register of a program computed in `dtype`.
Copy loader(DType from, DType dtype) {
    return dispatch(from, [&](auto value) -> Copy {
        using From = Stored<decltype(value)>;
        if (dtype == DType::boolean)
            return [](const void* in, void* out, int64_t n) {
                for (int64_t i = 0; i < n; i++)
                    static_cast<int64_t*>(out)[i] = static_cast<const From*>(in)[i] != 0;
            };
        return dispatch_compute(dtype, [](auto compute) -> Copy {
            using T = decltype(compute);
            return [](const void* in, void* out, int64_t n) {
                convert_loop<From, T>(static_cast<const From*>(in), static_cast<T*>(out), n);
            };
        });
    });
}

/// From a register to memory of type `to`, which is the program's type or bool.
Copy storer(DType to, DType dtype) {
    return dispatch(to, [&](auto value) -> Copy {
        using To = decltype(value);
        return dispatch_compute(dtype, [](auto compute) -> Copy {
            using T = decltype(compute);
            return [](const void* in, void* out, int64_t n) {
                convert_loop<T, To>(static_cast<const T*>(in), static_cast<Stored<To>*>(out), n);
            };
        });
    });
}

/// Integer types are computed in 64 bits; this cuts a register back to what `dtype` can hold. None for the
/// others.
using Wrap = void (*)(void* reg, int64_t n);
Wrap wrapper(DType dtype) {
    return dispatch(dtype, [](auto value) -> Wrap {
        using Narrow = decltype(value);
        if constexpr (std::is_integral_v<Narrow> && sizeof(Narrow) < 8)
            return [](void* reg, int64_t n) {
                auto* elements = static_cast<int64_t*>(reg);
                for (int64_t i = 0; i < n; i++) elements[i] = convert<Narrow>(elements[i]);
            };
        return nullptr;
    });
}

// --- kernel

class Elementwise final : public Kernel {
  public:
    explicit Elementwise(const Signature& s)
        : threads_(s.threads), input_count_(static_cast<int>(s.inputs.size())) {
        const Shape& shape = s.outputs[0].shape;
        count_ = element_count(shape);
        dtype_ = dtype_from_name(s.attributes.text("dtype"));
        compute_ = dispatch_compute(dtype_, [](auto value) { return DTypeOf<decltype(value)>::value; });
        width_ = static_cast<int64_t>(size_of(compute_));
        identity_ = dispatch_compute(dtype_, [](auto value) { return &identity<decltype(value)>; });
        wrap_ = wrapper(dtype_);
        read_program(s);
        place_inputs(s, shape);
        place_scalars();
        if (is_real()) fuse_products(s.attributes.integers("results"));
        place_results(s);
        schedule();
        lay_out();
    }

    size_t workspace_bytes() const override { return bytes_; }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        if (count_ == 0) return;
        const Workspace work{static_cast<char*>(arguments.workspace)};
        for (const Input& input : inputs_) prepare(input, arguments, work);
        compute_scalars(work);
        const uint64_t deferred = find_overlaps(arguments);
        const int64_t blocks = (count_ + block - 1) / block;
        pool.ranges(blocks, grain_for(cost_ * block), [&](int64_t begin, int64_t end, int worker) {
            run_tiles(begin * block, std::min(end * block, count_), worker, arguments, work, deferred);
        });
    }

  private:
    static constexpr int64_t block = 64;  // elements; ranges of threads meet at whole cache lines
    static constexpr int64_t longest_period = 4096;

    // Where a register is found while a tile runs.
    enum class Place { memory, periodic, strided, slot, scalar, output };
    struct Register {
        Place place = Place::slot;
        int slot = -1;        // of a tile buffer, where one is needed
        int last_read = -1;   // instruction
        bool spread = false;  // a scalar that some loop reads as a tile
    };
    struct Input {
        int reg = 0;
        size_t element_bytes = 0;
        bool converts = false;
        Copy load = nullptr;
        Wrap wrap = nullptr;
        int64_t period = 0;
        size_t periodic_offset = 0;
        Walk walk;
    };
    struct Instruction {
        const Function* function = nullptr;
        int operands[3] = {0, 0, 0};
        int result = 0;
        Loop loop = nullptr;
    };
    struct Result {
        int reg = 0;
        size_t element_bytes = 0;
        Copy store = nullptr;
        bool converts = false;
        std::vector<int>
            overlapping;  // inputs still read after this result is written, if they share its memory
    };
    struct Workspace {  // scalar registers first, then one repeated copy per periodic input, then the
                        // workers' parts
        char* base;
        char* scalar(int reg) const { return base + reg * 8; }
        char* periodic(const Input& input) const { return base + input.periodic_offset; }
    };

    void read_program(const Signature& s) {
        const auto functions = s.attributes.texts("functions");
        const auto& operands = s.attributes.integers("operands");
        registers_.resize(input_count_);
        for (size_t k = 0; k < functions.size(); k++)
            add_instruction(find_function(functions[k], dtype_),
                            {static_cast<int>(operands[3 * k]), static_cast<int>(operands[3 * k + 1]),
                             static_cast<int>(operands[3 * k + 2])});
    }

    int add_instruction(const Function* function, std::array<int, 3> operands) {
        Instruction instruction;
        instruction.function = function;
        for (int i = 0; i < 3; i++)  // unused operands repeat the first, so that every pointer is valid
            instruction.operands[i] = i < instruction.function->arity ? operands[i] : operands[0];
        instruction.result = static_cast<int>(registers_.size());
        registers_.emplace_back();
        instructions_.push_back(instruction);
        return instruction.result;
    }

    void place_inputs(const Signature& s, const Shape& shape) {
        std::vector<Shape> strides;
        for (const TensorType& type : s.inputs) strides.push_back(broadcast_strides(type.shape, shape));
        const Walk walk = collapse(shape, strides);
        for (int i = 0; i < input_count_; i++) {
            Input input;
            input.reg = i;
            input.element_bytes = size_of(s.inputs[i].dtype);
            input.converts = s.inputs[i].dtype != compute_ || (wrap_ && s.inputs[i].dtype != dtype_);
            input.load = loader(s.inputs[i].dtype, dtype_);
            input.wrap = s.inputs[i].dtype != dtype_ ? wrap_ : nullptr;
            input.walk = collapse(walk.extents, {walk.strides[i]});
            input.period = period_of(input.walk);
            Place& place = registers_[i].place;
            if (s.inputs[i].size() == count_)
                place = input.converts ? Place::strided : Place::memory;
            else if (s.inputs[i].size() == 1)
                place = Place::scalar;
            else
                place = input.period > 0 && input.period <= longest_period ? Place::periodic : Place::strided;
            inputs_.push_back(input);
        }
    }

    bool is_real() const { return compute_ == DType::float32 || compute_ == DType::float64; }

    /// Turns a product that is used once, in a sum or difference, into a part of that instruction.
    void fuse_products(const std::vector<int64_t>& results) {
        std::vector<int> uses(registers_.size(), 0);
        for (const Instruction& instruction : instructions_)
            for (int i = 0; i < instruction.function->arity; i++) uses[instruction.operands[i]]++;
        for (int64_t result : results) uses[result]++;
        for (Instruction& sum : instructions_) {
            const bool add = is(sum, "add");
            if (!add && !is(sum, "subtract")) continue;
            for (int i = 1; i >= 0; i--) {
                const int reg = sum.operands[i], other = sum.operands[1 - i];
                if (reg < input_count_ || uses[reg] != 1) continue;
                Instruction& product = instructions_[reg - input_count_];
                if (!is(product, "multiply") || is_scalar(reg)) continue;
                const int a = product.operands[0], b = product.operands[1];
                sum.function = fused(add, i);
                sum.operands[0] = is_scalar(a) ? b : a;  // a scalar factor comes second
                sum.operands[1] = is_scalar(a) ? a : b;
                sum.operands[2] = other;
                product.function = nullptr;
                break;
            }
        }
        std::erase_if(instructions_, [](const Instruction& instruction) { return !instruction.function; });
    }
    static bool is(const Instruction& instruction, const char* name) {
        return instruction.function && std::strcmp(instruction.function->name, name) == 0;
    }
    const Function* fused(bool add, int place_of_product) const {
        return dispatch_compute(dtype_, [&](auto value) -> const Function* {
            using T = decltype(value);
            if constexpr (std::is_floating_point_v<T>)
                return add                     ? &multiply_add<T>
                       : place_of_product == 0 ? &multiply_subtract<T>
                                               : &subtract_product<T>;
            return nullptr;
        });
    }
    bool is_scalar(int reg) const { return registers_[reg].place == Place::scalar; }

    /// What is computed from scalars alone is a scalar.
    void place_scalars() {
        for (const Instruction& instruction : instructions_) {
            bool scalar = true;
            for (int operand : instruction.operands) scalar &= is_scalar(operand);
            if (scalar) registers_[instruction.result].place = Place::scalar;
        }
    }

    /// The number of elements after which a walk starts over, or 0 where it does not just repeat.
    static int64_t period_of(const Walk& walk) {
        const int rank = walk.rank();
        if (rank == 2 && walk.strides[0][0] == 0 && walk.strides[0][1] == 1) return walk.extents[1];
        return 0;
    }

    /// Every result becomes the register of an instruction of its own, so that it can be written where it
    /// belongs.
    void place_results(const Signature& s) {
        const auto& results = s.attributes.integers("results");
        std::vector<bool> taken(registers_.size(), false);
        for (size_t j = 0; j < results.size(); j++) {
            int reg = static_cast<int>(results[j]);
            if (reg < input_count_ || taken[reg] || registers_[reg].place == Place::scalar) {
                reg = add_instruction(identity_, {reg, 0, 0});
                taken.push_back(false);
            }
            taken[reg] = true;
            Result result;
            result.reg = reg;
            result.element_bytes = size_of(s.outputs[j].dtype);
            result.converts = s.outputs[j].dtype != compute_;
            result.store = storer(s.outputs[j].dtype, dtype_);
            registers_[reg].place = result.converts ? Place::slot : Place::output;
            results_.push_back(result);
        }
        for (Result& result : results_) {
            if (result.converts) continue;
            bool written = false;
            for (const Instruction& instruction : instructions_) {
                if (written)
                    for (int operand : instruction.operands)
                        if (operand < input_count_ && registers_[operand].place == Place::memory)
                            result.overlapping.push_back(operand);
                written |= instruction.result == result.reg;
            }
        }
    }

    /// Picks each instruction's loop and gives registers that need one a tile buffer, for as long as they are
    /// read.
    void schedule() {
        const int last = static_cast<int>(instructions_.size());
        for (int k = 0; k < last; k++)
            for (int operand : instructions_[k].operands) registers_[operand].last_read = k;
        for (const Result& result : results_)
            if (result.converts || !result.overlapping.empty()) registers_[result.reg].last_read = last;

        std::vector<int> free;
        auto take_slot = [&](Register& reg) {
            if (free.empty()) free.push_back(slots_++);
            reg.slot = free.back();
            free.pop_back();
        };
        for (Input& input : inputs_)
            if (registers_[input.reg].place == Place::strided) take_slot(registers_[input.reg]);
        for (Instruction& instruction : instructions_) choose_loop(instruction);
        for (Register& reg : registers_)
            if (reg.spread) take_slot(reg);
        for (int k = 0; k < last; k++) {
            const Instruction& instruction = instructions_[k];
            for (int i = 0; i < 3; i++) {
                const Register& operand = registers_[instruction.operands[i]];
                if (operand.slot >= 0 && operand.last_read == k && !operand.spread &&
                    !contains(free, operand.slot))
                    free.push_back(operand.slot);
            }
            Register& result = registers_[instruction.result];
            if (result.place == Place::slot || (result.place == Place::output && result.last_read == last))
                take_slot(result);
            cost_ += instruction.function->cost * static_cast<double>(width_) / 4;
        }
        for (const Input& input : inputs_)
            if (registers_[input.reg].place != Place::scalar)
                cost_ += 0.05 * static_cast<double>(input.element_bytes);
        for (const Result& result : results_) cost_ += 0.05 * static_cast<double>(result.element_bytes);
        int64_t streams = slots_ + static_cast<int64_t>(results_.size());
        for (const Input& input : inputs_) streams += registers_[input.reg].place != Place::scalar;
        // Small enough for the processor to look ahead from one instruction's loop into the next: in long
        // programs tiles of 512 take 1.4 times as long as tiles of 192.
        const int64_t fitting = 8 * 1024 / (width_ * streams) / block * block;
        tile_ = std::min(std::clamp<int64_t>(fitting, 128, 1024), (count_ + block - 1) / block * block);
    }

    void choose_loop(Instruction& instruction) {
        int scalars = 0;
        for (int i = 0; i < instruction.function->arity; i++)
            if (registers_[instruction.operands[i]].place == Place::scalar) scalars |= 1 << i;
        if (registers_[instruction.result].place == Place::scalar) scalars = 0;
        instruction.loop = instruction.function->loops[scalars];
        if (instruction.loop) return;
        instruction.loop = instruction.function->loops[0];
        for (int i = 0; i < instruction.function->arity; i++)
            registers_[instruction.operands[i]].spread |= (scalars >> i & 1) != 0;
    }

    static bool contains(const std::vector<int>& list, int value) {
        return std::find(list.begin(), list.end(), value) != list.end();
    }

    void lay_out() {
        const auto registers = static_cast<int64_t>(registers_.size());
        Carver carver;
        carver.take<int64_t>(registers);
        for (Input& input : inputs_) {
            input.periodic_offset = carver.used();
            if (registers_[input.reg].place == Place::periodic)
                carver.take<char>((input.period + tile_) * width_);
        }
        workers_offset_ = carver.used();
        Carver worker;
        worker.take<char*>(registers);
        worker.take<char>(slots_ * tile_ * width_);
        worker_bytes_ = worker.used();
        bytes_ = workers_offset_ + worker_bytes_ * static_cast<size_t>(threads_);
    }

    void prepare(const Input& input, const Arguments& arguments, const Workspace& work) const {
        const void* memory = arguments.inputs[input.reg];
        const Place place = registers_[input.reg].place;
        if (place == Place::scalar) {
            input.load(memory, work.scalar(input.reg), 1);
            if (input.wrap) input.wrap(work.scalar(input.reg), 1);
        } else if (place == Place::periodic) {
            char* buffer = work.periodic(input);
            input.load(memory, buffer, input.period);
            if (input.wrap) input.wrap(buffer, input.period);
            for (int64_t i = input.period; i < input.period + tile_;) {
                const int64_t n = std::min(i, input.period + tile_ - i);
                std::memcpy(buffer + i * width_, buffer, static_cast<size_t>(n * width_));
                i += n;
            }
        }
    }

    void compute_scalars(const Workspace& work) const {
        for (const Instruction& instruction : instructions_) {
            if (registers_[instruction.result].place != Place::scalar) continue;
            const char* operands[3];
            for (int i = 0; i < 3; i++) operands[i] = work.scalar(instruction.operands[i]);
            char* result = work.scalar(instruction.result);
            instruction.loop(operands[0], operands[1], operands[2], result, 1);
            if (wrap_ && !instruction.function->boolean) wrap_(result, 1);
        }
    }

    /// Bit j: result j shares the memory of an input that is read after it is computed, so it is written
    /// last.
    uint64_t find_overlaps(const Arguments& arguments) const {
        uint64_t deferred = 0;
        for (size_t j = 0; j < results_.size(); j++)
            for (int input : results_[j].overlapping)
                if (arguments.inputs[input] == arguments.outputs[j]) deferred |= uint64_t(1) << j;
        return deferred;
    }

    void run_tiles(int64_t begin, int64_t end, int worker, const Arguments& arguments, const Workspace& work,
                   uint64_t deferred) const {
        Carver carver(work.base + workers_offset_ + worker_bytes_ * static_cast<size_t>(worker));
        char** pointers = carver.take<char*>(static_cast<int64_t>(registers_.size()));
        char* slots = carver.take<char>(slots_ * tile_ * width_);
        for (int r = 0; r < static_cast<int>(registers_.size()); r++) {
            const Register& reg = registers_[r];
            pointers[r] = reg.slot >= 0 ? slots + reg.slot * tile_ * width_ : work.scalar(r);
            if (reg.spread) identity_->loops[1](work.scalar(r), nullptr, nullptr, pointers[r], tile_);
        }
        for (int64_t start = begin; start < end; start += tile_) {
            const int64_t n = std::min(tile_, end - start);
            for (const Input& input : inputs_) place_tile(input, arguments, work, start, n, slots, pointers);
            for (size_t j = 0; j < results_.size(); j++)
                if (!results_[j].converts && !(deferred >> j & 1))
                    pointers[results_[j].reg] = arguments.output<char>(static_cast<int>(j)) + start * width_;
            for (const Instruction& k : instructions_) {
                if (registers_[k.result].place == Place::scalar) continue;
                char* out = pointers[k.result];
                k.loop(pointers[k.operands[0]], pointers[k.operands[1]], pointers[k.operands[2]], out, n);
                if (wrap_ && !k.function->boolean) wrap_(out, n);
            }
            for (size_t j = 0; j < results_.size(); j++)
                if (results_[j].converts || (deferred >> j & 1))
                    results_[j].store(pointers[results_[j].reg],
                                      arguments.output<char>(static_cast<int>(j)) +
                                          static_cast<size_t>(start) * results_[j].element_bytes,
                                      n);
        }
    }

    /// Makes pointers[input] lead to n elements of an input from output position `start` on.
    void place_tile(const Input& input, const Arguments& arguments, const Workspace& work, int64_t start,
                    int64_t n, char* slots, char** pointers) const {
        const Register& reg = registers_[input.reg];
        auto* memory = static_cast<char*>(arguments.inputs[input.reg]);
        switch (reg.place) {
            case Place::memory:
                pointers[input.reg] = memory + start * width_;
                break;
            case Place::periodic:
                pointers[input.reg] = work.periodic(input) + start % input.period * width_;
                break;
            case Place::strided: {
                char* slot = slots + reg.slot * tile_ * width_;
                pointers[input.reg] = fetch(input, memory, start, n, slot);
                if (input.wrap) input.wrap(slot, n);
                break;
            }
            default:
                break;
        }
    }

    /// Gathers a broadcast or converted input into `slot`, run by run; one run in memory as it is needs no
    /// copy.
    char* fetch(const Input& input, char* memory, int64_t start, int64_t n, char* slot) const {
        const int outer = input.walk.rank() - 1;
        const int64_t* extents = input.walk.extents.data();
        const int64_t* strides = input.walk.strides[0].data();
        const int64_t extent = extents[outer], stride = strides[outer], within = start % extent;
        Odometer position;
        position.set(start / extent, extents, strides, outer);
        if (!input.converts && stride == 1 && within + n <= extent)
            return memory + (position.offset + within) * width_;
        auto each_run = [&](auto&& body) {  // body(offset of the first element, place in the slot, elements)
            int64_t skipped = within;
            for (int64_t done = 0; done < n; skipped = 0, position.next(extents, strides, outer)) {
                const int64_t run = std::min(extent - skipped, n - done);
                body(position.offset + skipped * stride, done, run);
                done += run;
            }
        };
        if (input.converts)
            each_run([&](int64_t offset, int64_t place, int64_t run) {
                const char* source = memory + offset * static_cast<int64_t>(input.element_bytes);
                input.load(source, slot + place * width_, stride == 1 ? run : 1);
                if (stride != 1)
                    identity_->loops[1](slot + place * width_, nullptr, nullptr, slot + place * width_, run);
            });
        else if (width_ == 4)
            each_run(Gather<uint32_t>{memory, slot, stride});
        else
            each_run(Gather<uint64_t>{memory, slot, stride});
        return slot;
    }

    template <class E>
    struct Gather {
        const void* memory;
        void* slot;
        int64_t stride;
        void operator()(int64_t offset, int64_t place, int64_t run) const {
            const E* source = static_cast<const E*>(memory) + offset;
            E* target = static_cast<E*>(slot) + place;
            if (stride == 1)
                for (int64_t i = 0; i < run; i++) target[i] = source[i];
            else
                for (int64_t i = 0; i < run; i++) target[i] = *source;
        }
    };

    int threads_;
    int input_count_;
    int64_t count_ = 0;
    DType dtype_, compute_;
    int64_t width_;  // bytes of a register's element
    const Function* identity_;
    Wrap wrap_;
    std::vector<Input> inputs_;
    std::vector<Instruction> instructions_;
    std::vector<Register> registers_;
    std::vector<Result> results_;
    int slots_ = 0;
    int64_t tile_ = 0;
    size_t workers_offset_ = 0, worker_bytes_ = 0, bytes_ = 0;
    double cost_ = 0;  // nanoseconds per element
};

bool supports(const Signature& s) {
    if (s.inputs.empty() || s.outputs.empty() || s.outputs.size() > 64) return false;
    if (s.outputs[0].rank() > max_rank) return false;
    for (const TensorType& output : s.outputs)
        if (output.shape != s.outputs[0].shape) return false;
    const DType dtype = dtype_from_name(s.attributes.text("dtype"));
    for (const std::string& name : s.attributes.texts("functions"))
        if (!find_function(name, dtype)) return false;
    return true;
}

const Registration elementwise("elementwise", "tiles", 10, supports, create_kernel<Elementwise>);

}  // namespace
}  // namespace magmadnn::cpu
