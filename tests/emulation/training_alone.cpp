// SPDX-License-Identifier: Apache-2.0
// Each kernel of a training step alone, against the host's operators in float64, at sizes where blocks and threads have
// several turns: what the small networks of training.cpp do not reach.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "emulation.hpp"
#include "plumbline/cuda/training_kernels.hpp"
#include "plumbline/training/host_operations.hpp"

using namespace plumbline;
using namespace plumbline::training;
namespace kernels = plumbline::cuda::kernels;

namespace {

using exact_operations = host_operations<double>;

template <class T>
std::vector<T> random(std::size_t count, std::uint64_t seed, float mean = 0) {
    std::vector<T> made(count);
    for (std::size_t i = 0; i < count; ++i) made[i] = T(workload::random::normal(seed, i) + mean);
    return made;
}

template <class T>
std::vector<double> wide(const std::vector<T>& values) {
    std::vector<double> made;
    for (const T& each : values) made.push_back(static_cast<double>(each));
    return made;
}

template <class T>
double off(const std::vector<T>& found, const std::vector<double>& expected) {
    double error = 0, norm = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        error += std::pow(static_cast<double>(found[i]) - expected[i], 2);
        norm += std::pow(expected[i], 2);
    }
    return std::sqrt(error / norm);
}

/// What the values of a type may be off by; sums are fp32.
template <class T>
constexpr double allowed = std::is_same_v<T, float>      ? 1e-5
                           : std::is_same_v<T, bfloat16> ? 4e-3
                                                         : 6e-4;

template <class T>
void check_layernorm(std::int64_t rows, std::int64_t width, bool residual, bool add, float mean) {
    CAPTURE(width);
    const auto count = static_cast<std::size_t>(rows * width), columns = static_cast<std::size_t>(width);
    const auto x = random<T>(count, 1, mean), d_y = random<T>(count, 2);
    const auto scale = random<float>(columns, 3, 1), shift = random<float>(columns, 4);
    auto d_x = random<T>(count, 5);
    auto d_scale = random<float>(columns, 6), d_shift = random<float>(columns, 7);
    auto d_x64 = wide(d_x), d_scale64 = wide(d_scale), d_shift64 = wide(d_shift);
    std::vector<T> y(count);
    const auto row = static_cast<std::size_t>(rows);
    std::vector<float> means(row), inverse(row), partial(kernels::norm_workspace(width));
    kernels::layernorm(nullptr, x.data(), scale.data(), shift.data(), y.data(), means.data(), inverse.data(), rows,
                       width, 1e-5f);
    kernels::layernorm_backward(nullptr, d_y.data(), x.data(), scale.data(), means.data(), inverse.data(), d_x.data(),
                                d_scale.data(), d_shift.data(), rows, width, residual, add, partial.data());
    exact_operations exact;
    const auto x64 = wide(x), d_y64 = wide(d_y), scale64 = wide(scale), shift64 = wide(shift);
    std::vector<double> y64(count), means64(row), inverse64(row);
    exact.layernorm(x64.data(), scale64.data(), shift64.data(), y64.data(), means64.data(), inverse64.data(), rows,
                    width, 1e-5);
    exact.layernorm_backward(d_y64.data(), x64.data(), scale64.data(), means64.data(), inverse64.data(), d_x64.data(),
                             d_scale64.data(), d_shift64.data(), rows, width, residual, add);
    const double fp32 = mean == 0 ? 1e-5 : 1e-3; // x - mean loses digits
    CHECK(off(y, y64) < std::max(allowed<T>, fp32));
    CHECK(off(inverse, inverse64) < fp32);
    CHECK(off(d_x, d_x64) < std::max(allowed<T>, fp32));
    CHECK(off(d_scale, d_scale64) < fp32);
    CHECK(off(d_shift, d_shift64) < fp32);
}

