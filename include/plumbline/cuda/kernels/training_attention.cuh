// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_KERNELS_TRAINING_ATTENTION_CUH
#define PLUMBLINE_CUDA_KERNELS_TRAINING_ATTENTION_CUH

#include <cmath>

#include "plumbline/cuda/kernels/training_common.cuh"
#include "plumbline/cuda/matrix.cuh"

PLUMBLINE_NAMESPACE_BEGIN

// Causal attention in which scores never leave the registers; T. Dao, FlashAttention-2, 2023. Sequences are cut into
// tiles of 64 rows; a warp has 16 rows of a tile on the left of its products and goes through the tiles on the right,
// which two stages of shared memory bring. Gradients are made in two kernels that compute the scores again, one for the
// queries and one for keys and values, so that nothing is added up by atomic operations: results do not depend on the
// order of blocks.
namespace cuda::kernels {

namespace device {

inline constexpr int head_values = 64; ///< the head width these kernels are for
inline constexpr int tile_rows = 64;
inline constexpr int tile_bytes = tile_rows * head_values * 2;
inline constexpr float log2_e = 1.4426950408889634f;

/// Piece `which` of 16 bytes of a row of a tile. Pieces change places from row to row, so that eight rows of one matrix
/// lie in different banks.
__device__ inline unsigned char* piece(unsigned char* tile, int row, int which) {
    return tile + row * (head_values * 2) + ((which ^ (row & 7)) << 4);
}

/// Starts copying `rows` rows of a head, `step` values apart; rows from `left` on become zeros.
template <class Value>
__device__ inline void copy_tile(unsigned char* tile, int rows, const Value* from, std::int64_t step, int left) {
    for (int i = static_cast<int>(threadIdx.x); i < rows * 8; i += static_cast<int>(blockDim.x)) {
        const int row = i / 8;
        const bool inside = row < left;
        copy_async(piece(tile, row, i % 8), from + (inside ? row : 0) * step + i % 8 * 8, inside ? 16 : 0);
    }
}

/// 16 rows of a tile as the left side of products.
struct left_rows {
    unsigned at[4][4];
};

__device__ inline left_rows load_left(unsigned char* tile, int first_row) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    left_rows made;
#pragma unroll
    for (int k = 0; k < 4; ++k) load_matrices(made.at[k], piece(tile, first_row + lane % 16, 2 * k + lane / 16));
    return made;
}

/// 16 x 64 numbers of a warp: [eighth of the columns][element], as multiply_add has them.
struct sums {
    float at[8][4];
};

__device__ inline sums no_sums() {
    sums made;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) made.at[n][e] = 0;
    }
    return made;
}

/// left x (rows of the tile)^T: 16 x 64 products of rows.
template <class Value>
__device__ inline sums times_rows(const left_rows& left, unsigned char* tile) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    sums made = no_sums();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            unsigned right[4];
            load_matrices(right, piece(tile, pair * 16 + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
            multiply_add<Value>(made.at[2 * pair], left.at[k], right[0], right[1]);
            multiply_add<Value>(made.at[2 * pair + 1], left.at[k], right[2], right[3]);
        }
    }
    return made;
}

/// Two values as they lie in a register, the first in the lower half.
template <class Value>
__device__ inline unsigned joined(float first, float second) {
    const Value low = rounded<Value>(first), high = rounded<Value>(second);
    return low.bits | static_cast<unsigned>(high.bits) << 16;
}

/// Sums, rounded, as the left side of products: what multiply_add gives lies as it takes it.
template <class Value>
__device__ inline left_rows as_left(const sums& from) {
    left_rows made;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float(&at)[4] = from.at[2 * k + half];
            made.at[k][2 * half] = joined<Value>(at[0], at[1]);
            made.at[k][2 * half + 1] = joined<Value>(at[2], at[3]);
        }
    }
    return made;
}

/// to += left x tile: 16 x 64 values from 64 columns on the left and 64 rows of the tile.
template <class Value>
__device__ inline void add_times(sums& to, const left_rows& left, unsigned char* tile) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            unsigned right[4];
            load_turned_matrices(right, piece(tile, k * 16 + lane % 16, 2 * pair + lane / 16));
            multiply_add<Value>(to.at[2 * pair], left.at[k], right[0], right[1]);
            multiply_add<Value>(to.at[2 * pair + 1], left.at[k], right[2], right[3]);
        }
    }
}

