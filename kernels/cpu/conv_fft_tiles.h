// Convolution in the frequency domain: what its three directions share.
//
// The target of a convolution with stride 1 is cut into tiles. A tile and the source positions that it reads
// fit into a box of 8, 16 or 32 points per axis (one where the window is one wide), and there a convolution
// is a product frequency by frequency (overlap-save). Two tiles are transformed at once, as real and
// imaginary part z = a + ib: a convolution with a real window is linear, so its real and imaginary part are
// those of a and of b, and the spectra need not be taken apart.
//
// The spectrum of a real window has W(-k) = conj W(k). So -k shares the products of k: its values are stored
// conjugated, as a second half ("mirror") of the rows of k. A frequency that is its own mirror has none.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "conv_geometry.h"
#include "gemm/tasks.h"

namespace magmadnn::cpu {

/// The tiles of a target, and the frequencies of their boxes.
class FftTiling {
  public:
    struct Frequency {
        int64_t point, mirror;  // places in the box of k and -k
        int64_t halves() const { return point == mirror ? 1 : 2; }
    };
    /// A pair of tiles: their images (-1: no tile) and first target positions.
    struct Place {
        int64_t image;
        std::array<int64_t, 3> first;
    };

    /// `target`: extents; `span`: extents of the window with its dilation.
    FftTiling(int64_t images, const std::array<int64_t, 3>& target, const std::array<int64_t, 3>& span,
              const std::array<int64_t, 3>& box);

    const std::array<int64_t, 3>& box() const { return box_; }
    const std::array<int64_t, 3>& step() const { return step_; }
    int64_t points() const { return box_[0] * box_[1] * box_[2]; }
    int64_t pairs() const { return (tiles_ + 1) / 2; }
    const std::vector<Frequency>& frequencies() const { return frequencies_; }
    Place place(int64_t tile) const;

    /// Transforms planes [points][lanes] of real and imaginary parts in place. Input (forward) or output
    /// (inverse) counts only within `used` positions of each axis.
    void forward(float* planes, const std::array<int64_t, 3>& used) const;
    void inverse(float* planes, const std::array<int64_t, 3>& used) const;

  private:
    std::array<int64_t, 3> box_, step_, counts_;
    int64_t tiles_;
    std::vector<Frequency> frequencies_;
};

/// One vector of channels of a channels-last tensor, as tiles see it.
struct TileView {
    std::array<int64_t, 3> extents;
    int64_t channels;
    std::array<int64_t, 3> low;     // target position p starts at tensor position p - low
    std::array<int64_t, 3> length;  // positions of a tile
};

/// Real and imaginary planes of a pair of tiles: channels [channel, channel + lanes), zeros outside the
/// tensor.
void load_pair(const FftTiling& tiling, const TileView& view, const float* tensor, int64_t pair,
               int64_t channel, float* planes);

/// Where spectra of a group of pairs lie: [frequency][half][pair][row][channel]. Rows are Re, Im and, where
/// both parts of a complex product are rows of one real product, -Re.
struct SpectraLayout {
    int64_t channels;   // rounded up to whole vectors
    int64_t rows;       // two or three
    int64_t frequency;  // elements between frequencies, for the largest group

    SpectraLayout(int64_t channels, int64_t rows, int64_t pairs);
    int64_t pair() const { return rows * channels; }
};

/// From planes to the spectra of a pair and back, one vector of channels; `spectra`: of the first frequency
/// and half at this pair and channel, in a group of `pairs`.
void store_spectrum(const FftTiling& tiling, const float* planes, const SpectraLayout& layout, int64_t pairs,
                    float* spectra);
void load_spectrum(const FftTiling& tiling, const float* spectra, const SpectraLayout& layout, int64_t pairs,
                   float* planes);

/// body(unit, worker) for each unit, shared out among the threads in contiguous ranges.
template <class Body>
void share_units(ThreadPool& pool, int64_t units, int64_t threads, Body body) {
    const Cut tasks = {units, std::min(units, tasks_wanted(false, threads))};
    pool.each(tasks.parts, [&](int64_t task, int worker) {
        for (int64_t unit = tasks.begin(task); unit < tasks.begin(task + 1); unit++) body(unit, worker);
    });
}

/// Pairs cut into groups whose spectra, `elements` per pair, fit into the last-level cache, but with enough
/// of them to repay a pass over the spectra of the weights.
Cut fft_groups(const FftTiling& tiling, int64_t elements);

/// Elements between frequencies: no power of two, which would map them to the same sets of the caches.
constexpr int64_t apart(int64_t elements) { return round_up(elements, 16) + 16; }

/// Extents of the window of a convolution with its dilation.
std::array<int64_t, 3> window_span(const ConvolutionShape& shape);

/// Place of a tap in the planes of a box, in vectors.
int64_t tap_point(const ConvolutionShape& shape, const FftTiling& tiling, int64_t tap);

/// The box of least work, and about as many multiply-adds as the whole takes time for; zero where no box
/// holds the window.
struct FftCost {
    std::array<int64_t, 3> box;
    double products;
};
FftCost cheapest_box(const ConvolutionShape& shape, const std::array<int64_t, 3>& target);

/// Whether a convolution is one for these kernels, and their preference: before the direct algorithm where
/// that one has more to multiply. `target`: the extents that are cut into tiles.
bool fft_supports(const ConvolutionShape& shape, const std::array<int64_t, 3>& target);
int fft_preference(const ConvolutionShape& shape, const std::array<int64_t, 3>& target);

}  // namespace magmadnn::cpu
