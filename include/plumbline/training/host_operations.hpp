// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_HOST_OPERATIONS_HPP
#define PLUMBLINE_TRAINING_HOST_OPERATIONS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/training/host_images.hpp"
#include "plumbline/training/step_control.hpp"
#include "plumbline/training/value.hpp"
#include "plumbline/workload/random.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// The operators of a training step on the host, activations of type `Value`, products by `Products`. With double it is
/// the reference that every other implementation is held to; with bfloat16 or float16 it rounds where such a leg
/// rounds, whatever the processor has.
///
/// This is also the list of what a backend must offer to run the models: the public members but gelu(),
/// gelu_backward(), exact_loss() and products(). Activations are rows x width, images N x H x W x C, all without gaps.
/// Nothing may be asked of the host in between: scalars of a step are in step_control.
template <class Value, class Products = plain_products>
class host_operations : public host_images<Value, Products> {
    using base = host_images<Value, Products>;
    using base::products_;
    using base::square;

public:
    using base::zero;
    using typename base::real;
    using typename base::value;
    using recipe = workload::training_step::recipe;
    using attention_shape = workload::training_step::transformer_shape;

    void embed(const std::int32_t* tokens, const value* table, value* x, std::int64_t rows, std::int64_t width) {
        for (std::int64_t r = 0; r < rows; ++r) std::copy_n(table + tokens[r] * width, width, x + r * width);
    }
    void embed_backward(const std::int32_t* tokens, const value* d_x, real* d_table, std::int64_t rows,
                        std::int64_t width, std::int64_t vocabulary, bool add) {
        if (!add) zero(d_table, static_cast<std::size_t>(vocabulary * width));
        for (std::int64_t i = 0; i < rows * width; ++i) {
            d_table[tokens[i / width] * width + i % width] += static_cast<real>(d_x[i]);
        }
    }

    /// y = (x - mean) x inverse deviation x scale + shift, row by row; J. Ba et al., Layer normalization, 2016.
    void layernorm(const value* x, const real* scale, const real* shift, value* y, real* mean, real* inverse_deviation,
                   std::int64_t rows, std::int64_t width, double epsilon) {
        for (std::int64_t r = 0; r < rows; ++r, x += width, y += width) {
            real sum = 0;
            for (std::int64_t i = 0; i < width; ++i) sum += static_cast<real>(x[i]);
            mean[r] = sum / static_cast<real>(width);
            real squares = 0;
            for (std::int64_t i = 0; i < width; ++i) squares += square(static_cast<real>(x[i]) - mean[r]);
            inverse_deviation[r] = 1 / std::sqrt(squares / static_cast<real>(width) + static_cast<real>(epsilon));
            for (std::int64_t i = 0; i < width; ++i) {
                y[i] = static_cast<value>((static_cast<real>(x[i]) - mean[r]) * inverse_deviation[r] * scale[i] +
                                          shift[i]);
            }
        }
    }
    /// d_x (+)= ..., with `residual` added to what d_x holds; d_scale, d_shift (+)= with `add`.
    void layernorm_backward(const value* d_y, const value* x, const real* scale, const real* mean,
                            const real* inverse_deviation, value* d_x, real* d_scale, real* d_shift, std::int64_t rows,
                            std::int64_t width, bool residual, bool add) {
        if (!add) zero(d_scale, static_cast<std::size_t>(width));
        if (!add) zero(d_shift, static_cast<std::size_t>(width));
        for (std::int64_t r = 0; r < rows; ++r, x += width, d_y += width, d_x += width) {
            const auto normed = [&](std::int64_t i) {
                return (static_cast<real>(x[i]) - mean[r]) * inverse_deviation[r];
            };
            real sum = 0;
            real product = 0;
            for (std::int64_t i = 0; i < width; ++i) {
                const real g = static_cast<real>(d_y[i]);
                d_scale[i] += g * normed(i);
                d_shift[i] += g;
                sum += g * scale[i];
                product += g * scale[i] * normed(i);
            }
            for (std::int64_t i = 0; i < width; ++i) {
                const real g = static_cast<real>(d_y[i]) * scale[i];
                const real d = inverse_deviation[r] * (g - (sum + normed(i) * product) / static_cast<real>(width));
                d_x[i] = static_cast<value>(residual ? static_cast<real>(d_x[i]) + d : d);
            }
        }
    }

