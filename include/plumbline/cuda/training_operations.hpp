// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_TRAINING_OPERATIONS_HPP
#define PLUMBLINE_CUDA_TRAINING_OPERATIONS_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "plumbline/cuda/training_kernels.hpp"
#include "plumbline/training/convolution.hpp"
#include "plumbline/training/patches.hpp"
#include "plumbline/training/products.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Who computes attention, best first: cuDNN's fused engines, our fused kernels, or products and a softmax.
enum class attention_by { cudnn, native_flash, unfused };

[[nodiscard]] constexpr std::string_view name(attention_by who) noexcept {
    if (who == attention_by::cudnn) return "cudnn";
    return who == attention_by::native_flash ? "native_flash" : "unfused";
}

/// The operators of a training step (training/host_operations.hpp says what each computes) by our own kernels, with
/// memory, products and convolutions of `Device`: lt_training_device on a GPU; in tests, the host with emulated
/// kernels. Enqueues and returns; only read_control, download, overwrite and write_control wait.
///
/// Attention in 16 bits is the fused one of `Device`, where it has one, or that of our kernels, which want heads of 64.
/// Else it is a product, a softmax and a product for each sequence, so that the scores of one sequence at a time stay
/// in the second-level cache.
template <class Value, class Device>
class training_operations {
public:
    using value = Value;
    using real = float;
    using recipe = workload::training_step::recipe;
    using attention_shape = workload::training_step::transformer_shape;

    /// `count` values of T in device memory.
    template <class T>
    class buffer {
    public:
        buffer() = default;
        explicit buffer(typename Device::memory owned) : owned_(std::move(owned)) {}
        [[nodiscard]] T* data() const noexcept { return static_cast<T*>(owned_.data()); }

    private:
        typename Device::memory owned_;
    };

    template <class... Arguments>
    explicit training_operations(Arguments&&... arguments)
        : device_(std::forward<Arguments>(arguments)...), control_(make<training::step_control>(1)),
          sums_(make<double>(2 * kernels::sum_blocks)) {
        write_control({});
    }

    template <class T>
    [[nodiscard]] buffer<T> make(std::size_t count) {
        allocated_bytes_ += count * sizeof(T);
        buffer<T> made(device_.allocate(count * sizeof(T)));
        device_.zero(made.data(), count * sizeof(T));
        return made;
    }
    template <class T>
    [[nodiscard]] buffer<T> upload(const std::vector<T>& from) {
        buffer<T> made = make<T>(from.size());
        overwrite(made.data(), from);
        return made;
    }
    template <class T>
    void zero(T* data, std::size_t count) {
        device_.zero(data, count * sizeof(T));
    }
    template <class T>
    void draw(T* data, std::int64_t count, std::uint64_t seed, float deviation, float mean) {
        kernels::draw(stream(), data, count, seed, deviation, mean);
    }
    void convert(const float* from, Value* to, std::size_t count) {
        kernels::convert(stream(), from, to, static_cast<std::int64_t>(count));
    }
    /// Everything that was allocated, workspaces of the libraries included.
    [[nodiscard]] std::size_t allocated_bytes() const noexcept { return allocated_bytes_ + device_.workspace_bytes(); }

    void linear(const Value* x, const Value* w, Value* y, std::int64_t rows, std::int64_t in, std::int64_t out,
                const Value* residual) {
        device_.multiply({rows, out, in, in, 1, 1, in, out, residual != nullptr}, x, w, residual, y);
    }
    void linear_backward_input(const Value* d_y, const Value* w, Value* d_x, std::int64_t rows, std::int64_t in,
                               std::int64_t out) {
        device_.multiply({rows, in, out, out, 1, in, 1, in, false}, d_y, w, static_cast<const Value*>(nullptr), d_x);
    }
    void linear_backward_weight(const Value* d_y, const Value* x, float* d_w, std::int64_t rows, std::int64_t in,
                                std::int64_t out, bool add) {
        device_.multiply({out, in, rows, 1, out, in, 1, in, add}, d_y, x, add ? d_w : nullptr, d_w);
    }

    void embed(const std::int32_t* tokens, const Value* table, Value* x, std::int64_t rows, std::int64_t width) {
        kernels::embed(stream(), tokens, table, x, rows, width);
    }
    void embed_backward(const std::int32_t* tokens, const Value* d_x, float* d_table, std::int64_t rows,
                        std::int64_t width, std::int64_t vocabulary, bool add) {
        if (!add) zero(d_table, static_cast<std::size_t>(vocabulary * width));
        kernels::embed_backward(stream(), tokens, d_x, d_table, rows, width);
    }

