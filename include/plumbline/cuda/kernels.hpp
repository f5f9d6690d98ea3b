// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_HPP
#define PLUMBLINE_CUDA_KERNELS_HPP

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "plumbline/cuda/norm_plan.hpp"
#include "plumbline/workload/conv_sums.hpp"
#include "plumbline/workload/dtype.hpp"
#include "plumbline/workload/matrix_view.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Plain declarations of everything that launches one of our kernels. The definitions are in kernels/*.cuh, which one
/// .cu of the program compiles with nvcc (cuda/program.cuh); a program that lacks it does not link.
///
/// Each function enqueues on `on` and returns; a failing launch throws cuda_error.
namespace cuda::kernels {

/// The clock of one multiprocessor: its cycle counter, read at a tick of the GPU-wide nanosecond timer.
struct alignas(16) clock_mark {
    std::uint64_t time_ns = 0; ///< 0: this multiprocessor was not read
    std::uint64_t cycles = 0;
};

/// Keeps the stream waiting until *released reaches `ticket` (tickets grow by one, wrapping), or until `deadline_ns`
/// have passed on the device; in that case *expired is set to `ticket`. Both cells are pinned host memory as the
/// device sees it.
void hold(cudaStream_t on, const unsigned* released, unsigned ticket, std::uint64_t deadline_ns, unsigned* expired);

/// Writes marks[i] for each multiprocessor i < count that the kernel lands on; run on an otherwise idle device it
/// lands on all of them. Takes about 3 us.
void mark_clocks(cudaStream_t on, clock_mark* marks, unsigned count);

/// Occupies one thread for `duration_ns` of device time: a planted slowdown of known size (0: an empty kernel).
void spin(cudaStream_t on, std::uint64_t duration_ns);

/// spin(), then *cell = value; `cell` is pinned host memory as the device sees it, so that the host can see the end.
void spin_and_signal(cudaStream_t on, std::uint64_t duration_ns, unsigned* cell, unsigned value);

/// An empty kernel.
void nothing(cudaStream_t on);

/// The address of one of the kernels, for questions about where the program's device code came from.
[[nodiscard]] const void* some_kernel() noexcept;

/// How an element is stored.
enum class storage { fp32, fp16, bf16, fp8, int8, int32 };

/// Writes elements 0 .. count-1 of the normal stream `seed` (workload/random.hpp), quantised to `as`; int32 is not
/// an input and is refused. The bits are those of workload::input_value.
void fill_normal(cudaStream_t on, void* data, storage as, std::uint64_t count, std::uint64_t seed);

/// Adds to *bad the number of elements that are not finite or, for int32, still as poisoned (workload/verify.hpp).
void count_unwritten(cudaStream_t on, const void* data, storage as, std::uint64_t count, std::uint64_t* bad);

/// values[i] = data[where[i]] as float64.
void gather(cudaStream_t on, const void* data, storage as, const std::int64_t* where, std::uint64_t count,
            double* values);

/// Adds M x to out for each matrix M of a batch, in float64: `x` has `columns` values for all of the batch (`x_step` 0)
/// or for each of it (`x_step` = columns), out has `rows` for each. One of the strides is 1.
void project(cudaStream_t on, const void* data, storage as, const workload::matrix_view& view, const double* x,
             std::int64_t x_step, double* out);

/// The check of a convolution by its channels, added up with one sign each at every place (workload/conv_sums.hpp), in
/// three parts. First: out[group * depth + at] = the sum over the group's channels of sign and channel factor.
void add_conv_channels(cudaStream_t on, const workload::conv::sums& of, const void* factors, storage as,
                       const double* signs, double* out);

/// Second: adds to out[place], for all places, the product of those sums with the place's factors, in float64.
void multiply_conv_places(cudaStream_t on, const workload::conv::sums& of, const void* factors, storage as,
                          const double* channel_sums, double* out);

/// Third: out[place] = the sum over all channels of sign and output.
void add_conv_outputs(cudaStream_t on, const workload::conv::sums& of, const void* output, storage as,
                      const double* signs, double* out);

/// Adds to *sum a hash of `bytes` bytes (a multiple of 2) that sees order and every bit.
void hash(cudaStream_t on, const void* data, std::uint64_t bytes, std::uint64_t* sum);

/// LayerNorm or, with `rms`, RMSNorm of each row of a row-major rows x hidden matrix (workload/layernorm.hpp has the
/// formulas). Sums are fp32. Each matrix begins at a 16-byte boundary; `error` if not, or if hidden is not 1 to 65536.
struct norm {
    storage type = storage::bf16; ///< of x, dy, gamma, beta and what comes out: fp32, fp16 or bf16
    bool rms = false;             ///< no mean and no beta: those pointers may be nullptr
    std::int64_t rows = 0;
    std::int64_t hidden = 0;
    float epsilon = 1e-5f;
};

/// y, and for each row its mean and the inverse of its deviation. Reads x once unless the plan is for long rows.
void norm_forward(cudaStream_t on, const norm& how, const norm_plan& plan, const void* x, const void* gamma,
                  const void* beta, void* y, float* mean, float* inverse);

/// dx, dgamma and dbeta from what the forward pass was given and left. The same bits in every run with the same plan.
/// dgamma and dbeta are stored as `gradients`: the type of x, or fp32. `partial` holds partial_elements fp32 elements
/// of workspace, from a 16-byte boundary on.
void norm_backward(cudaStream_t on, const norm& how, const norm_plan& plan, const void* x, const void* dy,
                   const void* gamma, const float* mean, const float* inverse, void* dx, storage gradients,
                   void* dgamma, void* dbeta, float* partial);

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