/// Writes 16 rows, each times one of `factors` (for the lane's two rows), through 16 rows of shared memory that only
/// this warp uses; rows from `left` on are left out.
template <class Value>
__device__ inline void store_rows(const sums& from, float factor0, float factor1, unsigned char* tile, int first_row,
                                  Value* to, std::int64_t step, int left) {
    const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, place = lane % 4;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 8; ++n) {
        const auto put = [&](int row, float first, float second) {
            *reinterpret_cast<unsigned*>(piece(tile, first_row + row, n) + place * 4) = joined<Value>(first, second);
        };
        put(group, from.at[n][0] * factor0, from.at[n][1] * factor0);
        put(group + 8, from.at[n][2] * factor1, from.at[n][3] * factor1);
    }
    __syncwarp();
#pragma unroll
    for (int i = lane; i < 16 * 8; i += 32) {
        const int row = i / 8;
        if (row >= left) continue;
        *reinterpret_cast<uint4*>(to + row * step + i % 8 * 8) =
            *reinterpret_cast<const uint4*>(piece(tile, first_row + row, i % 8));
    }
}

/// Over the four lanes that share rows.
__device__ inline float row_max(float value) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
__device__ inline float row_sum(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

/// Where one head of one sequence lies in a projection and in an output: block x is the head.
template <class Value>
struct head_place {
    std::int64_t head, sequence, width, tokens;

    __device__ head_place(int heads, int length)
        : head(blockIdx.x % static_cast<unsigned>(heads)), sequence(blockIdx.x / static_cast<unsigned>(heads)),
          width(std::int64_t{heads} * head_values), tokens(length) {}

    /// Row `row` of the queries (0), keys (1) or values (2).
    template <class T>
    __device__ T* projected(T* all, int which, int row) const {
        return all + ((sequence * tokens + row) * 3 + which) * width + head * head_values;
    }
    template <class T>
    __device__ T* output(T* all, int row) const {
        return all + (sequence * tokens + row) * width + head * head_values;
    }
    /// The first of the numbers that there are for each row.
    template <class T>
    __device__ T* of_rows(T* all) const {
        return all + static_cast<std::int64_t>(blockIdx.x) * tokens;
    }
    __device__ std::int64_t step() const { return 3 * width; }
};

/// Query rows of a block of the forward kernel: two tiles.
inline constexpr int forward_rows = 2 * tile_rows;

/// Scores of keys after their query become -infinity. `query` is the query of the lane's first row, `key` the first
/// of the tile.
__device__ inline void mask_keys(sums& scores, int query, int key) {
    const int place = static_cast<int>(threadIdx.x % 4);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (key + n * 8 + place * 2 + e % 2 > query + e / 2 * 8) scores.at[n][e] = -INFINITY;
        }
    }
}

/// A softmax that has seen some of its row: for the lane's two rows.
struct running_softmax {
    float most[2] = {-INFINITY, -INFINITY};
    float sum[2] = {0, 0}; ///< of this lane's columns

    /// Scores into weights, not yet divided by their sum; `output` of earlier weights is scaled to fit. `scale` is that
    /// of the scores, times log2(e).
    __device__ void add(sums& scores, sums& output, float scale) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float here = most[half];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                here = fmaxf(here, fmaxf(scores.at[n][2 * half], scores.at[n][2 * half + 1]));
            }
            // The first tile has key 0, which every query sees: no row is without a finite score.
            here = row_max(here);
            const float shrink = fast_exp2((most[half] - here) * scale);
            most[half] = here;
            sum[half] *= shrink;
            const float shift = here * scale;
#pragma unroll
            for (int n = 0; n < 8; ++n) {
#pragma unroll
                for (int e = 2 * half; e < 2 * half + 2; ++e) {
                    scores.at[n][e] = fast_exp2(fmaf(scores.at[n][e], scale, -shift));
                    sum[half] += scores.at[n][e];
                    output.at[n][e] *= shrink;
                }
            }
        }
    }
};

