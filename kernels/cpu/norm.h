// What normalize and its gradient share, for batch, layer, group and instance normalization alike. The tensor
// is seen as
//   x[outer][rows][width], width = groups * size: statistics over rows and size, one for each outer and
//   group; scale and offset depend on the position in the width alone.
// With rows == 1 (layer-norm) a group is one contiguous segment; otherwise columns are summed and then put
// together.
//   k outer index, g group, w position in the width, rstd 1 / sqrt(variance + epsilon)
#pragma once
#include <cmath>

#include "loops.h"
#include "registration.h"

namespace magmadnn::cpu {

struct Layout {
    int64_t outer = 1, rows = 1, groups = 1, size = 1, width = 1;
    int64_t fold = 1;                  // rows taken as one where the width fills no vectors
    std::vector<int64_t> scale_index;  // of each position in the width; empty where it is the position itself
    int64_t scale_size = 1;

    int64_t folded_width() const { return width * fold; }
    int64_t scale_at(int64_t w) const { return scale_index.empty() ? w : scale_index[w]; }
    double count() const { return static_cast<double>(rows * size); }

    /// False where the axes and the shape of the scale do not fit the form above.
    bool find(const Shape& x, const Shape& scale, const std::vector<int64_t>& axes) {
        Shape extents, scale_extents;
        std::vector<bool> reduced;
        for (size_t i = 0; i < x.size(); i++) {
            if (x[i] == 1) continue;
            extents.push_back(x[i]);
            scale_extents.push_back(scale[i]);
            reduced.push_back(std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end());
        }
        const int rank = static_cast<int>(extents.size());
        if (rank == 0) return true;
        int split = 0;  // where the width starts: not after an axis along which the scale varies
        while (split < rank - 1 && scale_extents[split] == 1) split++;
        while (split >= 0 &&
               !(kept_then_reduced(reduced, 0, split) && kept_then_reduced(reduced, split, rank)))
            split--;
        if (split < 0) return false;
        for (int i = 0; i < rank; i++) {
            if (i < split)
                (reduced[i] ? rows : outer) *= extents[i];
            else
                (reduced[i] ? size : groups) *= extents[i];
        }
        width = groups * size;
        if (width < 32 && rows >= 64) fold = 16;
        index_scale({extents.begin() + split, extents.end()},
                    {scale_extents.begin() + split, scale_extents.end()});
        return true;
    }

  private:
    static bool kept_then_reduced(const std::vector<bool>& reduced, int begin, int end) {
        for (int i = begin + 1; i < end; i++)
            if (reduced[i - 1] && !reduced[i]) return false;
        return true;
    }
    void index_scale(const Shape& extents, const Shape& scale_extents) {
        scale_size = element_count(scale_extents);
        if (scale_size == width) return;
        const Shape strides = broadcast_strides(scale_extents, extents);
        for (int64_t w = 0; w < width; w++) {
            Odometer position;
            position.set(w, extents.data(), strides.data(), static_cast<int>(extents.size()));
            scale_index.push_back(position.offset);
        }
    }
};

inline constexpr int64_t row_block =
    64;  // rows whose sums are taken in T before they join the totals in double

// --- loops over columns

/// Calls strip(w, vectors) over the width in strips of four, then one vector, then column(w) for what is
/// left.
template <class T, class Strip, class Column>
inline void each_strip(int64_t width, Strip&& strip, Column&& column) {
    constexpr int L = lanes<T>;
    int64_t w = 0;
    for (; w + 4 * L <= width; w += 4 * L) strip(w, std::integral_constant<int, 4>{});
    for (; w + L <= width; w += L) strip(w, std::integral_constant<int, 1>{});
    for (; w < width; w++) column(w);
}

/// The value of an element before residual and ReLU. The gradient computes it again: the same expression, so
/// that it finds the sign that the ReLU saw.
template <class V>
inline V normal(V x, V center, V factor, V offset) {
    return (x - center) * factor + offset;
}

/// Repeats the first `width` elements until there are `fold` times as many.
template <class T>
void repeat(T* values, int64_t width, int64_t fold) {
    for (int64_t i = width; i < width * fold; i++) values[i] = values[i - width];
}

/// Sum of f(i) over [0, n) with f returning vectors: in T over blocks of a few hundred, in double across
/// them.
template <class T, class F>
double sum_segment(const int64_t n, F&& f) {
    constexpr int64_t block = 32 * lanes<T>;
    double total = 0;
    int64_t i = 0;
    while (i + lanes<T> <= n) {
        Vector<T> sum{};
        for (const int64_t end = std::min(i + block, n); i + lanes<T> <= end; i += lanes<T>)
            sum += f(i, lanes<T>);
        total += static_cast<double>(sum_lanes<T>(sum));
    }
    if (i < n) total += static_cast<double>(sum_lanes<T>(f(i, static_cast<int>(n - i))));
    return total;
}

/// The vector at p + i of which `count` elements exist; the rest is 0.
template <class T>
inline Vector<T> part(const T* p, int64_t i, int count) {
    return count == lanes<T> ? load(p + i) : load_partial(p + i, count);
}
template <class T>
inline void store_part(T* p, int64_t i, int count, Vector<T> v) {
    if (count == lanes<T>)
        store(p + i, v);
    else
        store_partial(p + i, v, count);
}
template <class T, class F>
inline void each_part(int64_t n, F&& f) {
    int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) f(i, lanes<T>);
    if (i < n) f(i, static_cast<int>(n - i));
}

