// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LOSS_SCALER_HPP
#define PLUMBLINE_CUDA_LOSS_SCALER_HPP

#include <cstdint>

#include "plumbline/cuda/handle.hpp"
#include "plumbline/cuda/training_kernels.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// training::loss_scaler with its state on the device, for own training loops: nothing here waits for the device or
/// asks the host, so that a step with it can be captured into a graph.
///
///     cuda::loss_scaler scaler(stream);
///     for (...) { scaler.scale(); ... }          // micro-batches: multiply the loss by *scaler.device_scale()
///     scaler.unscale(gradients, count);          // for each buffer of gradients
///     scaler.step();                             // the optimizer's kernel does nothing if *scaler.device_found_inf()
///     scaler.update();
///
/// The order of calls is checked on the host, as the host's scaler checks it. Not thread-safe; the stream must outlive
/// it.
class loss_scaler {
public:
    explicit loss_scaler(cudaStream_t on, const training::loss_scale_rules& rules = {})
        : on_(on), rules_(rules), control_(sizeof(training::step_control)) {
        training::loss_scaler::check(rules);
        training::step_control start;
        start.scaler.scale = rules.initial;
        check(cudaMemcpyAsync(control_.data(), &start, sizeof start, cudaMemcpyHostToDevice, on_), "cudaMemcpyAsync",
              "the state of a loss scaler");
        check(cudaStreamSynchronize(on_), "cudaStreamSynchronize"); // `start` ends here
    }

    /// Before each backward pass.
    void scale() {
        order_.scale();
        unscaled_ = false;
    }

    /// Multiplies the gradients by the inverse of the scale, in place, and notes whether one is not finite. Once for
    /// each buffer, all of them before step().
    void unscale(float* gradients, std::int64_t count) {
        if (!unscaled_) order_.unscale();
        unscaled_ = true;
        kernels::unscale_gradients(on_, gradients, count, control());
    }

    void step() {
        order_.step();
        unscaled_ = false;
    }

    void update() {
        order_.update();
        kernels::update_scale(on_, control(), rules_);
    }

    /// Device addresses for the kernels that scale the loss and take the step.
    [[nodiscard]] const float* device_scale() const noexcept { return &control()->scaler.scale; }
    [[nodiscard]] const std::int32_t* device_found_inf() const noexcept { return &control()->scaler.found_inf; }

    /// The state as it is after what was enqueued; waits for it.
    [[nodiscard]] training::loss_scale_state state() const {
        training::step_control now;
        check(cudaMemcpyAsync(&now, control_.data(), sizeof now, cudaMemcpyDeviceToHost, on_), "cudaMemcpyAsync",
              "the state of a loss scaler");
        check(cudaStreamSynchronize(on_), "cudaStreamSynchronize");
        return now.scaler;
    }

private:
    [[nodiscard]] training::step_control* control() const noexcept { return control_.as<training::step_control>(); }

    cudaStream_t on_;
    training::loss_scale_rules rules_;
    device_memory control_;
    training::scaling_order order_;
    bool unscaled_ = false; ///< at least one buffer of this step
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