template <class T>
void check_batchnorm(std::int64_t pixels, std::int64_t channels, bool relu, bool with_shortcut, bool add, float mean) {
    CAPTURE(channels);
    const auto count = static_cast<std::size_t>(pixels * channels), c = static_cast<std::size_t>(channels);
    const auto x = random<T>(count, 1, mean), d_y = random<T>(count, 2), shortcut = random<T>(count, 3);
    const auto scale = random<float>(c, 4, 1), shift = random<float>(c, 5);
    auto running_mean = random<float>(c, 6), running_variance = random<float>(c, 7, 3);
    auto running_mean64 = wide(running_mean), running_variance64 = wide(running_variance);
    std::vector<T> y(count), d_x(count), past(count);
    std::vector<float> means(c), inverse(c), d_scale(c, 1), d_shift(c, 1), partial(kernels::norm_workspace(channels));
    kernels::batchnorm(nullptr, x.data(), scale.data(), shift.data(), with_shortcut ? shortcut.data() : nullptr,
                       y.data(), means.data(), inverse.data(), running_mean.data(), running_variance.data(), pixels,
                       channels, 1e-5f, 0.1f, relu, partial.data());
    kernels::batchnorm_backward(nullptr, d_y.data(), x.data(), relu ? y.data() : nullptr, scale.data(), means.data(),
                                inverse.data(), d_x.data(), with_shortcut ? past.data() : nullptr, d_scale.data(),
                                d_shift.data(), pixels, channels, add, partial.data());
    exact_operations exact;
    const auto x64 = wide(x), d_y64 = wide(d_y), shortcut64 = wide(shortcut), scale64 = wide(scale),
               shift64 = wide(shift);
    std::vector<double> y64(count), means64(c), inverse64(c), d_x64(count), past64(count), d_scale64(c, 1),
        d_shift64(c, 1);
    exact.batchnorm(x64.data(), scale64.data(), shift64.data(), with_shortcut ? shortcut64.data() : nullptr, y64.data(),
                    means64.data(), inverse64.data(), running_mean64.data(), running_variance64.data(), pixels,
                    channels, 1e-5, 0.1, relu);
    // The relu as the kernel saw it: rounding may turn a sign.
    const auto seen64 = wide(y);
    exact.batchnorm_backward(d_y64.data(), x64.data(), relu ? seen64.data() : nullptr, scale64.data(), means64.data(),
                             inverse64.data(), d_x64.data(), with_shortcut ? past64.data() : nullptr, d_scale64.data(),
                             d_shift64.data(), pixels, channels, add);
    const double fp32 = mean == 0 ? 1e-5 : 1e-3;
    CHECK(off(y, y64) < std::max(allowed<T>, fp32));
    CHECK(off(means, means64) < 1e-5);
    CHECK(off(running_mean, running_mean64) < 1e-5);
    CHECK(off(running_variance, running_variance64) < fp32);
    CHECK(off(d_x, d_x64) < std::max(allowed<T>, fp32));
    CHECK(off(d_scale, d_scale64) < fp32);
    CHECK(off(d_shift, d_shift64) < fp32);
    if (with_shortcut) CHECK(off(past, past64) < 1e-6);
}

template <class T>
void check_cross_entropy(std::int64_t rows, std::int64_t classes) {
    CAPTURE(classes);
    auto logits = random<T>(static_cast<std::size_t>(rows * classes), 1);
    logits[3] = T(40.0f); // one logit far above the others
    auto logits64 = wide(logits);
    std::vector<std::int32_t> targets;
    for (std::int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<std::int32_t>((r * 37 + 3) % classes));
    step_control control;
    control.scaler.scale = 8;
    control.loss = 1; // added to
    std::vector<float> losses(static_cast<std::size_t>(rows));
    kernels::cross_entropy(nullptr, logits.data(), targets.data(), rows, classes, 2 * rows, losses.data(), &control);
    exact_operations exact;
    exact.write_control([] {
        step_control scaled;
        scaled.scaler.scale = 8;
        return scaled;
    }());
    exact.cross_entropy(logits64.data(), targets.data(), rows, classes, 2 * rows);
    CHECK(static_cast<double>(control.loss) == doctest::Approx(1 + exact.exact_loss()).epsilon(1e-5));
    CHECK(off(logits, logits64) < std::max(allowed<T>, 1e-5));
}

template <class From, class T>
void check_patches(const patch_shape& s) {
    CAPTURE(s.channels);
    const auto images = random<From>(static_cast<std::size_t>(s.batch * s.size * s.size * 3), 1);
    std::vector<T> x(static_cast<std::size_t>(s.outputs()), T(-1.0f));
    kernels::patches(nullptr, images.data(), x.data(), s);
    exact_operations exact;
    std::vector<double> x64(x.size());
    exact.patches(images.data(), x64.data(), s);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        wrong += static_cast<double>(x[i]) != static_cast<double>(T(static_cast<float>(x64[i])));
    }
    CHECK(wrong == 0);
}

} // namespace

TEST_CASE("images become the input of a network, planar or interleaved, windows within their cells and beyond them") {
    check_patches<float, bfloat16>({2, 16, false, 4, 256}); // windows of 9 in cells of 4
    check_patches<float16, bfloat16>({2, 16, true, 4, 64});
    check_patches<float, float>({3, 24, true, 3, 17}); // windows of 2 in cells of 8
    check_patches<float16, float16>({1, 12, false, 12, 300});
    check_patches<float, float>({5000, 2, false, 1, 3}); // more positions than blocks
    std::vector<float> none(1);
    CHECK_NOTHROW(kernels::patches(nullptr, none.data(), none.data(), {0, 16, false, 4, 256}));
    CHECK_THROWS_AS(kernels::patches(nullptr, none.data(), none.data(), {1, 16, false, 4, 8193}), error);
}

