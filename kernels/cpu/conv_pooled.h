// What the kernels of pooled_convolution_*_gradient share.
//
// n images, h w extents, c channels in, k channels out, r s kernel extents; p counts pooling windows, q their
// cells. A kernel row (s*c numbers) is contiguous both in an image and, once packed, in the weights.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "registration.h"
#include "simd.h"

namespace magmadnn::cpu {

struct PooledImages {
    int64_t n, h, w, c, k, r, s;
    int64_t windows_h, windows_w, window_h, window_w;
    int64_t top, left, padded_h, padded_w;
    int64_t row, vectors;            // length of a kernel row, in numbers and in vectors
    int64_t image_floats;            // of a padded image, with room to read a whole vector behind its end
    std::vector<int64_t> in_window;  // offset of each cell of a window from its first one

    PooledImages(const Signature& signature, const Shape& image, const Shape& kernel, const Shape& pooled)
        : n(image[0]), h(image[1]), w(image[2]), c(image[3]), k(kernel[3]), r(kernel[0]), s(kernel[1]) {
        const auto& window = signature.attributes.integers("window");
        const auto& padding = signature.attributes.integers("padding");
        windows_h = pooled[1];
        windows_w = pooled[2];
        window_h = window[0];
        window_w = window[1];
        top = padding[0];
        left = padding[2];
        padded_h = h + top + padding[1];
        padded_w = w + left + padding[3];
        row = s * c;
        vectors = (row + lanes<float> - 1) / lanes<float>;
        image_floats = padded_h * padded_w * c + lanes<float>;
        for (int64_t cell = 0; cell < window_h * window_w; cell++)
            in_window.push_back(cell / window_w * image_row() + cell % window_w * c);
    }

    bool is_padded() const { return padded_h != h || padded_w != w; }
    int64_t windows() const { return windows_h * windows_w; }
    int64_t packed_row() const { return vectors * lanes<float>; }
    int64_t packed_kernel() const { return r * packed_row(); }
    int64_t image_row() const { return padded_w * c; }

    /// First number, in a padded image, that the kernel covers when it makes the first cell of window `p`.
    int64_t corner(int64_t p) const {
        return p / windows_w * window_h * image_row() + p % windows_w * window_w * c;
    }

    /// The n-th image with its padding, in `scratch` unless it needs none and reading a vector behind its end
    /// stays inside of x.
    const float* padded(const float* x, int64_t i, float* scratch) const {
        const float* image = x + i * h * w * c;
        if (!is_padded() && i + 1 < n && h * w * c >= lanes<float>) return image;
        pad(image, scratch);
        return scratch;
    }

    void pad(const float* image, float* padded) const {
        std::memset(padded, 0, image_floats * sizeof(float));
        for (int64_t y = 0; y < h; y++)
            std::memcpy(padded + (y + top) * image_row() + left * c, image + y * w * c,
                        w * c * sizeof(float));
    }
};

inline bool all_equal(const std::vector<int64_t>& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

/// Whether it is of two dimensions, stride 1 and plain channels. `positions` is the index of that input,
/// `kernel` the shape of the weights.
inline bool supports_pooled_gradient(const Signature& s, int positions, const Shape& kernel) {
    const Attributes& a = s.attributes;
    if (kernel.size() != 4 || s.inputs[positions].dtype != DType::uint8) return false;
    if (s.outputs[0].dtype != DType::float32 || s.inputs[positions - 1].dtype != DType::float32) return false;
    const auto& window = a.integers("window");
    const auto& padding = a.integers("padding");
    return all_equal(a.integers("strides"), 1) && all_equal(a.integers("dilation"), 1) &&
           a.integer("groups") == 1 && window[0] * window[1] >= 4 &&
           std::all_of(padding.begin(), padding.end(), [](auto p) { return p >= 0; });
}

}  // namespace magmadnn::cpu
