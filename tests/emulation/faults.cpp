// SPDX-License-Identifier: Apache-2.0
// The emulation itself: right kernels run, and each planted fault is found.
#include "plumbline/cuda/launch.cuh"

#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <cuda_pipeline_primitives.h>
#include <doctest/doctest.h>

using plumbline::cuda::dynamic_shared;
using plumbline::cuda::launch;

namespace {

/// What is wrong with the kernel below.
enum class flaw {
    none,
    offset,       ///< the last shuffle distance is left out
    tail,         ///< the last, partial round of the loop is left out
    no_barrier,   ///< partial sums are read before they are written
    uninitialised ///< partial sums that no warp wrote are read
};

/// *sum = the sum of `count` integers, by one block.
__global__ void sum(const int* values, int count, int* sum, flaw with) {
    __shared__ int partial[32];
    const int threads = static_cast<int>(blockDim.x);
    int local = 0;
    const int end = with == flaw::tail ? count / threads * threads : count;
    for (int i = static_cast<int>(threadIdx.x); i < end; i += threads) local += values[i];
    for (int distance = 16; distance > (with == flaw::offset ? 1 : 0); distance /= 2) {
        local += __shfl_xor_sync(0xffffffffu, local, distance);
    }
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = local;
    if (with != flaw::no_barrier) __syncthreads();
    const int warps = with == flaw::uninitialised ? 32 : threads / 32;
    int all = 0;
    for (int i = 0; i < warps; ++i) all += partial[i];
    if (threadIdx.x == 0) *sum = all;
}

/// How many of the schedules give the right sum.
int right_sums(flaw with) {
    std::vector<int> values(1000);
    int expected = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<int>(i * i % 101);
        expected += values[i];
    }
    int right = 0;
    for (const emulation::schedule& how : emulation::schedules()) {
        emulation::use(how);
        int got = -1;
        launch("sum", sum, {1, 128}, nullptr, values.data(), 1000, &got, with);
        right += got == expected;
    }
    return right;
}

/// Whether a child process that runs `kernel` ends with a message that has `text`.
template <class Kernel>
bool dies_with(const char* text, Kernel kernel) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    std::fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        kernel();
        _exit(0);
    }
    close(ends[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
        said.append(buffer, static_cast<std::size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CAPTURE(said);
    return status != 0 && said.find(text) != std::string::npos;
}

} // namespace

TEST_CASE("a right kernel gives the right result under every schedule") {
    CHECK(right_sums(flaw::none) == static_cast<int>(emulation::schedules().size()));
}

TEST_CASE("a wrong shuffle distance, a missing tail, a missing barrier and unwritten shared memory are seen") {
    CHECK(right_sums(flaw::offset) == 0);
    CHECK(right_sums(flaw::tail) == 0);
    CHECK(right_sums(flaw::no_barrier) < static_cast<int>(emulation::schedules().size()));
    CHECK(right_sums(flaw::uninitialised) == 0);
}

namespace {

/// Passes `rounds` numbers from one warp to another through one place; the reader must be done before it is written
/// again, unless `hasty`.
__global__ void handed_over(int* to, int rounds, bool hasty) {
    __shared__ int place;
    const int warp = static_cast<int>(threadIdx.x / 32);
    for (int i = 0; i < rounds; ++i) {
        if (threadIdx.x == 0) place = i + 1;
        __syncthreads();
        __syncwarp();
        if (warp == 1) __syncwarp(); // a slow reader
        if (threadIdx.x == 32) to[i] = place;
        if (!hasty) __syncthreads();
    }
}

bool right_hand_over(const emulation::schedule& how, bool hasty) {
    emulation::use(how);
    std::vector<int> to(3);
    launch("handed_over", handed_over, {1, 64}, nullptr, to.data(), 3, hasty);
    return to == std::vector<int>{1, 2, 3};
}

} // namespace

TEST_CASE("a warp that writes what a slower one still reads is seen when warps are far apart") {
    CHECK(right_hand_over(emulation::far_warps(), false));
    CHECK_FALSE(right_hand_over(emulation::far_warps(), true));
    for (const emulation::schedule& how : emulation::schedules()) CHECK(right_hand_over(how, false));
}

namespace {

__global__ void half_at_the_barrier() {
    if (threadIdx.x < 32) return;
    __syncthreads();
}

__global__ void different_barriers() {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads(); // another line
}

__global__ void lane_left_the_warp(int* out) {
    if (threadIdx.x == 5) return;
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, static_cast<int>(threadIdx.x), 1);
}

__global__ void lane_not_in_its_mask(int* out) {
    out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, static_cast<int>(threadIdx.x), 1);
}