TEST_CASE("layer norms of every width a thread can hold, on whole 16 bytes and off them") {
    check_layernorm<bfloat16>(3, 1024, true, false, 0);
    check_layernorm<bfloat16>(3, 2048, false, true, 0);
    check_layernorm<float16>(2, 4096, true, true, 0);
    check_layernorm<float>(2, 4096, false, false, 0);
    check_layernorm<bfloat16>(3, 1001, true, true, 0);
    check_layernorm<float>(600, 6, true, false, 0); // more rows than blocks
    check_layernorm<float>(4, 512, false, false, 1000);
    const std::vector<float> x(8192);
    std::vector<float> y(8192), sums(8192), partial(kernels::norm_workspace(8192));
    CHECK_THROWS_AS(kernels::layernorm_backward(nullptr, x.data(), x.data(), x.data(), x.data(), x.data(), y.data(),
                                                sums.data(), sums.data(), 1, 8192, false, false, partial.data()),
                    error);
}

TEST_CASE("batch norms with relu, shortcut and several blocks, and a mean that is large") {
    check_batchnorm<bfloat16>(700, 64, true, true, false, 0);
    check_batchnorm<float16>(40, 512, true, false, true, 0);
    check_batchnorm<float>(900, 24, false, false, false, 0);
    check_batchnorm<float>(50, 1024, true, true, true, 0);
    check_batchnorm<bfloat16>(130, 33, false, true, true, 0);
    check_batchnorm<float>(400, 8, false, false, false, 1000);
}

TEST_CASE("cross-entropy over more classes than a block has threads") {
    check_cross_entropy<bfloat16>(3, 9000);
    check_cross_entropy<float16>(2, 5001);
    check_cross_entropy<float>(2, 4100);
    check_cross_entropy<float>(3, 2);
}

TEST_CASE("GELU and its slope from far below zero to far above") {
    std::vector<float> x, gradient;
    for (int i = 0; i <= 4000; ++i) x.push_back(static_cast<float>(i - 2000) * 0.01f);
    gradient.assign(x.size(), 1.0f);
    auto x64 = wide(x), gradient64 = wide(gradient);
    std::vector<float> y(x.size());
    std::vector<double> y64(x.size());
    exact_operations exact;
    const auto count = static_cast<std::int64_t>(x.size());
    kernels::gelu(nullptr, x.data(), y.data(), count);
    kernels::gelu_backward(nullptr, gradient.data(), x.data(), count);
    exact.gelu(x64.data(), y64.data(), count);
    exact.gelu_backward(gradient64.data(), x64.data(), count);
    for (std::size_t i = 0; i < x.size(); ++i) {
        CHECK(std::abs(static_cast<double>(y[i]) - y64[i]) < 1e-6 * (1 + std::abs(x64[i])));
        CHECK(std::abs(static_cast<double>(gradient[i]) - gradient64[i]) < 2e-6 * (1 + std::abs(x64[i])));
    }
}

TEST_CASE("optimizers and the gradient's norm over more than the threads of a grid") {
    const std::int64_t count = 4 * 256 * 2048 + 128; // a second turn for one warp
    const auto size = static_cast<std::size_t>(count);
    std::vector<float> gradient(size, 0.5f), w(size, 1.0f), m(size, 0.25f), v(size, 0.125f);
    std::vector<bfloat16> copy(size);
    gradient.back() = -2.0f;
    step_control control;
    control.factor = 0.5f;
    control.clip = 0.25f;
    control.scaler.taken = 3;
    std::vector<double> partial(2 * kernels::sum_blocks);
    kernels::measure_gradients(nullptr, gradient.data(), count, partial.data(), &control);
    CHECK(static_cast<double>(control.norm) ==
          doctest::Approx(std::sqrt(static_cast<double>(count - 1) * 0.0625 + 1)).epsilon(1e-6));
    CHECK(control.scaler.found_inf == 0);

    const auto how = workload::training_step::recipe_of({});
    kernels::adamw(nullptr, w.data(), gradient.data(), m.data(), v.data(), copy.data(), count, how, &control);
    exact_operations exact;
    exact.write_control(control);
    double g64 = -2.0, w64 = 1, m64 = 0.25, v64 = 0.125;
    exact.adamw(&w64, &g64, &m64, &v64, nullptr, 1, how);
    CHECK(static_cast<double>(w.back()) == doctest::Approx(w64).epsilon(1e-6));
    CHECK(static_cast<double>(m.back()) == doctest::Approx(m64).epsilon(1e-6));
    CHECK(static_cast<double>(v.back()) == doctest::Approx(v64).epsilon(1e-6));
    CHECK(static_cast<float>(copy.back()) == static_cast<float>(bfloat16(w.back())));
    CHECK(w[0] == w[size / 2]);

    gradient[777] = std::nanf("");
    kernels::measure_gradients(nullptr, gradient.data(), count, partial.data(), &control);
    CHECK(control.scaler.found_inf == 1);
    const std::vector<float> before(w.begin(), w.begin() + 4);
    kernels::sgd(nullptr, w.data(), gradient.data(), v.data(), copy.data(), 4, how, &control);
    CHECK(std::equal(before.begin(), before.end(), w.begin())); // a skipped step
}
