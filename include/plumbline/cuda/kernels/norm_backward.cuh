// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_NORM_BACKWARD_CUH
#define PLUMBLINE_CUDA_KERNELS_NORM_BACKWARD_CUH

#include "plumbline/cuda/kernels/norm.cuh"

PLUMBLINE_NAMESPACE_BEGIN

// With h = (x - m) s and g = dy gamma: dx = s (g - mean(g) - h mean(g h)), dgamma = sum over rows of dy h, dbeta = sum
// over rows of dy. RMSNorm: m and mean(g) are 0, and there is no dbeta.
namespace cuda::kernels {

namespace device {

/// A thread's sums over rows, of the columns of one of its units.
template <class T>
struct unit_sums {
    float dgamma[per_unit<T>] = {};
    float dbeta[per_unit<T>] = {};
};

/// Leaves the sums of a block of one group in its place of `partial`; see norm_partial.
template <class T, int Threads, int Units>
__device__ inline void leave_sums(const norm_place<T, Threads>& place, const unit_sums<T> (&sums)[Units],
                                  const norm_partial& layout, float* partial) {
    constexpr int planes = per_unit<T> / 4;
    float4* const out = reinterpret_cast<float4*>(partial) + std::int64_t{blockIdx.x} * 2 * planes * layout.units;
#pragma unroll
    for (int k = 0; k < Units; ++k) {
        if (!place.unit(k).any()) continue;
        float4* const own = out + place.member() + k * Threads;
#pragma unroll
        for (int i = 0; i < planes; ++i) {
            const float* const scales = sums[k].dgamma + 4 * i;
            const float* const shifts = sums[k].dbeta + 4 * i;
            own[i * layout.units] = make_float4(scales[0], scales[1], scales[2], scales[3]);
            own[(planes + i) * layout.units] = make_float4(shifts[0], shifts[1], shifts[2], shifts[3]);
        }
    }
}

/// The same of a block of several groups, which add theirs one after the other in the memory where their rows were, in
/// `per_unit` parts, so that the threads of a warp are next to each other there.
template <class T, int Threads, int Units>
__device__ inline void leave_sums_of_groups(const norm_place<T, Threads>& place, const unit_sums<T> (&sums)[Units],
                                            const norm_partial& layout, float* partial) {
    constexpr int count = per_unit<T>;
    const int part = (place.hidden + count - 1) / count;
    float* const together = reinterpret_cast<float*>(dynamic_shared());
    for (int group = 0; group < place.groups; ++group) {
        __syncthreads();
        if (group != place.group()) continue;
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            covered<T> own = place.unit(k);
            own.first = anew(own.first); // else all addresses are kept in registers
#pragma unroll
            for (int e = 0; e < count; ++e) {
                if (!own.has(e)) continue;
                const int column = own.first + e;
                float* const at = together + column % count * 2 * part + column / count;
                at[0] = group == 0 ? sums[k].dgamma[e] : at[0] + sums[k].dgamma[e];
                at[part] = group == 0 ? sums[k].dbeta[e] : at[part] + sums[k].dbeta[e];
            }
        }
    }
    __syncthreads();
    float* const out = partial + std::int64_t{blockIdx.x} * 2 * layout.elements();
    for (int i = static_cast<int>(threadIdx.x); i < place.hidden; i += place.block_threads) {
        const float* const at = together + i % count * 2 * part + i / count;
        out[i] = at[0];
        out[layout.elements() + i] = at[part];
    }
}

/// One pass over the rows. x and dy of a row are read from memory once, into shared memory, and looked at there twice:
/// for the two means, and for dx and the sums over rows. A thread keeps the sums of its columns in registers; in the
/// end a block leaves its own in `partial`.
template <class T, int Threads, int Units, int BlocksPerSm>
__global__ void __launch_bounds__(Threads == 32 ? 128 : Threads, BlocksPerSm)
    norm_backward(const T* x, const T* dy, const T* gamma, const float* mean_in, const float* inverse_in, T* dx,
                  float* partial, norm_arguments how) {
    constexpr int count = per_unit<T>;
    norm_place<T, Threads> place(how.hidden);
    constexpr int pair = 2 * place.block_threads; // x of a unit, and dy behind it
    uint4* const slots = reinterpret_cast<uint4*>(dynamic_shared()) + threadIdx.x;
    const auto fetch = [&](uint4* slot, int row) {
        place.template fetch<Units, pair>(slot, x, row, how.rows);
        place.template fetch<Units, pair>(slot + place.block_threads, dy, row, how.rows);
        commit_copies();
    };
    for (unsigned stage = 0; stage < how.stages; ++stage) {
        fetch(slots + stage * Units * pair, place.first_row + static_cast<int>(stage) * place.row_step);
    }
    // One load brings a row's two statistics, to lanes in turn, and no uniform register waits for them before the next
    // row.
    const float* const statistic = how.rms || threadIdx.x % 2 == 1 ? inverse_in : mean_in;
    const auto statistic_of = [&](int row) { return row < how.rows ? __ldg(statistic + row) : 0.0f; };
    float next_statistic = statistic_of(place.first_row);
    uint4 scale[Units];
    unit_sums<T> sums[Units];
#pragma unroll
    for (int k = 0; k < Units; ++k) scale[k] = place.unit(k).load(gamma);
    const float share = 1.0f / static_cast<float>(how.hidden);
    unsigned turn = 0;
    unsigned stage = 0;
    for (int row = place.first_row; row < how.rows; row += place.row_step) {
        place.offset = anew(place.offset);
        const float mean = how.rms ? 0.0f : __shfl_sync(0xffffffffu, next_statistic, 0);
        const float inverse = __shfl_sync(0xffffffffu, next_statistic, 1);
        next_statistic = statistic_of(row + place.row_step);
        wait_for_row(how.stages);
        uint4* const slot = slots + stage * Units * pair;
        // With d = x - m: sums of g and of g d, two of each for shorter chains of dependent additions.
        float g_sums[2] = {0, 0};
        float gd_sums[2] = {0, 0};
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            const covered<T> own = place.unit(k);
            if (!own.any()) continue;
            uint4 x_unit = slot[k * pair];
            uint4 dy_unit = slot[k * pair + place.block_threads];
            if (!own.all()) {
                // Zeros for what is not of this row, also for the second look.
                slot[k * pair] = x_unit = own.only(x_unit);
                slot[k * pair + place.block_threads] = dy_unit = own.only(dy_unit);
            }
            float xs[count];
            float dys[count];
            float scales[count];
            widen<T>(x_unit, xs);
            widen<T>(dy_unit, dys);
            widen<T>(anew(scale[k]), scales);
#pragma unroll
            for (int e = 0; e < count; ++e) {
                const float g = dys[e] * scales[e];
                g_sums[e % 2] += g;
                gd_sums[e % 2] = fmaf(g, xs[e] - mean, gd_sums[e % 2]);
            }
        }
        const float2 totals = group_sum<Threads>(make_float2(sum_of(g_sums), sum_of(gd_sums)), turn);
        __syncwarp(); // the second look is one: else x and dy of the whole row would be kept in registers
        // dx = s g - s mean(g) - s^3 mean(g d) d
        const float base = how.rms ? 0.0f : -inverse * (totals.x * share);
        const float slope = -inverse * (inverse * (totals.y * share)) * inverse;
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            const covered<T> own = place.unit(k);
            if (!own.any()) continue;
            float xs[count];
            float dys[count];
            float scales[count];
            widen<T>(slot[k * pair], xs);
            widen<T>(slot[k * pair + place.block_threads], dys);
            widen<T>(anew(scale[k]), scales);
#pragma unroll
            for (int e = 0; e < count; ++e) {
                const float d = xs[e] - mean;
                const float scaled = dys[e] * inverse;
                sums[k].dgamma[e] = fmaf(scaled, d, sums[k].dgamma[e]);
                sums[k].dbeta[e] += dys[e];
                xs[e] = fmaf(d, slope, fmaf(scaled, scales[e], base));
            }
            own.store(dx + std::int64_t{row} * how.hidden, xs);
        }
        fetch(slot, row + static_cast<int>(how.stages) * place.row_step);
        stage = stage + 1 == how.stages ? 0 : stage + 1;
    }
    if constexpr (place.groups == 1)
        leave_sums(place, sums, how.partial, partial);
    else
        leave_sums_of_groups(place, sums, how.partial, partial);
}