__global__ void reads_a_lane_outside_the_mask(int* out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0x0000ffffu, static_cast<int>(threadIdx.x), 20);
}

__global__ void full_mask_in_a_partial_warp() {
    __syncwarp();
}

} // namespace

TEST_CASE("threads that wait for ever are named, with the line where they wait") {
    std::vector<int> out(64);
    const auto fails = [](auto kernel, unsigned threads, auto... arguments) {
        std::string said;
        try {
            launch("planted", kernel, {1, threads}, nullptr, arguments...);
        } catch (const emulation::fault& found) {
            said = found.what();
        }
        return said;
    };
    for (const emulation::schedule& how : emulation::schedules()) {
        emulation::use(how);
        const std::string stuck = fails(half_at_the_barrier, 64);
        CHECK(stuck.find("planted: block (0, 0, 0), thread (32, 0, 0) at faults.cpp:") == 0);
        CHECK(stuck.find("waits for ever for the other threads of its block; 32 of 64 threads have left") !=
              std::string::npos);
        CHECK(fails(different_barriers, 64).find("wait at different barriers") != std::string::npos);
        CHECK(fails(lane_left_the_warp, 32, out.data()).find("waits for ever for lanes of its warp") !=
              std::string::npos);
        CHECK(fails(lane_not_in_its_mask, 32, out.data()).find("is not in the mask it passes") != std::string::npos);
        CHECK(fails(reads_a_lane_outside_the_mask, 32, out.data()).find("reads lane 20, which is not in its mask") !=
              std::string::npos);
        CHECK(fails(full_mask_in_a_partial_warp, 40).find("the block ends before it") != std::string::npos);
    }
    CHECK(fails(full_mask_in_a_partial_warp, 1025).find("a block has 1 to 1024 threads") != std::string::npos);
    // And the emulation still works after all that.
    CHECK(right_sums(flaw::none) == static_cast<int>(emulation::schedules().size()));
}

namespace {

__global__ void copy_vectors(uint4* to, const uint4* from, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) to[i] = from[i];
}

__global__ void write_shared(int at) {
    dynamic_shared()[at] = 1;
}

__global__ void write_static_shared(int at, int* out) {
    __shared__ int few[8];
    few[at] = 1;
    *out = few[at];
}

} // namespace

TEST_CASE("out of bounds and misaligned accesses end the program") {
    std::vector<unsigned char> from(16 * 40), to(16 * 40);
    const auto copy = [&](std::size_t offset, int count) {
        launch("copy", copy_vectors, {2, 32}, nullptr, reinterpret_cast<uint4*>(to.data()),
               reinterpret_cast<const uint4*>(from.data() + offset), count);
    };
    copy(0, 40);
    CHECK(dies_with("heap-buffer-overflow", [&] { copy(16, 40); }));
    CHECK(dies_with("misaligned address", [&] { copy(8, 39); }));
    launch("write_shared", write_shared, {1, 1, 100}, nullptr, 99);
    CHECK(dies_with("heap-buffer-overflow", [] { launch("write_shared", write_shared, {1, 1, 100}, nullptr, 100); }));
    int out = 0;
    launch("write_static_shared", write_static_shared, {1, 1}, nullptr, 7, &out);
    CHECK(dies_with("out of bounds", [&] {
        launch("write_static_shared", write_static_shared, {1, 1}, nullptr, 8, &out);
    }));
}

