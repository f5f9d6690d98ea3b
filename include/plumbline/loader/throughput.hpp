// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_THROUGHPUT_HPP
#define PLUMBLINE_LOADER_THROUGHPUT_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "plumbline/loader/data_loader.hpp"
#include "plumbline/stats/descriptive.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// Workers that have a CPU for less than this share of their work share it with something else.
inline constexpr double contended = 0.85;

/// How a loader is timed.
struct throughput_plan {
    std::chrono::nanoseconds budget{std::chrono::seconds{2}};
    std::chrono::nanoseconds shortest_window{std::chrono::milliseconds{50}};
    std::function<void(const batch&)> consumer; ///< what is done with a batch; empty: nothing
    std::function<void()> before_epoch;         ///< not timed, such as dropping the page cache
    bool whole_epochs = false; ///< a sample is an epoch behind its first batch, for cold caches; else a window
};

/// What was measured. Totals are of the steady state: behind the warm-up, without starts of epochs.
struct throughput {
    std::vector<double> images_per_s; ///< one for each window, or each epoch
    std::vector<double> step_ns;      ///< time of each iteration of the consumer
    double seconds = 0;
    std::size_t samples = 0;
    std::size_t batches = 0;
    std::size_t bytes_read = 0;
    std::size_t bytes_built = 0;
    stage_times stage_ns{}; ///< summed over workers
    double cpu_ns = 0;      ///< of the workers
    double wait_ns = 0;     ///< the consumer stood in next()
    stage_times waited_for_ns{};
    double epoch_start_ns = 0;       ///< of the first epoch, which starts the threads
    double first_batch_ns = 0;       ///< of the first epoch
    double later_first_batch_ns = 0; ///< of the second, 0 if there was none
    std::size_t epochs = 0;
    std::size_t oriented = 0;
    failure_log failures; ///< of everything, the warm-up too

    [[nodiscard]] double rate() const { return stats::median(images_per_s); }
    [[nodiscard]] double cpu_ns_per_image() const { return samples == 0 ? 0 : cpu_ns / static_cast<double>(samples); }
    /// Share of its time that the consumer spent waiting: sum of waits over sum of steps.
    [[nodiscard]] double waiting_share() const { return seconds > 0 ? wait_ns * 1e-9 / seconds : 0; }
    /// What the consumer takes for a batch beside waiting, mean.
    [[nodiscard]] double consumer_ns() const {
        return batches == 0 ? 0 : std::max(0.0, seconds * 1e9 - wait_ns) / static_cast<double>(batches);
    }
    /// Decode and transform only compute: CPU time used over the time they took, at most 1. Less where the CPU was
    /// elsewhere.
    [[nodiscard]] double cpu_share() const {
        const double computing =
            stage_ns[static_cast<std::size_t>(stage::decode)] + stage_ns[static_cast<std::size_t>(stage::transform)];
        return computing > 0 ? std::min(1.0, cpu_ns / computing) : 1;
    }
    [[nodiscard]] double read_bytes_per_s() const {
        return seconds > 0 ? static_cast<double>(bytes_read) / seconds : 0;
    }
};

/// A consumer that is busy elsewhere for a fixed time with each batch, as a GPU's training step is: the thread sleeps.
[[nodiscard]] inline std::function<void(const batch&)> timed_consumer(std::chrono::nanoseconds step) {
    return [step](const batch&) { std::this_thread::sleep_for(step); };
}

namespace detail {

/// Adds up what happened between two looks at a loader's statistics.
inline void add_difference(throughput& into, const epoch_statistics& from, const epoch_statistics& to) {
    into.samples += to.samples - from.samples;
    into.batches += to.batches - from.batches;
    into.bytes_read += to.bytes_read - from.bytes_read;
    into.bytes_built += to.bytes_built - from.bytes_built;
    into.cpu_ns += to.cpu_ns - from.cpu_ns;
    into.wait_ns += to.wait_ns - from.wait_ns;
    for (std::size_t i = 0; i < stage_count; ++i) {
        into.stage_ns[i] += to.stage_ns[i] - from.stage_ns[i];
        into.waited_for_ns[i] += to.waited_for_ns[i] - from.waited_for_ns[i];
    }
}

/// One run of measure_throughput.
class throughput_run {
public:
    throughput_run(data_loader& timed, const throughput_plan& how)
        : loader_(timed), how_(how), end_(now() + how.budget) {}

    throughput run() {
        do {
            if (how_.before_epoch) how_.before_epoch();
            epoch();
        } while (now() < end_ || out_.images_per_s.empty());
        return std::move(out_);
    }

private:
    using clock = std::chrono::steady_clock;
    static clock::time_point now() { return clock::now(); }
    static double seconds(clock::time_point from, clock::time_point to) {
        return std::chrono::duration<double>(to - from).count();
    }

    /// Batches in a window: workers finish in step, so a window must hold a whole number of rounds.
    std::size_t round() const { return std::max<std::size_t>(1, loader_.settings().num_workers); }

    void epoch() {
        loader_.begin_epoch(out_.epochs);
        std::size_t taken = 0;
        // The first epoch warms up over a round; in later ones only the first batch is not steady.
        const std::size_t skip = how_.whole_epochs || out_.epochs != 0 ? 1 : std::min(round(), loader_.batches() / 2);
        clock::time_point step_began = now();
        while (auto next = loader_.next()) {
            if (how_.consumer) how_.consumer(*next);
            next.reset();
            const clock::time_point at = now();
            ++taken;
            if (taken <= skip)
                open_window(at);
            else
                out_.step_ns.push_back(seconds(step_began, at) * 1e9);
            step_began = at;
            if (taken <= skip || how_.whole_epochs) continue;
            const bool full = (loader_.statistics().batches - window_.batches) % round() == 0;
            if (full && at - window_began_ >= how_.shortest_window) close_window(at);
            if (at >= end_ && !out_.images_per_s.empty()) break;
        }
        const epoch_statistics& all = loader_.statistics();
        // What is left is a window of its own only if there is no other, or if it is the whole epoch.
        if (all.samples > window_.samples && (how_.whole_epochs || out_.images_per_s.empty())) close_window(now());
        note_epoch(all);
    }

    void open_window(clock::time_point at) {
        window_ = loader_.statistics();
        window_began_ = at;
    }

    void close_window(clock::time_point at) {
        const double took = seconds(window_began_, at);
        const epoch_statistics& all = loader_.statistics();
        out_.images_per_s.push_back(static_cast<double>(all.samples - window_.samples) / took);
        out_.seconds += took;
        add_difference(out_, window_, all);
        open_window(at);
    }

    void note_epoch(const epoch_statistics& all) {
        if (out_.epochs == 0) {
            out_.epoch_start_ns = all.start_ns;
            out_.first_batch_ns = all.first_batch_ns;
        } else if (out_.epochs == 1) {
            out_.later_first_batch_ns = all.first_batch_ns;
        }
        out_.oriented += all.oriented;
        out_.failures.add(all.failures);
        ++out_.epochs;
    }

    data_loader& loader_;
    const throughput_plan& how_;
    clock::time_point end_;
    throughput out_;
    epoch_statistics window_;
    clock::time_point window_began_{};
};

} // namespace detail

/// Times a loader for about the budget, and for one window at least. A window is a whole number of rounds over the
/// workers. Throws what the loader throws.
[[nodiscard]] inline throughput measure_throughput(data_loader& timed, const throughput_plan& how) {
    return detail::throughput_run(timed, how).run();
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
