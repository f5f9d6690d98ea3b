// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_NORM_BACKWARD_CUH
#define PLUMBLINE_CUDA_KERNELS_NORM_BACKWARD_CUH

#include "plumbline/cuda/kernels/norm.cuh"

PLUMBLINE_NAMESPACE_BEGIN

// With h = (x - m) s and g = dy gamma: dx = s (g - mean(g) - h mean(g h)), dgamma = sum over rows of dy h, dbeta = sum
// over rows of dy. RMSNorm: m and mean(g) are 0, and there is no dbeta.
namespace cuda::kernels {

namespace device {

/// One pass over the rows. x and dy of a row are read from memory once, into shared memory, and looked at there twice:
/// for the two means, and for dx and the sums over rows. A thread keeps the sums of its columns in registers; in the
/// end a block leaves its own in partial[2 block] (dgamma) and partial[2 block + 1] (dbeta), rows of `hidden` fp32.
template <class T, int Threads, int Units, int BlocksPerSm>
__global__ void __launch_bounds__(Threads == 32 ? 128 : Threads, BlocksPerSm)
    norm_backward(const T* x, const T* dy, const T* gamma, const float* mean_in, const float* inverse_in, T* dx,
                  float* partial, norm_arguments how) {
    constexpr int count = per_unit<T>;
    norm_place<T, Threads> place(how.hidden);
    const std::int64_t total = how.rows * how.hidden;
    uint4* const slots = reinterpret_cast<uint4*>(dynamic_shared()) + threadIdx.x;
    // x of unit k of a row, and dy behind it.
    const auto slot = [&](unsigned stage, int k) {
        return slots + (stage * Units + static_cast<unsigned>(k)) * 2 * place.block_threads;
    };
    const auto fetch = [&](std::int64_t row, unsigned stage, int k) {
        const covered<T> own = place.unit(k);
        if (row >= how.rows || !own.any()) return;
        own.fetch(slot(stage, k), x, row * how.hidden, total);
        own.fetch(slot(stage, k) + place.block_threads, dy, row * how.hidden, total);
    };
    const auto mean_of = [&](std::int64_t row) { return how.rms || row >= how.rows ? 0.0f : __ldg(mean_in + row); };
    const auto inverse_of = [&](std::int64_t row) { return row >= how.rows ? 0.0f : __ldg(inverse_in + row); };
    for (unsigned stage = 0; stage < how.stages; ++stage) {
#pragma unroll
        for (int k = 0; k < Units; ++k) fetch(place.first_row + stage * place.row_step, stage, k);
        commit_copies();
    }
    uint4 scale[Units];
    float dgamma[Units][count];
    float dbeta[Units][count];
#pragma unroll
    for (int k = 0; k < Units; ++k) {
        scale[k] = place.unit(k).load(gamma);
#pragma unroll
        for (int e = 0; e < count; ++e) dgamma[k][e] = dbeta[k][e] = 0;
    }
    const float length = static_cast<float>(how.hidden);
    unsigned turn = 0;
    unsigned stage = 0;
    float next_mean = mean_of(place.first_row);
    float next_inverse = inverse_of(place.first_row);
    for (std::int64_t row = place.first_row; row < how.rows; row += place.row_step) {
        place.offset = anew(place.offset);
        const float mean = next_mean;
        const float inverse = next_inverse;
        next_mean = mean_of(row + place.row_step);
        next_inverse = inverse_of(row + place.row_step);
        wait_for_copies(how.stages - 1);
        // x and dy of unit k of this row as fp32, zeros for what is not of it.
        const auto look = [&](int k, float(&xs)[count], float(&dys)[count]) {
            const covered<T> own = place.unit(k);
            uint4 x_unit = *slot(stage, k);
            uint4 dy_unit = slot(stage, k)[place.block_threads];
            if (!own.all()) {
                x_unit = own.only(x_unit);
                dy_unit = own.only(dy_unit);
            }
            widen<T>(x_unit, xs);
            widen<T>(dy_unit, dys);
        };
        float sums[2] = {0, 0}; // of g and of g h
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            if (!place.unit(k).any()) continue;
            float xs[count];
            float gs[count];
            float scales[count];
            look(k, xs, gs);
            widen<T>(anew(scale[k]), scales);
#pragma unroll
            for (int e = 0; e < count; ++e) {
                gs[e] *= scales[e];
                xs[e] = (xs[e] - mean) * inverse * gs[e];
            }
            sums[0] += sum_of(gs);
            sums[1] += sum_of(xs);
        }
        group_sum<Threads>(sums, turn);
        __syncwarp(); // the second look is one: else x and dy of the whole row would be kept in registers
        const float g_mean = how.rms ? 0.0f : sums[0] / length;
        const float gh_mean = sums[1] / length;
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            const covered<T> own = place.unit(k);
            if (!own.any()) continue;
            float xs[count];
            float dys[count];
            float scales[count];
            look(k, xs, dys);
            fetch(row + how.stages * place.row_step, stage, k);
            widen<T>(anew(scale[k]), scales);
#pragma unroll
            for (int e = 0; e < count; ++e) {
                const float h = (xs[e] - mean) * inverse;
                dgamma[k][e] = fmaf(dys[e], h, dgamma[k][e]);
                dbeta[k][e] += dys[e];
                xs[e] = inverse * fmaf(-h, gh_mean, fmaf(dys[e], scales[e], -g_mean));
            }
            own.store(dx + row * how.hidden, xs);
        }
        commit_copies();
        stage = stage + 1 == how.stages ? 0 : stage + 1;
    }
    float* const out = partial + std::int64_t{blockIdx.x} * 2 * how.hidden;
    if constexpr (place.groups == 1) {
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            const covered<T> own = place.unit(k);
#pragma unroll
            for (int e = 0; e < count; ++e) {
                if (!own.has(e)) continue;
                out[own.first + e] = dgamma[k][e];
                out[how.hidden + own.first + e] = dbeta[k][e];
            }
        }
    } else {
        // The groups of a block, one after the other, into the memory where their rows were.
        float* const together = reinterpret_cast<float*>(dynamic_shared());
        for (int group = 0; group < place.groups; ++group) {
            __syncthreads();
            if (group != place.group()) continue;
#pragma unroll
            for (int k = 0; k < Units; ++k) {
                const covered<T> own = place.unit(k);
#pragma unroll
                for (int e = 0; e < count; ++e) {
                    if (!own.has(e)) continue;
                    float* const sum = together + own.first + e;
                    sum[0] = group == 0 ? dgamma[k][e] : sum[0] + dgamma[k][e];
                    sum[how.hidden] = group == 0 ? dbeta[k][e] : sum[how.hidden] + dbeta[k][e];
                }
            }
        }
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < 2 * how.hidden; i += place.block_threads) out[i] = together[i];
    }
}

