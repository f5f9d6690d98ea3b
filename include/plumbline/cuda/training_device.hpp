// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_TRAINING_DEVICE_HPP
#define PLUMBLINE_CUDA_TRAINING_DEVICE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "plumbline/core/hash.hpp"
#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/cudnn/context.hpp"
#include "plumbline/cuda/cudnn/convolution.hpp"
#include "plumbline/cuda/library_attention.hpp"
#include "plumbline/cuda/lt.hpp"
#include "plumbline/cuda/recording.hpp"
#include "plumbline/cuda/training_operations.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// A row-major product as cublasLt, which thinks in columns, sees it: D^T = op(B) op(A).
struct lt_product {
    cublasOperation_t first, second;                       ///< of B and of A
    std::array<std::int64_t, 3> first_shape, second_shape; ///< stored rows, columns, leading dimension
    std::int64_t out_step = 0;
};

[[nodiscard]] constexpr lt_product as_columns(const training::product& p) noexcept {
    lt_product made{};
    const bool b_plain = p.b_column == 1;
    made.first = b_plain ? CUBLAS_OP_N : CUBLAS_OP_T;
    made.first_shape = b_plain ? std::array{p.n, p.k, p.b_row} : std::array{p.k, p.n, p.b_column};
    const bool a_plain = p.a_column == 1;
    made.second = a_plain ? CUBLAS_OP_N : CUBLAS_OP_T;
    made.second_shape = a_plain ? std::array{p.k, p.m, p.a_row} : std::array{p.m, p.k, p.a_column};
    made.out_step = p.c_row;
    return made;
}

/// The largest power of two up to 256 that divides an address and the steps of a batch, bytes.
[[nodiscard]] inline std::uint32_t alignment_of(const void* at, std::int64_t batch_step_bytes) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(at) | static_cast<std::uintptr_t>(batch_step_bytes) | 256u;
    return static_cast<std::uint32_t>(bits & (~bits + 1));
}

/// Memory, products (cublasLt), convolutions and attention (cuDNN) of a training step on a GPU. Plans are the
/// heuristics' first and are made on first use, so a step has to run once before it is captured. In the fp32 leg no
/// plan may use TF32.
template <class Value>
class training_device {
public:
    using memory = device_memory;
    using attention_shape = workload::training_step::transformer_shape;

    training_device(backend& on, const workload::training_step::params& p)
        : on_(&on), leg_(p.type), lt_(&on.shared<lt::context>()) {}

