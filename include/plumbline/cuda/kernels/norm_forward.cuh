// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_NORM_FORWARD_CUH
#define PLUMBLINE_CUDA_KERNELS_NORM_FORWARD_CUH

#include "plumbline/cuda/kernels/norm.cuh"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::kernels {

namespace device {

/// Each group keeps its share of gamma and beta in registers where there is room, and steps through its rows. A row is
/// read from memory once, into shared memory while earlier rows are worked on, and from there into registers if there
/// is room: first its mean is summed, then the squared deviations from it, then y is written.
///
/// With `Once` each group has one row only, which goes straight into registers: many small blocks, of which the
/// hardware starts one as soon as another ends.
template <class T, int Threads, int Units, int BlocksPerSm, bool Once>
__global__ void __launch_bounds__(Threads == 32 ? 128 : Threads, BlocksPerSm)
    norm_forward(const T* x, const T* gamma, const T* beta, T* y, float* mean_out, float* inverse_out,
                 norm_arguments how) {
    constexpr int count = per_unit<T>;
    constexpr bool keep = Threads <= 512 && !Once; // gamma and beta in registers
    constexpr bool hold = Units <= 4 || Once;      // and the row; else it is looked at in shared memory
    norm_place<T, Threads> place(how.hidden);
    uint4* const slots = reinterpret_cast<uint4*>(dynamic_shared()) + threadIdx.x;
    constexpr int stride = place.block_threads;
    const auto fetch = [&](uint4* slot, int row) {
        if constexpr (Once) return;
        place.template fetch<Units, stride>(slot, x, row, how.rows);
        commit_copies();
    };
    for (unsigned stage = 0; stage < how.stages; ++stage) {
        fetch(slots + stage * Units * stride, place.first_row + static_cast<int>(stage) * place.row_step);
    }
    uint4 scale[keep ? Units : 1];
    uint4 shift[keep ? Units : 1];
    if constexpr (keep) {
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            scale[k] = place.unit(k).load(gamma);
            shift[k] = place.unit(k).load(beta);
        }
    }
    const float length = static_cast<float>(how.hidden);
    const float share = 1.0f / length;
    unsigned turn = 0;
    unsigned stage = 0;
    for (int row = place.first_row; row < how.rows; row += place.row_step) {
        place.offset = anew(place.offset);
        if constexpr (!Once) wait_for_row(how.stages);
        uint4* const slot = slots + stage * Units * stride;
        const int coming = row + static_cast<int>(how.stages) * place.row_step;
        uint4 units[hold ? Units : 1];
        // Unit k of this row, zeros for what is not of it.
        const auto look = [&](int k) {
            const covered<T> own = place.unit(k);
            if constexpr (Once) return own.load(x + std::int64_t{row} * how.hidden);
            const uint4 unit = own.any() ? slot[k * stride] : make_uint4(0, 0, 0, 0);
            return own.all() ? unit : own.only(unit);
        };
        if constexpr (Once) { // all on their way before the first is looked at
#pragma unroll
            for (int k = 0; k < Units; ++k) units[k] = look(k);
        }
        float sum = 0;
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            const uint4 unit = Once ? units[hold ? k : 0] : look(k);
            if constexpr (hold) units[k] = unit;
            float values[count];
            widen<T>(unit, values);
            sum += sum_of(values);
        }
        if constexpr (hold) fetch(slot, coming);
        const float mean = how.rms ? 0.0f : quotient(group_sum<Threads>(sum, turn), length, share);
        float squares = 0;
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            const covered<T> own = place.unit(k);
            float values[count];
            widen<T>(hold ? units[hold ? k : 0] : look(k), values);
#pragma unroll
            for (int e = 0; e < count; ++e) values[e] -= mean;
            if (!own.all()) {
#pragma unroll
                for (int e = 0; e < count; ++e) values[e] = own.has(e) ? values[e] : 0.0f;
            }
#pragma unroll
            for (int e = 0; e < count; ++e) values[e] *= values[e];
            squares += sum_of(values);
        }
        const float inverse = rsqrtf(fmaf(group_sum<Threads>(squares, turn), share, how.epsilon));
        if constexpr (!hold) place.offset = anew(place.offset);
        if (place.member() == 0) {
            if (!how.rms) mean_out[row] = mean;
            inverse_out[row] = inverse;
        }
