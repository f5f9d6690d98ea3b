// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CUDA_RECORDING_HPP
#define PLUMBLINE_CUDA_RECORDING_HPP

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/cuda/handle.hpp"
#include "plumbline/measure/concepts.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace cuda {

/// The graph of what `work()` enqueues on `on`. Throws what `work` throws, and cuda_error when it cannot be captured;
/// the stream can be used again in any case.
template <class Work>
[[nodiscard]] graph capture(cudaStream_t on, Work work) {
    check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    graph captured;
    try {
        work();
    } catch (...) {
        // Ends the capture; the first failure is the one to report.
        static_cast<void>(cudaStreamEndCapture(on, captured.out()));
        static_cast<void>(cudaGetLastError());
        throw;
    }
    check(cudaStreamEndCapture(on, captured.out()), "cudaStreamEndCapture");
    return captured;
}

/// A prepared sample: graphs of its launches, or the launches remembered. Move-only; made by backend::record().
///
/// Sample s runs launches s*n to s*n+n-1 of an endless series in which launch i works on slot i mod slots, so that
/// between two uses of a slot all others are used, across samples too. A graph fixes its slots; so there is one graph
/// for each place of the series a sample can start at.
class recording {
public:
    /// Captures on `on`, which must be idle, or remembers the launches. Throws cuda_error when they cannot be captured.
    recording(cudaStream_t on, measure::launch one, const measure::recording_request& how)
        : one_(std::move(one)), launches_(std::max<std::size_t>(how.launches, 1)),
          slots_(std::max<std::size_t>(how.slots, 1)) {
        if (!how.graph) return;
        const std::size_t all = slots_ / std::gcd(launches_, slots_);
        const std::size_t graphs = std::clamp<std::size_t>(most_nodes / launches_, 1, all);
        for (std::size_t i = 0; i < graphs; ++i) graphs_.push_back(make_graph(on, i * launches_));
        outgrows_queue_ = nodes_ > most_held_nodes;
    }

    /// Enqueues the next sample.
    void enqueue(cudaStream_t on) {
        if (graphs_.empty()) {
            for (std::size_t i = 0; i < launches_; ++i) one_((next_ * launches_ + i) % slots_);
        } else {
            check(cudaGraphLaunch(graphs_[next_ % graphs_.size()].get(), on), "cudaGraphLaunch");
        }
        ++next_;
    }

    [[nodiscard]] std::size_t launches() const noexcept { return launches_; }
    [[nodiscard]] std::size_t graphs() const noexcept { return graphs_.size(); }

    /// Places in the launch queue that one sample takes. A graph of n kernels takes far fewer than n: 1400 kernels in
    /// 32 graphs were seen to fit where 1024 single launches do. How many kernels a launch of a stream enqueues is not
    /// known: a training step is hundreds.
    [[nodiscard]] std::size_t queue_cost() const noexcept { return graphs_.empty() ? launches_ : 1 + nodes_ / 8; }

    /// Samples that may be queued behind one hold; lowered by who has seen that so many do not fit.
    [[nodiscard]] std::size_t most_at_once() const noexcept { return most_at_once_; }
    void most_at_once(std::size_t samples) noexcept { most_at_once_ = samples; }

    /// Whether not even one sample fits into the launch queue, seen or known. Its beginning can still be queued behind
    /// a hold that ends by itself; then the device works while the rest is being queued.
    [[nodiscard]] bool outgrows_queue() const noexcept { return outgrows_queue_; }
    void outgrows_queue(bool seen) noexcept { outgrows_queue_ = seen; }

private:
    /// Beyond this the series restarts early: with 64 slots, samples of more than 256 launches.
    static constexpr std::size_t most_nodes = 16384;
    /// Graphs of 760 kernels were seen to fit behind a hold, one of 2900 was not.
    static constexpr std::size_t most_held_nodes = 2048;

    [[nodiscard]] graph_exec make_graph(cudaStream_t on, std::size_t first) {
        const graph captured = capture(on, [&] {
            for (std::size_t i = 0; i < launches_; ++i) one_((first + i) % slots_);
        });
        std::size_t nodes = 0;
        check(cudaGraphGetNodes(captured.get(), nullptr, &nodes), "cudaGraphGetNodes");
        nodes_ = std::max(nodes_, nodes);
        graph_exec ready;
        check(cudaGraphInstantiate(ready.out(), captured.get(), 0), "cudaGraphInstantiate",
              std::to_string(launches_) + " launches");
        check(cudaGraphUpload(ready.get(), on), "cudaGraphUpload");
        return ready;
    }

    measure::launch one_;
    std::size_t launches_;
    std::size_t slots_;
    std::size_t next_ = 0;  ///< number of the next sample
    std::size_t nodes_ = 0; ///< of a graph
    std::size_t most_at_once_ = std::numeric_limits<std::size_t>::max();
    bool outgrows_queue_ = false;
    std::vector<graph_exec> graphs_;
};

} // namespace cuda

PLUMBLINE_NAMESPACE_END

#endif
