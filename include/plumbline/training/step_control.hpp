// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_STEP_CONTROL_HPP
#define PLUMBLINE_TRAINING_STEP_CONTROL_HPP

#include "plumbline/training/loss_scaler.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// Everything scalar of a training step. It lives where the step runs, so that a step on a device asks the host for
/// nothing: whether to skip, how much to clip and what to unscale by are read from here by the kernels.
struct step_control {
    loss_scale_state scaler;
    float factor = 1; ///< what unscaling multiplies each gradient by; the optimizer does it while it reads them
    float clip = 1;   ///< what clipping multiplies each gradient by
    float norm = 0;   ///< of the gradients times `factor`, as measured
    float loss = 0;   ///< mean over the effective batch
};

// The functions below are a step's scalar work. Both backends call them: the host directly, a device from kernels of
// one thread.

/// Before the first micro-batch.
constexpr void begin_step(step_control& control) noexcept {
    control.factor = 1;
    control.clip = 1;
    control.norm = 0;
    control.loss = 0;
}

/// After the last backward pass.
constexpr void unscale(step_control& control) noexcept {
    control.factor *= inverse_of(control.scaler.scale);
}

/// After the gradients were measured: scales them down to `limit` where they are longer. torch.nn.utils.
/// clip_grad_norm_ adds the same 1e-6.
constexpr void clip(step_control& control, float limit) noexcept {
    const float wanted = limit / (control.norm + 1e-6f);
    control.clip = wanted < 1 ? wanted : 1;
}

/// What a leg without loss scaling has in place of one: a scale of 1 that never grows. A gradient that is not finite
/// still skips the step, and is counted.
[[nodiscard]] constexpr loss_scale_rules no_scaling() noexcept {
    return {1.0f, 2.0f, 1.0f, 0x7fffffff};
}

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