namespace {

/// Doubles `count` integers through two slots of shared memory for each thread, without waiting if `careless`, and
/// filling a slot again before it was read if `hasty`.
__global__ void doubled(int* to, const int* from, int count, bool careless, bool hasty) {
    int* slots = reinterpret_cast<int*>(dynamic_shared()) + threadIdx.x * 2;
    const int step = static_cast<int>(blockDim.x);
    int at = static_cast<int>(threadIdx.x);
    if (at < count) __pipeline_memcpy_async(slots, from + at, 4);
    __pipeline_commit();
    for (int i = 0; at < count; at += step, ++i) {
        const int next = at + step;
        if (next < count) __pipeline_memcpy_async(slots + (hasty ? 0 : (i + 1) % 2), from + next, 4);
        __pipeline_commit();
        if (!careless) __pipeline_wait_prior(1);
        to[at] = 2 * slots[hasty ? 0 : i % 2];
    }
}

int right_copies(bool careless, bool hasty) {
    std::vector<int> from(200), to(200);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i) + 1;
    int right = 0;
    for (const emulation::schedule& how : emulation::schedules()) {
        emulation::use(how);
        launch("doubled", doubled, {1, 64, 64 * 2 * 4}, nullptr, to.data(), from.data(), 200, careless, hasty);
        bool all = true;
        for (std::size_t i = 0; i < from.size(); ++i) all = all && to[i] == 2 * from[i];
        right += all;
    }
    return right;
}

} // namespace

TEST_CASE("an asynchronous copy that is not waited for, and one that comes too soon, are seen") {
    const int all = static_cast<int>(emulation::schedules().size());
    CHECK(right_copies(false, false) == all);
    CHECK(right_copies(true, false) < all);
    CHECK(right_copies(false, true) < all);
    CHECK_THROWS_WITH_AS(launch(
                             "misaligned",
                             +[](const char* from) { __pipeline_memcpy_async(dynamic_shared(), from + 4, 16); },
                             {1, 1, 16}, nullptr, "0123456789abcdef0123456789abcdef"),
                         doctest::Contains("misaligned"), emulation::fault);
}

namespace {

__global__ void warp_operations(unsigned* out) {
    const unsigned lane = threadIdx.x;
    out[lane] = __ballot_sync(0xffffffffu, lane % 3 == 0);
    out[32 + lane] = __reduce_add_sync(0xffffffffu, lane);
    out[64 + lane] = static_cast<unsigned>(__reduce_max_sync(0xffffffffu, static_cast<int>(lane) - 20));
    out[96 + lane] = __shfl_up_sync(0xffffffffu, lane, 3u, 8);
    out[128 + lane] = __shfl_down_sync(0xffffffffu, lane, 3u, 8);
    out[160 + lane] = __shfl_sync(0xffffffffu, lane, 9, 8);
    out[192 + lane] =
        static_cast<unsigned>(__all_sync(0xffffffffu, lane < 32) + 2 * __any_sync(0xffffffffu, lane > 31));
    if (lane < 16) out[224 + lane] = __shfl_xor_sync(0x0000ffffu, lane, 8); // half a warp, the other half elsewhere
    out[256 + lane] = static_cast<unsigned>(__syncthreads_count(lane < 5));
    out[288 + lane] = static_cast<unsigned>(__syncthreads_or(lane == 7) + 2 * __syncthreads_and(lane < 31));
    atomicAdd(out + 320, lane);
    atomicMax(out + 321, lane);
}

} // namespace

TEST_CASE("warp and block operations do what the programming guide says") {
    for (const emulation::schedule& how : emulation::schedules()) {
        emulation::use(how);
        std::vector<unsigned> out(322);
        launch("warp_operations", warp_operations, {1, 32}, nullptr, out.data());
        for (unsigned lane = 0; lane < 32; ++lane) {
            CHECK(out[lane] == 0x49249249u);
            CHECK(out[32 + lane] == 496);
            CHECK(out[64 + lane] == 11);
            CHECK(out[96 + lane] == (lane % 8 < 3 ? lane : lane - 3));
            CHECK(out[128 + lane] == (lane % 8 > 4 ? lane : lane + 3));
            CHECK(out[160 + lane] == lane / 8 * 8 + 1);
            CHECK(out[192 + lane] == 1);
            if (lane < 16) CHECK(out[224 + lane] == (lane ^ 8u));
            CHECK(out[256 + lane] == 5);
            CHECK(out[288 + lane] == 1);
        }
        CHECK(out[320] == 496);
        CHECK(out[321] == 31);
    }
}
