// convolution_input_gradient, scattering: each tap adds dy W[tap]^T to the pixels of dx that the tap had
// read. The gathering form (conv_direct.cpp) multiplies zeros wherever a tap would reach outside dy: more
// than half of its work for a 5x5 kernel without padding on a small image. This one does none, and pays with
// passes over dx, which must therefore be small.
#include "conv_geometry.h"
#include "gemm/packing.h"
#include "gemm/tasks.h"
#include "registration.h"

namespace magmadnn::cpu {
namespace {

ConvolutionShape shape_of(const Signature& s) {
    return {s.attributes, s.outputs[0].shape, s.inputs[1].shape, s.inputs[0].shape};
}

/// Extents of the part of the padded input that the taps reach or that dx needs.
std::array<int64_t, 3> reach(const ConvolutionShape& shape) {
    std::array<int64_t, 3> extents;
    for (int i = 0; i < 3; i++)
        extents[i] =
            std::max((shape.output[i] - 1) * shape.stride[i] + (shape.kernel[i] - 1) * shape.dilation[i] + 1,
                     shape.low[i] + shape.input[i]);
    return extents;
}

template <class T>
class ScatterGradient : public Kernel {
  public:
    explicit ScatterGradient(const Signature& s);
    size_t workspace_bytes() const override {
        return sizeof(T) * static_cast<size_t>(packed_elements_ + threads_ * sums_.image);
    }
    void run(const Arguments& arguments, ThreadPool& pool) override;

  private:
    void run_image(const T* dy, const T* packed, T* sums) const;
    void copy_inside(const T* sums, T* dx) const;

    ConvolutionShape shape_;
    bool serial_;
    int64_t threads_;
    Panels<T> panels_;
    PixelStrides sums_, dx_;  // sums_: dx and its padding, channels rounded up to whole vectors
    int64_t packed_elements_;
    std::vector<int32_t> dy_rows_, sum_rows_, sum_taps_;
};

template <class T>
ScatterGradient<T>::ScatterGradient(const Signature& s)
    : shape_(shape_of(s)),
      serial_(shape_.work() <= serial_work),
      threads_(s.threads),
      panels_(shape_.channels),
      sums_(reach(shape_), panels_.lanes_in_row()),
      dx_(shape_.input, shape_.channels),
      packed_elements_(round_up(shape_.taps() * shape_.filters * panels_.lanes_in_row(), 16)) {
    const auto& [ot, oh, ow] = shape_.output;
    const auto& stride = shape_.stride;
    for (int64_t t = 0; t < ot; t++)
        for (int64_t h = 0; h < oh; h++)
            for (int64_t w = 0; w < ow; w++) {
                dy_rows_.push_back(
                    static_cast<int32_t>(static_cast<int64_t>(dy_rows_.size()) * shape_.filters));
                sum_rows_.push_back(
                    static_cast<int32_t>(sums_.offset(0, t * stride[0], h * stride[1], w * stride[2])));
            }
    const auto& [kt, kh, kw] = shape_.kernel;
    const auto& dilation = shape_.dilation;
    for (int64_t t = 0; t < kt; t++)
        for (int64_t h = 0; h < kh; h++)
            for (int64_t w = 0; w < kw; w++)
                sum_taps_.push_back(
                    static_cast<int32_t>(sums_.offset(0, t * dilation[0], h * dilation[1], w * dilation[2])));
}

template <class T>
void ScatterGradient<T>::run(const Arguments& arguments, ThreadPool& pool) {
    const T* dy = arguments.input<T>(0);
    const T* weights = arguments.input<T>(1);
    T* dx = arguments.output<T>(0);
    T* packed = static_cast<T*>(arguments.workspace);
    const int64_t taps = shape_.taps(), depth = shape_.filters;

    const Cut pack_tasks = {taps * panels_.count(), packed_elements_ <= serial_work ? 1 : threads_};
    run_tasks(pool, pack_tasks.parts == 1, pack_tasks.parts, [&](int64_t task, int) {
        for (int64_t unit = pack_tasks.begin(task); unit < pack_tasks.begin(task + 1); unit++) {
            const int64_t panel = unit / taps, tap = unit % taps;
            pack_transposed(
                weights + (tap * shape_.channels + panels_.first(panel)) * depth, depth, depth,
                panels_.columns_of(panel), panels_.packed_lanes(panel),
                packed + (panels_.first(panel) * taps + tap * panels_.packed_lanes(panel)) * depth);
        }
    });
    run_tasks(pool, serial_, shape_.images, [&](int64_t image, int worker) {
        T* sums = packed + packed_elements_ + worker * sums_.image;
        run_image(dy + image * shape_.output_pixels() * shape_.filters, packed, sums);
        copy_inside(sums, dx + image * dx_.image);
    });
}

template <class T>
void ScatterGradient<T>::run_image(const T* dy, const T* packed, T* sums) const {
    std::fill_n(sums, sums_.image, T{0});
    Product<T> product;
    product.a = dy;
    product.a_rows = dy_rows_.data();
    product.a_columns = &no_offset;
    product.runs = {shape_.filters, 1};
    product.c_rows = sum_rows_.data();
    product.rows = shape_.output_pixels();
    product.depth = shape_.filters;
    product.accumulate = true;
    product.b = packed;
    for (int64_t panel = 0; panel < panels_.count(); panel++)
        for (const int32_t tap : sum_taps_) {
            product.b_stride = panels_.packed_lanes(panel);
            product.columns = static_cast<int>(panels_.packed_lanes(panel));  // sums have room for the excess
            product.c = sums + tap + panels_.first(panel);
            multiply(product);
            product.b += product.depth * product.b_stride;
        }
}

template <class T>
void ScatterGradient<T>::copy_inside(const T* sums, T* dx) const {
    sums += sums_.offset(0, shape_.low[0], shape_.low[1], shape_.low[2]);
    for (int64_t t = 0; t < shape_.input[0]; t++)
        for (int64_t h = 0; h < shape_.input[1]; h++)
            for (int64_t w = 0; w < shape_.input[2]; w++) {
                const T* from = sums + sums_.offset(0, t, h, w);
                std::copy_n(from, shape_.channels, dx + dx_.offset(0, t, h, w));
            }
}

/// Where the gathering form would do a good part of its work on zeros, and the sums of an image stay in
/// cache.
template <class T>
bool supports(const Signature& s) {
    if (!all_of_type<T>(s) || !tables_reach(s)) return false;
    const ConvolutionShape shape = shape_of(s);
    int64_t gathered = 1;
    for (const Axis& axis : input_gradient_axes(shape)) {
        int64_t products = 0;
        for (const AxisPhase& phase : axis.phases)
            products += phase.positions * static_cast<int64_t>(phase.taps.size());
        gathered *= products;
    }
    const int64_t sums = PixelStrides(reach(shape), Panels<T>(shape.channels).lanes_in_row()).image;
    return shape.groups == 1 && shape.images >= s.threads && shape.filters >= 16 &&
           sums * static_cast<int64_t>(sizeof(T)) <= level_2_bytes / 2 &&
           4 * gathered >= 5 * shape.output_pixels() * shape.taps();
}

const Registration float_entry("convolution_input_gradient", "scatter", 12, supports<float>,
                               create_kernel<ScatterGradient<float>>);
const Registration double_entry("convolution_input_gradient", "scatter", 12, supports<double>,
                                create_kernel<ScatterGradient<double>>);

}  // namespace
}  // namespace magmadnn::cpu
