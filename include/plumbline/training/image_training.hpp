// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_IMAGE_TRAINING_HPP
#define PLUMBLINE_TRAINING_IMAGE_TRAINING_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/training/bottleneck.hpp"
#include "plumbline/training/patches.hpp"
#include "plumbline/training/step.hpp"
#include "plumbline/training/value.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// A bottleneck stack that is trained on images from outside in place of its own fixed batch. `Ops` as in fixture.hpp;
/// everything is enqueued, and only finish() waits.
template <class Ops>
class image_training {
public:
    using params = workload::training_step::params;

    /// Operators are made of `on...`. Images will be `size` x `size`; throws usage_error when the network's side does
    /// not divide that.
    template <class... Arguments>
    image_training(const params& p, std::int64_t size, Arguments&&... on)
        : p_(fitting(p, size)), size_(size), ops_(std::forward<Arguments>(on)...), steps_(ops_, p, no_scaling()) {}

    /// Makes `count` images, fp32 or fp16 as `type` says, the first inputs of the next step; others stay what they
    /// were. `images` is where the operators run and must stay until the step is over.
    void load(const void* images, workload::dtype type, bool interleaved, std::size_t count) {
        const patch_shape s{std::min(static_cast<std::int64_t>(count), p_.bottleneck.batch), size_, interleaved,
                            p_.bottleneck.side, p_.bottleneck.channels};
        auto* const to = steps_.model().images(0);
        if (type == workload::dtype::fp16)
            ops_.patches(static_cast<const float16*>(images), to, s);
        else
            ops_.patches(static_cast<const float*>(images), to, s);
    }

    /// Writes the class of each label to `to`, at most a batch of them; returns how many.
    std::size_t classes(const std::vector<std::int64_t>& labels, std::int32_t* to) const {
        const std::size_t count = std::min(labels.size(), static_cast<std::size_t>(p_.bottleneck.batch));
        const std::int64_t all = p_.bottleneck.classes;
        for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::int32_t>((labels[i] % all + all) % all);
        return count;
    }
    /// The classes of the inputs, where the operators run.
    [[nodiscard]] std::int32_t* labels() noexcept { return steps_.model().targets(0); }

    void step() { steps_.step(); }
    /// Back to the initial weights.
    void reset() { steps_.reset(); }

    [[nodiscard]] Ops& operations() noexcept { return ops_; }
    [[nodiscard]] const params& parameters() const noexcept { return p_; }

    /// What the training came to, after the last step: waits. Throws verification_error when it trained nothing or its
    /// loss is no number: then the times are not those of a training.
    void finish(scalar_map& state) {
        const step_control control = ops_.read_control();
        state["trains"] = workload::training_step::id(p_);
        state["trained_steps"] = static_cast<std::int64_t>(control.scaler.taken);
        state["skipped_steps"] = static_cast<std::int64_t>(control.scaler.skipped);
        state["loss"] = static_cast<double>(control.loss);
        if (control.scaler.taken > 0 && std::isfinite(control.loss)) return;
        throw verification_error("the training step that consumes the batches took " +
                                     std::to_string(control.scaler.taken) + " steps and skipped " +
                                     std::to_string(control.scaler.skipped) + ", its last loss is " +
                                     std::to_string(control.loss) + ": look at the images that it was given",
                                 0, 0, 0);
    }

private:
    [[nodiscard]] static const params& fitting(const params& p, std::int64_t size) {
        if (size % p.bottleneck.side == 0 && p.bottleneck.channels >= 3) return p;
        throw usage_error(workload::training_step::id(p) + " cannot be trained on images of " + std::to_string(size) +
                          " rows: its side must divide them, and 3 channels are the least");
    }

    params p_;
    std::int64_t size_;
    Ops ops_;
    trainer<Ops, bottleneck> steps_;
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
