// SPDX-License-Identifier: Apache-2.0
#include "plumbline/entry/cuda.hpp"
#include "backends.hpp"
#include "inputs.hpp"

plumbline::run::backend_entry<plumbline::cuda::backend> bench::cuda_backend() {
    return plumbline::entry::cuda(inputs);
}
