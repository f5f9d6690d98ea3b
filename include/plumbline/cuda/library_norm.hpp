// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LIBRARY_NORM_HPP
#define PLUMBLINE_CUDA_LIBRARY_NORM_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/cudnn/context.hpp"
#include "plumbline/cuda/cudnn/norm.hpp"
#include "plumbline/cuda/layernorm.hpp"
#include "plumbline/measure/benchmark.hpp"
#include "plumbline/measure/plan_search.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// LayerNorm and RMSNorm through cuDNN's norm operations. The plan is the first of the heuristics' that runs,
/// the fastest of the first 16 ("best"), or one recorded in a baseline ("pinned"). Throws unsupported_error where cuDNN
/// has none.
class library_norm {
public:
    using params = workload::layernorm::params;
    static constexpr bool has_plans = true; ///< "best" and "pinned" mean something

    [[nodiscard]] static std::size_t slots(const backend& on, const params& p) { return norm_operands::slots(on, p); }

    library_norm(backend& on, const params& p, std::size_t slots)
        : cudnn_(&on.shared<cudnn::context>()), graph_(cudnn::norm_graph(p, cudnn_->library.get())),
          epsilon_(std::make_unique<float>(static_cast<float>(workload::layernorm::epsilon))), data_(on, p, slots) {
        const cudnn::target here = cudnn_->place();
        if (p.mode.plan == workload::plan_choice::pinned) {
            plan_ = recorded_plan(on, here);
            make_packs(plan_.workspace_bytes, slots);
            return;
        }
        const bool search = p.mode.plan == workload::plan_choice::best;
        // Whatever the type: refusing tensor cores to fp32 is for products, of which a norm has none.
        const cudnn::requirements wanted;
        const auto tried = [&](const cudnn::plan& each) {
            make_packs(each.workspace_bytes, slots);
            return cudnn::run_once(on, *cudnn_, each, packs_.front());
        };
        std::vector<cudnn::plan> plans =
            cudnn::first_plans(graph_, here, wanted, search ? 16 : 1, cudnn::all_lists(), tried);
        std::size_t chosen = 0;
        if (search) {
            const measure::search_outcome found =
                measure::fastest(on, plans.size(), slots, [&](std::size_t which, std::size_t slot) {
                    cudnn::execute(*cudnn_, plans[which], packs_[slot]);
                });
            chosen = found.index;
            regret_ = found.first_over_best;
        }
        plan_ = std::move(plans[chosen]);
    }

    /// Enqueues one launch on buffer set `slot`.
    void run(backend&, std::size_t slot) { cudnn::execute(*cudnn_, plan_, packs_[slot]); }

    void verify(backend& on) {
        data_.verify(on, [&](std::size_t slot) { run(on, slot); });
    }

    [[nodiscard]] std::string output_hash(backend& on) {
        return data_.output_hash(on, [&](std::size_t slot) { run(on, slot); });
    }

    [[nodiscard]] result::evidence evidence(backend& on) {
        result::evidence ran = cudnn::describe(plan_);
        add_kernels(ran, on, [&] { run(on, 0); });
        if (regret_ > 0) ran.parts["heuristic_regret"] = regret_;
        return ran;
    }

private:
    [[nodiscard]] cudnn::plan recorded_plan(backend& on, const cudnn::target& here) const {
        const std::string own = workload::layernorm::id(data_.of());
        const result::evidence* recorded = on.pinned(workload::with_plan(own, workload::plan_choice::heuristic));
        if (recorded == nullptr) {
            throw unsupported_error(own + ": no plan to replay was given; --compare=FILE --replay gives it");
        }
        return cudnn::rebuild(graph_, here, *recorded);
    }

    /// A workspace of at least so many bytes, and for each buffer set the pointers of its launches.
    void make_packs(std::int64_t workspace_bytes, std::size_t slots) {
        const auto bytes = static_cast<std::size_t>(workspace_bytes);
        if (!packs_.empty() && workspace_.size() >= bytes) return;
        packs_.clear();
        workspace_ = device_memory(bytes);
        const params& p = data_.of();
        for (std::size_t slot = 0; slot < slots; ++slot) {
            std::vector<std::pair<std::int64_t, void*>> parts{{cudnn::norm_x, data_.x(slot)},
                                                              {cudnn::norm_out, data_.out(slot)},
                                                              {cudnn::norm_scale, data_.gamma()},
                                                              {cudnn::norm_inverse, data_.inverse(slot)}};
            if (!p.rms()) parts.emplace_back(cudnn::norm_mean, data_.mean(slot));
            if (p.backward()) {
                parts.emplace_back(cudnn::norm_dy, data_.dy(slot));
                parts.emplace_back(cudnn::norm_dscale, data_.dgamma());
                if (!p.rms()) parts.emplace_back(cudnn::norm_dbias, data_.dbeta());
            } else {
                parts.emplace_back(cudnn::norm_epsilon, epsilon_.get());
                if (!p.rms()) parts.emplace_back(cudnn::norm_bias, data_.beta());
            }
            std::vector<std::int64_t> ids;
            std::vector<void*> pointers;
            for (const auto& [id, pointer] : parts) {
                ids.push_back(id);
                pointers.push_back(pointer);
            }
            packs_.push_back(cudnn::variant_pack(ids, pointers, workspace_.data()));
        }
    }

    cudnn::context* cudnn_; ///< owned by the backend
    cudnn::descriptor graph_;
    std::unique_ptr<float> epsilon_; ///< read by cuDNN at each launch, so it stays where it is
    norm_operands data_;
    device_memory workspace_;
    std::vector<cudnn::descriptor> packs_; ///< one for each buffer set
    cudnn::plan plan_;
    double regret_ = 0; ///< time of the heuristic's first over the best found; 0 without a search
};

/// The benchmark of a norm, by whose code the id says.
[[nodiscard]] inline measure::benchmark<backend> make_norm(const workload::layernorm::params& p) {
    using workload::layernorm::implementation;
    if (p.by == implementation::native) return measure::make_benchmark<native_norm, backend>(p);
    if (p.by == implementation::cudnn) return measure::make_benchmark<library_norm, backend>(p);
    measure::benchmark<backend> made;
    made.what = workload::layernorm::describe(p);
    made.prepare = [](backend&) -> measure::prepared_kernel {
        throw unsupported_error("oneDNN computes on the CPU backend only");
    };
    return made;
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
