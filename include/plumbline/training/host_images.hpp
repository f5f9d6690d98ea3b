// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_HOST_IMAGES_HPP
#define PLUMBLINE_TRAINING_HOST_IMAGES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plumbline/training/convolution.hpp"
#include "plumbline/training/host_matrices.hpp"
#include "plumbline/training/patches.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// The operators of host_operations.hpp that work on images.
template <class Value, class Products>
class host_images : public host_matrices<Value, Products> {
    using base = host_matrices<Value, Products>;

protected:
    using base::square;

public:
    using base::linear;
    using base::linear_backward_input;
    using base::linear_backward_weight;
    using typename base::real;
    using typename base::value;

    /// y = w * x, as a product of the patches of x with the weights.
    void convolve(const value* x, const value* w, value* y, const convolution_shape& s) {
        gather_patches(x, s);
        linear(patches_.data(), w, y, s.out_pixels(), s.patch(), s.out_channels, nullptr);
    }
    void convolve_backward_input(const value* d_y, const value* w, value* d_x, const convolution_shape& s) {
        patches_.resize(static_cast<std::size_t>(s.out_pixels() * s.patch()));
        linear_backward_input(d_y, w, patches_.data(), s.out_pixels(), s.patch(), s.out_channels);
        sums_.assign(static_cast<std::size_t>(s.inputs()), real{0});
        for_each_patch(s, [&](std::int64_t patch, std::int64_t pixel) {
            for (std::int64_t c = 0; c < s.in_channels; ++c) {
                sums_[static_cast<std::size_t>(pixel + c)] +=
                    static_cast<real>(patches_[static_cast<std::size_t>(patch + c)]);
            }
        });
        for (std::size_t i = 0; i < sums_.size(); ++i) d_x[i] = static_cast<value>(sums_[i]);
    }
    void convolve_backward_weight(const value* d_y, const value* x, real* d_w, const convolution_shape& s, bool add) {
        gather_patches(x, s);
        linear_backward_weight(d_y, patches_.data(), d_w, s.out_pixels(), s.patch(), s.out_channels, add);
    }

    /// y = [relu]((x - mean) x inverse deviation x scale + shift [+ shortcut]) with the statistics of each channel over
    /// this batch; S. Ioffe and C. Szegedy, Batch normalization, 2015. The running variance is the unbiased one.
    void batchnorm(const value* x, const real* scale, const real* shift, const value* shortcut, value* y, real* mean,
                   real* inverse_deviation, real* running_mean, real* running_variance, std::int64_t pixels,
                   std::int64_t channels, double epsilon, double momentum, bool relu) {
        channel_sums(
            pixels, channels, [&](std::int64_t i, std::int64_t) { return static_cast<double>(x[i]); }, mean);
        for (std::int64_t c = 0; c < channels; ++c) mean[c] /= static_cast<real>(pixels);
        channel_sums(
            pixels, channels,
            [&](std::int64_t i, std::int64_t c) {
                return square(static_cast<double>(x[i]) - static_cast<double>(mean[c]));
            },
            inverse_deviation);
        const real m = static_cast<real>(momentum);
        const real unbiased = static_cast<real>(pixels > 1 ? pixels - 1 : 1);
        for (std::int64_t c = 0; c < channels; ++c) {
            const real squares = inverse_deviation[c];
            running_mean[c] += m * (mean[c] - running_mean[c]);
            running_variance[c] += m * (squares / unbiased - running_variance[c]);
            inverse_deviation[c] = 1 / std::sqrt(squares / static_cast<real>(pixels) + static_cast<real>(epsilon));
        }
        for_each_element(pixels, channels, [&](std::int64_t i, std::int64_t c) {
            real v = (static_cast<real>(x[i]) - mean[c]) * inverse_deviation[c] * scale[c] + shift[c];
            if (shortcut != nullptr) v += static_cast<real>(shortcut[i]);
            y[i] = static_cast<value>(relu ? std::max(v, real{0}) : v);
        });
    }
    /// d_x from d_y; where there was a relu, `y` is its output, else null. d_shortcut, if not null, gets the gradient
    /// behind the relu. d_y and d_shortcut may be the same memory, d_x is another. d_scale, d_shift (+)= with `add`.
    void batchnorm_backward(const value* d_y, const value* x, const value* y, const real* scale, const real* mean,
                            const real* inverse_deviation, value* d_x, value* d_shortcut, real* d_scale, real* d_shift,
                            std::int64_t pixels, std::int64_t channels, bool add) {
        const auto gradient = [&](std::int64_t i) {
            return y != nullptr && !(static_cast<real>(y[i]) > 0) ? real{0} : static_cast<real>(d_y[i]);
        };
        const auto normed = [&](std::int64_t i, std::int64_t c) {
            return (static_cast<real>(x[i]) - mean[c]) * inverse_deviation[c];
        };
        std::vector<real> sum(static_cast<std::size_t>(channels)), product(static_cast<std::size_t>(channels));
        channel_sums(
            pixels, channels, [&](std::int64_t i, std::int64_t) { return gradient(i); }, sum.data());
        channel_sums(
            pixels, channels, [&](std::int64_t i, std::int64_t c) { return gradient(i) * normed(i, c); },
            product.data());
        for_each_element(pixels, channels, [&](std::int64_t i, std::int64_t c) {
            const auto at = static_cast<std::size_t>(c);
            const real mean_gradient = (sum[at] + normed(i, c) * product[at]) / static_cast<real>(pixels);
            const real g = gradient(i);
            d_x[i] = static_cast<value>(scale[c] * inverse_deviation[c] * (g - mean_gradient));
            if (d_shortcut != nullptr) d_shortcut[i] = static_cast<value>(g);
        });
        for (std::int64_t c = 0; c < channels; ++c) {
            const auto at = static_cast<std::size_t>(c);
            d_scale[c] = add ? d_scale[c] + product[at] : product[at];
            d_shift[c] = add ? d_shift[c] + sum[at] : sum[at];
        }
    }

