// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LT_HPP
#define PLUMBLINE_CUDA_LT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <cublasLt.h>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/result/result.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/matrix_view.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// Throws cuda_error unless `status` is success; unsupported_error when cublasLt says it cannot do this. `object`
/// says what the call was working on.
inline void check(cublasStatus_t status, const char* api, const std::string& object = {}, where at = where::here()) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    // cublasLt may leave a runtime error behind, which the next launch would be blamed for.
    static_cast<void>(cudaGetLastError());
    const std::string message = std::string(api) + (object.empty() ? "" : " for " + object) + ": " +
                                cublasLtGetStatusName(status) + " (" + cublasLtGetStatusString(status) + ")";
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) {
        throw unsupported_error(message, at);
    }
    const char* advice = status == CUBLAS_STATUS_NOT_INITIALIZED
                             ? "; cublasLt could not start: see whether it matches the driver (bench --check)"
                         : status == CUBLAS_STATUS_ALLOC_FAILED ? "; free device memory or choose a smaller size"
                                                                : "";
    throw cuda_error(static_cast<int>(status), api, message + advice, at);
}

/// Parts of cublasLt, by RAII.
namespace lt {

using handle = unique_handle<cublasLtHandle_t, cublasLtDestroy>;
using matmul_desc = unique_handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using matrix_layout = unique_handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using preference = unique_handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// What all cublasLt fixtures of a backend share (backend::shared): the handle and the workspace. The workspace is
/// larger than what is offered to the heuristics by default, so a plan recorded with more than that can still be
/// replayed.
struct context {
    static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

    explicit context(backend& on) : workspace(workspace_bytes) {
        check(cublasLtCreate(library.out()), "cublasLtCreate", on.place());
    }

