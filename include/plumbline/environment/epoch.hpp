// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_EPOCH_HPP
#define PLUMBLINE_ENVIRONMENT_EPOCH_HPP

#include <chrono>
#include <string>

#include "plumbline/environment/host.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// The epoch this process measures in: hashed boot id, UTC day of `now`, and the board, which is the hashed UUID of
/// the GPU (host.gpu) or, on the CPU backend, the hashed machine. What cannot be read is "".
[[nodiscard]] result::epoch current_epoch(const host& machine,
                                          std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
