// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_TRANSFORMER_HPP
#define PLUMBLINE_TRAINING_TRANSFORMER_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/training/batch.hpp"
#include "plumbline/training/parameters.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// The decoder of workload::training_step: embedding; layers x' = x + attention(norm(x)), x'' = x' + mlp(norm(x'))
/// with causal attention and GELU (tanh form); norm; head; mean cross-entropy. Products have no bias. Matrices are
/// stored outputs x inputs, activations rows x width. Everything the backward pass needs is kept, nothing is computed
/// twice.
///
/// `Ops` is where the operators run: see host_operations.hpp. The model must not outlive it.
template <class Ops>
class transformer {
public:
    using value = typename Ops::value;
    using real = typename Ops::real;
    static constexpr int moments = 2;

    transformer(Ops& on, const workload::training_step::params& p)
        : on_(&on), s_(p.transformer), recipe_(workload::training_step::recipe_of(p)), micro_batches_(p.accumulation) {
        add_parameters();
        weights_.allocate(on, moments);
        allocate();
    }

    [[nodiscard]] parameters<Ops>& weights() noexcept { return weights_; }

    void reset() { weights_.reset(*on_); }

    /// Forward pass, loss, and the gradient of the scaled loss of micro-batch `micro`; the first one overwrites the
    /// gradients, the others add to them.
    void accumulate(std::int64_t micro) {
        forward(micro);
        backward(micro);
    }

    /// Forward pass and loss alone; leaves the gradient of the scaled loss in place of the logits.
    void forward(std::int64_t micro) {
        const batch& input = batches_[static_cast<std::size_t>(micro)];
        on_->embed(input.tokens.data(), weights_.weight(embedding_), layers_.front().x.data(), rows(), s_.width);
        for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l);
        norm_forward(last_norm_, last_x_.data(), last_normed_.data(), last_statistics_);
        on_->linear(last_normed_.data(), weights_.weight(head_), logits_.data(), rows(), s_.width, s_.vocabulary,
                    nullptr);
        on_->cross_entropy(logits_.data(), input.targets.data(), rows(), s_.vocabulary, rows() * micro_batches_);
    }

    void optimize() {
        on_->adamw(weights_.master(), weights_.gradients(), weights_.moment(0), weights_.moment(1),
                   parameters<Ops>::own_copy ? weights_.copy() : nullptr, weights_.size(), recipe_);
    }

    /// The first moment after the first step is (1 - beta1) times the gradient that reached the optimizer.
    [[nodiscard]] double first_moment_share() const noexcept { return 1 - recipe_.beta1; }

