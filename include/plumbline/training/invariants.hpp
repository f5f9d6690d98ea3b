// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TRAINING_INVARIANTS_HPP
#define PLUMBLINE_TRAINING_INVARIANTS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/training/host_operations.hpp"
#include "plumbline/training/parameters.hpp"
#include "plumbline/training/step.hpp"
#include "plumbline/workload/verify.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace training {

/// What a leg may differ by from float64, relative. A tensor's gradient in 16 bits differs most where rounding turns
/// the sign of what a ReLU sees: one element in a hundred turned is a tenth of the norm. On an H200 the bottleneck's
/// legs of 10 bits of mantissa were off by up to 0.13 and bf16 by up to 0.31, on CPUs by less; a wrong formula shows in
/// fp32, and a gradient of the wrong sign or size, 1 and more, in all legs.
struct tolerances {
    double gradient;    ///< of one tensor, after one step
    double norm;        ///< of the norm of all of them
    double loss = 0.02; ///< in each of fifty steps
};

[[nodiscard]] constexpr tolerances tolerances_of(workload::dtype leg) noexcept {
    switch (leg) {
    case workload::dtype::fp32:
        return {1e-4, 1e-4};
    case workload::dtype::tf32:
    case workload::dtype::fp16:
        return {0.25, 0.02};
    default:
        return {0.6, 0.05};
    }
}

/// One step as it can be seen from outside.
struct observation {
    double scale = 1;      ///< the loss was multiplied by it
    double next_scale = 1; ///< after the step
    double exact_norm = 0; ///< of the gradient, by the float64 reference
    double norm = 0;       ///< as clipping saw it
    double applied = 0;    ///< of the gradient that reached the optimizer
};

/// Throws verification_error, naming the mistake that fits, unless clipping saw the gradient's true norm and the
/// optimizer got the gradient clipped to `limit`.
inline void check_norms(const std::string& name, const observation& seen, double limit, double tolerance) {
    const auto text = [](double value) { return to_string(scalar(value)); };
    const auto near = [tolerance](double a, double b) { return std::abs(a / b - 1) <= tolerance; };
    const double ratio = seen.norm / seen.exact_norm;
    if (!near(ratio, 1)) {
        std::string why = "the gradient is wrong";
        if (near(ratio, seen.scale))
            why = "the gradient was clipped before it was unscaled: clipping saw it " + text(seen.scale) +
                  " times too large, and what is left is that much too small";
        else if (near(ratio, 1 / seen.scale))
            why = "the gradient was unscaled twice: it is " + text(seen.scale) + " times too small";
        else if (near(ratio, seen.scale / seen.next_scale) && seen.scale != seen.next_scale)
            why = "the scale was updated before the gradient was unscaled: it was divided by " + text(seen.next_scale) +
                  ", but the loss had been multiplied by " + text(seen.scale);
        throw verification_error(name + ": " + why + " (norm " + text(seen.norm) + ", expected " +
                                     text(seen.exact_norm) + ")",
                                 std::abs(seen.norm - seen.exact_norm), std::abs(ratio - 1), 0);
    }
    const double expected = std::min(seen.exact_norm, limit);
    if (!near(seen.applied / expected, 1)) {
        throw verification_error(name + ": a gradient of norm " + text(seen.applied) +
                                     " reached the optimizer, expected " + text(expected) +
                                     ": clipping or unscaling is wrong",
                                 std::abs(seen.applied - expected), std::abs(seen.applied / expected - 1), 0);
    }
}

