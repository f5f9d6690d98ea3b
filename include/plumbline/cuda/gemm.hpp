// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_GEMM_HPP
#define PLUMBLINE_CUDA_GEMM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/buffers.hpp"
#include "plumbline/cuda/inspect.hpp"
#include "plumbline/cuda/kernel_names.hpp"
#include "plumbline/cuda/lt.hpp"
#include "plumbline/measure/plan_search.hpp"
#include "plumbline/workload/gemm.hpp"
#include "plumbline/workload/gemm_reference.hpp"
#include "plumbline/workload/projection.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// The types of a product as cublasLt names them.
struct gemm_types {
    cudaDataType_t input;
    cudaDataType_t output;
    cublasComputeType_t compute;
    cudaDataType_t scale; ///< of alpha and beta
};

/// fp8 is e4m3 and gives bf16, int8 gives int32; 16-bit and fp8 types sum in fp32.
[[nodiscard]] constexpr gemm_types types_of(workload::dtype type) noexcept {
    switch (type) {
    case workload::dtype::fp32:
        return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case workload::dtype::tf32:
        return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F};
    case workload::dtype::fp16:
        return {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case workload::dtype::bf16:
        return {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case workload::dtype::fp8:
        return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case workload::dtype::int8:
        return {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I};
    }
    return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
}

/// Matrix product through cublasLt: column-major operands, beta 0, D written over C's place.
///
/// The plan is the heuristic's first, the fastest of its first 16 ("best"), or one recorded in a baseline ("pinned").
/// fp8 uses per-tensor scales of 1 and, unless "precise", fast accumulation, which is how inference runs it; the
/// evidence says so.
/// Throws unsupported_error where cublasLt offers no algorithm for this type, layout and device.
class gemm {
public:
    using params = workload::gemm::params;
    static constexpr bool has_plans = true; ///< "best" and "pinned" mean something

    /// Buffer sets so that A, B and D of one launch are not in the cache from an earlier one.
    [[nodiscard]] static std::size_t slots(const backend& on, const params& p) {
        return cold_slots(static_cast<std::size_t>(workload::gemm::bytes(p)), on.device().l2_bytes);
    }

    gemm(backend& on, const params& p, std::size_t slots)
        : params_(p), types_(types_of(p.type)), lt_(&on.shared<lt::context>()), slots_(slots),
          a_(p.a_view().stored(), p.offset, workload::input_bytes(p.type), slots),
          b_(p.b_view().stored(), p.offset, workload::input_bytes(p.type), slots),
          d_(p.d_view().stored(), p.offset, workload::output_bytes(p.type), slots),
          bias_(p.bias_elements(), 0, workload::output_bytes(p.type), 1) {
        fill(on);
        describe_product(on);
        choose_plan(on);
    }

    /// Enqueues one product on buffer set `slot`.
    void run(backend& on, std::size_t slot) { launch(on, slot, plan_); }

    /// Runs the plan on poisoned outputs of the first and the last buffer set. Every element must be written and
    /// finite; those of workload::gemm::check_grid are compared with float64, the others by the sums of their rows.
    void verify(backend& on) {
        const workload::gemm::grid where = workload::gemm::check_grid(params_);
        const std::vector<double> reference = workload::gemm::reference(params_, where);
        verify_slot(on, 0, where, reference);
        if (slots_ > 1) verify_slot(on, slots_ - 1, where, reference);
    }

    /// Hash of D after one launch on buffer set 0.
    [[nodiscard]] std::string output_hash(backend& on) {
        poison(on, d_.at(0), d_.bytes(), params_.type);
        run(on, 0);
        return hash(on, d_.at(0), d_.bytes());
    }

    /// The plan, how the product is set up, and the kernels it launches.
    [[nodiscard]] result::evidence evidence(backend& on) {
        result::evidence ran = lt::describe(plan_);
        add_kernels(ran, on, [&] { run(on, 0); });
        ran.parts["workspace_offered_bytes"] = static_cast<std::int64_t>(offered_bytes());
        if (params_.type == workload::dtype::fp8) ran.parts["fast_accumulation"] = !params_.precise;
        if (regret_ > 0) ran.parts["heuristic_regret"] = regret_;
        return ran;
    }

    /// A, B and D of buffer set `slot` on the device.
    [[nodiscard]] void* a(std::size_t slot) const noexcept { return a_.at(slot); }
    [[nodiscard]] void* b(std::size_t slot) const noexcept { return b_.at(slot); }
    [[nodiscard]] void* d(std::size_t slot) const noexcept { return d_.at(slot); }

private:
    [[nodiscard]] std::size_t offered_bytes() const noexcept {
        return static_cast<std::size_t>(params_.workspace_mib) << 20;
    }

    void fill(backend& on) {
        const auto input = input_storage(params_.type);
        const auto output = output_storage(params_.type);
        for (std::size_t slot = 0; slot < slots_; ++slot) {
            kernels::fill_normal(on.stream(), a_.at(slot), input, static_cast<std::uint64_t>(params_.a_view().stored()),
                                 workload::gemm::seed_a);
            kernels::fill_normal(on.stream(), b_.at(slot), input, static_cast<std::uint64_t>(params_.b_view().stored()),
                                 workload::gemm::seed_b);
        }
        if (params_.bias_elements() != 0 && params_.type != workload::dtype::int8) {
            kernels::fill_normal(on.stream(), bias_.at(0), output, static_cast<std::uint64_t>(params_.bias_elements()),
                                 workload::gemm::seed_bias);
        }
        on.synchronize();
    }

    void describe_product(backend& on) {
        check(cublasLtMatmulDescCreate(product_.out(), types_.compute, types_.scale), "cublasLtMatmulDescCreate");
        const cublasOperation_t op_a = params_.a_transposed() ? CUBLAS_OP_T : CUBLAS_OP_N;
        const cublasOperation_t op_b = params_.b_transposed() ? CUBLAS_OP_T : CUBLAS_OP_N;
        lt::set(product_, CUBLASLT_MATMUL_DESC_TRANSA, op_a);
        lt::set(product_, CUBLASLT_MATMUL_DESC_TRANSB, op_b);
        if (params_.after != workload::gemm::epilogue::none) {
            const cublasLtEpilogue_t after =
                params_.after == workload::gemm::epilogue::gelu ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
            if (params_.type == workload::dtype::int8) throw unsupported_error(name() + ": int8 has no epilogue here");
            lt::set(product_, CUBLASLT_MATMUL_DESC_EPILOGUE, after);
            lt::set(product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_.at(0));
            lt::set(product_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, types_.output);
        }
        if (params_.type == workload::dtype::fp8) {
            // At 256-byte boundaries: kernels for large products refuse scales that are not at a 16-byte one.
            constexpr std::size_t boundary = 256;
            scales_ = device_memory(2 * boundary);
            const float one = 1;
            for (std::size_t i = 0; i < 2; ++i) {
                void* const scale = scales_.as<char>() + i * boundary;
                check(cudaMemcpyAsync(scale, &one, sizeof one, cudaMemcpyHostToDevice, on.stream()), "cudaMemcpyAsync",
                      "fp8 scales");
                lt::set(product_, i == 0 ? CUBLASLT_MATMUL_DESC_A_SCALE_POINTER : CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                        static_cast<const void*>(scale));
            }
            on.synchronize();
            lt::set(product_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(params_.precise ? 0 : 1));
        }
        const params& p = params_;
        layout_a_ = lt::make_layout(types_.input, p.a_view(), p.a_transposed());
        layout_b_ = lt::make_layout(types_.input, p.b_view(), p.b_transposed());
        layout_d_ = lt::make_layout(types_.output, p.d_view(), false);
    }

    void choose_plan(backend& on) {
        if (params_.mode.plan == workload::plan_choice::pinned) {
            plan_ = recorded_plan(on);
            return;
        }
        const bool search = params_.mode.plan == workload::plan_choice::best;
        std::vector<lt::plan> plans = heuristic_plans(search ? 16 : 1);
        plan_ = plans.front();
        if (!search) return;
        const measure::search_outcome found = measure::fastest(
            on, plans.size(), slots_, [&](std::size_t which, std::size_t slot) { launch(on, slot, plans[which]); });
        plan_ = plans[found.index];
        regret_ = found.first_over_best;
    }

    /// The heuristic's plans that can run, best estimate first.
    [[nodiscard]] std::vector<lt::plan> heuristic_plans(int count) const {
        if (offered_bytes() > lt::context::workspace_bytes) {
            throw unsupported_error(name() + ": the workspace here is " +
                                    std::to_string(lt::context::workspace_bytes >> 20) + " MiB");
        }
        lt::preference wish;
        check(cublasLtMatmulPreferenceCreate(wish.out()), "cublasLtMatmulPreferenceCreate");
        lt::set(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{offered_bytes()});
        lt::set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a_.alignment());
        lt::set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b_.alignment());
        lt::set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, d_.alignment());
        lt::set(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d_.alignment());
        std::vector<cublasLtMatmulHeuristicResult_t> answers(static_cast<std::size_t>(count));
        int answered = 0;
        const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
            lt_->library.get(), product_.get(), layout_a_.get(), layout_b_.get(), layout_d_.get(), layout_d_.get(),
            wish.get(), count, answers.data(), &answered);
        // Sizes and alignments that a dtype does not take (fp8 off multiples of 16) are an invalid value to some
        // versions and not supported to others.
        if (status == CUBLAS_STATUS_INVALID_VALUE)
            answered = 0;
        else
            check(status, "cublasLtMatmulAlgoGetHeuristic", name());
        answers.resize(static_cast<std::size_t>(answered));
        std::vector<lt::plan> plans;
        for (std::size_t i = 0; i < answers.size(); ++i) {
            if (answers[i].state != CUBLAS_STATUS_SUCCESS) continue;
            lt::plan offered;
            offered.algorithm = answers[i].algo;
            offered.workspace_bytes = answers[i].workspaceSize;
            offered.waves = static_cast<double>(answers[i].wavesCount);
            offered.position = static_cast<std::int64_t>(i);
            offered.candidates = static_cast<std::int64_t>(answers.size());
            plans.push_back(offered);
        }
        if (plans.empty()) {
            throw unsupported_error("cublasLt " + std::to_string(cublasLtGetVersion()) + " offers no algorithm for " +
                                    name());
        }
        return plans;
    }

    /// The plan a baseline recorded for the same product, rebuilt from its attributes; that it fits is checked.
    [[nodiscard]] lt::plan recorded_plan(backend& on) const {
        params unpinned = params_;
        unpinned.mode.plan = workload::plan_choice::heuristic;
        const result::evidence* recorded = on.pinned(workload::gemm::id(unpinned));
        if (recorded == nullptr) {
            throw unsupported_error(name() + ": no plan to replay was given; --compare=FILE --replay gives it");
        }
        lt::require_same_numbers(*recorded, name());
        lt::plan rebuilt;
        rebuilt.position = -1;
        rebuilt.algorithm = lt::from_evidence(*recorded, name(), [this](int id) {
            cublasLtMatmulAlgo_t made{};
            check(cublasLtMatmulAlgoInit(lt_->library.get(), types_.compute, types_.scale, types_.input, types_.input,
                                         types_.output, types_.output, id, &made),
                  "cublasLtMatmulAlgoInit", name());
            return made;
        });
        cublasLtMatmulHeuristicResult_t answer{};
        check(cublasLtMatmulAlgoCheck(lt_->library.get(), product_.get(), layout_a_.get(), layout_b_.get(),
                                      layout_d_.get(), layout_d_.get(), &rebuilt.algorithm, &answer),
              "cublasLtMatmulAlgoCheck", name());
        rebuilt.workspace_bytes = answer.workspaceSize;
        rebuilt.waves = static_cast<double>(answer.wavesCount);
        if (rebuilt.workspace_bytes > lt::context::workspace_bytes) {
            throw unsupported_error(name() + ": the recorded plan needs a workspace of " +
                                    std::to_string(rebuilt.workspace_bytes) + " bytes");
        }
        return rebuilt;
    }

    void launch(backend& on, std::size_t slot, const lt::plan& with) {
        // alpha and beta have the scale type, which is int32 for int8.
        static constexpr float float_one = 1;
        static constexpr float float_zero = 0;
        static constexpr std::int32_t int_one = 1;
        static constexpr std::int32_t int_zero = 0;
        const bool integer = types_.scale == CUDA_R_32I;
        const void* alpha = integer ? static_cast<const void*>(&int_one) : &float_one;
        const void* beta = integer ? static_cast<const void*>(&int_zero) : &float_zero;
        const cublasStatus_t status =
            cublasLtMatmul(lt_->library.get(), product_.get(), alpha, a_.at(slot), layout_a_.get(), b_.at(slot),
                           layout_b_.get(), beta, d_.at(slot), layout_d_.get(), d_.at(slot), layout_d_.get(),
                           &with.algorithm, lt_->workspace.data(), with.workspace_bytes, on.stream());
        if (status != CUBLAS_STATUS_SUCCESS) check(status, "cublasLtMatmul", name()); // the name costs host time
    }

    void verify_slot(backend& on, std::size_t slot, const workload::gemm::grid& where,
                     const std::vector<double>& reference) {
        const auto storage = output_storage(params_.type);
        poison(on, d_.at(slot), d_.bytes(), params_.type);
        run(on, slot);
        require_written(on, name(), d_.at(slot), storage, static_cast<std::uint64_t>(params_.d_elements()));
        std::vector<std::int64_t> places(where.size());
        for (std::size_t i = 0; i < places.size(); ++i) places[i] = where.index(params_, i);
        const std::vector<double> output = gather(on, d_.at(slot), storage, places);
        workload::require_close(name(), output, reference,
                                workload::tolerance(params_.type, static_cast<double>(params_.k)),
                                [&](std::size_t i) { return static_cast<std::size_t>(places[i]); });
        if (static_cast<std::int64_t>(where.size()) == params_.d_elements()) return;
        using workload::gemm::operand;
        workload::gemm::verify_rows(name(), params_, [&](auto which, const auto& view, const std::vector<double>& x) {
            if (which == operand::d) return project(on, d_.at(slot), storage, view, x);
            return project(on, which == operand::a ? a_.at(slot) : b_.at(slot), input_storage(params_.type), view, x);
        });
    }

    [[nodiscard]] std::string name() const { return workload::gemm::id(params_); }

    params params_;
    gemm_types types_;
    lt::context* lt_; ///< owned by the backend
    std::size_t slots_;
    buffers a_;
    buffers b_;
    buffers d_;
    buffers bias_;
    device_memory scales_; ///< of A and B, fp8 only
    lt::matmul_desc product_;
    lt::matrix_layout layout_a_;
    lt::matrix_layout layout_b_;
    lt::matrix_layout layout_d_;
    lt::plan plan_;
    double regret_ = 0; ///< time of the heuristic's first over the best found; 0 without a search
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