/// What the two kernels share: the layout, and how rows are cut for the threads.
template <class T>
class Normalization : public Kernel {
  protected:
    Normalization(const Signature& s, const TensorType& x, const TensorType& scale)
        : threads_(s.threads),
          epsilon_(s.attributes.number("epsilon")),
          residual_(s.attributes.flag("residual")),
          relu_(s.attributes.text("activation") == "relu") {
        l_.find(x.shape, scale.shape, s.attributes.integers("axes"));
    }

    double rstd(T variance) const { return 1 / std::sqrt(static_cast<double>(variance) + epsilon_); }
    T factor(T variance, T scale) const {
        return static_cast<T>(rstd(variance) * static_cast<double>(scale));
    }

    /// Scale or offset spread over the width, in `buffer` unless it has that form already.
    const T* spread(const T* values, T* buffer) const {
        if (l_.scale_index.empty()) return values;
        for (int64_t w = 0; w < l_.width; w++) buffer[w] = values[l_.scale_index[w]];
        return buffer;
    }

    /// Parts of the rows of one outer index, in whole folds, for `streams` passes over memory.
    Parts cut_rows(int streams, ThreadPool& pool) const {
        const double cost =
            0.1 * streams * static_cast<double>(l_.folded_width() * static_cast<int64_t>(sizeof(T)) / 4);
        return Parts((l_.rows + l_.fold - 1) / l_.fold, grain_for(cost), pool.size());
    }
    int64_t row_of(int64_t folded) const { return std::min(folded * l_.fold, l_.rows); }
    double cost_of_outer(int streams) const {
        return 0.1 * streams * static_cast<double>(l_.rows * l_.width * static_cast<int64_t>(sizeof(T)) / 4);
    }

    /// body(first row, rows, width) for rows [begin, end) in blocks; folded rows count as one, of the folded
    /// width.
    template <class Body>
    void each_block(int64_t begin, int64_t end, Body&& body) const {
        const int64_t folded = (end - begin) / l_.fold;
        for (int64_t r = 0; r < folded; r += row_block)
            body(begin + r * l_.fold, std::min(row_block, folded - r), l_.folded_width());
        const int64_t rest = (end - begin) - folded * l_.fold;
        if (rest > 0) body(end - rest, rest, l_.width);
    }

    Layout l_;
    int threads_;
    double epsilon_;
    bool residual_, relu_;
};

/// Whether the kernels know a signature's activation and can walk over x with such a scale.
template <class T>
bool fits_normalization(const Signature& s, const TensorType& x, const TensorType& scale,
                        const TensorType& offset) {
    if (!all_of_type<T>(s) || x.size() == 0 || x.rank() > max_rank) return false;
    if (scale.shape != offset.shape || scale.rank() != x.rank()) return false;
    const std::string& activation = s.attributes.text("activation");
    if (activation != "linear" && activation != "relu") return false;
    return Layout().find(x.shape, scale.shape, s.attributes.integers("axes"));
}

}  // namespace magmadnn::cpu