    [[nodiscard]] cudaStream_t stream() const noexcept { return on_->stream(); }
    /// Of computing, 90 for 9.0.
    [[nodiscard]] int capability() const noexcept { return on_->device().capability(); }
    [[nodiscard]] static memory allocate(std::size_t bytes) { return device_memory(bytes); }
    void zero(void* data, std::size_t bytes) { check(cudaMemsetAsync(data, 0, bytes, stream()), "cudaMemsetAsync"); }
    void download(const void* from, void* to, std::size_t bytes) {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream()), "cudaMemcpyAsync");
        on_->synchronize();
    }
    void upload(const void* from, void* to, std::size_t bytes) {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()), "cudaMemcpyAsync");
        on_->synchronize();
    }

    /// out = a b, or c + a b where p.add is set; c has the shape of out.
    template <class C>
    void multiply(const training::product& p, const Value* a, const Value* b, const C* c, C* out) {
        constexpr auto size = static_cast<std::int64_t>(sizeof(Value));
        const std::array<std::uint32_t, 3> alignment{
            alignment_of(a, p.a_batch * size), alignment_of(b, p.b_batch * size),
            std::min(alignment_of(out, p.c_batch * static_cast<std::int64_t>(sizeof(C))),
                     alignment_of(c, p.c_batch * static_cast<std::int64_t>(sizeof(C))))};
        const planned_product& with = planned<C>(p, alignment);
        if (!with.refused.empty()) throw unsupported_error(with.refused);
        launch<C>(with, p, a, b, c, out);
    }

    /// out = gelu(a b), with a b in `kept`; and out = a b times the slope of gelu at `kept`. Both as what a product
    /// does last; false, and nothing is done, where cublasLt does not offer it.
    bool multiply_gelu(const training::product& p, const Value* a, const Value* b, Value* kept, Value* out) {
        return multiply_last(p, a, b, kept, out, CUBLASLT_EPILOGUE_GELU_AUX);
    }
    bool multiply_gelu_backward(const training::product& p, const Value* a, const Value* b, const Value* kept,
                                Value* out) {
        return multiply_last(p, a, b, const_cast<Value*>(kept), out, CUBLASLT_EPILOGUE_DGELU);
    }

    void convolve(const Value* x, const Value* w, Value* y, const training::convolution_shape& s) {
        run(workload::conv::pass::fprop, s, x, w, y);
    }
    void convolve_backward_input(const Value* d_y, const Value* w, Value* d_x, const training::convolution_shape& s) {
        run(workload::conv::pass::dgrad, s, d_x, w, d_y);
    }
    /// cuDNN writes the gradient in the type of the weights that it was given; it is widened from there.
    void convolve_backward_weight(const Value* d_y, const Value* x, float* d_w, const training::convolution_shape& s,
                                  bool add) {
        grow(d_weight_, static_cast<std::size_t>(s.weights()) * sizeof(Value));
        run(workload::conv::pass::wgrad, s, x, d_weight_.as<Value>(), d_y);
        kernels::widen(stream(), d_weight_.as<Value>(), d_w, s.weights(), add);
    }

    /// Fused attention and its gradients, of 16-bit values; false, and nothing is done, where cuDNN has no engine.
    bool attention(const Value* projected, Value* y, float* log_sums, const attention_shape& s) {
        return fused(s).forward(projected, y, log_sums);
    }
    bool attention_backward(const Value* d_y, const Value* projected, const Value* y, const float* log_sums,
                            Value* d_projected, const attention_shape& s) {
        return fused(s).backward(d_y, projected, y, log_sums, d_projected);
    }

    /// Bytes of the libraries' workspaces.
    [[nodiscard]] std::size_t workspace_bytes() const noexcept {
        std::size_t bytes = lt::context::workspace_bytes + workspace_.size() + d_weight_.size();
        for (const auto& [shape, with] : attentions_) bytes += with.workspace_bytes();
        return bytes;
    }

    /// One line for all plans, each of them in the parts; of attention also why there is none.
    [[nodiscard]] result::evidence evidence() const {
        result::evidence found;
        std::string all;
        for (const auto& [key, with] : products_) {
            const std::string product =
                name(std::get<0>(key)) + (std::get<1>(key) ? ".wide" : "") + last_name(std::get<3>(key));
            if (!with.refused.empty()) {
                found.parts["refused." + product] = with.refused;
                continue;
            }
            const std::string plan = lt::describe(with.plan).implementation;
            found.parts["plan." + product] = plan;
            all += plan + ' ';
        }
        for (const auto& [key, with] : convolutions_) {
            const std::string plan = cudnn::describe(with.plan).implementation;
            found.parts["plan." + workload::conv::id(params_of(key.first, key.second))] = plan;
            all += plan + ' ';
        }
        for (const auto& [shape, with] : attentions_) {
            add_attention(found, all, "attention", with.forward_plan());
            add_attention(found, all, "attention_backward", with.backward_plan());
        }
        found.implementation = "plans/" + short_hash(std::string_view(all));
        found.parts["cublaslt_version"] = static_cast<std::int64_t>(cublasLtGetVersion());
        if (!convolutions_.empty() || !attentions_.empty()) {
            found.parts["cudnn_version"] = static_cast<std::int64_t>(cudnnGetVersion());
        }
        return found;
    }

    /// Kernels and copies that `step` enqueues, as a graph counts them; a step must have run before.
    template <class Step>
    [[nodiscard]] std::int64_t launches(Step step) {
        const cuda::graph captured = capture(stream(), step);
        std::size_t nodes = 0;
        check(cudaGraphGetNodes(captured.get(), nullptr, &nodes), "cudaGraphGetNodes");
        return static_cast<std::int64_t>(nodes);
    }