/// For rows that registers do not hold: a block for each row, which is read twice, element by element; the sums over
/// rows are kept in memory, each by the thread that owns the column.
template <class T>
__global__ void __launch_bounds__(1024, 1)
    norm_backward_long(const T* x, const T* dy, const T* gamma, const float* mean_in, const float* inverse_in, T* dx,
                       float* partial, norm_arguments how) {
    const float length = static_cast<float>(how.hidden);
    const int first = static_cast<int>(threadIdx.x);
    float* const dgamma = partial + std::int64_t{blockIdx.x} * 2 * how.partial.elements();
    float* const dbeta = dgamma + how.partial.elements();
    unsigned turn = 0;
    for (int i = first; i < how.hidden; i += 1024) dgamma[i] = dbeta[i] = 0;
    for (int row = static_cast<int>(blockIdx.x); row < how.rows; row += static_cast<int>(gridDim.x)) {
        const std::int64_t begin = std::int64_t{row} * how.hidden;
        const float mean = how.rms ? 0.0f : mean_in[row];
        const float inverse = inverse_in[row];
        float2 sums = make_float2(0, 0);
        for (int i = first; i < how.hidden; i += 1024) {
            const float h = (static_cast<float>(x[begin + i]) - mean) * inverse;
            const float g = static_cast<float>(dy[begin + i]) * static_cast<float>(gamma[i]);
            sums.x += g;
            sums.y = fmaf(g, h, sums.y);
        }
        sums = group_sum<1024>(sums, turn);
        const float g_mean = how.rms ? 0.0f : sums.x / length;
        const float gh_mean = sums.y / length;
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

/// Sums what the blocks left in `partial`, always in the same order: 32 columns a block, 32 threads for each;
/// blockIdx.y is 0 for dgamma and 1 for dbeta.
template <class T>
__global__ void __launch_bounds__(1024, 2)
    norm_gradients(const float* partial, norm_partial layout, int blocks, int hidden, T* dgamma, T* dbeta) {
    constexpr int step = 32; // a multiple of all periods of the blocks' shifts
    constexpr int batch = 8; // loads in flight
    __shared__ float sums[32][33];
    const int column = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
    float sum = 0;
    if (column < hidden) {
        const int first = static_cast<int>(threadIdx.y);
        const int place = column + first * layout.shift % (4 * layout.planes);
        const std::int64_t row = 2 * layout.elements();
        const float* from = partial + first * row + blockIdx.y * layout.elements() +
                            (place / 4 % layout.planes * layout.units + place / (4 * layout.planes)) * 4 + place % 4;
        for (int block = first; block < blocks; block += batch * step) {
            float values[batch];
#pragma unroll
            for (int i = 0; i < batch; ++i) values[i] = block + i * step < blocks ? from[i * step * row] : 0.0f;
            sum += sum_of(values);
            from += batch * step * row;
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
    if (reinterpret_cast<std::uintptr_t>(partial) % 16 != 0) {
        throw error("norm: the workspace does not begin at a 16-byte boundary");
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
        launch("norm_gradients", device::norm_gradients<T>, shape, on, partial, arguments.partial,
               static_cast<int>(plan.blocks), static_cast<int>(how.hidden), static_cast<T*>(dgamma),
               static_cast<T*>(dbeta));
    });
}

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