/// For rows that registers do not hold: a block for each row, which is read twice, element by element; the sums over
/// rows are kept in memory, each by the thread that owns the column.
template <class T>
__global__ void __launch_bounds__(1024, 1)
    norm_backward_long(const T* x, const T* dy, const T* gamma, const float* mean_in, const float* inverse_in, T* dx,
                       float* partial, norm_arguments how) {
    const float length = static_cast<float>(how.hidden);
    const int first = static_cast<int>(threadIdx.x);
    float* const dgamma = partial + std::int64_t{blockIdx.x} * 2 * how.hidden;
    float* const dbeta = dgamma + how.hidden;
    unsigned turn = 0;
    for (int i = first; i < how.hidden; i += 1024) dgamma[i] = dbeta[i] = 0;
    for (std::int64_t row = blockIdx.x; row < how.rows; row += gridDim.x) {
        const std::int64_t begin = row * how.hidden;
        const float mean = how.rms ? 0.0f : mean_in[row];
        const float inverse = inverse_in[row];
        float sums[2] = {0, 0};
        for (int i = first; i < how.hidden; i += 1024) {
            const float h = (static_cast<float>(x[begin + i]) - mean) * inverse;
            const float g = static_cast<float>(dy[begin + i]) * static_cast<float>(gamma[i]);
            sums[0] += g;
            sums[1] = fmaf(g, h, sums[1]);
        }
        group_sum<1024>(sums, turn);
        const float g_mean = how.rms ? 0.0f : sums[0] / length;
        const float gh_mean = sums[1] / length;
        for (int i = first; i < how.hidden; i += 1024) {
            const float h = (static_cast<float>(x[begin + i]) - mean) * inverse;
            const float slope = static_cast<float>(dy[begin + i]);
            dgamma[i] = fmaf(slope, h, dgamma[i]);
            dbeta[i] += slope;
            dx[begin + i] =
                narrow_one<T>(inverse * fmaf(-h, gh_mean, fmaf(slope, static_cast<float>(gamma[i]), -g_mean)));
        }
    }
}

