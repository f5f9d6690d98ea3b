// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header of the same name: asynchronous copies into shared memory, at the earliest or at
// the latest moment that the programming model allows (emulation::schedule).
#pragma once

#include "emulation.hpp"

inline void __pipeline_memcpy_async(void* shared, const void* global, std::size_t bytes, std::size_t zfill = 0) {
    emulation::copy_async(shared, global, bytes, zfill);
}
inline void __pipeline_commit() {
    emulation::commit_copies();
}
inline void __pipeline_wait_prior(std::size_t pending) {
    emulation::wait_for_copies(pending);
}
