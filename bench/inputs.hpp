// SPDX-License-Identifier: Apache-2.0
// What the DataLoader of this program reads: JPEG where libjpeg-turbo was there to build with.
#ifndef BENCH_INPUTS_HPP
#define BENCH_INPUTS_HPP

#ifdef PLUMBLINE_HAS_JPEG
#include "plumbline/loader/jpeg/data.hpp"
#else
#include "plumbline/loader/inputs.hpp"
#endif

namespace bench {

#ifdef PLUMBLINE_HAS_JPEG
inline constexpr auto inputs = plumbline::loader::jpeg_inputs;
#else
inline constexpr auto inputs = plumbline::loader::inputs_for;
#endif

} // namespace bench

#endif
