// SPDX-License-Identifier: Apache-2.0
// The backends that were built in. Each is compiled in a file of its own: together they are more than one compiler
// should have to hold in memory, and with a file for each all processors have something to compile.
#ifndef BENCH_BACKENDS_HPP
#define BENCH_BACKENDS_HPP

#ifdef PLUMBLINE_HAS_CPU
#include "plumbline/cpu/backend.hpp"
#endif
#ifdef PLUMBLINE_HAS_CUDA
#include "plumbline/cuda/backend.hpp"
#endif
#include "plumbline/run/driver.hpp"

namespace bench {

#ifdef PLUMBLINE_HAS_CPU
[[nodiscard]] plumbline::run::backend_entry<plumbline::cpu::backend> cpu_backend();
#endif
#ifdef PLUMBLINE_HAS_CUDA
[[nodiscard]] plumbline::run::backend_entry<plumbline::cuda::backend> cuda_backend();
#endif

} // namespace bench

#endif