private:
    [[nodiscard]] library_attention& fused(const attention_shape& s) {
        for (auto& [shape, with] : attentions_) {
            if (shape == s) return with;
        }
        return attentions_
            .emplace_back(std::piecewise_construct, std::forward_as_tuple(s), std::forward_as_tuple(*on_, leg_, s))
            .second;
    }

    static void add_attention(result::evidence& found, std::string& all, const std::string& name,
                              const library_attention::direction& with) {
        if (!with.refused.empty()) found.parts["refused." + name] = with.refused;
        if (!with.ready()) return;
        const std::string plan = cudnn::describe(with.plan).implementation;
        found.parts["plan." + name] = plan;
        all += plan + ' ';
    }

    /// Makes a buffer of the convolutions larger, before anything is captured; who pointed to it is asked again.
    void grow(device_memory& what, std::size_t bytes) {
        if (what.size() >= bytes) return;
        on_->synchronize();
        packs_.clear();
        what = device_memory(bytes);
    }

    /// fp32 at the default size needs 294 MiB to stay with fast engines; allocated is what the plans need.
    static constexpr std::size_t cudnn_workspace_bytes = std::size_t{1} << 30;
    static constexpr std::size_t lt_workspace_bytes = std::size_t{32} << 20;

    struct planned_product {
        lt::matmul_desc product;
        lt::matrix_layout first, second, out;
        lt::plan plan;
        std::string refused; ///< "" with a plan
    };
    struct planned_convolution {
        cudnn::descriptor graph;
        cudnn::plan plan;
    };
    using product_key = std::tuple<training::product, bool, std::array<std::uint32_t, 3>, cublasLtEpilogue_t>;
    using convolution_key = std::pair<workload::conv::pass, training::convolution_shape>;
    using pack_key = std::tuple<convolution_key, const void*, const void*, const void*>;

    [[nodiscard]] static std::string name(const training::product& p) {
        return "m" + std::to_string(p.m) + 'n' + std::to_string(p.n) + 'k' + std::to_string(p.k) +
               (p.batch != 1 ? 'b' + std::to_string(p.batch) : "") + (p.a_column == 1 ? ".n" : ".t") +
               (p.b_column == 1 ? "n" : "t") + (p.add ? ".add" : "");
    }

    [[nodiscard]] static const char* last_name(cublasLtEpilogue_t last) noexcept {
        return last == CUBLASLT_EPILOGUE_GELU_AUX ? ".gelu" : last == CUBLASLT_EPILOGUE_DGELU ? ".gelu_backward" : "";
    }

    template <class T>
    [[nodiscard]] static constexpr cudaDataType_t type_of() noexcept {
        switch (training::dtype_of_value<T>()) {
        case workload::dtype::bf16:
            return CUDA_R_16BF;
        case workload::dtype::fp16:
            return CUDA_R_16F;
        default:
            return CUDA_R_32F;
        }
    }

    [[nodiscard]] static lt::matrix_layout layout(cudaDataType_t type, const std::array<std::int64_t, 3>& shape,
                                                  std::int64_t batch, std::int64_t step) {
        lt::matrix_layout made;
        check(cublasLtMatrixLayoutCreate(made.out(), type, static_cast<std::uint64_t>(shape[0]),
                                         static_cast<std::uint64_t>(shape[1]), shape[2]),
              "cublasLtMatrixLayoutCreate");
        if (batch != 1) {
            lt::set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
            lt::set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
        }
        return made;
    }

    template <class C>
    void launch(const planned_product& with, const training::product& p, const Value* a, const Value* b, const C* c,
                C* out) {
        const float alpha = 1;
        const float beta = p.add ? 1.0f : 0.0f;
        const cublasStatus_t status =
            cublasLtMatmul(lt_->library.get(), with.product.get(), &alpha, b, with.first.get(), a, with.second.get(),
                           &beta, p.add ? c : out, with.out.get(), out, with.out.get(), &with.plan.algorithm,
                           lt_->workspace.data(), with.plan.workspace_bytes, stream());
        if (status != CUBLAS_STATUS_SUCCESS) check(status, "cublasLtMatmul", name(p));
    }

    bool multiply_last(const training::product& p, const Value* a, const Value* b, Value* kept, Value* out,
                       cublasLtEpilogue_t last) {
        constexpr auto size = static_cast<std::int64_t>(sizeof(Value));
        // cublasLt wants rows of `kept` at 16-byte boundaries.
        if (size != 2 || p.c_row % 8 != 0 || alignment_of(kept, 0) < 16) return false;
        const std::array<std::uint32_t, 3> alignment{alignment_of(a, p.a_batch * size),
                                                     alignment_of(b, p.b_batch * size), alignment_of(out, 0)};
        planned_product& with = planned<Value>(p, alignment, last, kept);
        if (!with.refused.empty()) return false;
        lt::set(with.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(kept)); // another layer's
        try {
            launch<Value>(with, p, a, b, nullptr, out);
        } catch (const unsupported_error& none) { // cublasLt may find out only now
            with.refused = none.what();
        }
        return with.refused.empty();
    }

    template <class C>
    [[nodiscard]] planned_product& planned(const training::product& p, const std::array<std::uint32_t, 3>& alignment,
                                           cublasLtEpilogue_t last = CUBLASLT_EPILOGUE_DEFAULT, void* kept = nullptr) {
        const product_key key{p, !std::is_same_v<C, Value>, alignment, last};
        const auto found = products_.find(key);
        if (found != products_.end()) return found->second;
        const lt_product columns = as_columns(p);
        const auto compute = leg_ == workload::dtype::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
        planned_product made;
        check(cublasLtMatmulDescCreate(made.product.out(), compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
        lt::set(made.product, CUBLASLT_MATMUL_DESC_TRANSA, columns.first);
        lt::set(made.product, CUBLASLT_MATMUL_DESC_TRANSB, columns.second);
        if (last != CUBLASLT_EPILOGUE_DEFAULT) {
            lt::set(made.product, CUBLASLT_MATMUL_DESC_EPILOGUE, last);
            lt::set(made.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, columns.out_step);
            lt::set(made.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, kept);
        }
        made.first = layout(type_of<Value>(), columns.first_shape, p.batch, p.b_batch);
        made.second = layout(type_of<Value>(), columns.second_shape, p.batch, p.a_batch);
        made.out = layout(type_of<C>(), {p.n, p.m, columns.out_step}, p.batch, p.c_batch);
        lt::preference wish;
        check(cublasLtMatmulPreferenceCreate(wish.out()), "cublasLtMatmulPreferenceCreate");
        lt::set(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{lt_workspace_bytes});
        lt::set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment[1]);
        lt::set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment[0]);
        lt::set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment[2]);
        lt::set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment[2]);
        cublasLtMatmulHeuristicResult_t answer{};
        int answered = 0;
        const cublasStatus_t status =
            cublasLtMatmulAlgoGetHeuristic(lt_->library.get(), made.product.get(), made.first.get(), made.second.get(),
                                           made.out.get(), made.out.get(), wish.get(), 1, &answer, &answered);
        if (last == CUBLASLT_EPILOGUE_DEFAULT) check(status, "cublasLtMatmulAlgoGetHeuristic", name(p));
        if (status != CUBLAS_STATUS_SUCCESS || answered == 0 || answer.state != CUBLAS_STATUS_SUCCESS) {
            made.refused = "cublasLt " + std::to_string(cublasLtGetVersion()) +
                           " offers no algorithm for the product " + name(p) + last_name(last) + " of a training step";
        }
        made.plan.algorithm = answer.algo;
        made.plan.workspace_bytes = answer.workspaceSize;
        return products_.emplace(key, std::move(made)).first->second;
    }

    [[nodiscard]] workload::conv::params params_of(workload::conv::pass pass,
                                                   const training::convolution_shape& s) const {
        workload::conv::params p;
        p.variant = pass;
        p.type = leg_;
        p.n = s.batch;
        p.c = s.in_channels;
        p.h = p.w = s.side;
        p.k = s.out_channels;
        p.r = p.s = s.kernel;
        p.stride = s.stride;
        p.padding = s.padding();
        p.workspace_mib = cudnn_workspace_bytes >> 20;
        return p;
    }

    void run(workload::conv::pass pass, const training::convolution_shape& s, const Value* x, const Value* w,
             const Value* y) {
        cudnn::context& context = on_->shared<cudnn::context>();
        // cuDNN takes no pointer to const; only the output of the pass is written.
        const auto plain = [](const Value* at) -> void* { return const_cast<Value*>(at); };
        const auto make_pack = [&] {
            return cudnn::variant_pack({cudnn::conv_x, cudnn::conv_w, cudnn::conv_y}, {plain(x), plain(w), plain(y)},
                                       workspace_.data());
        };
        const convolution_key key{pass, s};
        auto found = convolutions_.find(key);
        if (found == convolutions_.end()) {
            const workload::conv::params p = params_of(pass, s);
            planned_convolution made;
            made.graph = cudnn::conv_graph(p, context.library.get());
            const auto tried = [&](const cudnn::plan& each) {
                grow(workspace_, static_cast<std::size_t>(each.workspace_bytes));
                return cudnn::run_once(*on_, context, each, make_pack());
            };
            made.plan = std::move(
                cudnn::first_plans(made.graph, context.place(), cudnn::requirements_of(p), 1, cudnn::all_lists(), tried)
                    .front());
            found = convolutions_.emplace(key, std::move(made)).first;
        }
        const pack_key pointers{key, x, w, y};
        auto pack = packs_.find(pointers);
        if (pack == packs_.end()) pack = packs_.emplace(pointers, make_pack()).first;
        cudnn::execute(context, found->second.plan, pack->second);
    }

    backend* on_;
    workload::dtype leg_;
    lt::context* lt_; ///< owned by the backend
    std::map<product_key, planned_product> products_;
    std::map<convolution_key, planned_convolution> convolutions_;
    std::map<pack_key, cudnn::descriptor> packs_;
    device_memory workspace_; ///< of the convolutions
    device_memory d_weight_;
    std::list<std::pair<attention_shape, library_attention>> attentions_; ///< one for each shape
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