/// Throws verification_error unless the loss fell by 30 % and stayed near the reference's.
inline void check_losses(const std::string& name, const std::vector<double>& losses,
                         const std::vector<double>& reference, double tolerance) {
    if (!(losses.back() <= 0.7 * losses.front())) {
        throw verification_error(name + ": the loss on one fixed batch went from " + to_string(scalar(losses.front())) +
                                     " to " + to_string(scalar(losses.back())) + " in " +
                                     std::to_string(losses.size()) + " steps; it must fall by 30 %: nothing is learned",
                                 losses.back(), losses.back() / losses.front(), losses.size() - 1);
    }
    for (std::size_t i = 0; i < losses.size(); ++i) {
        if (std::abs(losses[i] / reference[i] - 1) <= tolerance) continue;
        throw verification_error(name + ": the loss of step " + std::to_string(i) + " is " +
                                     to_string(scalar(losses[i])) + ", in float64 " + to_string(scalar(reference[i])) +
                                     "; allowed difference " + to_string(scalar(tolerance)),
                                 std::abs(losses[i] - reference[i]), std::abs(losses[i] / reference[i] - 1), i);
    }
}

namespace detail {

template <class Real>
[[nodiscard]] double norm(const std::vector<Real>& values) {
    double squares = 0;
    for (Real each : values) squares += static_cast<double>(each) * static_cast<double>(each);
    return std::sqrt(squares);
}

/// All values, in float64.
template <class Trainer, class Real>
[[nodiscard]] std::vector<double> wide(Trainer& of, const Real* values) {
    const auto copy = of.operations().download(values, static_cast<std::size_t>(of.model().weights().size()));
    return std::vector<double>(copy.begin(), copy.end());
}

} // namespace detail

/// Checks steps of `small`, a network small enough for float64 on the host, with the rules check_rules(): the gradient
/// element by element and as clipping and optimizer saw it, growth, what an overflow does, and BatchNorm's running
/// statistics. Leaves it at its initial state. Throws verification_error with the mistake that fits what was seen.
template <class Ops, template <class> class Model>
class step_check {
public:
    step_check(trainer<Ops, Model>& small, std::string name)
        : small_(&small), name_(std::move(name)), reference_(reference_ops_, small.parameters(), no_scaling()),
          allowed_(tolerances_of(small.parameters().type)) {}

    /// Rules under which the scale moves at every step, so that a wrong order shows.
    [[nodiscard]] static constexpr loss_scale_rules check_rules() noexcept { return {1024.0f, 2.0f, 0.5f, 1}; }

    /// One clean step against one of the reference.
    void check_clean_step() {
        small_->reset();
        reference_.reset();
        reference_.step();
        small_->step();
        const step_control after = control();
        observation seen;
        seen.scale = static_cast<double>(small_->rules().initial);
        seen.next_scale = static_cast<double>(after.scaler.scale);
        seen.exact_norm = static_cast<double>(reference_ops_.read_control().norm);
        seen.norm = static_cast<double>(after.norm);
        auto& model = small_->model();
        seen.applied = detail::norm(detail::wide(*small_, model.weights().moment(0))) / model.first_moment_share();
        const double limit = workload::training_step::recipe_of(small_->parameters()).clip_norm;
        check_gradients(seen.scale);
        check_norms(name_, seen, limit, std::max(allowed_.norm, 0.01));
        expect(after.scaler.taken == 1 && after.scaler.skipped == 0, "a clean step was not counted as taken");
        expect(seen.next_scale == 2 * seen.scale, "the scale did not double after its interval of clean steps");
    }

    /// An infinite weight makes gradients that are not finite: nothing may change but the scale.
    void check_overflow() {
        small_->reset();
        auto& weights = small_->model().weights();
        const auto& list = weights.list();
        const auto norm = std::find_if(list.begin(), list.end(), [](const parameter& each) { return each.mean == 1; });
        using real = typename Ops::real;
        small_->operations().overwrite(weights.master() + norm->offset,
                                       std::vector<real>{std::numeric_limits<real>::infinity()});
        const auto before = detail::wide(*small_, weights.master());
        small_->step();
        const step_control after = control();
        expect(detail::wide(*small_, weights.master()) == before,
               "the optimizer took a step with gradients that are not finite");
        expect(after.scaler.scale == small_->rules().initial * small_->rules().backoff,
               "the scale did not fall after an overflow: it was updated before the gradients were unscaled and "
               "looked at");
        expect(after.scaler.skipped == 1 && after.scaler.taken == 0, "a skipped step was not counted as skipped");
        small_->reset();
    }