    void layernorm(const Value* x, const float* scale, const float* shift, Value* y, float* mean,
                   float* inverse_deviation, std::int64_t rows, std::int64_t width, double epsilon) {
        kernels::layernorm(stream(), x, scale, shift, y, mean, inverse_deviation, rows, width,
                           static_cast<float>(epsilon));
    }
    void layernorm_backward(const Value* d_y, const Value* x, const float* scale, const float* mean,
                            const float* inverse_deviation, Value* d_x, float* d_scale, float* d_shift,
                            std::int64_t rows, std::int64_t width, bool residual, bool add) {
        kernels::layernorm_backward(stream(), d_y, x, scale, mean, inverse_deviation, d_x, d_scale, d_shift, rows,
                                    width, residual, add, partial(width));
    }

    void linear_gelu(const Value* x, const Value* w, Value* raised, Value* y, std::int64_t rows, std::int64_t in,
                     std::int64_t out) {
        const training::product p{rows, out, in, in, 1, 1, in, out, false};
        if constexpr (requires(Device & on) { on.multiply_gelu(p, x, w, raised, y); }) {
            if (gelu_in_products_ && device_.multiply_gelu(p, x, w, raised, y)) return;
        }
        device_.multiply(p, x, w, none<Value>(), raised);
        kernels::gelu(stream(), raised, y, rows * out);
    }
    void linear_backward_input_gelu(const Value* d_y, const Value* w, const Value* raised, Value* d_raised,
                                    std::int64_t rows, std::int64_t in, std::int64_t out) {
        const training::product p{rows, in, out, out, 1, in, 1, in, false};
        if constexpr (requires(Device & on) { on.multiply_gelu_backward(p, d_y, w, raised, d_raised); }) {
            if (gelu_in_products_ && device_.multiply_gelu_backward(p, d_y, w, raised, d_raised)) return;
        }
        device_.multiply(p, d_y, w, none<Value>(), d_raised);
        kernels::gelu_backward(stream(), d_raised, raised, rows * in);
    }

    void attention(const Value* projected, Value* y, float* log_sums, const attention_shape& s) {
        forward_by_ = attention_by::cudnn;
        if constexpr (has_fused) {
            if (first_ == attention_by::cudnn && device_.attention(projected, y, log_sums, s)) return;
        }
        if constexpr (is_narrow) {
            if (flash_fits(projected, y, s)) {
                forward_by_ = attention_by::native_flash;
                return kernels::flash_attention(stream(), projected, y, log_sums, s.batch, s.tokens, s.heads);
            }
        }
        forward_by_ = attention_by::unfused;
        reserve_attention(s, false);
        for (std::int64_t b = 0; b < s.batch; ++b) {
            device_.multiply(scores_of(s), projected, projected + s.width, none<float>(), scores_.data());
            kernels::causal_softmax(stream(), scores_.data(), weights_.data(), log_sums, s.heads, s.tokens,
                                    inverse_root(s));
            device_.multiply(training::product{s.tokens, s.head_width(), s.tokens, s.tokens, 1, 3 * s.width, 1, s.width,
                                               false, s.heads, s.tokens * s.tokens, s.head_width(), s.head_width()},
                             weights_.data(), projected + 2 * s.width, none<Value>(), y);
            projected += s.tokens * 3 * s.width;
            y += s.tokens * s.width;
            log_sums += s.heads * s.tokens;
        }
    }
    void attention_backward(const Value* d_y, const Value* projected, const Value* y, const float* log_sums,
                            Value* d_projected, const attention_shape& s) {
        backward_by_ = attention_by::cudnn;
        if constexpr (has_fused) {
            if (first_ == attention_by::cudnn &&
                device_.attention_backward(d_y, projected, y, log_sums, d_projected, s)) {
                return;
            }
        }
        if constexpr (is_narrow) {
            if (flash_fits(projected, y, s) && flash_fits(d_projected, d_y, s)) {
                backward_by_ = attention_by::native_flash;
                grow(row_products_, static_cast<std::size_t>(s.rows() * s.heads));
                return kernels::flash_attention_backward(stream(), d_y, projected, y, log_sums, d_projected,
                                                         row_products_.at.data(), s.batch, s.tokens, s.heads);
            }
        }
        backward_by_ = attention_by::unfused;
        reserve_attention(s, true);
        const std::int64_t t = s.tokens, w = s.head_width(), row = 3 * s.width;
        const training::product transposed{t, w, t, 1, t, row, 1, row, false, s.heads, t * t, w, w};
        training::product plain = transposed;
        plain.a_row = t;
        plain.a_column = 1;
        training::product of_value = transposed;
        of_value.b_row = s.width;
        for (std::int64_t b = 0; b < s.batch; ++b) {
            device_.multiply(scores_of(s), projected, projected + s.width, none<float>(), scores_.data());
            device_.multiply(training::product{t, t, w, s.width, 1, 1, row, t, false, s.heads, w, w, t * t}, d_y,
                             projected + 2 * s.width, none<float>(), d_weights_.data());
            kernels::causal_softmax_backward(stream(), scores_.data(), d_weights_.data(), log_sums, d_y, y,
                                             weights_.data(), d_scores_.data(), s.heads, t, w, inverse_root(s));
            device_.multiply(of_value, weights_.data(), d_y, none<Value>(), d_projected + 2 * s.width);
            device_.multiply(plain, d_scores_.data(), projected + s.width, none<Value>(), d_projected);
            device_.multiply(transposed, d_scores_.data(), projected, none<Value>(), d_projected + s.width);
            projected += t * row;
            d_projected += t * row;
            d_y += t * s.width;
            y += t * s.width;
            log_sums += s.heads * t;
        }
    }

