// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_BOTTLENECK_HPP
#define PLUMBLINE_TRAINING_BOTTLENECK_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/training/batch.hpp"
#include "plumbline/training/convolution.hpp"
#include "plumbline/training/parameters.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// The bottleneck stack of workload::training_step: three blocks relu(x' + norm(conv1x1(relu(norm(conv3x3(relu(norm(
/// conv1x1(x))))))) with x' = x or norm(conv1x1(x)), mean over the image, classifier, mean cross-entropy; K. He et al.,
/// Deep residual learning, 2016, with the stride in the 3x3 convolution. N x H x W x C, weights K x R x S x C.
///
/// BatchNorm normalises each micro-batch by its own statistics. Its running statistics move by one effective batch:
/// with momentum 1 - (1 - m)^(1 / micro-batches) at each micro-batch, so that the old value keeps the weight 1 - m.
template <class Ops>
class bottleneck {
public:
    using value = typename Ops::value;
    using real = typename Ops::real;
    static constexpr int moments = 1;

    bottleneck(Ops& on, const workload::training_step::params& p)
        : on_(&on), s_(p.bottleneck), recipe_(workload::training_step::recipe_of(p)), micro_batches_(p.accumulation) {
        const std::int64_t c = s_.channels;
        const std::int64_t half = (s_.side + 1) / 2;
        blocks_.resize(3);
        shape_block(0, c, c / 4, c, s_.side, 1);
        shape_block(1, c, c / 2, 2 * c, s_.side, 2);
        shape_block(2, 2 * c, c / 2, 2 * c, half, 1);
        head_ = weights_.add("head", 2 * c * s_.classes, std::sqrt(1 / static_cast<double>(2 * c)));
        weights_.allocate(on, moments);
        allocate();
        reset();
    }

    [[nodiscard]] parameters<Ops>& weights() noexcept { return weights_; }

    void reset() {
        weights_.reset(*on_);
        for (block& at : blocks_) {
            for (unit* each : at.units()) {
                on_->draw(each->running_mean.data(), each->shape.out_channels, 0, 0, 0);
                on_->draw(each->running_variance.data(), each->shape.out_channels, 0, 0, 1);
            }
        }
    }

    void accumulate(std::int64_t micro) {
        forward(micro);
        backward(micro);
    }

    void forward(std::int64_t micro) {
        const value* x = batches_[static_cast<std::size_t>(micro)].images.data();
        for (block& at : blocks_) x = forward_block(at, x);
        const std::int64_t classes = s_.classes, width = 2 * s_.channels;
        on_->average(x, pooled_.data(), s_.batch, pixels(), width);
        on_->linear(pooled_.data(), weights_.weight(head_), logits_.data(), s_.batch, width, classes, nullptr);
        on_->cross_entropy(logits_.data(), batches_[static_cast<std::size_t>(micro)].labels.data(), s_.batch, classes,
                           s_.batch * micro_batches_);
    }

    void optimize() {
        on_->sgd(weights_.master(), weights_.gradients(), weights_.moment(0),
                 parameters<Ops>::own_copy ? weights_.copy() : nullptr, weights_.size(), recipe_);
    }

    /// Inputs and classes of a micro-batch, for who trains on other data than the fixed ones.
    [[nodiscard]] value* images(std::int64_t micro) noexcept {
        return batches_[static_cast<std::size_t>(micro)].images.data();
    }
    [[nodiscard]] std::int32_t* targets(std::int64_t micro) noexcept {
        return batches_[static_cast<std::size_t>(micro)].labels.data();
    }

    /// The velocity after the first step is the gradient that reached the optimizer, but for the weight decay.
    [[nodiscard]] double first_moment_share() const noexcept { return 1; }

    /// A planted mistake: see fault::statistics_per_micro_batch.
    void move_statistics_per_micro_batch(bool wrong) noexcept { per_micro_batch_ = wrong; }

    /// Running mean of the first norm, for invariants.
    [[nodiscard]] real* running_mean() noexcept { return blocks_.front().reduce.running_mean.data(); }
    [[nodiscard]] std::int64_t running_count() const noexcept { return s_.channels / 4; }
    [[nodiscard]] double statistics_momentum() const noexcept { return recipe_.statistics_momentum; }

private:
    template <class T>
    using buffer = typename Ops::template buffer<T>;