#pragma unroll
        for (int k = 0; k < Units; ++k) {
            const covered<T> own = place.unit(k);
            if (!own.any()) continue;
            float values[count];
            float scales[count];
            float shifts[count];
            widen<T>(hold ? units[hold ? k : 0] : look(k), values);
#pragma unroll
            for (int e = 0; e < count; ++e) values[e] = (values[e] - mean) * inverse;
            widen<T>(keep ? anew(scale[keep ? k : 0]) : own.load(gamma), scales);
            widen<T>(keep ? anew(shift[keep ? k : 0]) : own.load(beta), shifts);
#pragma unroll
            for (int e = 0; e < count; ++e) values[e] = fmaf(values[e], scales[e], shifts[e]);
            own.store(y + std::int64_t{row} * how.hidden, values);
        }
        if constexpr (!hold) fetch(slot, coming);
        stage = stage + 1 == how.stages ? 0 : stage + 1;
    }
}

/// For rows that registers do not hold: a block for each row, which is read three times, element by element.
template <class T>
__global__ void __launch_bounds__(1024, 1) norm_forward_long(const T* x, const T* gamma, const T* beta, T* y,
                                                             float* mean_out, float* inverse_out, norm_arguments how) {
    const float length = static_cast<float>(how.hidden);
    const int first = static_cast<int>(threadIdx.x);
    unsigned turn = 0;
    for (int row = static_cast<int>(blockIdx.x); row < how.rows; row += static_cast<int>(gridDim.x)) {
        const T* const from = x + std::int64_t{row} * how.hidden;
        float sum = 0;
        if (!how.rms) {
            for (int i = first; i < how.hidden; i += 1024) sum += static_cast<float>(from[i]);
            sum = group_sum<1024>(sum, turn);
        }
        const float mean = sum / length;
        float squares = 0;
        for (int i = first; i < how.hidden; i += 1024) {
            const float off = static_cast<float>(from[i]) - mean;
            squares = fmaf(off, off, squares);
        }
        const float inverse = rsqrtf(group_sum<1024>(squares, turn) / length + how.epsilon);
        if (first == 0) {
            if (!how.rms) mean_out[row] = mean;
            inverse_out[row] = inverse;
        }
        for (int i = first; i < how.hidden; i += 1024) {
            const float shift = beta == nullptr ? 0.0f : static_cast<float>(beta[i]);
            y[std::int64_t{row} * how.hidden + i] = narrow_one<T>(
                fmaf((static_cast<float>(from[i]) - mean) * inverse, static_cast<float>(gamma[i]), shift));
        }
    }
}

} // namespace device

void norm_forward(cudaStream_t on, const norm& how, const norm_plan& plan, const void* x, const void* gamma,
                  const void* beta, void* y, float* mean, float* inverse) {
    detail::require_norm(how, plan, {x, y});
    const device::norm_arguments arguments = detail::arguments_of(how, plan);
    detail::with_type(how.type, [&]<class T>(T*) {
        const T* const shift = how.rms ? nullptr : static_cast<const T*>(beta);
        const launch_shape shape{plan.blocks, plan.block_threads(), stage_bytes(plan, 1)};
        const auto start = [&](auto kernel) {
            launch("norm_forward", kernel, shape, on, static_cast<const T*>(x), static_cast<const T*>(gamma), shift,
                   static_cast<T*>(y), mean, inverse, arguments);
        };
        if (plan.threads == 0) {
            start(device::norm_forward_long<T>);
            return;
        }
        constexpr auto& shapes = forward_shapes<sizeof(T)>;
        detail::with_shape<shapes>(plan, [&](auto at) {
            constexpr norm_shape chosen = shapes[at];
            start(device::norm_forward<T, chosen.threads, chosen.units, chosen.blocks_per_sm, chosen.stages == 0>);
        });
    });
}

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