    void convolve(const Value* x, const Value* w, Value* y, const training::convolution_shape& s) {
        device_.convolve(x, w, y, s);
    }
    void convolve_backward_input(const Value* d_y, const Value* w, Value* d_x, const training::convolution_shape& s) {
        device_.convolve_backward_input(d_y, w, d_x, s);
    }
    void convolve_backward_weight(const Value* d_y, const Value* x, float* d_w, const training::convolution_shape& s,
                                  bool add) {
        device_.convolve_backward_weight(d_y, x, d_w, s, add);
    }
    void batchnorm(const Value* x, const float* scale, const float* shift, const Value* shortcut, Value* y, float* mean,
                   float* inverse_deviation, float* running_mean, float* running_variance, std::int64_t pixels,
                   std::int64_t channels, double epsilon, double momentum, bool relu) {
        kernels::batchnorm(stream(), x, scale, shift, shortcut, y, mean, inverse_deviation, running_mean,
                           running_variance, pixels, channels, static_cast<float>(epsilon),
                           static_cast<float>(momentum), relu, partial(channels));
    }
    void batchnorm_backward(const Value* d_y, const Value* x, const Value* y, const float* scale, const float* mean,
                            const float* inverse_deviation, Value* d_x, Value* d_shortcut, float* d_scale,
                            float* d_shift, std::int64_t pixels, std::int64_t channels, bool add) {
        kernels::batchnorm_backward(stream(), d_y, x, y, scale, mean, inverse_deviation, d_x, d_shortcut, d_scale,
                                    d_shift, pixels, channels, add, partial(channels));
    }
    void add(const Value* x, Value* y, std::int64_t count) { kernels::add(stream(), x, y, count); }
    void average(const Value* x, Value* y, std::int64_t batch, std::int64_t pixels, std::int64_t channels) {
        kernels::average(stream(), x, y, batch, pixels, channels);
    }
    void average_backward(const Value* d_y, Value* d_x, std::int64_t batch, std::int64_t pixels,
                          std::int64_t channels) {
        kernels::average_backward(stream(), d_y, d_x, batch, pixels, channels);
    }

    template <class From>
    void patches(const From* images, Value* x, const training::patch_shape& s) {
        kernels::patches(stream(), images, x, s);
    }

    void cross_entropy(Value* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t classes,
                       std::int64_t effective_rows) {
        grow(losses_, static_cast<std::size_t>(rows));
        kernels::cross_entropy(stream(), logits, targets, rows, classes, effective_rows, losses_.at.data(),
                               control_.data());
    }

    void begin_step() { kernels::begin_step(stream(), control_.data()); }
    void unscale() { kernels::unscale(stream(), control_.data()); }
    void measure(const float* gradients, std::int64_t count) {
        kernels::measure_gradients(stream(), gradients, count, sums_.data(), control_.data());
    }
    void clip(double limit) { kernels::clip(stream(), control_.data(), static_cast<float>(limit)); }
    void update(const training::loss_scale_rules& rules) { kernels::update_scale(stream(), control_.data(), rules); }
    void adamw(float* weights, const float* gradients, float* first, float* second, Value* copy, std::int64_t count,
               const recipe& how) {
        kernels::adamw(stream(), weights, gradients, first, second, copy, count, how, control_.data());
    }
    void sgd(float* weights, const float* gradients, float* velocity, Value* copy, std::int64_t count,
             const recipe& how) {
        kernels::sgd(stream(), weights, gradients, velocity, copy, count, how, control_.data());
    }