    /// GELU in its tanh form, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); D. Hendrycks and K. Gimpel, 2016.
    void gelu(const value* x, value* y, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            const real v = static_cast<real>(x[i]);
            y[i] = static_cast<value>(real(0.5) * v * (1 + std::tanh(gelu_argument(v))));
        }
    }
    /// In place: `gradient` is that of y before and that of x afterwards.
    void gelu_backward(value* gradient, const value* x, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            const real v = static_cast<real>(x[i]);
            const real t = std::tanh(gelu_argument(v));
            const real inner = root_two_over_pi * (1 + 3 * real(0.044715) * v * v);
            const real slope = real(0.5) * (1 + t) + real(0.5) * v * (1 - t * t) * inner;
            gradient[i] = static_cast<value>(static_cast<real>(gradient[i]) * slope);
        }
    }

    /// raised = x w^T and y = gelu(raised); w is out x in.
    void linear_gelu(const value* x, const value* w, value* raised, value* y, std::int64_t rows, std::int64_t in,
                     std::int64_t out) {
        base::linear(x, w, raised, rows, in, out, nullptr);
        gelu(raised, y, rows * out);
    }
    /// d_raised = (d_y w) x the slope of gelu at raised, which has `in` columns.
    void linear_backward_input_gelu(const value* d_y, const value* w, const value* raised, value* d_raised,
                                    std::int64_t rows, std::int64_t in, std::int64_t out) {
        base::linear_backward_input(d_y, w, d_raised, rows, in, out);
        gelu_backward(d_raised, raised, rows * in);
    }

    /// Causal attention: of projected rows (query, key, value; each heads x head width) y = softmax(q k^T / sqrt(head
    /// width)) v over keys up to the query; log_sums is the logarithm of the softmax's denominator, batch x heads x
    /// tokens.
    void attention(const value* projected, value* y, real* log_sums, const attention_shape& s) {
        reserve_attention(s);
        for (std::int64_t b = 0; b < s.batch; ++b, projected += s.tokens * 3 * s.width, y += s.tokens * s.width) {
            products_.multiply(scores_of(s), projected, projected + s.width, scores_.data());
            for (std::int64_t row = 0; row < s.heads * s.tokens; ++row) {
                softmax_row(row, row % s.tokens + 1, s, log_sums[b * s.heads * s.tokens + row]);
            }
            products_.multiply({s.tokens, s.head_width(), s.tokens, s.tokens, 1, 3 * s.width, 1, s.width, false,
                                s.heads, s.tokens * s.tokens, s.head_width(), s.head_width()},
                               weights_.data(), projected + 2 * s.width, y);
        }
    }
    /// d_projected from d_y; the softmax is computed again from log_sums.
    void attention_backward(const value* d_y, const value* projected, const value* y, const real* log_sums,
                            value* d_projected, const attention_shape& s) {
        reserve_attention(s);
        const std::int64_t t = s.tokens, w = s.head_width(), row = 3 * s.width;
        for (std::int64_t b = 0; b < s.batch; ++b) {
            products_.multiply(scores_of(s), projected, projected + s.width, scores_.data());
            products_.multiply({t, t, w, s.width, 1, 1, row, t, false, s.heads, w, w, t * t}, d_y,
                               projected + 2 * s.width, d_scores_.data());
            for (std::int64_t i = 0; i < s.heads * t; ++i) {
                const std::int64_t at = i % t * s.width + i / t * w;
                softmax_backward_row(i, d_y + at, y + at, log_sums[b * s.heads * t + i], s);
            }
            // dv = p^T dy, dq = ds k, dk = ds^T q; the factor 1 / sqrt(w) is in ds.
            const product transposed{t, w, t, 1, t, row, 1, row, false, s.heads, t * t, w, w};
            product plain = transposed;
            plain.a_row = t;
            plain.a_column = 1;
            product of_value = transposed;
            of_value.b_row = s.width;
            products_.multiply(of_value, weights_.data(), d_y, d_projected + 2 * s.width);
            products_.multiply(plain, d_weights_.data(), projected + s.width, d_projected);
            products_.multiply(transposed, d_weights_.data(), projected, d_projected + s.width);
            projected += t * row;
            d_projected += t * row;
            d_y += t * s.width;
            y += t * s.width;
        }
    }

    /// Adds the mean cross-entropy over `effective_rows` to the loss, and puts the gradient of the scaled loss in place
    /// of the logits.
    void cross_entropy(value* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t classes,
                       std::int64_t effective_rows) {
        const real share = 1 / static_cast<real>(effective_rows);
        const real factor = share * static_cast<real>(control_.scaler.scale);
        double loss = 0;
        for (std::int64_t r = 0; r < rows; ++r, logits += classes) {
            real largest = static_cast<real>(logits[0]);
            for (std::int64_t i = 1; i < classes; ++i) largest = std::max(largest, static_cast<real>(logits[i]));
            real sum = 0;
            for (std::int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<real>(logits[i]) - largest);
            const real log_sum = largest + std::log(sum);
            loss += static_cast<double>(log_sum - static_cast<real>(logits[targets[r]]));
            for (std::int64_t i = 0; i < classes; ++i) {
                const real probability = std::exp(static_cast<real>(logits[i]) - log_sum);
                logits[i] = static_cast<value>((probability - (i == targets[r] ? 1 : 0)) * factor);
            }
        }
        exact_loss_ += loss * static_cast<double>(share);
        control_.loss = static_cast<float>(exact_loss_);
    }

    /// The scalar work of a step; see step_control.hpp.
    void begin_step() {
        training::begin_step(control_);
        exact_loss_ = 0;
    }
    void unscale() { training::unscale(control_); }
    /// The norm of gradients x factor, and whether all of them are finite.
    void measure(const real* gradients, std::int64_t count) {
        double squares = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            if (gradients[i] - gradients[i] != 0) control_.scaler.found_inf = 1;
            squares += square(static_cast<double>(gradients[i]) * static_cast<double>(control_.factor));
        }
        control_.norm = static_cast<float>(std::sqrt(squares));
    }
    void clip(double limit) { training::clip(control_, static_cast<float>(limit)); }
    void update(const loss_scale_rules& rules) { training::update(control_.scaler, rules); }

    /// AdamW; I. Loshchilov and F. Hutter, Decoupled weight decay regularization, 2019, as torch.optim.AdamW has it.
    /// Does nothing in a step with a gradient that is not finite. `copy`, where there is one, is the weights rounded.
    void adamw(real* weights, const real* gradients, real* first, real* second, value* copy, std::int64_t count,
               const recipe& how) {
        if (control_.scaler.found_inf != 0) return;
        const real b1 = static_cast<real>(how.beta1), b2 = static_cast<real>(how.beta2);
        const int step = control_.scaler.taken + 1;
        const real correction1 = static_cast<real>(how.learning_rate / (1 - std::pow(how.beta1, step)));
        const real correction2 = static_cast<real>(1 / std::sqrt(1 - std::pow(how.beta2, step)));
        const real decay = static_cast<real>(1 - how.learning_rate * how.weight_decay);
        for (std::int64_t i = 0; i < count; ++i) {
            const real g = clipped(gradients[i]);
            first[i] = b1 * first[i] + (1 - b1) * g;
            second[i] = b2 * second[i] + (1 - b2) * g * g;
            const real root = std::sqrt(second[i]) * correction2 + static_cast<real>(how.epsilon);
            weights[i] = weights[i] * decay - correction1 * first[i] / root;
            if (copy != nullptr) copy[i] = static_cast<value>(weights[i]);
        }
    }
    /// SGD with momentum as torch.optim.SGD has it: velocity = momentum x velocity + gradient + decay x weight.
    void sgd(real* weights, const real* gradients, real* velocity, value* copy, std::int64_t count, const recipe& how) {
        if (control_.scaler.found_inf != 0) return;
        for (std::int64_t i = 0; i < count; ++i) {
            const real g = clipped(gradients[i]) + static_cast<real>(how.weight_decay) * weights[i];
            velocity[i] = static_cast<real>(how.beta1) * velocity[i] + g;
            weights[i] -= static_cast<real>(how.learning_rate) * velocity[i];
            if (copy != nullptr) copy[i] = static_cast<value>(weights[i]);
        }
    }

    /// The scalars, to read and to set between steps; on a device this waits for the step.
    [[nodiscard]] step_control read_control() { return control_; }
    void write_control(const step_control& control) { control_ = control; }
    template <class T>
    [[nodiscard]] std::vector<T> download(const T* from, std::size_t count) {
        return std::vector<T>(from, from + count);
    }
    template <class T>
    void overwrite(T* to, const std::vector<T>& from) {
        std::copy(from.begin(), from.end(), to);
    }

    /// The loss of this step before it is rounded to float.
    [[nodiscard]] double exact_loss() const noexcept { return exact_loss_; }

