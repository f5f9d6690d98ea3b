// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_TRAINING_KERNELS_HPP
#define PLUMBLINE_CUDA_TRAINING_KERNELS_HPP

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "plumbline/training/patches.hpp"
#include "plumbline/training/step_control.hpp"
#include "plumbline/training/value.hpp"
#include "plumbline/workload/training_step.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// Plain declarations of the kernels of a training step: the operators of training/host_operations.hpp, which says what
/// each computes, on device memory. Value is float, training::bfloat16 or training::float16. Nothing waits and nothing
/// allocates, so that a step can be captured into a graph. The definitions are in kernels/training_*.cuh.
namespace cuda::kernels {

using training::loss_scale_rules;
using training::step_control;
using recipe = workload::training_step::recipe;

/// The scalar work of a step, each by one thread.
void begin_step(cudaStream_t on, step_control* control);
void unscale(cudaStream_t on, step_control* control);
void clip(cudaStream_t on, step_control* control, float limit);
void update_scale(cudaStream_t on, step_control* control, const loss_scale_rules& rules);

/// Gradients times the inverse of the scale, in place; sets found_inf if one is not finite.
void unscale_gradients(cudaStream_t on, float* gradients, std::int64_t count, step_control* control);

/// Blocks that a sum over everything is cut into: elements of the workspaces below.
inline constexpr unsigned sum_blocks = 1024;

/// Norm and found_inf of `count` gradients; `partial` is a workspace of 2 x sum_blocks.
void measure_gradients(cudaStream_t on, const float* gradients, std::int64_t count, double* partial,
                       step_control* control);

/// Optimizers over flat buffers that begin at 16-byte boundaries; `copy` may be nullptr.
template <class Value>
void adamw(cudaStream_t on, float* weights, const float* gradients, float* first, float* second, Value* copy,
           std::int64_t count, const recipe& how, const step_control* control);
template <class Value>
void sgd(cudaStream_t on, float* weights, const float* gradients, float* velocity, Value* copy, std::int64_t count,
         const recipe& how, const step_control* control);

template <class Value>
void draw(cudaStream_t on, Value* data, std::int64_t count, std::uint64_t seed, float deviation, float mean);
template <class Value>
void convert(cudaStream_t on, const float* from, Value* to, std::int64_t count);
/// to = from, or to += from with `accumulate`.
template <class Value>
void widen(cudaStream_t on, const Value* from, float* to, std::int64_t count, bool accumulate);
/// y += x.
template <class Value>
void add(cudaStream_t on, const Value* x, Value* y, std::int64_t count);

template <class Value>
void embed(cudaStream_t on, const std::int32_t* tokens, const Value* table, Value* x, std::int64_t rows,
           std::int64_t width);
/// Adds to d_table, by atomic operations: the last bits depend on the order in which blocks run.
template <class Value>
void embed_backward(cudaStream_t on, const std::int32_t* tokens, const Value* d_x, float* d_table, std::int64_t rows,
                    std::int64_t width);

template <class Value>
void gelu(cudaStream_t on, const Value* x, Value* y, std::int64_t count);
template <class Value>
void gelu_backward(cudaStream_t on, Value* gradient, const Value* x, std::int64_t count);

/// Logits into gradients and the loss of `rows` rows added to control->loss; `losses` is a workspace of `rows`.
template <class Value>
void cross_entropy(cudaStream_t on, Value* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t classes,
                   std::int64_t effective_rows, float* losses, step_control* control);

/// The softmax of attention between its products, for `heads` heads of one sequence: scores heads x tokens x tokens to
/// weights of the same shape, zero where a key comes after its query.
template <class Value>
void causal_softmax(cudaStream_t on, const float* scores, Value* weights, float* log_sums, std::int64_t heads,
                    std::int64_t tokens, float scale);
/// The weights again, and the gradient of the scores from that of the weights; d_y and y are tokens x heads x
/// head_width.
template <class Value>
void causal_softmax_backward(cudaStream_t on, const float* scores, const float* d_weights, const float* log_sums,
                             const Value* d_y, const Value* y, Value* weights, Value* d_scores, std::int64_t heads,
                             std::int64_t tokens, std::int64_t head_width, float scale);

/// Causal attention at once, 16-bit values and heads of 64 only, on compute capability 8.0 and later; pointers begin at
/// 16-byte boundaries. Results do not depend on the order in which blocks run.
inline constexpr std::int64_t flash_head_width = 64;
template <class Value>
void flash_attention(cudaStream_t on, const Value* projected, Value* y, float* log_sums, std::int64_t sequences,
                     std::int64_t tokens, std::int64_t heads);
/// `row_products` is a workspace of sequences x heads x tokens.
template <class Value>
void flash_attention_backward(cudaStream_t on, const Value* d_y, const Value* projected, const Value* y,
                              const float* log_sums, Value* d_projected, float* row_products, std::int64_t sequences,
                              std::int64_t tokens, std::int64_t heads);

/// Most blocks of a norm that sums over rows: four for each multiprocessor of a large device.
inline constexpr unsigned partial_blocks = 528;

/// Elements of the workspace `partial` of the norms over rows of `columns`.
[[nodiscard]] constexpr std::size_t norm_workspace(std::int64_t columns) noexcept {
    return std::size_t{2} * (partial_blocks + 1) * static_cast<std::size_t>(columns);
}

/// LayerNorm with scale and shift in fp32 in every leg, as autocast has it, any width.
template <class Value>
void layernorm(cudaStream_t on, const Value* x, const float* scale, const float* shift, Value* y, float* mean,
               float* inverse_deviation, std::int64_t rows, std::int64_t width, float epsilon);
/// With `residual` d_x is added to. At most 4096 columns, or 1024 where rows are not multiples of 16
/// bytes.
template <class Value>
void layernorm_backward(cudaStream_t on, const Value* d_y, const Value* x, const float* scale, const float* mean,
                        const float* inverse_deviation, Value* d_x, float* d_scale, float* d_shift, std::int64_t rows,
                        std::int64_t width, bool residual, bool accumulate, float* partial);

/// BatchNorm over `pixels` rows of `channels`, at most 2048 of 16 bits or 1024 of fp32, with relu and shortcut as in
/// host_operations; `partial` is a workspace of norm_workspace(channels).
template <class Value>
void batchnorm(cudaStream_t on, const Value* x, const float* scale, const float* shift, const Value* shortcut, Value* y,
               float* mean, float* inverse_deviation, float* running_mean, float* running_variance, std::int64_t pixels,
               std::int64_t channels, float epsilon, float momentum, bool relu, float* partial);
template <class Value>
void batchnorm_backward(cudaStream_t on, const Value* d_y, const Value* x, const Value* y, const float* scale,
                        const float* mean, const float* inverse_deviation, Value* d_x, Value* d_shortcut,
                        float* d_scale, float* d_shift, std::int64_t pixels, std::int64_t channels, bool accumulate,
                        float* partial);

/// Images of float or float16 as the input of a network.
template <class From, class Value>
void patches(cudaStream_t on, const From* images, Value* x, const training::patch_shape& s);

template <class Value>
void average(cudaStream_t on, const Value* x, Value* y, std::int64_t batch, std::int64_t pixels, std::int64_t channels);
template <class Value>
void average_backward(cudaStream_t on, const Value* d_y, Value* d_x, std::int64_t batch, std::int64_t pixels,
                      std::int64_t channels);

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