    [[nodiscard]] training::step_control read_control() { return download(control_.data(), 1).front(); }
    void write_control(const training::step_control& control) {
        overwrite(control_.data(), std::vector<training::step_control>{control});
    }
    template <class T>
    [[nodiscard]] std::vector<T> download(const T* from, std::size_t count) {
        std::vector<T> values(count);
        device_.download(from, values.data(), count * sizeof(T));
        return values;
    }
    template <class T>
    void overwrite(T* to, const std::vector<T>& from) {
        device_.upload(from.data(), to, from.size() * sizeof(T));
    }

    [[nodiscard]] Device& device() noexcept { return device_; }
    /// Kernels of `step`, where the device can count them.
    template <class Step>
        requires requires(Device& device, Step step) {
            device.launches(step);
        }
    [[nodiscard]] std::int64_t launches(Step step) { return device_.launches(step); }
    /// The device's, and who computed attention.
    [[nodiscard]] auto evidence() {
        auto ran = device_.evidence();
        if (forward_by_) ran.parts["attention"] = std::string(name(*forward_by_));
        if (backward_by_) ran.parts["attention_backward"] = std::string(name(*backward_by_));
        return ran;
    }

    /// Leaves out whatever comes before `first`; for tests and comparisons.
    void compute_attention_by(attention_by first) noexcept { first_ = first; }

    /// Whether GELU may be what a product does last, where the device offers that; for tests and comparisons.
    void compute_gelu_in_products(bool wanted) noexcept { gelu_in_products_ = wanted; }

private:
    static constexpr bool is_narrow = sizeof(Value) == 2;
    /// Whether the device has operators of its own for attention.
    static constexpr bool has_fused =
        is_narrow && requires(Device & on, const Value* in, Value* out, float* sums, const attention_shape& s) {
        on.attention(in, out, sums, s);
    };

    /// A workspace that grows before anything is captured and then stays: the first step sees every size.
    template <class T>
    struct workspace {
        buffer<T> at;
        std::size_t count = 0;
    };
    template <class T>
    void grow(workspace<T>& what, std::size_t count) {
        if (what.count >= count) return;
        what.at = make<T>(count);
        what.count = count;
    }

    template <class T>
    [[nodiscard]] static constexpr const T* none() noexcept {
        return nullptr;
    }
    [[nodiscard]] auto stream() { return device_.stream(); }

    [[nodiscard]] float* partial(std::int64_t columns) {
        grow(partial_, kernels::norm_workspace(columns));
        return partial_.at.data();
    }
    /// Whether our fused kernels can compute it.
    [[nodiscard]] bool flash_fits(const Value* projected, const Value* y, const attention_shape& s) const {
        const auto bits = reinterpret_cast<std::uintptr_t>(projected) | reinterpret_cast<std::uintptr_t>(y);
        return first_ <= attention_by::native_flash && s.head_width() == kernels::flash_head_width && bits % 16 == 0 &&
               device_.capability() >= 80;
    }
    [[nodiscard]] static float inverse_root(const attention_shape& s) {
        return 1 / std::sqrt(static_cast<float>(s.head_width()));
    }
    [[nodiscard]] static training::product scores_of(const attention_shape& s) noexcept {
        return {s.tokens, s.tokens,       s.head_width(), 3 * s.width,        1, 1, 3 * s.width, s.tokens, false,
                s.heads,  s.head_width(), s.head_width(), s.tokens * s.tokens};
    }
    void reserve_attention(const attention_shape& s, bool backward) {
        const auto count = static_cast<std::size_t>(s.heads * s.tokens * s.tokens);
        const auto at_least = [&](auto& each) {
            if (each.data() == nullptr) each = make<std::remove_pointer_t<decltype(each.data())>>(count);
        };
        at_least(scores_);
        at_least(weights_);
        if (backward) at_least(d_weights_);
        if (backward) at_least(d_scores_);
    }

    Device device_;
    std::size_t allocated_bytes_ = 0;
    buffer<training::step_control> control_;
    buffer<double> sums_;
    workspace<float> partial_, losses_, row_products_;
    buffer<float> scores_, d_weights_;
    buffer<Value> weights_, d_scores_;
    bool gelu_in_products_ = true;
    attention_by first_ = attention_by::cudnn;
    std::optional<attention_by> forward_by_, backward_by_; ///< last
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
