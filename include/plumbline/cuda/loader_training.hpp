// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_LOADER_TRAINING_HPP
#define PLUMBLINE_CUDA_LOADER_TRAINING_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "plumbline/cuda/recording.hpp"
#include "plumbline/cuda/training_device.hpp"
#include "plumbline/loader/procedure.hpp"
#include "plumbline/training/image_training.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// The training step that consumes the batches of a DataLoader: the bottleneck stack in bf16.
[[nodiscard]] inline workload::training_step::params loader_training_step(const workload::dataloader::params& what) {
    workload::training_step::params p;
    p.net = workload::training_step::network::bottleneck;
    p.type = workload::dtype::bf16;
    p.bottleneck.batch = static_cast<std::int64_t>(what.batch);
    return p;
}

[[nodiscard]] inline std::string loader_training_id(const workload::dataloader::params& what) {
    return workload::training_step::id(loader_training_step(what));
}

namespace detail {

/// A training step as a graph, behind what brings a batch into it. The consumer's thread sleeps until the step is over:
/// one that spins would take a CPU from the workers.
class loader_trainer {
public:
    loader_trainer(backend& on, const workload::dataloader::params& what)
        : on_(&on), type_(what.type), interleaved_(what.order == workload::dataloader::layout::hwc),
          training_(loader_training_step(what), static_cast<std::int64_t>(what.size), on, loader_training_step(what)),
          classes_(what.batch * sizeof(std::int32_t)),
          done_(make_event(cudaEventDisableTiming | cudaEventBlockingSync)) {
        training_.step(); // plans are chosen at the first use, and cannot be while a graph is captured
        training_.reset();
        const graph captured = capture(on.stream(), [this] { training_.step(); });
        check(cudaGraphInstantiate(step_.out(), captured.get(), 0), "cudaGraphInstantiate", "a training step");
        check(cudaGraphUpload(step_.get(), on.stream()), "cudaGraphUpload");
        on.synchronize();
    }

    void step(const loader::batch& from) {
        training_.load(on_device(from), type_, interleaved_, from.size());
        const std::size_t count = training_.classes(from.record().labels, classes_.as<std::int32_t>());
        check(cudaMemcpyAsync(training_.labels(), classes_.data(), count * sizeof(std::int32_t), cudaMemcpyHostToDevice,
                              on_->stream()),
              "cudaMemcpyAsync", "the classes of a batch");
        check(cudaGraphLaunch(step_.get(), on_->stream()), "cudaGraphLaunch", "a training step");
        check(cudaEventRecord(done_.get(), on_->stream()), "cudaEventRecord");
        check(cudaEventSynchronize(done_.get()), "cudaEventSynchronize", "a training step");
    }

    void finish(scalar_map& state) { training_.finish(state); }

private:
    /// A batch that no loader has copied is copied here, in the step's way, as a loop without pinned memory does.
    [[nodiscard]] const void* on_device(const loader::batch& from) {
        if (from.device() != nullptr) return from.device();
        if (images_.size() < from.bytes()) images_ = device_memory(from.bytes());
        check(cudaMemcpyAsync(images_.data(), from.host(), from.bytes(), cudaMemcpyHostToDevice, on_->stream()),
              "cudaMemcpyAsync", "a batch of " + std::to_string(from.bytes()) + " bytes");
        return images_.data();
    }

    using value = training::bfloat16;

    backend* on_;
    workload::dtype type_;
    bool interleaved_;
    training::image_training<training_operations<value, training_device<value>>> training_;
    pinned_memory classes_;
    device_memory images_;
    event done_;
    graph_exec step_;
};

} // namespace detail

/// Makes it. Batches come on the stream of the loader's copies, which are over when the loader hands a batch out.
[[nodiscard]] inline loader::training_consumer loader_training(backend& on, const workload::dataloader::params& what) {
    const auto owned = std::make_shared<detail::loader_trainer>(on, what);
    return {[owned](const loader::batch& from) { owned->step(from); },
            [owned](scalar_map& state) { owned->finish(state); }};
}

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
