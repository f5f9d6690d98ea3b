// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_LOSS_SCALER_HPP
#define PLUMBLINE_TRAINING_LOSS_SCALER_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "plumbline/core/error.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Training steps free of any backend: what is computed, in which order, and what must hold of it.
namespace training {

/// How a loss scale moves; the defaults are those of PyTorch's torch.amp.GradScaler.
struct loss_scale_rules {
    float initial = 65536.0f;
    float growth = 2.0f;          ///< factor after `interval` clean steps in a row
    float backoff = 0.5f;         ///< factor after a step with a gradient that is not finite
    std::int32_t interval = 2000; ///< clean steps in a row before the scale grows
};

/// A loss scale and what it remembers. Plain, so that a copy of it can live on a device; both backends change it by
/// the functions below alone.
struct loss_scale_state {
    float scale = 65536.0f;
    std::int32_t clean_steps = 0; ///< in a row
    std::int32_t found_inf = 0;   ///< not 0: a gradient of the current step is not finite
    std::int32_t skipped = 0;     ///< steps that were not taken, since the start
    std::int32_t taken = 0;       ///< steps that were: the optimizer's step count
};

/// What a gradient of the scaled loss is multiplied by: the inverse, rounded once, as GradScaler has it.
[[nodiscard]] constexpr float inverse_of(float scale) noexcept {
    return static_cast<float>(1.0 / static_cast<double>(scale));
}

/// Whether a value is neither infinite nor a NaN; spelled out because std::isfinite is not constexpr, and device code
/// calls this too.
[[nodiscard]] constexpr bool is_finite(float value) noexcept {
    return value - value == 0.0f;
}

/// Ends a step: found_inf halves the scale and counts a skipped step; `interval` clean steps in a row double it unless
/// that is not finite. The scale may fall below 1. Clears found_inf.
constexpr void update(loss_scale_state& state, const loss_scale_rules& rules) noexcept {
    if (state.found_inf != 0) {
        state.scale *= rules.backoff;
        state.clean_steps = 0;
        ++state.skipped;
    } else {
        ++state.taken;
        if (++state.clean_steps >= rules.interval) {
            const float grown = state.scale * rules.growth;
            if (is_finite(grown)) state.scale = grown;
            state.clean_steps = 0;
        }
    }
    state.found_inf = 0;
}

/// Multiplies `count` gradients by `factor` in place and returns whether every one of them was finite before. A factor
/// of 1 only looks.
template <class Real>
[[nodiscard]] bool unscale(Real* gradients, std::size_t count, float factor) noexcept {
    bool finite = true;
    for (std::size_t i = 0; i < count; ++i) {
        finite = finite && gradients[i] - gradients[i] == Real{0};
        if (factor != 1.0f) gradients[i] *= static_cast<Real>(factor);
    }
    return finite;
}

/// Which call of a step comes next. The mistakes that people make with loss scaling are mistakes of order, so a
/// scaler of either backend refuses them here instead of training wrongly:
///
///     scale (once a micro-batch) -> unscale -> [clip] -> step -> update
class scaling_order {
public:
    /// Before each backward pass.
    void scale() {
        refuse_unless(at_ == stage::scaling, "a loss was scaled after the gradients were unscaled: accumulate all "
                                             "micro-batches first, then unscale once, and end the step with update()");
    }

    void unscale() {
        refuse_unless(at_ == stage::scaling, "the gradients were unscaled twice: end each step with update()");
        at_ = stage::unscaled;
    }

    void step() {
        refuse_unless(at_ != stage::scaling, "the optimizer stepped on gradients that still carry the scale: call "
                                             "unscale() first");
        refuse_unless(at_ == stage::unscaled, "the optimizer stepped twice: end each step with update()");
        at_ = stage::stepped;
    }

    void update() {
        refuse_unless(at_ == stage::stepped, "the scale was updated before the step: it would not be the one that the "
                                             "gradients carry");
        at_ = stage::scaling;
    }

private:
    enum class stage { scaling, unscaled, stepped };

    static void refuse_unless(bool right, const char* why) {
        if (!right) throw usage_error(std::string("loss scaling: ") + why);
    }

    stage at_ = stage::scaling;
};

/// Dynamic loss scaling on the host, for own training loops in fp16:
///
///     training::loss_scaler scaler;
///     for (...) {                                   // micro-batches
///         loss = forward(...) / micro_batches;
///         backward(scaler.scaled(loss));
///     }
///     scaler.unscale(gradients);                    // once, with all ranges of gradients of the step
///     clip(gradients);
///     if (scaler.step()) optimizer.step(gradients); // false: a gradient is not finite, leave this step out
///     scaler.update();
///
/// A call out of order throws usage_error. cuda::loss_scaler keeps the same state on the device. Not thread-safe.
class loss_scaler {
public:
    explicit loss_scaler(const loss_scale_rules& rules = {}) : rules_(rules) {
        check(rules);
        state_.scale = rules.initial;
    }

    /// Throws usage_error for rules under which the scale could not move both ways.
    static void check(const loss_scale_rules& rules) {
        const bool sane = rules.initial > 0 && is_finite(rules.initial) && rules.growth > 1 && rules.backoff > 0 &&
                          rules.backoff < 1 && rules.interval > 0;
        if (!sane) {
            throw usage_error("loss scaling: initial must be positive and finite, growth above 1, backoff between 0 "
                              "and 1, interval positive");
        }
    }

    [[nodiscard]] float scale() const noexcept { return state_.scale; }
    [[nodiscard]] const loss_scale_state& state() const noexcept { return state_; }

    /// The loss to differentiate, already divided by the number of micro-batches.
    [[nodiscard]] float scaled(float loss) {
        order_.scale();
        return loss * state_.scale;
    }

    /// Unscales all gradients of the step in place and notes whether one of them is not finite. Each argument is a
    /// contiguous range of float or double.
    template <class... Ranges>
    void unscale(Ranges&&... gradients) {
        order_.unscale();
        (look_at(std::data(gradients), std::size(gradients)), ...);
    }

    /// Whether the optimizer shall take this step.
    [[nodiscard]] bool step() {
        order_.step();
        return state_.found_inf == 0;
    }

    void update() {
        order_.update();
        training::update(state_, rules_);
    }

private:
    template <class Real>
    void look_at(Real* gradients, std::size_t count) noexcept {
        if (!training::unscale(gradients, count, inverse_of(state_.scale))) state_.found_inf = 1;
    }

    loss_scale_rules rules_;
    loss_scale_state state_;
    scaling_order order_;
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