    handle library;
    device_memory workspace;
};

template <class T>
void set(const matmul_desc& desc, cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(desc.get(), attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute",
          "attribute " + std::to_string(attribute));
}

template <class T>
void set(const matrix_layout& layout, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
    check(cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute", "attribute " + std::to_string(attribute));
}

template <class T>
void set(const preference& wish, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    check(cublasLtMatmulPreferenceSetAttribute(wish.get(), attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute", "attribute " + std::to_string(attribute));
}

/// A batch of matrices as they are stored, column by column: those of the view, or what they are the transposes of.
[[nodiscard]] inline matrix_layout make_layout(cudaDataType_t type, const workload::matrix_view& view,
                                               bool transposed) {
    const std::int64_t rows = transposed ? view.columns : view.rows;
    const std::int64_t columns = transposed ? view.rows : view.columns;
    matrix_layout made;
    check(cublasLtMatrixLayoutCreate(made.out(), type, static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns),
                                     transposed ? view.row_stride : view.column_stride),
          "cublasLtMatrixLayoutCreate");
    if (view.batch != 1) {
        set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(view.batch));
        set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, view.batch_stride);
    }
    return made;
}

/// The attributes that make up an algorithm, with the names evidence stores them under and their letter in the
/// implementation string. The id is given at creation; the others can be set.
struct attribute {
    const char* name;
    char letter; ///< 0: the id
    cublasLtMatmulAlgoConfigAttributes_t which;
    std::size_t size; ///< the library insists on the exact size
};

inline constexpr std::array<attribute, 9> attributes{{
    {"algo.id", 0, CUBLASLT_ALGO_CONFIG_ID, 4},
    {"algo.tile", 't', CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
    {"algo.stages", 's', CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
    {"algo.splitk", 'k', CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
    {"algo.reduction", 'r', CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
    {"algo.swizzle", 'z', CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
    {"algo.custom", 'c', CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
    {"algo.inner_shape", 'i', CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
    {"algo.cluster_shape", 'g', CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
}};

/// One algorithm that cublasLt is ready to run, and what it said of it.
struct plan {
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace_bytes = 0;
    double waves = 0;            ///< 1 fills the device exactly once
    std::int64_t position = 0;   ///< in the heuristic's list, best estimate first; -1: not from the list
    std::int64_t candidates = 0; ///< length of that list, as far as it was asked for
};

/// One attribute of an algorithm; throws where this library does not know it.
[[nodiscard]] inline std::int64_t get(const cublasLtMatmulAlgo_t& algorithm, const attribute& what) {
    std::uint32_t wide = 0;
    std::uint16_t narrow = 0;
    std::size_t written = 0;
    void* const value = what.size == 2 ? static_cast<void*>(&narrow) : static_cast<void*>(&wide);
    check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, what.which, value, what.size, &written),
          "cublasLtMatmulAlgoConfigGetAttribute", what.name);
    return what.size == 2 ? std::int64_t{narrow} : static_cast<std::int64_t>(static_cast<std::int32_t>(wide));
}

/// Sets one attribute other than the id.
inline void put(cublasLtMatmulAlgo_t& algorithm, const attribute& what, std::int64_t value) {
    const auto wide = static_cast<std::uint32_t>(value);
    const auto narrow = static_cast<std::uint16_t>(value);
    const void* const raw = what.size == 2 ? static_cast<const void*>(&narrow) : static_cast<const void*>(&wide);
    check(cublasLtMatmulAlgoConfigSetAttribute(&algorithm, what.which, raw, what.size),
          "cublasLtMatmulAlgoConfigSetAttribute", what.name);
}

/// How the algorithm computes: CUBLASLT_NUMERICAL_IMPL_FLAGS_* (operation, accumulator, input).
[[nodiscard]] inline std::uint64_t numerical_flags(const cublasLtMatmulAlgo_t& algorithm) {
    std::uint64_t flags = 0;
    std::size_t written = 0;
    check(cublasLtMatmulAlgoCapGetAttribute(&algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags,
                                            &written),
          "cublasLtMatmulAlgoCapGetAttribute", "numerical flags");
    return flags;
}

namespace detail {

inline std::string hex(std::uint64_t value) {
    char text[20];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
    return text;
}

/// Names of the set bits of one byte of the numerical flags, joined by '+'; "none" without any.
inline std::string bit_names(std::uint64_t byte, const std::array<const char*, 8>& names) {
    std::string text;
    for (std::size_t bit = 0; bit < names.size(); ++bit) {
        if ((byte >> bit & 1) == 0) continue;
        if (!text.empty()) text += '+';
        text += names[bit];
    }
    return text.empty() ? "none" : text;
}

} // namespace detail

/// Whether a plan computes on tensor cores. Their bit is not set for some TF32 kernels (sm90_xmma_gemm_f32f32_tf32f32,
/// cuBLAS 13.1), which nothing but tensor cores can run.
[[nodiscard]] inline bool uses_tensor_cores(std::uint64_t flags) {
    return (flags & (CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32)) != 0;
}

/// Adds the attributes of an algorithm to evidence: "lt/id66/t19/s13/k1/r0/z0/c0/i0/g3", and each as a part. They are
/// what from_evidence takes.
inline void add_attributes(result::evidence& to, const cublasLtMatmulAlgo_t& algorithm) {
    to.implementation = "lt";
    for (const attribute& each : attributes) {
        const std::int64_t value = get(algorithm, each);
        to.parts[each.name] = value;
        to.implementation += '/' + (each.letter == 0 ? std::string("id") : std::string(1, each.letter));
        to.implementation += std::to_string(value);
    }
}

/// Adds how an algorithm computes to evidence: "/f10202" and the parts that alarms read.
inline void add_numerics(result::evidence& to, std::uint64_t flags) {
    to.implementation += "/f" + detail::hex(flags);
    to.parts["numerical_flags"] = detail::hex(flags);
    to.parts["tensor_cores"] = uses_tensor_cores(flags);
    to.parts["operation"] =
        detail::bit_names(flags & 0xff, {"fma", "hmma", "imma", "dmma", "op4", "op5", "op6", "op7"});
    to.parts["accumulator"] =
        detail::bit_names(flags >> 8 & 0xff, {"fp16", "fp32", "fp64", "int32", "acc4", "acc5", "acc6", "acc7"});
    // As cublasLt says it: kernels of the nvjet family call every 16-bit and 8-bit input fp16.
    to.parts["input"] =
        detail::bit_names(flags >> 16 & 0xff, {"fp16", "bf16", "tf32", "fp32", "fp64", "int8", "e4m3", "e5m2"});
}

/// What a plan is: "lt/id66/t19/s13/k1/r0/z0/c0/i0/g3/f10202", and its parts. Numbers name the same algorithm only
/// within one version of cublasLt, which is in the parts; flags keep their meaning.
[[nodiscard]] inline result::evidence describe(const plan& chosen) {
    result::evidence ran;
    add_attributes(ran, chosen.algorithm);
    add_numerics(ran, numerical_flags(chosen.algorithm));
    ran.parts["workspace_bytes"] = static_cast<std::int64_t>(chosen.workspace_bytes);
    ran.parts["waves"] = chosen.waves;
    ran.parts["position"] = chosen.position;
    ran.parts["candidates"] = chosen.candidates;
    ran.parts["cublaslt_version"] = static_cast<std::int64_t>(cublasLtGetVersion());
    ran.parts["cublaslt_cudart_version"] = static_cast<std::int64_t>(cublasLtGetCudartVersion());
    return ran;
}

/// Rebuilds a recorded algorithm: `make(id)` gives one with that id, whose other attributes are then set. Throws
/// unsupported_error for evidence that lacks one; `what` names the benchmark.
template <class Make>
[[nodiscard]] cublasLtMatmulAlgo_t from_evidence(const result::evidence& recorded, const std::string& what, Make make) {
    cublasLtMatmulAlgo_t rebuilt{};
    for (const attribute& each : attributes) {
        const auto part = recorded.parts.find(each.name);
        const auto* value = part == recorded.parts.end() ? nullptr : std::get_if<std::int64_t>(&part->second);
        if (value == nullptr) throw unsupported_error(what + ": the recorded plan lacks " + each.name);
        if (each.letter == 0)
            rebuilt = make(static_cast<int>(*value)); // the id, which is the first
        else
            put(rebuilt, each, *value);
    }
    return rebuilt;
}

/// Throws unsupported_error unless the numbers of a recorded plan mean here what they meant there: they do within one
/// version of cublasLt. `what` names the benchmark.
inline void require_same_numbers(const result::evidence& recorded, const std::string& what,
                                 std::int64_t here = static_cast<std::int64_t>(cublasLtGetVersion())) {
    const auto part = recorded.parts.find("cublaslt_version");
    const auto* there = part == recorded.parts.end() ? nullptr : std::get_if<std::int64_t>(&part->second);
    if (there != nullptr && *there == here) return;
    throw unsupported_error(what + ": the plan was recorded with cublasLt " +
                            (there == nullptr ? "of an unknown version" : std::to_string(*there)) + ", this is " +
                            std::to_string(here) + ", where its numbers name other algorithms");
}

} // namespace lt

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