/// Blocks: head of all sequences x 128 queries, the last of which have most to do and come first.
template <class Value>
__global__ void __launch_bounds__(256, 2)
    attention_forward(const Value* projected, Value* y, float* log_sums, int tokens, int heads, float scale) {
    unsigned char* query_tile = dynamic_shared();
    unsigned char* stages = query_tile + 2 * tile_bytes; // two of key and value
    const head_place<Value> at(heads, tokens);
    const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * forward_rows;
    const int own = static_cast<int>(threadIdx.x / 32) * 16; // row of the block
    const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, place = lane % 4;
    const auto fetch = [&](int tile) {
        unsigned char* to = stages + tile % 2 * (2 * tile_bytes);
        const int row = tile * tile_rows;
        copy_tile(to, tile_rows, at.projected(projected, 1, row), at.step(), tokens - row);
        copy_tile(to + tile_bytes, tile_rows, at.projected(projected, 2, row), at.step(), tokens - row);
    };
    copy_tile(query_tile, forward_rows, at.projected(projected, 0, first), at.step(), tokens - first);
    fetch(0);
    commit_copies();

    left_rows query;
    sums output = no_sums();
    running_softmax softmax;
    const int tiles = (min(first + forward_rows, tokens) + tile_rows - 1) / tile_rows;
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) fetch(tile + 1);
        commit_copies();
        wait_for_copies(1);
        __syncthreads();
        if (tile == 0) query = load_left(query_tile, own);
        const int key = tile * tile_rows;
        if (key < first + own + 16) { // else all of it comes after this warp's queries
            unsigned char* keys = stages + tile % 2 * (2 * tile_bytes);
            sums scores = times_rows<Value>(query, keys);
            if (key + tile_rows > first + own + 1) mask_keys(scores, first + own + group, key);
            softmax.add(scores, output, scale * log2_e);
            add_times<Value>(output, as_left<Value>(scores), keys + tile_bytes);
        }
        __syncthreads(); // before the stage is filled again
    }

    float inverse[2];
    for (int half = 0; half < 2; ++half) {
        const float sum = row_sum(softmax.sum[half]);
        inverse[half] = 1 / sum;
        const int row = first + own + group + 8 * half;
        if (place == 0 && row < tokens) at.of_rows(log_sums)[row] = softmax.most[half] * scale + logf(sum);
    }
    store_rows(output, inverse[0], inverse[1], query_tile, own, at.output(y, first + own), at.width,
               tokens - first - own);
}

/// Sums of y x d_y over the block's rows, by 128 threads, into shared and global memory.
template <class Value>
__device__ inline void multiply_rows(const head_place<Value>& at, const Value* y, const Value* d_y, int first,
                                     int tokens, float* shared, float* row_products) {
#pragma unroll
    for (int i = 0; i < tile_rows / 16; ++i) {
        const int row = i * 16 + static_cast<int>(threadIdx.x / 8);
        const int part = static_cast<int>(threadIdx.x % 8);
        float sum = 0;
        if (first + row < tokens) {
            const auto a = *reinterpret_cast<const pack<Value, 8>*>(at.output(y, first + row) + part * 8);
            const auto b = *reinterpret_cast<const pack<Value, 8>*>(at.output(d_y, first + row) + part * 8);
#pragma unroll
            for (int j = 0; j < 8; ++j) sum += widened(a.at[j]) * widened(b.at[j]);
        }
        sum = row_sum(sum);
        sum += __shfl_xor_sync(0xffffffffu, sum, 4);
        if (part == 0) shared[row] = sum;
        if (part == 0 && first + row < tokens) at.of_rows(row_products)[first + row] = sum;
    }
}