    /// A convolution and the norm behind it.
    struct unit {
        convolution_shape shape;
        std::size_t weight = 0, scale = 0, shift = 0;
        buffer<value> convolved, y;
        buffer<real> mean, inverse_deviation, running_mean, running_variance;
    };
    struct block {
        unit reduce, spatial, expand, project;
        bool projected = false;

        [[nodiscard]] std::vector<unit*> units() {
            std::vector<unit*> all{&reduce, &spatial, &expand};
            if (projected) all.push_back(&project);
            return all;
        }
    };
    struct batch {
        buffer<value> images;
        buffer<std::int32_t> labels;
    };

    [[nodiscard]] std::int64_t pixels() const noexcept {
        const std::int64_t half = (s_.side + 1) / 2;
        return half * half;
    }

    unit make_unit(const std::string& name, const convolution_shape& shape) {
        unit made;
        made.shape = shape;
        // Kaiming for ReLU, fan-out, as torchvision's ResNet has it.
        const double fan = static_cast<double>(shape.out_channels * shape.kernel * shape.kernel);
        made.weight = weights_.add(name + ".weight", shape.weights(), std::sqrt(2 / fan));
        made.scale = weights_.add(name + ".scale", shape.out_channels, 0, 1);
        made.shift = weights_.add(name + ".shift", shape.out_channels, 0);
        return made;
    }

    void shape_block(std::size_t index, std::int64_t in, std::int64_t inner, std::int64_t out, std::int64_t side,
                     std::int64_t stride) {
        block& at = blocks_[index];
        const std::string name = "block" + std::to_string(index);
        const std::int64_t n = s_.batch, small = (side + stride - 1) / stride;
        at.reduce = make_unit(name + ".reduce", {n, side, in, inner, 1, 1});
        at.spatial = make_unit(name + ".spatial", {n, side, inner, inner, 3, stride});
        at.expand = make_unit(name + ".expand", {n, small, inner, out, 1, 1});
        at.projected = stride != 1 || in != out;
        if (at.projected) at.project = make_unit(name + ".project", {n, side, in, out, 1, stride});
    }

    void allocate() {
        std::size_t largest = 0;
        for (block& at : blocks_) {
            for (unit* each : at.units()) {
                const auto channels = static_cast<std::size_t>(each->shape.out_channels);
                const auto outputs = static_cast<std::size_t>(each->shape.outputs());
                each->convolved = on_->template make<value>(outputs);
                each->y = on_->template make<value>(outputs);
                for (auto* kept :
                     {&each->mean, &each->inverse_deviation, &each->running_mean, &each->running_variance}) {
                    *kept = on_->template make<real>(channels);
                }
                largest = std::max({largest, outputs, static_cast<std::size_t>(each->shape.inputs())});
            }
        }
        for (auto* each : {&d_x_, &d_y_, &d_shortcut_}) *each = on_->template make<value>(largest);
        const auto n = static_cast<std::size_t>(s_.batch);
        pooled_ = on_->template make<value>(n * static_cast<std::size_t>(2 * s_.channels));
        d_pooled_ = on_->template make<value>(n * static_cast<std::size_t>(2 * s_.channels));
        logits_ = on_->template make<value>(n * static_cast<std::size_t>(s_.classes));
        const std::int64_t inputs = blocks_.front().reduce.shape.inputs();
        for (std::int64_t micro = 0; micro < micro_batches_; ++micro) {
            batch made{on_->template make<value>(static_cast<std::size_t>(inputs)),
                       on_->upload(labels(micro, s_.batch, s_.classes))};
            on_->draw(made.images.data(), inputs, seed_images + static_cast<std::uint64_t>(micro), 1, 0);
            batches_.push_back(std::move(made));
        }
    }

