// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_BENCH_BUILD_FACTS_HPP
#define PLUMBLINE_BENCH_BUILD_FACTS_HPP

#include "plumbline/core/scalar.hpp"

namespace bench {

/// How this program was built, for the fingerprint: compiler, flags, build type, commit.
[[nodiscard]] plumbline::scalar_map build_facts();

} // namespace bench

#endif
