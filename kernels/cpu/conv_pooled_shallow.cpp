// The weight gradient of a convolution with few taps and channels whose output was max-pooled: a first layer.
//
// Lists of non-zero values (conv_pooled.cpp) cost more than the few products they save there. Instead vectors
// of filters go over all four cells of each window, with zeros where a cell was not the greatest.
#include <array>

#include "conv_pooled.h"
#include "positions.h"

namespace magmadnn::cpu {
namespace {

constexpr int window_cells = 4;
constexpr int64_t most_taps = 32;  // kernel extents times channels
constexpr int most_vectors = 2;    // of filters
constexpr int accumulators = 12;

/// Some taps times some vectors of filters, over the windows of an image.
struct Part {
    const float* image;
    const int64_t* corners;   // of each window in the image
    const int64_t* cells;     // offset of each cell of a window
    const int64_t* taps;      // offset of each tap
    const float* dy;          // [windows][k]
    const uint8_t* position;  // likewise
    int64_t windows, k;
    float* sums;  // [tap][vector]; the vectors of a tap lie `sums_stride` apart
    int64_t sums_stride;
    std::array<int64_t, most_vectors> first;  // filter of each vector
};

template <int Taps, int Vectors>
void add_part(const Part& p) {
    Vector<float> sum[Taps][Vectors];
    for (int t = 0; t < Taps; t++)
        for (int j = 0; j < Vectors; j++) sum[t][j] = load(p.sums + t * p.sums_stride + j * lanes<float>);
    for (int64_t window = 0; window < p.windows; window++) {
        const float* corner = p.image + p.corners[window];
        Vector<float> dy[Vectors];
        Positions<float> position[Vectors];
        for (int j = 0; j < Vectors; j++) {
            dy[j] = load(p.dy + window * p.k + p.first[j]);
            position[j] = load_positions<float>(p.position + window * p.k + p.first[j]);
        }
#pragma GCC unroll 4
        for (int cell = 0; cell < window_cells; cell++) {
            const float* x = corner + p.cells[cell];
            Vector<float> here[Vectors];
            for (int j = 0; j < Vectors; j++)
                here[j] = position[j] == Positions<float>{} + cell ? dy[j] : Vector<float>{};
#pragma GCC unroll 12
            for (int t = 0; t < Taps; t++)
#pragma GCC unroll 2
                for (int j = 0; j < Vectors; j++) sum[t][j] += x[p.taps[t]] * here[j];
        }
    }
    for (int t = 0; t < Taps; t++)
        for (int j = 0; j < Vectors; j++) store(p.sums + t * p.sums_stride + j * lanes<float>, sum[t][j]);
}

template <int Vectors, int... Taps>
constexpr auto functions_of(std::integer_sequence<int, Taps...>) {
    return std::array<void (*)(const Part&), sizeof...(Taps)>{add_part<Taps + 1, Vectors>...};
}
constexpr auto one_vector = functions_of<1>(std::make_integer_sequence<int, accumulators>());
constexpr auto two_vectors = functions_of<2>(std::make_integer_sequence<int, accumulators / 2>());

/// Each part of the images has sums of its own, which are added in order.
class ShallowWeightGradient : public Kernel {
  public:
    explicit ShallowWeightGradient(const Signature& s)
        : g_(s, s.inputs[0].shape, s.outputs[0].shape, s.inputs[1].shape),
          parts_(std::clamp<int64_t>(g_.n, 1, s.threads)),
          vectors_((g_.k + lanes<float> - 1) / lanes<float>) {
        for (int64_t i = 0; i < g_.r; i++)
            for (int64_t j = 0; j < g_.row; j++) taps_.push_back(i * g_.image_row() + j);
        for (int64_t p = 0; p < g_.windows(); p++) corners_.push_back(g_.corner(p));
        sums_floats_ = taps() * vectors_ * lanes<float>;
        part_floats_ = (sums_floats_ + g_.image_floats + 15) / 16 * 16;
    }

    size_t workspace_bytes() const override { return parts_ * part_floats_ * sizeof(float); }

    void run(const Arguments& arguments, ThreadPool& pool) override {
        float* own = static_cast<float*>(arguments.workspace);
        pool.each(parts_, [&](int64_t part, int) {
            float* sums = own + part * part_floats_;
            std::fill_n(sums, sums_floats_, 0.0f);
            for (int64_t n = g_.n * part / parts_; n < g_.n * (part + 1) / parts_; n++)
                add_image(arguments, n, sums, sums + sums_floats_);
        });
        float* dw = arguments.output<float>(0);
        for (int64_t t = 0; t < taps(); t++)
            for (int64_t j = 0; j < vectors_; j++) {
                Vector<float> total{};
                for (int64_t part = 0; part < parts_; part++)
                    total += load(own + part * part_floats_ + (t * vectors_ + j) * lanes<float>);
                store(dw + t * g_.k + first_filter(j), total);
            }
    }

  private:
    int64_t taps() const { return static_cast<int64_t>(taps_.size()); }
    /// The last vector overlaps the one before where the filters are not whole vectors.
    int64_t first_filter(int64_t vector) const {
        return std::min(vector * lanes<float>, g_.k - lanes<float>);
    }

    void add_image(const Arguments& arguments, int64_t n, float* sums, float* scratch) const {
        Part part;
        part.image = g_.padded(arguments.input<float>(0), n, scratch);
        part.corners = corners_.data();
        part.cells = g_.in_window.data();
        part.windows = g_.windows();
        part.k = g_.k;
        part.dy = arguments.input<float>(1) + n * g_.windows() * g_.k;
        part.position = arguments.input<uint8_t>(2) + n * g_.windows() * g_.k;
        part.sums_stride = vectors_ * lanes<float>;
        for (int64_t j = 0; j < vectors_; j += most_vectors) {
            const int64_t vectors = std::min<int64_t>(most_vectors, vectors_ - j);
            for (int64_t i = 0; i < vectors; i++) part.first[i] = first_filter(j + i);
            const int64_t most = accumulators / vectors, chunks = (taps() + most - 1) / most;
            for (int64_t chunk = 0; chunk < chunks; chunk++) {
                const int64_t t = taps() * chunk / chunks, count = taps() * (chunk + 1) / chunks - t;
                part.taps = taps_.data() + t;
                part.sums = sums + (t * vectors_ + j) * lanes<float>;
                (vectors == 1 ? one_vector[count - 1] : two_vectors[count - 1])(part);
            }
        }
    }

    PooledImages g_;
    int64_t parts_, vectors_, sums_floats_, part_floats_;
    std::vector<int64_t> taps_, corners_;
};

bool supports(const Signature& s) {
    const Shape& dw = s.outputs[0].shape;
    if (!supports_pooled_gradient(s, 2, dw)) return false;
    const auto& window = s.attributes.integers("window");
    return window[0] * window[1] == window_cells && dw[0] * dw[1] * dw[2] <= most_taps &&
           dw[3] >= lanes<float>;
}

const Registration weight("pooled_convolution_weight_gradient", "shallow", 10, supports,
                          create_kernel<ShallowWeightGradient>);

}  // namespace
}  // namespace magmadnn::cpu