/// Gradients of the queries, and the sums of y x d_y for the other kernel. Blocks: head of all sequences x 64 queries.
template <class Value>
__global__ void __launch_bounds__(128)
    attention_backward_query(const Value* d_y, const Value* projected, const Value* y, const float* log_sums,
                             Value* d_projected, float* row_products, int tokens, int heads, float scale) {
    unsigned char* query_tile = dynamic_shared();
    unsigned char* d_y_tile = query_tile + tile_bytes;
    unsigned char* stages = d_y_tile + tile_bytes; // two of key and value
    auto* products = reinterpret_cast<float*>(stages + 4 * tile_bytes);
    const head_place<Value> at(heads, tokens);
    const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * tile_rows;
    const int own = static_cast<int>(threadIdx.x / 32) * 16;
    const int group = static_cast<int>(threadIdx.x % 32) / 4;
    const auto fetch = [&](int tile) {
        unsigned char* to = stages + tile % 2 * (2 * tile_bytes);
        const int row = tile * tile_rows;
        copy_tile(to, tile_rows, at.projected(projected, 1, row), at.step(), tokens - row);
        copy_tile(to + tile_bytes, tile_rows, at.projected(projected, 2, row), at.step(), tokens - row);
    };
    copy_tile(query_tile, tile_rows, at.projected(projected, 0, first), at.step(), tokens - first);
    copy_tile(d_y_tile, tile_rows, at.output(d_y, first), at.width, tokens - first);
    fetch(0);
    commit_copies();
    multiply_rows(at, y, d_y, first, tokens, products, row_products);

    left_rows query, d_out;
    float shift[2], product[2]; // of the lane's two rows
    sums d_query = no_sums();
    const int tiles = (min(first + tile_rows, tokens) + tile_rows - 1) / tile_rows;
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) fetch(tile + 1);
        commit_copies();
        wait_for_copies(1);
        __syncthreads();
        if (tile == 0) {
            query = load_left(query_tile, own);
            d_out = load_left(d_y_tile, own);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = own + group + 8 * half;
                // A row that is not there has weights of 0.
                shift[half] = first + row < tokens ? at.of_rows(log_sums)[first + row] * log2_e : INFINITY;
                product[half] = products[row];
            }
        }
        unsigned char* keys = stages + tile % 2 * (2 * tile_bytes);
        sums scores = times_rows<Value>(query, keys);
        if (tile + 1 == tiles) mask_keys(scores, first + own + group, tile * tile_rows);
        const sums d_weights = times_rows<Value>(d_out, keys + tile_bytes);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float weight = fast_exp2(fmaf(scores.at[n][e], scale * log2_e, -shift[e / 2]));
                scores.at[n][e] = weight * (d_weights.at[n][e] - product[e / 2]);
            }
        }
        add_times<Value>(d_query, as_left<Value>(scores), keys);
        __syncthreads();
    }
    store_rows(d_query, scale, scale, query_tile, own, at.projected(d_projected, 0, first + own), at.step(),
               tokens - first - own);
}

/// Gradients of keys and values; here keys are on the left, so that scores are made transposed. Blocks: head of all
/// sequences x 64 keys, the first of which have most to do.
template <class Value>
__global__ void __launch_bounds__(128)
    attention_backward_key(const Value* d_y, const Value* projected, const float* log_sums, const float* row_products,
                           Value* d_projected, int tokens, int heads, float scale) {
    constexpr int stage_bytes = 2 * tile_bytes + 2 * tile_rows * static_cast<int>(sizeof(float));
    unsigned char* key_tile = dynamic_shared();
    unsigned char* value_tile = key_tile + tile_bytes;
    unsigned char* stages = value_tile + tile_bytes; // two of query, d_y, and two numbers for each of their rows
    const head_place<Value> at(heads, tokens);
    const int first = static_cast<int>(blockIdx.y) * tile_rows;
    const int own = static_cast<int>(threadIdx.x / 32) * 16;
    const int lane = static_cast<int>(threadIdx.x % 32), group = lane / 4, place = lane % 4;
    const auto stage_of = [&](int tile) { return stages + tile % 2 * stage_bytes; };
    const auto fetch = [&](int tile) {
        unsigned char* to = stage_of(tile);
        const int row = tile * tile_rows;
        copy_tile(to, tile_rows, at.projected(projected, 0, row), at.step(), tokens - row);
        copy_tile(to + tile_bytes, tile_rows, at.output(d_y, row), at.width, tokens - row);
        auto* numbers = reinterpret_cast<float*>(to + 2 * tile_bytes);
        const int mine = static_cast<int>(threadIdx.x) % tile_rows;
        const bool inside = row + mine < tokens;
        if (static_cast<int>(threadIdx.x) < tile_rows)
            numbers[mine] = inside ? at.of_rows(log_sums)[row + mine] * log2_e : INFINITY;
        else
            numbers[tile_rows + mine] = inside ? at.of_rows(row_products)[row + mine] : 0;
    };
    const int begin = first / tile_rows, end = (tokens + tile_rows - 1) / tile_rows;
    copy_tile(key_tile, tile_rows, at.projected(projected, 1, first), at.step(), tokens - first);
    copy_tile(value_tile, tile_rows, at.projected(projected, 2, first), at.step(), tokens - first);
    fetch(begin);
    commit_copies();

    left_rows key, value;
    sums d_key = no_sums(), d_value = no_sums();
    for (int tile = begin; tile < end; ++tile) {
        if (tile + 1 < end) fetch(tile + 1);
        commit_copies();
        wait_for_copies(1);
        __syncthreads();
        if (tile == begin) {
            key = load_left(key_tile, own);
            value = load_left(value_tile, own);
        }
        unsigned char* queries = stage_of(tile);
        const auto* shifts = reinterpret_cast<const float*>(queries + 2 * tile_bytes);
        const auto* products = shifts + tile_rows;
        sums weights = times_rows<Value>(key, queries);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int column = n * 8 + place * 2 + e % 2;
                const float weight = fast_exp2(fmaf(weights.at[n][e], scale * log2_e, -shifts[column]));
                const bool before = tile == begin && column < own + group + e / 2 * 8; // a query before its key
                weights.at[n][e] = before ? 0.0f : weight;
            }
        }
        add_times<Value>(d_value, as_left<Value>(weights), queries + tile_bytes);
        const sums d_weights = times_rows<Value>(value, queries + tile_bytes);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                weights.at[n][e] *= d_weights.at[n][e] - products[n * 8 + place * 2 + e % 2];
            }
        }
        add_times<Value>(d_key, as_left<Value>(weights), queries);
        __syncthreads();
    }
    const int left = tokens - first - own;
    store_rows(d_key, scale, scale, key_tile, own, at.projected(d_projected, 1, first + own), at.step(), left);
    store_rows(d_value, 1, 1, value_tile, own, at.projected(d_projected, 2, first + own), at.step(), left);
}

} // namespace device