    /// With several micro-batches the old running statistics must keep the weight 1 - momentum of one update.
    void check_running_statistics() {
        if constexpr (requires { small_->model().running_mean(); }) {
            small_->reset();
            auto& model = small_->model();
            const auto count = static_cast<std::size_t>(model.running_count());
            const double large = 4096; // far above any mean of the data
            small_->operations().overwrite(model.running_mean(),
                                           std::vector<typename Ops::real>(count, typename Ops::real(large)));
            small_->step();
            const auto after = small_->operations().download(model.running_mean(), count);
            const double kept = static_cast<double>(after[0]) / large;
            const double expected = 1 - model.statistics_momentum();
            if (!(std::abs(kept - expected) <= 0.01)) {
                throw verification_error(
                    name_ + ": the running statistics kept " + to_string(scalar(kept)) +
                        " of their old value in one step, expected " + to_string(scalar(expected)) +
                        ": they were updated for each micro-batch with the momentum of a whole one",
                    std::abs(kept - expected), std::abs(kept / expected - 1), 0);
            }
            small_->reset();
        }
    }

    /// `steps` steps on the fixed batch, beside the reference.
    void check_learning(int steps) {
        small_->reset();
        reference_.reset();
        std::vector<double> losses, exact;
        for (int i = 0; i < steps; ++i) {
            small_->step();
            reference_.step();
            losses.push_back(static_cast<double>(control().loss));
            exact.push_back(static_cast<double>(reference_ops_.read_control().loss));
        }
        expect(control().scaler.skipped == 0 || small_->parameters().type == workload::dtype::fp16,
               "a step was skipped: a gradient is not finite");
        check_losses(name_, losses, exact, allowed_.loss);
        small_->reset();
    }

    /// The first three; check_learning is for a trainer with ordinary rules.
    void check_all() {
        check_clean_step();
        check_overflow();
        check_running_statistics();
    }

private:
    using reference_operations = host_operations<double>;

    [[nodiscard]] step_control control() { return small_->operations().read_control(); }

    void expect(bool holds, const char* what) const {
        if (!holds) throw verification_error(name_ + ": " + what, 0, 0, 0);
    }

    /// Tensor by tensor, in the order of the backward pass: the first wrong one is the nearest to the mistake.
    void check_gradients(double scale) {
        const auto found = detail::wide(*small_, small_->model().weights().gradients());
        const auto exact = detail::wide(reference_, reference_.model().weights().gradients());
        const double whole = detail::norm(exact);
        const auto& list = small_->model().weights().list();
        for (auto at_parameter = list.rbegin(); at_parameter != list.rend(); ++at_parameter) {
            const parameter& each = *at_parameter;
            double error = 0, size = 0;
            for (std::int64_t i = each.offset; i < each.offset + each.count; ++i) {
                const auto at = static_cast<std::size_t>(i);
                error += std::pow(found[at] / scale - exact[at], 2);
                size += exact[at] * exact[at];
            }
            // A tensor whose gradient nearly cancels out is all rounding: what the whole gradient allows is enough.
            const double off = std::sqrt(error) / std::max(std::sqrt(size), 0.02 * whole);
            if (!(off <= allowed_.gradient)) {
                throw verification_error(name_ + ": the gradient of " + each.name + " is off by " +
                                             to_string(scalar(off)) + " of its norm, allowed " +
                                             to_string(scalar(allowed_.gradient)),
                                         std::sqrt(error), off, static_cast<std::size_t>(each.offset));
            }
        }
    }

    trainer<Ops, Model>* small_;
    std::string name_;
    reference_operations reference_ops_;
    trainer<reference_operations, Model> reference_;
    tolerances allowed_;
};

/// A small network of the same kind, leg and accumulation, for step_check. With widths that tensor cores take.
[[nodiscard]] inline workload::training_step::params small_version(workload::training_step::params p) {
    p.transformer = {1, 64, 2, 128, 128, 2, 32};
    p.bottleneck = {4, 32, 8, 16};
    return p;
}

} // namespace training

PLUMBLINE_NAMESPACE_END

#endif
