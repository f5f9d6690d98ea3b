// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_PROBE_TF32_HPP
#define PLUMBLINE_CUDA_PROBE_TF32_HPP

#include <array>
#include <cstddef>
#include <exception>
#include <vector>

#include <cublasLt.h>

#include "plumbline/cuda/lt.hpp"
#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::probe {

/// 1 + 2^-12: exact in fp32, but TF32 has ten bits of mantissa and rounds it to 1.
inline constexpr float tf32_witness = 1.0f + 1.0f / 4096.0f;

/// Whether a product with an identity matrix went through TF32: it lost the low bits of the witness.
[[nodiscard]] constexpr bool went_through_tf32(float product_with_one) noexcept {
    return product_with_one != tf32_witness;
}

namespace detail {

/// One 64 x 64 x 64 product of a matrix full of the witness with the identity; gives an element of the result.
[[nodiscard]] inline float multiply_witness(cublasComputeType_t compute) {
    constexpr std::uint64_t n = 64;
    std::vector<float> a(n * n, tf32_witness), b(n * n, 0.0f);
    for (std::size_t i = 0; i < n; ++i) b[i * n + i] = 1.0f;
    const device_memory on_a(n * n * sizeof(float)), on_b(n * n * sizeof(float)), on_d(n * n * sizeof(float));
    check(cudaMemcpy(on_a.data(), a.data(), on_a.size(), cudaMemcpyHostToDevice), "cudaMemcpy", "probe of TF32");
    check(cudaMemcpy(on_b.data(), b.data(), on_b.size(), cudaMemcpyHostToDevice), "cudaMemcpy", "probe of TF32");
    lt::handle library;
    check(cublasLtCreate(library.out()), "cublasLtCreate", "probe of TF32");
    lt::matmul_desc product;
    check(cublasLtMatmulDescCreate(product.out(), compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
    lt::matrix_layout layout;
    check(cublasLtMatrixLayoutCreate(layout.out(), CUDA_R_32F, n, n, n), "cublasLtMatrixLayoutCreate");
    const float one = 1.0f, zero = 0.0f;
    const cudaStream_t queue = nullptr;
    check(cublasLtMatmul(library.get(), product.get(), &one, on_a.data(), layout.get(), on_b.data(), layout.get(),
                         &zero, on_d.data(), layout.get(), on_d.data(), layout.get(), nullptr, nullptr, 0, queue),
          "cublasLtMatmul", "probe of TF32");
    float found = 0;
    check(cudaMemcpy(&found, on_d.data(), sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy", "probe of TF32");
    return found;
}

[[nodiscard]] inline result::reading tf32_reading(cublasComputeType_t compute, bool wanted) {
    try {
        return result::reading::of(went_through_tf32(multiply_witness(compute)) == wanted);
    } catch (const std::exception& problem) {
        static_cast<void>(cudaGetLastError());
        return result::reading::unsupported(problem.what());
    }
}

} // namespace detail

/// What cublasLt really does with fp32 numbers, whatever is declared: does a product that asks for TF32 get it, and is
/// one that asks for fp32 exact. Uses the current device; takes a few milliseconds after the library has started.
inline void read_tf32(result::fingerprint& into) {
    environment::recorder out(into, "cublaslt");
    out.config("cublas.tf32_effective", 2, detail::tf32_reading(CUBLAS_COMPUTE_32F_FAST_TF32, true));
    out.config("cublas.fp32_exact", 2, detail::tf32_reading(CUBLAS_COMPUTE_32F, false));
}

} // namespace cuda::probe

PLUMBLINE_NAMESPACE_END

#endif