private:
    struct statistics {
        typename Ops::template buffer<real> mean;
        typename Ops::template buffer<real> inverse_deviation;
    };
    struct norm {
        std::size_t scale = 0;
        std::size_t shift = 0;
    };
    struct layer {
        norm first, second;
        std::size_t qkv = 0, out = 0, up = 0, down = 0; ///< weights
        typename Ops::template buffer<value> x, normed, projected, attended, middle, normed2, raised, activated;
        typename Ops::template buffer<real> log_sums; ///< of the softmax, one for each row and head
        statistics first_statistics, second_statistics;
    };
    struct batch {
        typename Ops::template buffer<std::int32_t> tokens;
        typename Ops::template buffer<std::int32_t> targets;
    };

    [[nodiscard]] std::int64_t rows() const noexcept { return s_.rows(); }

    norm add_norm(const std::string& name) {
        return {weights_.add(name + ".scale", s_.width, 0, 1), weights_.add(name + ".shift", s_.width, 0)};
    }

    /// Initial deviations of GPT-2: 0.02, and less for what is added to the residual stream.
    void add_parameters() {
        const double deviation = 0.02;
        const double residual = deviation / std::sqrt(2.0 * static_cast<double>(s_.layers));
        embedding_ = weights_.add("embedding", s_.vocabulary * s_.width, deviation);
        layers_.resize(static_cast<std::size_t>(s_.layers));
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            layer& at = layers_[l];
            const std::string name = "layer" + std::to_string(l);
            at.first = add_norm(name + ".norm1");
            at.qkv = weights_.add(name + ".qkv", 3 * s_.width * s_.width, deviation);
            at.out = weights_.add(name + ".out", s_.width * s_.width, residual);
            at.second = add_norm(name + ".norm2");
            at.up = weights_.add(name + ".up", s_.hidden * s_.width, deviation);
            at.down = weights_.add(name + ".down", s_.width * s_.hidden, residual);
        }
        last_norm_ = add_norm("norm");
        head_ = weights_.add("head", s_.vocabulary * s_.width, deviation);
    }

    void allocate() {
        const auto row = static_cast<std::size_t>(rows());
        const auto width = static_cast<std::size_t>(s_.width);
        const auto hidden = static_cast<std::size_t>(s_.hidden);
        const auto values = [this](std::size_t count) { return on_->template make<value>(count); };
        const auto two = [this, row] {
            return statistics{on_->template make<real>(row), on_->template make<real>(row)};
        };
        for (layer& at : layers_) {
            at.x = values(row * width);
            at.normed = values(row * width);
            at.projected = values(row * 3 * width);
            at.attended = values(row * width);
            at.middle = values(row * width);
            at.normed2 = values(row * width);
            at.raised = values(row * hidden);
            at.activated = values(row * hidden);
            at.log_sums = on_->template make<real>(row * static_cast<std::size_t>(s_.heads));
            at.first_statistics = two();
            at.second_statistics = two();
        }
        last_x_ = values(row * width);
        last_normed_ = values(row * width);
        last_statistics_ = two();
        logits_ = values(row * static_cast<std::size_t>(s_.vocabulary));
        d_x_ = values(row * width);
        d_normed_ = values(row * width);
        d_projected_ = values(row * 3 * width);
        d_hidden_ = values(row * hidden);
        for (std::int64_t micro = 0; micro < micro_batches_; ++micro) {
            const token_batch drawn = tokens(micro, s_.batch, s_.tokens, s_.vocabulary);
            batches_.push_back({on_->upload(drawn.inputs), on_->upload(drawn.targets)});
        }
    }

    void norm_forward(const norm& with, const value* x, value* y, statistics& kept) {
        on_->layernorm(x, weights_.exact(with.scale), weights_.exact(with.shift), y, kept.mean.data(),
                       kept.inverse_deviation.data(), rows(), s_.width, recipe_.norm_epsilon);
    }

    void forward_layer(std::size_t l) {
        layer& at = layers_[l];
        value* next = l + 1 < layers_.size() ? layers_[l + 1].x.data() : last_x_.data();
        norm_forward(at.first, at.x.data(), at.normed.data(), at.first_statistics);
        on_->linear(at.normed.data(), weights_.weight(at.qkv), at.projected.data(), rows(), s_.width, 3 * s_.width,
                    nullptr);
        on_->attention(at.projected.data(), at.attended.data(), at.log_sums.data(), s_);
        on_->linear(at.attended.data(), weights_.weight(at.out), at.middle.data(), rows(), s_.width, s_.width,
                    at.x.data());
        norm_forward(at.second, at.middle.data(), at.normed2.data(), at.second_statistics);
        on_->linear_gelu(at.normed2.data(), weights_.weight(at.up), at.raised.data(), at.activated.data(), rows(),
                         s_.width, s_.hidden);
        on_->linear(at.activated.data(), weights_.weight(at.down), next, rows(), s_.hidden, s_.width, at.middle.data());
    }

    void backward(std::int64_t micro) {
        add_ = micro != 0;
        product_backward(logits_.data(), last_normed_.data(), head_, d_normed_.data(), s_.width, s_.vocabulary);
        norm_backward(last_norm_, last_x_.data(), last_statistics_, false);
        for (std::size_t l = layers_.size(); l-- > 0;) backward_layer(layers_[l]);
        on_->embed_backward(batches_[static_cast<std::size_t>(micro)].tokens.data(), d_x_.data(),
                            weights_.gradient(embedding_), rows(), s_.width, s_.vocabulary, add_);
    }

    /// d_x_ holds the gradient of the layer's output before, of its input afterwards.
    void backward_layer(layer& at) {
        on_->linear_backward_weight(d_x_.data(), at.activated.data(), weights_.gradient(at.down), rows(), s_.hidden,
                                    s_.width, add_);
        on_->linear_backward_input_gelu(d_x_.data(), weights_.weight(at.down), at.raised.data(), d_hidden_.data(),
                                        rows(), s_.hidden, s_.width);
        product_backward(d_hidden_.data(), at.normed2.data(), at.up, d_normed_.data(), s_.width, s_.hidden);
        norm_backward(at.second, at.middle.data(), at.second_statistics, true);
        product_backward(d_x_.data(), at.attended.data(), at.out, d_normed_.data(), s_.width, s_.width);
        on_->attention_backward(d_normed_.data(), at.projected.data(), at.attended.data(), at.log_sums.data(),
                                d_projected_.data(), s_);
        product_backward(d_projected_.data(), at.normed.data(), at.qkv, d_normed_.data(), s_.width, 3 * s_.width);
        norm_backward(at.first, at.x.data(), at.first_statistics, true);
    }

    /// Gradients of one product, of its weights and of its input.
    void product_backward(const value* d_y, const value* x, std::size_t weight, value* d_x, std::int64_t in,
                          std::int64_t out) {
        on_->linear_backward_weight(d_y, x, weights_.gradient(weight), rows(), in, out, add_);
        on_->linear_backward_input(d_y, weights_.weight(weight), d_x, rows(), in, out);
    }

    /// From d_normed_ into d_x_; `residual` adds to what came past the norm.
    void norm_backward(const norm& with, const value* x, statistics& kept, bool residual) {
        on_->layernorm_backward(d_normed_.data(), x, weights_.exact(with.scale), kept.mean.data(),
                                kept.inverse_deviation.data(), d_x_.data(), weights_.gradient(with.scale),
                                weights_.gradient(with.shift), rows(), s_.width, residual, add_);
    }

    Ops* on_;
    workload::training_step::transformer_shape s_;
    workload::training_step::recipe recipe_;
    std::int64_t micro_batches_;
    parameters<Ops> weights_;
    std::size_t embedding_ = 0;
    std::size_t head_ = 0;
    norm last_norm_;
    std::vector<layer> layers_;
    typename Ops::template buffer<value> last_x_, last_normed_, logits_; ///< logits, then their gradient
    statistics last_statistics_;
    typename Ops::template buffer<value> d_x_, d_normed_, d_projected_, d_hidden_;
    std::vector<batch> batches_;
    bool add_ = false; ///< whether this micro-batch adds to the gradients
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
