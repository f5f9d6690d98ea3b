// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CONV_HPP
#define PLUMBLINE_CUDA_CONV_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/buffers.hpp"
#include "plumbline/cuda/cudnn/context.hpp"
#include "plumbline/cuda/cudnn/convolution.hpp"
#include "plumbline/cuda/inspect.hpp"
#include "plumbline/cuda/kernel_names.hpp"
#include "plumbline/measure/plan_search.hpp"
#include "plumbline/workload/conv.hpp"
#include "plumbline/workload/conv_reference.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Convolution and its gradients through cuDNN's graph API.
///
/// The plan is the first of the heuristics' that runs and satisfies the parameters (no TF32 in fp32, no more workspace
/// than allowed, deterministic where asked), the fastest of the first 16 of those ("best"), or one recorded
/// in a baseline ("pinned"). Throws unsupported_error where cuDNN has none.
class conv {
public:
    using params = workload::conv::params;
    static constexpr bool has_plans = true; ///< "best" and "pinned" mean something

    /// Buffer sets so that x, w and y of one launch are not in the cache from an earlier one.
    [[nodiscard]] static std::size_t slots(const backend& on, const params& p) {
        return cold_slots(static_cast<std::size_t>(workload::conv::bytes(p)), on.device().l2_bytes);
    }

    conv(backend& on, const params& p, std::size_t slots)
        : params_(p), cudnn_(&on.shared<cudnn::context>()), graph_(cudnn::conv_graph(p, cudnn_->library.get())),
          slots_(slots), x_(p.x_elements(), 0, workload::input_bytes(p.type), slots),
          w_(p.w_elements(), 0, workload::input_bytes(p.type), slots),
          y_(p.y_elements(), 0, workload::input_bytes(p.type), slots) {
        fill(on);
        choose_plan(on);
    }

    /// Enqueues one launch on buffer set `slot`.
    void run(backend&, std::size_t slot) { cudnn::execute(*cudnn_, plan_, packs_[slot]); }

    /// Runs the plan on poisoned outputs of the first and the last buffer set. Every element must be written and
    /// finite; those of workload::conv::check_grid are compared with float64, the others by the sums of their channels.
    void verify(backend& on) {
        const workload::conv::grid where = workload::conv::check_grid(params_);
        const std::vector<double> reference = workload::conv::reference(params_, where);
        verify_slot(on, 0, where, reference);
        if (slots_ > 1) verify_slot(on, slots_ - 1, where, reference);
    }

    /// Hash of the output after one launch on buffer set 0.
    [[nodiscard]] std::string output_hash(backend& on) {
        poison(on, output().at(0), output().bytes(), params_.type);
        run(on, 0);
        return hash(on, output().at(0), output().bytes());
    }

    /// The plan, what it was allowed, and the kernels it launches.
    [[nodiscard]] result::evidence evidence(backend& on) {
        result::evidence ran = cudnn::describe(plan_);
        add_kernels(ran, on, [&] { run(on, 0); });
        ran.parts["workspace_offered_bytes"] = params_.workspace_mib << 20;
        if (regret_ > 0) ran.parts["heuristic_regret"] = regret_;
        return ran;
    }

    /// x, w and y of buffer set `slot` on the device; the output of the pass is one of them.
    [[nodiscard]] void* x(std::size_t slot) const noexcept { return x_.at(slot); }
    [[nodiscard]] void* w(std::size_t slot) const noexcept { return w_.at(slot); }
    [[nodiscard]] void* y(std::size_t slot) const noexcept { return y_.at(slot); }

private:
    [[nodiscard]] const buffers& tensor(workload::conv::operand which) const noexcept {
        using workload::conv::operand;
        return which == operand::x ? x_ : which == operand::w ? w_ : y_;
    }
    [[nodiscard]] const buffers& output() const noexcept {
        using workload::conv::pass;
        return params_.variant == pass::fprop ? y_ : params_.variant == pass::dgrad ? x_ : w_;
    }

    /// All three tensors; the one that is written is poisoned before anyone looks at it.
    void fill(backend& on) {
        const auto fill_one = [&](const buffers& into, std::int64_t elements, std::uint64_t seed) {
            for (std::size_t slot = 0; slot < slots_; ++slot) {
                kernels::fill_normal(on.stream(), into.at(slot), input_storage(params_.type),
                                     static_cast<std::uint64_t>(elements), seed);
            }
        };
        fill_one(x_, params_.x_elements(), workload::conv::seed_x);
        fill_one(w_, params_.w_elements(), workload::conv::seed_w);
        fill_one(y_, params_.y_elements(), workload::conv::seed_y);
        on.synchronize();
    }