/// Sums the blocks' rows of `partial`, always in the same order: 32 columns a block, 32 threads for each; blockIdx.y is
/// 0 for dgamma and 1 for dbeta.
template <class T>
__global__ void __launch_bounds__(1024, 1)
    norm_gradients(const float* partial, int blocks, int hidden, T* dgamma, T* dbeta) {
    __shared__ float sums[32][33];
    const int column = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
    float sum = 0;
    if (column < hidden) {
        const float* const from = partial + std::int64_t{blockIdx.y} * hidden + column;
        // Several loads in flight.
#pragma unroll 8
        for (int block = static_cast<int>(threadIdx.y); block < blocks; block += 32) {
            sum += from[std::int64_t{block} * 2 * hidden];
        }
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    // Turned round, so that a warp has the 32 sums of one column.
    sum = sums[threadIdx.x][threadIdx.y];
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
    const int own = static_cast<int>(blockIdx.x * 32 + threadIdx.y);
    if (threadIdx.x == 0 && own < hidden) (blockIdx.y == 0 ? dgamma : dbeta)[own] = narrow_one<T>(sum);
}

} // namespace device

void norm_backward(cudaStream_t on, const norm& how, const norm_plan& plan, const void* x, const void* dy,
                   const void* gamma, const float* mean, const float* inverse, void* dx, storage gradients,
                   void* dgamma, void* dbeta, float* partial) {
    detail::require_norm(how, plan, {x, dy, dx});
    if (gradients != how.type && gradients != storage::fp32) {
        throw error("norm: gradients of gamma and beta are of the type of x, or fp32");
    }
    const device::norm_arguments arguments = detail::arguments_of(how, plan);
    detail::with_type(how.type, [&]<class T>(T*) {
        const launch_shape shape{plan.blocks, plan.block_threads(), stage_bytes(plan, 2)};
        const auto start = [&](auto kernel) {
            launch("norm_backward", kernel, shape, on, static_cast<const T*>(x), static_cast<const T*>(dy),
                   static_cast<const T*>(gamma), mean, inverse, static_cast<T*>(dx), partial, arguments);
        };
        if (plan.threads == 0) {
            start(device::norm_backward_long<T>);
            return;
        }
        constexpr auto& shapes = backward_shapes<sizeof(T)>;
        detail::with_shape<shapes>(plan, [&](auto at) {
            constexpr norm_shape chosen = shapes[at];
            start(device::norm_backward<T, chosen.threads, chosen.units, chosen.blocks_per_sm>);
        });
    });
    const launch_shape shape{dim3(static_cast<unsigned>((how.hidden + 31) / 32), how.rms ? 1 : 2), dim3(32, 32)};
    detail::with_type(gradients, [&]<class T>(T*) {
        launch("norm_gradients", device::norm_gradients<T>, shape, on, partial, static_cast<int>(plan.blocks),
               static_cast<int>(how.hidden), static_cast<T*>(dgamma), static_cast<T*>(dbeta));
    });
}

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
