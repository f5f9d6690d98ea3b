// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_CUDNN_CONTEXT_HPP
#define PLUMBLINE_CUDA_CUDNN_CONTEXT_HPP

#include <string>

#include "plumbline/cuda/backend.hpp"
#include "plumbline/cuda/cudnn/plan.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda::cudnn {

using library_handle = unique_handle<cudnnHandle_t, cudnnDestroy>;

/// What all cuDNN fixtures of a backend share (backend::shared): the handle, on the backend's stream.
struct context {
    explicit context(backend& on) {
        check(cudnnCreate(library.out()), "cudnnCreate", on.place());
        check(cudnnSetStream(library.get(), on.stream()), "cudnnSetStream", on.place());
    }

    [[nodiscard]] target place() const { return {library.get(), {}}; }

    library_handle library;
};

/// Enqueues one launch of a plan on the context's stream.
inline void execute(const context& on, const plan& what, const descriptor& pack) {
    const cudnnStatus_t status = cudnnBackendExecute(on.library.get(), what.executable.get(), pack.get());
    // Words are made only for a failure: they cost host time.
    if (status != CUDNN_STATUS_SUCCESS) check(status, "cudnnBackendExecute", what.executable.what());
}

/// A trial: one launch, waited for. Throws where the device failed, for then no other plan runs either.
[[nodiscard]] inline std::string run_once(backend& on, const context& with, const plan& what, const descriptor& pack) {
    try {
        execute(with, what, pack);
    } catch (const error& refused) {
        return std::string("does not run: ") + refused.what();
    }
    on.synchronize();
    return "";
}

} // namespace cuda::cudnn

PLUMBLINE_NAMESPACE_END

#endif