    /// y = [relu](norm(conv(x)) [+ shortcut]).
    void forward_unit(unit& at, const value* x, const value* shortcut, bool relu) {
        on_->convolve(x, weights_.weight(at.weight), at.convolved.data(), at.shape);
        const double m = recipe_.statistics_momentum;
        const double momentum = per_micro_batch_ ? m : 1 - std::pow(1 - m, 1 / static_cast<double>(micro_batches_));
        on_->batchnorm(at.convolved.data(), weights_.exact(at.scale), weights_.exact(at.shift), shortcut, at.y.data(),
                       at.mean.data(), at.inverse_deviation.data(), at.running_mean.data(), at.running_variance.data(),
                       at.shape.out_pixels(), at.shape.out_channels, recipe_.norm_epsilon, momentum, relu);
    }

    const value* forward_block(block& at, const value* x) {
        at_input(at) = x;
        const value* shortcut = x;
        if (at.projected) {
            forward_unit(at.project, x, nullptr, false);
            shortcut = at.project.y.data();
        }
        forward_unit(at.reduce, x, nullptr, true);
        forward_unit(at.spatial, at.reduce.y.data(), nullptr, true);
        forward_unit(at.expand, at.spatial.y.data(), shortcut, true);
        return at.expand.y.data();
    }

    [[nodiscard]] const value*& at_input(const block& at) {
        return inputs_[static_cast<std::size_t>(&at - blocks_.data())];
    }

    void backward(std::int64_t micro) {
        add_ = micro != 0;
        const std::int64_t width = 2 * s_.channels;
        on_->linear_backward_weight(logits_.data(), pooled_.data(), weights_.gradient(head_), s_.batch, width,
                                    s_.classes, add_);
        on_->linear_backward_input(logits_.data(), weights_.weight(head_), d_pooled_.data(), s_.batch, width,
                                   s_.classes);
        on_->average_backward(d_pooled_.data(), d_x_.data(), s_.batch, pixels(), width);
        for (std::size_t i = blocks_.size(); i-- > 0;) backward_block(blocks_[i], i != 0);
    }

    /// Through relu and norm: the gradient of at.y in d_x_ becomes that of at.convolved in d_y_; where there is a
    /// shortcut, its gradient goes to d_shortcut_. Then the gradient of the weights.
    void backward_unit(unit& at, const value* d_y, const value* x, value* d_shortcut, bool relu) {
        on_->batchnorm_backward(d_y, at.convolved.data(), relu ? at.y.data() : nullptr, weights_.exact(at.scale),
                                at.mean.data(), at.inverse_deviation.data(), d_y_.data(), d_shortcut,
                                weights_.gradient(at.scale), weights_.gradient(at.shift), at.shape.out_pixels(),
                                at.shape.out_channels, add_);
        on_->convolve_backward_weight(d_y_.data(), x, weights_.gradient(at.weight), at.shape, add_);
    }

    /// d_x_ holds the gradient of the block's output before, of its input afterwards where somebody needs it.
    void backward_block(block& at, bool input_needed) {
        const value* x = at_input(at);
        backward_unit(at.expand, d_x_.data(), at.spatial.y.data(), d_shortcut_.data(), true);
        input_gradient(at.expand);
        backward_unit(at.spatial, d_x_.data(), at.reduce.y.data(), nullptr, true);
        input_gradient(at.spatial);
        backward_unit(at.reduce, d_x_.data(), x, nullptr, true);
        if (input_needed) input_gradient(at.reduce);
        if (at.projected) {
            backward_unit(at.project, d_shortcut_.data(), x, nullptr, false);
            if (input_needed) {
                on_->convolve_backward_input(d_y_.data(), weights_.weight(at.project.weight), d_shortcut_.data(),
                                             at.project.shape);
            }
        }
        if (input_needed) on_->add(d_shortcut_.data(), d_x_.data(), at.reduce.shape.inputs());
    }

    void input_gradient(unit& at) {
        on_->convolve_backward_input(d_y_.data(), weights_.weight(at.weight), d_x_.data(), at.shape);
    }

    Ops* on_;
    workload::training_step::bottleneck_shape s_;
    workload::training_step::recipe recipe_;
    std::int64_t micro_batches_;
    parameters<Ops> weights_;
    std::vector<block> blocks_;
    const value* inputs_[3] = {};
    std::size_t head_ = 0;
    buffer<value> pooled_, d_pooled_, logits_; ///< logits, then their gradient
    buffer<value> d_x_, d_y_, d_shortcut_;
    std::vector<batch> batches_;
    bool add_ = false;
    bool per_micro_batch_ = false;
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
