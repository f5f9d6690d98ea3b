// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_OPTIONS_HPP
#define PLUMBLINE_LOADER_OPTIONS_HPP

#include <cstddef>
#include <cstdint>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// The knobs of PyTorch's DataLoader, by the same names where they mean the same.
struct options {
    std::size_t num_workers = 0;     ///< 0: next() loads in the caller's thread
    std::size_t prefetch_factor = 2; ///< batches in flight for each worker
    std::size_t batch_size = 128;
    bool shuffle = true;
    bool in_order = true; ///< false: batches come as they are completed
    bool drop_last = false;
    bool persistent_workers = true; ///< threads live on between epochs
    std::uint64_t seed = 0;
    std::size_t epoch_samples = 0; ///< samples in an epoch; 0: the data set once
};

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
