// What the Winograd kernels share: tiles of images, the transforms of their pixels, and the choice of the
// algorithm.
//
// m: outputs of a tile along an axis; n = m + 2: its source pixels; c: source channel; f: target channel. A
// transformed tile has n x n "frequencies", each of which is a product of matrices of its own.
#pragma once
#include <type_traits>

#include "conv_geometry.h"
#include "conv_winograd_matrices.h"
#include "gemm/blocking.h"
#include "gemm/part.h"
#include "gemm/tasks.h"

namespace magmadnn::cpu::winograd {

/// Elements from the values of one frequency to those of the next: a line more than they fill, since equal
/// places of all frequencies at distances of a power of two would fall into the same sets of the caches.
inline int64_t frequency_step(int64_t elements) { return round_up(elements, 16) + 16; }

/// Extents of channels-last images.
struct Images {
    int64_t count, height, width, channels;

    explicit Images(const Shape& shape)
        : count(shape[0]), height(shape[1]), width(shape[2]), channels(shape[3]) {}
};

/// A position in a batch of images, perhaps outside of its image.
struct Place {
    int64_t image, h, w;
};

/// Images cut into tiles of m x m pixels, numbered row by row through the batch.
template <int m>
class Tiles {
  public:
    explicit Tiles(const Images& images)
        : columns_((images.width + m - 1) / m),
          of_image_((images.height + m - 1) / m * columns_),
          count_(images.count * of_image_) {}
    int64_t count() const { return count_; }
    /// The first pixel of a tile.
    Place place(int64_t tile) const {
        const int64_t in_image = tile % of_image_;
        return {tile / of_image_, in_image / columns_ * m, in_image % columns_ * m};
    }

  private:
    int64_t columns_, of_image_, count_;
};

/// Addresses of the pixels of a square.
template <int size, class T>
struct Square {
    T* pixels[size][size];

    Square() = default;
    /// Pixels outside of the image lead to `outside`, where all channels of a pixel may be read or written.
    Square(const Images& images, T* data, const Place& first, T* outside) {
        int64_t column[size];
        for (int j = 0; j < size; j++)
            column[j] = first.w + j >= 0 && first.w + j < images.width ? (first.w + j) * images.channels : -1;
        for (int i = 0; i < size; i++) {
            const int64_t h = first.h + i;
            const bool inside = h >= 0 && h < images.height;
            T* const row =
                data + (first.image * images.height + (inside ? h : 0)) * images.width * images.channels;
            for (int j = 0; j < size; j++)
                pixels[i][j] = inside && column[j] >= 0 ? row + column[j] : outside;
        }
    }
    /// Pixels of a tile jump from row to row, which the processor's own prefetching does not follow.
    void prefetch(int64_t channels) const {
        constexpr int write = !std::is_const_v<T>;
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++)
                for (int64_t c = 0; c < channels; c += 16) __builtin_prefetch(pixels[i][j] + c, write);
    }
    /// Pixels `row_step` and `column_step` elements apart.
    Square(T* data, int64_t row_step, int64_t column_step) {
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++) pixels[i][j] = data + i * row_step + j * column_step;
    }
};

/// Less than a vector of each pixel of a square, each in a vector of its own.
template <int size>
struct Part {
    float values[size][size][lanes<float>];

    template <class T>
    Square<size, T> square() {
        return {&values[0][0][0], size * lanes<float>, lanes<float>};
    }
};

/// Transforms the first `channels` channels of a square of pixels. Vector v of frequency x goes to
/// out[x * frequency + v * vector_step].
template <const auto& matrix>
void expand_pixels(Square<matrix.columns, const float> square, int64_t channels, float* out,
                   int64_t frequency, int64_t vector_step) {
    constexpr int size = matrix.columns;
    Part<size> part;
    int64_t at = 0;
    for (int64_t c = 0; c < channels; c += lanes<float>, at += lanes<float>, out += vector_step) {
        if (channels - c < lanes<float>) {
            for (int i = 0; i < size; i++)
                for (int j = 0; j < size; j++)
                    copy_part(square.pixels[i][j] + c, static_cast<int>(channels - c), part.values[i][j]);
            square = part.template square<const float>();
            at = 0;
        }
        expand_square<matrix>([&](int i, int j) { return load(square.pixels[i][j] + at); },
                              [&](int i, int j, V v) { store(out + (i * matrix.rows + j) * frequency, v); });
    }
}

/// What is added to the results before they are written, and the ReLU after it.
template <int size>
struct Epilogue {
    const float* bias = nullptr;  // [channels]
    bool add_residual = false;
    Square<size, const float> residual;
    bool relu = false;
};

/// The way back: element x * frequency + c of `values` belongs to frequency x and channel c. Values are
/// readable in whole vectors.
template <const auto& matrix>
void contract_pixels(const float* values, int64_t frequency, Epilogue<matrix.columns> epilogue,
                     int64_t channels, Square<matrix.columns, float> square) {
    constexpr int size = matrix.columns;
    Part<size> part, residual_part;
    const Square<size, float> target = square;
    const Square<size, const float> residual = epilogue.residual;
    int64_t at = 0;
    for (int64_t c = 0; c < channels; c += lanes<float>, at += lanes<float>) {
        const int count = static_cast<int>(std::min<int64_t>(channels - c, lanes<float>));
        if (count < lanes<float>) {
            square = part.template square<float>();
            for (int i = 0; i < size && epilogue.add_residual; i++)
                for (int j = 0; j < size; j++)
                    copy_part(residual.pixels[i][j] + c, count, residual_part.values[i][j]);
            epilogue.residual = residual_part.template square<const float>();
            at = 0;
        }
        V bias = {};
        if (epilogue.bias)
            bias = count < lanes<float> ? load_part(epilogue.bias + c, count) : load(epilogue.bias + c);
        contract_square<matrix>(
            [&](int i, int j) { return load(values + (i * matrix.rows + j) * frequency + c); },
            [&](int i, int j, V v) {
                v += bias;
                if (epilogue.add_residual) v += load(epilogue.residual.pixels[i][j] + at);
                if (epilogue.relu) v = v < V{} ? V{} : v;
                store(square.pixels[i][j] + at, v);
            });
        if (count < lanes<float>)
            for (int i = 0; i < size; i++)
                for (int j = 0; j < size; j++) copy_part(part.values[i][j], count, target.pixels[i][j] + c);
    }
}

/// A range of tiles, channels or panels.
struct Range {
    int64_t begin, end;
    int64_t length() const { return end - begin; }
};
inline Range part(const Cut& cut, int64_t i) { return {cut.begin(i), cut.begin(i + 1)}; }

/// float32, two-dimensional, window 3x3, stride, dilation and groups 1, nothing empty.
bool supports(const Signature& s);

/// Preference of F(m x m, 3x3) for tiles of these images: ten times the speed expected, relative to that of
/// the direct algorithm. source_channels, target_channels: the rows and columns of the transformed weights.
int preference(const Images& tiled, int64_t source_channels, int64_t target_channels, int m);

}  // namespace magmadnn::cpu::winograd