namespace detail {

/// Blocks of `threads` for each head of each sequence and `rows` of its tokens.
inline launch_shape attention_shape(std::int64_t sequences, std::int64_t heads, std::int64_t tokens, int rows,
                                    unsigned threads, std::size_t shared_bytes) {
    return {dim3(static_cast<unsigned>(sequences * heads), static_cast<unsigned>((tokens + rows - 1) / rows)),
            dim3(threads), shared_bytes};
}

} // namespace detail

template <class Value>
void flash_attention(cudaStream_t on, const Value* projected, Value* y, float* log_sums, std::int64_t sequences,
                     std::int64_t tokens, std::int64_t heads) {
    const float scale = 1 / std::sqrt(static_cast<float>(device::head_values));
    launch("attention_forward", device::attention_forward<Value>,
           detail::attention_shape(sequences, heads, tokens, device::forward_rows, 256, 6 * device::tile_bytes), on,
           projected, y, log_sums, static_cast<int>(tokens), static_cast<int>(heads), scale);
}

template <class Value>
void flash_attention_backward(cudaStream_t on, const Value* d_y, const Value* projected, const Value* y,
                              const float* log_sums, Value* d_projected, float* row_products, std::int64_t sequences,
                              std::int64_t tokens, std::int64_t heads) {
    const float scale = 1 / std::sqrt(static_cast<float>(device::head_values));
    const auto shape = [&](std::size_t numbers) {
        return detail::attention_shape(sequences, heads, tokens, device::tile_rows, 128,
                                       6 * device::tile_bytes + numbers * device::tile_rows * sizeof(float));
    };
    launch("attention_backward_query", device::attention_backward_query<Value>, shape(1), on, d_y, projected, y,
           log_sums, d_projected, row_products, static_cast<int>(tokens), static_cast<int>(heads), scale);
    launch("attention_backward_key", device::attention_backward_key<Value>, shape(4), on, d_y, projected, log_sums,
           static_cast<const float*>(row_products), d_projected, static_cast<int>(tokens), static_cast<int>(heads),
           scale);
}

#define PLUMBLINE_INSTANTIATE(Value)                                                                                   \
    template void flash_attention(cudaStream_t, const Value*, Value*, float*, std::int64_t, std::int64_t,              \
                                  std::int64_t);                                                                       \
    template void flash_attention_backward(cudaStream_t, const Value*, const Value*, const Value*, const float*,       \
                                           Value*, float*, std::int64_t, std::int64_t, std::int64_t);
PLUMBLINE_INSTANTIATE(training::bfloat16)
PLUMBLINE_INSTANTIATE(training::float16)
#undef PLUMBLINE_INSTANTIATE

} // namespace cuda::kernels

PLUMBLINE_NAMESPACE_END

#endif
