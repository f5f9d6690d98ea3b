// SPDX-License-Identifier: Apache-2.0
// Runs CUDA kernels on the host, so that their logic is tested where there is no GPU (README.md).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <math.h> // isfinite and others outside of std, as device code calls them

#include <cuda_runtime_api.h>
#include <vector_functions.h>

// Static shared memory is the thread-local memory of the thread that runs the block.
#undef __shared__
#define __shared__ thread_local
#define __launch_bounds__(...)

namespace emulation {

/// A kernel did what is wrong or undefined on a device. The message names kernel, block, thread and source line.
class fault : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// In which order threads and blocks run, and when asynchronous copies happen. A correct kernel gives the same results
/// under every schedule; one that lacks a barrier or a wait does not under some.
struct schedule {
    enum class order { ascending, descending, shuffled } threads = order::ascending;
    bool late_copies = true; ///< only when waited for; false: at once
    std::uint64_t seed = 1;  ///< of shuffled
    std::string name = "ascending";
    bool far_warps = false; ///< each warp runs to the block's next barrier before another begins; false: all in step
};

/// The schedules that a kernel should be tested under.
[[nodiscard]] const std::vector<schedule>& schedules();

/// A schedule that finds what those above do not: a barrier that is missing where fast warps write what slow ones still
/// read. Threads in order, copies at once.
[[nodiscard]] const schedule& far_warps();

/// What the next launches use.
void use(const schedule& how);

/// Runs `kernel` for each thread of each block, one after the other. Shared memory is filled with NaN bytes before each
/// block. Throws fault; what is out of bounds or misaligned ends the program through the sanitizers it is built with.
void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

/// What all following are for: calls of the thread that is running.
[[nodiscard]] unsigned char* dynamic_shared();
void copy_async(void* shared, const void* global, std::size_t bytes, std::size_t zero_filled);
void commit_copies();
void wait_for_copies(std::size_t pending);

enum class block_operation { barrier, count, all, any };
/// Waits for all threads of the block; returns the number of them with a predicate that is not 0.
int meet_block(block_operation what, int predicate, const char* file, int line);

enum class warp_operation { sync, shuffle, shuffle_up, shuffle_down, shuffle_xor, ballot, all, any, add, min, max };
/// Waits for the lanes in `mask`. Values are passed as their bits, and min and max are signed if `is_signed`.
std::uint64_t meet_warp(warp_operation what, unsigned mask, std::uint64_t bits, int operand, int width, bool is_signed,
                        const char* file, int line);

} // namespace emulation

#include "device.hpp"