    /// y += x.
    void add(const value* x, value* y, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            y[i] = static_cast<value>(static_cast<real>(x[i]) + static_cast<real>(y[i]));
        }
    }

    /// Mean over the pixels of each image and channel: batch x pixels x channels to batch x channels.
    void average(const value* x, value* y, std::int64_t batch, std::int64_t pixels, std::int64_t channels) {
        for (std::int64_t n = 0; n < batch; ++n) {
            for (std::int64_t c = 0; c < channels; ++c) {
                real sum = 0;
                for (std::int64_t i = 0; i < pixels; ++i) sum += static_cast<real>(x[(n * pixels + i) * channels + c]);
                y[n * channels + c] = static_cast<value>(sum / static_cast<real>(pixels));
            }
        }
    }
    void average_backward(const value* d_y, value* d_x, std::int64_t batch, std::int64_t pixels,
                          std::int64_t channels) {
        for_each_element(batch * pixels, channels, [&](std::int64_t i, std::int64_t c) {
            const real g = static_cast<real>(d_y[i / (pixels * channels) * channels + c]);
            d_x[i] = static_cast<value>(g / static_cast<real>(pixels));
        });
    }

    /// Images of float or float16 as the input of a network.
    template <class From>
    void patches(const From* images, value* x, const patch_shape& s) {
        const std::int64_t wide = s.window(), pixels = s.side * s.side;
        for (std::int64_t at = 0; at < s.batch * pixels; ++at) {
            const From* const image = images + at / pixels * s.size * s.size * 3;
            for (std::int64_t c = 0; c < s.channels; ++c) {
                const std::int64_t from = s.source(at % pixels / s.side, at % s.side, c, wide);
                *x++ = from < 0 ? value{} : static_cast<value>(static_cast<real>(image[from]));
            }
        }
    }

private:
    /// Calls body(offset of a patch's pixel, offset of the image's pixel) for each that is not padding.
    template <class Body>
    static void for_each_patch(const convolution_shape& s, Body body) {
        for (std::int64_t n = 0; n < s.batch; ++n) {
            for (std::int64_t at = 0; at < s.out_side() * s.out_side() * s.kernel * s.kernel; ++at) {
                const std::int64_t tap = at % (s.kernel * s.kernel), out = at / (s.kernel * s.kernel);
                const std::int64_t y = out / s.out_side() * s.stride + tap / s.kernel - s.padding();
                const std::int64_t x = out % s.out_side() * s.stride + tap % s.kernel - s.padding();
                if (y < 0 || y >= s.side || x < 0 || x >= s.side) continue;
                body((n * s.out_side() * s.out_side() * s.kernel * s.kernel + at) * s.in_channels,
                     ((n * s.side + y) * s.side + x) * s.in_channels);
            }
        }
    }
    void gather_patches(const value* x, const convolution_shape& s) {
        patches_.assign(static_cast<std::size_t>(s.out_pixels() * s.patch()), value{});
        for_each_patch(s, [&](std::int64_t patch, std::int64_t pixel) {
            std::copy_n(x + pixel, s.in_channels, patches_.data() + patch);
        });
    }
    /// Calls body(i, c) for each element i, of channel c.
    template <class Body>
    static void for_each_element(std::int64_t pixels, std::int64_t channels, Body body) {
        for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
            for (std::int64_t c = 0; c < channels; ++c) body(pixel * channels + c, c);
        }
    }
    /// sums[c] = sum of of(i, c) over the elements i of channel c, summed in float64.
    template <class Of>
    static void channel_sums(std::int64_t pixels, std::int64_t channels, Of of, real* sums) {
        std::vector<double> sum(static_cast<std::size_t>(channels));
        for_each_element(pixels, channels, [&](std::int64_t i, std::int64_t c) {
            sum[static_cast<std::size_t>(c)] += static_cast<double>(of(i, c));
        });
        for (std::size_t c = 0; c < sum.size(); ++c) sums[c] = static_cast<real>(sum[c]);
    }

    std::vector<value> patches_;
    std::vector<real> sums_;
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
