// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_STEP_HPP
#define PLUMBLINE_TRAINING_STEP_HPP

#include <cstdint>

#include "plumbline/training/step_control.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// Mistakes that people make with mixed precision, to be planted in tests: each must make an invariant of
/// invariants.hpp fail. None of them stops a program or shows in a step's time.
enum class fault {
    none,
    clip_before_unscale,
    update_before_unscale,
    unscale_twice,
    statistics_per_micro_batch, ///< BatchNorm's running statistics move once for each micro-batch
};

/// One optimizer step after the other of a model: all micro-batches, then unscale, clip, step, update. Enqueues and
/// returns; on a device nothing waits. Not thread-safe.
template <class Ops, template <class> class Model>
class trainer {
public:
    using params = workload::training_step::params;

    /// `rules` are those of the loss scale; a leg without one takes no_scaling().
    trainer(Ops& on, const params& p, const loss_scale_rules& rules)
        : on_(&on), model_(on, p), p_(p), rules_(rules), clip_norm_(workload::training_step::recipe_of(p).clip_norm) {
        reset();
    }

    /// Plants a mistake; `none` takes it out again.
    void plant(fault mistake) {
        mistake_ = mistake;
        if constexpr (requires { model_.move_statistics_per_micro_batch(true); }) {
            model_.move_statistics_per_micro_batch(mistake == fault::statistics_per_micro_batch);
        }
    }

    /// Back to the initial weights and the initial scale.
    void reset() {
        model_.reset();
        step_control control;
        control.scaler.scale = rules_.initial;
        on_->write_control(control);
    }

    void step() {
        on_->begin_step();
        for (std::int64_t micro = 0; micro < p_.accumulation; ++micro) model_.accumulate(micro);
        switch (mistake_) {
        case fault::clip_before_unscale:
            measure_and_clip();
            on_->unscale();
            break;
        case fault::update_before_unscale:
            on_->update(rules_);
            on_->unscale();
            measure_and_clip();
            model_.optimize();
            return;
        case fault::unscale_twice:
            on_->unscale();
            on_->unscale();
            measure_and_clip();
            break;
        default:
            on_->unscale();
            measure_and_clip();
        }
        model_.optimize();
        on_->update(rules_);
    }

    [[nodiscard]] Ops& operations() noexcept { return *on_; }
    [[nodiscard]] Model<Ops>& model() noexcept { return model_; }
    [[nodiscard]] const params& parameters() const noexcept { return p_; }
    [[nodiscard]] const loss_scale_rules& rules() const noexcept { return rules_; }

private:
    void measure_and_clip() {
        on_->measure(model_.weights().gradients(), model_.weights().size());
        on_->clip(clip_norm_);
    }

    Ops* on_;
    Model<Ops> model_;
    params p_;
    loss_scale_rules rules_;
    double clip_norm_;
    fault mistake_ = fault::none;
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
