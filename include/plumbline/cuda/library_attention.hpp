// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LIBRARY_ATTENTION_HPP
#define PLUMBLINE_CUDA_LIBRARY_ATTENTION_HPP

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/cudnn/attention.hpp"
#include "plumbline/cuda/cudnn/context.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Causal attention and its gradients of one shape through cuDNN's fused engines, 16-bit values; the operators are
/// those of host_operations. Plans are made by the first call, which runs and waits, so a step has to run once before
/// it is captured.
class library_attention {
public:
    using shape = workload::training_step::transformer_shape;

    library_attention(backend& on, workload::dtype type, const shape& s)
        : on_(&on), type_(type), s_(s), scale_(1 / std::sqrt(static_cast<float>(s.head_width()))),
          excluded_(cudnn::attention_nothing()) {}
    // cuDNN reads the scalars where they are, at each launch.
    library_attention(const library_attention&) = delete;
    library_attention& operator=(const library_attention&) = delete;

    /// What one direction is: its plan, or why cuDNN has none.
    struct direction {
        cudnn::descriptor graph;
        cudnn::plan plan;
        std::string refused; ///< "" with a plan
        bool asked = false;
        device_memory workspace;
        std::map<std::array<const void*, 3>, cudnn::descriptor> packs;

        [[nodiscard]] bool ready() const noexcept { return asked && refused.empty(); }
    };

    /// Enqueues y and log_sums of projected; returns false, and does nothing, where cuDNN has no engine for it.
    bool forward(const void* projected, void* y, float* log_sums) {
        using namespace cudnn;
        return run(forward_, {projected, y, log_sums}, attention_graph, [&](void* workspace) {
            return variant_pack(
                {attention_query, attention_key, attention_value, attention_y, attention_log_sums, attention_scale,
                 attention_excluded},
                {third(projected, 0), third(projected, 1), third(projected, 2), y, log_sums, &scale_, &excluded_},
                workspace);
        });
    }

    /// Enqueues d_projected; returns false, and does nothing, where cuDNN has no engine for it.
    bool backward(const void* d_y, const void* projected, const void* y, const float* log_sums, void* d_projected) {
        using namespace cudnn;
        const auto plain = [](const void* at) { return const_cast<void*>(at); }; // only d_projected is written
        if (!backward_.asked) {
            const auto rows = static_cast<std::size_t>(s_.rows() * s_.heads);
            row_products_ = device_memory(rows * sizeof(float));
            d_query_sum_ = device_memory(rows * static_cast<std::size_t>(s_.head_width()) * sizeof(float));
        }
        return run(backward_, {projected, d_y, d_projected}, attention_backward_graph, [&](void* workspace) {
            return variant_pack({attention_query, attention_key, attention_value, attention_y, attention_log_sums,
                                 attention_scale, attention_excluded, attention_one, attention_d_y, attention_d_query,
                                 attention_d_key, attention_d_value, attention_row_products, attention_d_query_sum},
                                {third(projected, 0), third(projected, 1), third(projected, 2), plain(y),
                                 const_cast<float*>(log_sums), &scale_, &excluded_, &one_, plain(d_y),
                                 third(d_projected, 0), third(d_projected, 1), third(d_projected, 2),
                                 row_products_.data(), d_query_sum_.data()},
                                workspace);
        });
    }

    [[nodiscard]] const direction& forward_plan() const noexcept { return forward_; }
    [[nodiscard]] const direction& backward_plan() const noexcept { return backward_; }
    [[nodiscard]] std::size_t workspace_bytes() const noexcept {
        return forward_.workspace.size() + backward_.workspace.size() + row_products_.size() + d_query_sum_.size();
    }

private:
    /// Where the queries (0), keys (1) or values (2) of the first row begin.
    [[nodiscard]] void* third(const void* projected, std::int64_t which) const {
        return const_cast<std::byte*>(static_cast<const std::byte*>(projected) + which * s_.width * value_bytes);
    }

    template <class Graph, class Pack>
    bool run(direction& with, const std::array<const void*, 3>& pointers, Graph make_graph, Pack make_pack) {
        cudnn::context& context = on_->shared<cudnn::context>();
        if (!with.asked) {
            with.asked = true;
            try {
                with.graph = make_graph(type_, s_, context.library.get());
                const auto tried = [&](const cudnn::plan& each) {
                    if (with.workspace.size() < static_cast<std::size_t>(each.workspace_bytes)) {
                        with.workspace = device_memory(static_cast<std::size_t>(each.workspace_bytes));
                    }
                    return cudnn::run_once(*on_, context, each, make_pack(with.workspace.data()));
                };
                with.plan = std::move(cudnn::first_plans(with.graph, context.place(), {type_, false, workspace_limit},
                                                         1, cudnn::all_lists(), tried)
                                          .front());
            } catch (const error& none) { // whatever it is, there are other ways to compute attention
                with.refused = none.what();
                on_->synchronize(); // but not where the device failed
            }
        }
        if (!with.refused.empty()) return false;
        auto pack = with.packs.find(pointers);
        if (pack == with.packs.end()) {
            pack = with.packs.emplace(pointers, make_pack(with.workspace.data())).first;
        }
        cudnn::execute(context, with.plan, pack->second);
        return true;
    }

    static constexpr std::int64_t value_bytes = 2;
    static constexpr std::int64_t workspace_limit = std::int64_t{1} << 30;

    backend* on_;
    workload::dtype type_;
    shape s_;
    float scale_, excluded_, one_ = 1;
    direction forward_, backward_;
    device_memory row_products_, d_query_sum_;
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