    void choose_plan(backend& on) {
        const cudnn::target here = cudnn_->place();
        if (params_.mode.plan == workload::plan_choice::pinned) {
            plan_ = recorded_plan(on, here);
            make_packs(plan_.workspace_bytes);
            return;
        }
        const bool search = params_.mode.plan == workload::plan_choice::best;
        const auto tried = [&](const cudnn::plan& each) {
            make_packs(each.workspace_bytes);
            return cudnn::run_once(on, *cudnn_, each, packs_.front());
        };
        std::vector<cudnn::plan> plans = cudnn::first_plans(graph_, here, cudnn::requirements_of(params_),
                                                            search ? 16 : 1, cudnn::lists_of(params_), tried);
        std::size_t chosen = 0;
        if (search) {
            const measure::search_outcome found =
                measure::fastest(on, plans.size(), slots_, [&](std::size_t which, std::size_t slot) {
                    cudnn::execute(*cudnn_, plans[which], packs_[slot]);
                });
            chosen = found.index;
            regret_ = found.first_over_best;
        }
        plan_ = std::move(plans[chosen]);
    }

    /// The plan a baseline recorded for the same convolution.
    [[nodiscard]] cudnn::plan recorded_plan(backend& on, const cudnn::target& here) const {
        const std::string id = workload::with_plan(name(), workload::plan_choice::heuristic);
        const result::evidence* recorded = on.pinned(id);
        if (recorded == nullptr) {
            throw unsupported_error(name() + ": no plan to replay was given; --compare=FILE --replay gives it");
        }
        return cudnn::rebuild(graph_, here, *recorded);
    }

    /// A workspace of at least so many bytes, and for each buffer set the pointers of its launches.
    void make_packs(std::int64_t workspace_bytes) {
        const auto bytes = static_cast<std::size_t>(workspace_bytes);
        if (!packs_.empty() && workspace_.size() >= bytes) return;
        packs_.clear();
        workspace_ = device_memory(bytes);
        for (std::size_t slot = 0; slot < slots_; ++slot) {
            packs_.push_back(cudnn::variant_pack({cudnn::conv_x, cudnn::conv_w, cudnn::conv_y},
                                                 {x_.at(slot), w_.at(slot), y_.at(slot)}, workspace_.data()));
        }
    }

    void verify_slot(backend& on, std::size_t slot, const workload::conv::grid& where,
                     const std::vector<double>& reference) {
        const auto storage = input_storage(params_.type);
        void* const written = output().at(slot);
        poison(on, written, output().bytes(), params_.type);
        run(on, slot);
        require_written(on, name(), written, storage, static_cast<std::uint64_t>(params_.output_elements()));
        std::vector<std::int64_t> places(where.size());
        for (std::size_t i = 0; i < places.size(); ++i) places[i] = where.index(params_, i);
        workload::require_close(name(), gather(on, written, storage, places), reference,
                                workload::tolerance(params_.type, workload::conv::terms(params_)),
                                [&](std::size_t i) { return static_cast<std::size_t>(places[i]); });
        if (static_cast<std::int64_t>(where.size()) != params_.output_elements()) verify_channels(on, slot);
    }

    /// Every element, by the sums of the channels at each place; see workload::conv::require_channel_sums.
    void verify_channels(backend& on, std::size_t slot) {
        const workload::conv::sums of(params_);
        const auto storage = input_storage(params_.type);
        const std::vector<double> signs = workload::random_signs(of.channels());
        std::vector<double> expected(static_cast<std::size_t>(of.places()));
        std::vector<double> found(expected.size());
        const std::size_t bytes = expected.size() * sizeof expected[0];
        const device_memory sign_cells(signs.size() * sizeof signs[0]);
        const device_memory channel_sums(static_cast<std::size_t>(of.groups() * of.depth()) * sizeof(double));
        const device_memory place_sums(bytes);
        auto* const cells = place_sums.as<double>();
        const auto fetch = [&](std::vector<double>& into) {
            check(cudaMemcpyAsync(into.data(), cells, bytes, cudaMemcpyDeviceToHost, on.stream()), "cudaMemcpyAsync",
                  "sums of channels");
            on.synchronize();
        };
        check(cudaMemcpyAsync(sign_cells.data(), signs.data(), sign_cells.size(), cudaMemcpyHostToDevice, on.stream()),
              "cudaMemcpyAsync", "signs");
        check(cudaMemsetAsync(cells, 0, bytes, on.stream()), "cudaMemsetAsync", "sums of channels");
        kernels::add_conv_channels(on.stream(), of, tensor(of.channel_operand()).at(slot), storage,
                                   sign_cells.as<double>(), channel_sums.as<double>());
        kernels::multiply_conv_places(on.stream(), of, tensor(of.place_operand()).at(slot), storage,
                                      channel_sums.as<double>(), cells);
        fetch(expected);
        kernels::add_conv_outputs(on.stream(), of, output().at(slot), storage, sign_cells.as<double>(), cells);
        fetch(found);
        workload::conv::require_channel_sums(name(), params_, found, expected);
    }

    [[nodiscard]] std::string name() const { return workload::conv::id(params_); }

    params params_;
    cudnn::context* cudnn_; ///< owned by the backend
    cudnn::descriptor graph_;
    std::size_t slots_;
    buffers x_;
    buffers w_;
    buffers y_;
    device_memory workspace_;
    std::vector<cudnn::descriptor> packs_; ///< one for each buffer set
    cudnn::plan plan_;
    double regret_ = 0; ///< time of the heuristic's first over the best found; 0 without a search
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