private:
    static constexpr real root_two_over_pi = real(0.7978845608028654);

    [[nodiscard]] static real gelu_argument(real v) noexcept {
        return root_two_over_pi * (v + real(0.044715) * v * v * v);
    }
    [[nodiscard]] real clipped(real gradient) const noexcept {
        return gradient * static_cast<real>(control_.factor) * static_cast<real>(control_.clip);
    }

    /// Scores of all heads of one sequence: heads x tokens x tokens.
    [[nodiscard]] static product scores_of(const attention_shape& s) noexcept {
        return {s.tokens, s.tokens,       s.head_width(), 3 * s.width,        1, 1, 3 * s.width, s.tokens, false,
                s.heads,  s.head_width(), s.head_width(), s.tokens * s.tokens};
    }
    void reserve_attention(const attention_shape& s) {
        const auto count = static_cast<std::size_t>(s.heads * s.tokens * s.tokens);
        for (auto* each : {&scores_, &d_scores_}) each->resize(count);
        for (auto* each : {&weights_, &d_weights_}) each->resize(count);
    }
    /// Row `row` of the scores into row `row` of the weights; the first `seen` keys count.
    void softmax_row(std::int64_t row, std::int64_t seen, const attention_shape& s, real& log_sum) {
        const real* score = scores_.data() + row * s.tokens;
        value* weight = weights_.data() + row * s.tokens;
        const real scale = 1 / std::sqrt(static_cast<real>(s.head_width()));
        const real largest = *std::max_element(score, score + seen) * scale;
        real sum = 0;
        for (std::int64_t i = 0; i < seen; ++i) sum += std::exp(score[i] * scale - largest);
        log_sum = largest + std::log(sum);
        for (std::int64_t i = 0; i < seen; ++i) weight[i] = static_cast<value>(std::exp(score[i] * scale - log_sum));
        std::fill(weight + seen, weight + s.tokens, value{});
    }
    /// The softmax's weights again, and the gradient of the scores: ds = p (dp - y dy) / sqrt(w).
    void softmax_backward_row(std::int64_t row, const value* d_y, const value* y, real log_sum,
                              const attention_shape& s) {
        const real* score = scores_.data() + row * s.tokens;
        const real* d_score = d_scores_.data() + row * s.tokens;
        value* weight = weights_.data() + row * s.tokens;
        value* d_weight = d_weights_.data() + row * s.tokens;
        const real scale = 1 / std::sqrt(static_cast<real>(s.head_width()));
        const std::int64_t seen = row % s.tokens + 1;
        real mean = 0;
        for (std::int64_t i = 0; i < s.head_width(); ++i) mean += static_cast<real>(d_y[i]) * static_cast<real>(y[i]);
        for (std::int64_t i = 0; i < seen; ++i) {
            const real p = std::exp(score[i] * scale - log_sum);
            weight[i] = static_cast<value>(p);
            d_weight[i] = static_cast<value>(p * (d_score[i] - mean) * scale);
        }
        std::fill(weight + seen, weight + s.tokens, value{});
        std::fill(d_weight + seen, d_weight + s.tokens, value{});
    }

    step_control control_;
    double exact_loss_ = 0;
    std::vector<real> scores_, d_scores_;
    std::vector<value> weights_, d_weights_;
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
