// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CPU_LOADER_TRAINING_HPP
#define PLUMBLINE_CPU_LOADER_TRAINING_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "plumbline/cpu/training_step.hpp"
#include "plumbline/loader/procedure.hpp"
#include "plumbline/training/image_training.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cpu {

/// The training step that consumes the batches of a DataLoader: a bottleneck stack so small (half a millisecond for an
/// image) that two processors can both load and train.
[[nodiscard]] inline workload::training_step::params loader_training_step(const workload::dataloader::params& what) {
    workload::training_step::params p;
    p.net = workload::training_step::network::bottleneck;
    p.type = workload::dtype::fp32;
    p.bottleneck = {static_cast<std::int64_t>(what.batch), 16, 14, 64};
    return p;
}

[[nodiscard]] inline std::string loader_training_id(const workload::dataloader::params& what) {
    return workload::training_step::id(loader_training_step(what));
}

/// Makes it. The step runs in the consumer's thread alone, as the host's part of a step on a device does; the workers
/// have the other processors.
[[nodiscard]] inline loader::training_consumer loader_training(backend& on, const workload::dataloader::params& what) {
    using training_type = training::image_training<training_operations<float>>;
    const workload::training_step::params p = loader_training_step(what);
    const auto owned = std::make_shared<training_type>(p, static_cast<std::int64_t>(what.size), on, p);
    const bool interleaved = what.order == workload::dataloader::layout::hwc;
    loader::training_consumer made;
    made.step = [owned, type = what.type, interleaved](const loader::batch& from) {
        const onednn::in_this_thread alone;
        owned->load(from.host(), type, interleaved, from.size());
        owned->classes(from.record().labels, owned->labels());
        owned->step();
    };
    made.finish = [owned](scalar_map& state) { owned->finish(state); };
    return made;
}

} // namespace cpu

PLUMBLINE_NAMESPACE_END

#endif
