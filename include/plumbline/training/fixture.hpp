// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_FIXTURE_HPP
#define PLUMBLINE_TRAINING_FIXTURE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result/result.hpp"
#include "plumbline/training/attention_check.hpp"
#include "plumbline/training/bottleneck.hpp"
#include "plumbline/training/invariants.hpp"
#include "plumbline/training/transformer.hpp"
#include "plumbline/workload/digest.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// The kernel `training_step/...` of any backend: one launch is one optimizer step of `Model` on a fixed batch, so that
/// successive launches train. `Ops` is made of (Backend&, params) and says in `unsupported` what it cannot do.
template <class Backend, class Ops, template <class> class Model>
class fixture {
public:
    using params = workload::training_step::params;

    fixture(Backend& on, const params& p, std::size_t) : p_(p), ops_(on, p), steps_(ops_, p, rules_of(p)) {}

    /// Enqueues one step.
    void run(Backend&, std::size_t) { steps_.step(); }

    /// A small network of this kind and leg on the same backend: one step with a scale that moves is held to float64,
    /// an overflow must be skipped, and fifty steps must learn as float64 does. Attention is held to float64 at its
    /// full size. This network itself must learn, too.
    void verify(Backend& on) {
        params small = small_version(p_);
        if (p_.net == workload::training_step::network::bottleneck) small.accumulation = 2;
        using check = step_check<Ops, Model>;
        {
            Ops ops(on, small);
            trainer<Ops, Model> steps(ops, small, check::check_rules());
            check(steps, name()).check_all();
        }
        {
            Ops ops(on, small);
            trainer<Ops, Model> steps(ops, small, rules_of(small));
            check(steps, name()).check_learning(learning_steps);
        }
        losses_ = train();
        trained_ = ops_.read_control();
        steps_.reset(); // every session is timed from the same weights
        check_losses(name(), losses_, losses_, 0);
    }

    /// Of loss, norm and a part of the weights after one step from the start.
    [[nodiscard]] std::string output_hash(Backend&) {
        steps_.reset();
        steps_.step();
        const step_control control = ops_.read_control();
        const auto& last = steps_.model().weights().list().back();
        const auto count = static_cast<std::size_t>(std::min<std::int64_t>(last.count, 65536));
        auto seen = ops_.download(steps_.model().weights().master() + last.offset, count);
        seen.push_back(static_cast<typename Ops::real>(control.loss));
        seen.push_back(static_cast<typename Ops::real>(control.norm));
        steps_.reset();
        return workload::digest(seen.data(), seen.size() * sizeof seen.front());
    }

    /// What ran.
    [[nodiscard]] result::evidence evidence(Backend&) {
        result::evidence ran = ops_.evidence();
        if constexpr (requires { ops_.launches([] {}); }) {
            ran.parts["launches_per_step"] = ops_.launches([this] { steps_.step(); });
        }
        ran.parts["items_per_step"] = p_.items();
        ran.parts["parameters"] = workload::training_step::parameters(p_);
        ran.parts["allocated_bytes"] = static_cast<std::int64_t>(ops_.allocated_bytes());
        return ran;
    }

    /// What the first fifty steps did, which verify() trained.
    [[nodiscard]] scalar_map verification_facts(Backend&) const {
        scalar_map facts{{"loss_scale", static_cast<double>(trained_.scaler.scale)},
                         {"skipped_steps", static_cast<std::int64_t>(trained_.scaler.skipped)}};
        for (int step : {1, 10, 25, 50}) {
            facts["loss_" + std::to_string(step)] = losses_.at(static_cast<std::size_t>(step - 1));
        }
        return facts;
    }

    static constexpr int learning_steps = 50;

    [[nodiscard]] static loss_scale_rules rules_of(const params& p) {
        return p.type == workload::dtype::fp16 ? loss_scale_rules{} : no_scaling();
    }

    [[nodiscard]] trainer<Ops, Model>& steps() noexcept { return steps_; }

private:
    /// The losses of the first fifty steps from the initial weights.
    [[nodiscard]] std::vector<double> train() {
        steps_.reset();
        std::vector<double> losses;
        for (int i = 0; i < learning_steps; ++i) {
            steps_.step();
            losses.push_back(static_cast<double>(ops_.read_control().loss));
        }
        return losses;
    }

    [[nodiscard]] std::string name() const { return workload::training_step::id(p_); }

    params p_;
    Ops ops_;
    trainer<Ops, Model> steps_;
    std::vector<double> losses_; ///< of those fifty steps
    step_control trained_;       ///< behind them
};

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
