// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_PROCEDURE_HPP
#define PLUMBLINE_LOADER_PROCEDURE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/environment/cgroup.hpp"
#include "plumbline/loader/data_set.hpp"
#include "plumbline/loader/limits.hpp"
#include "plumbline/loader/memory.hpp"
#include "plumbline/loader/page_cache.hpp"
#include "plumbline/loader/reference.hpp"
#include "plumbline/loader/sweep.hpp"
#include "plumbline/loader/throughput.hpp"
#include "plumbline/measure/benchmark.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// A consumer that trains. Empty functions are not called.
struct training_consumer {
    /// Trains on a batch: batch::device() where the benchmark is pinned and there is a device, else batch::host().
    /// Comes back when the step is over: then the batch's memory is written again, and what is left of the time is the
    /// wait for the loader.
    std::function<void(const batch&)> step;
    /// After the last step: adds readings of the training. Throws verification_error when it was none.
    std::function<void(scalar_map& state)> finish;
};

/// Everything one measurement of a loader needs.
struct loader_case {
    workload::dataloader::params what;
    const data_set* data = nullptr;
    const environment::host* machine = nullptr;
    std::function<transfer()> make_transfer;    ///< called once for each loader; empty: ordinary memory
    std::function<void(const batch&)> consumer; ///< empty: takes batches as fast as they come
    std::function<void(scalar_map&)> finish;    ///< of the consumer, see training_consumer; may be empty
    std::uint64_t seed = 1;
};

/// The augmentation that parameters ask for.
[[nodiscard]] inline augmentation augmentation_of(const workload::dataloader::params& p) {
    augmentation how;
    how.size = p.size;
    how.type = p.type;
    how.layout = p.order;
    return how;
}

/// The loader's options for a number of workers. An epoch is long enough not to end within a measurement, except
/// with a cold cache, where each epoch reads every file once.
[[nodiscard]] inline options options_of(const loader_case& one, std::size_t workers, std::size_t prefetch) {
    options how;
    how.num_workers = workers;
    how.prefetch_factor = prefetch;
    how.batch_size = one.what.batch;
    how.in_order = one.what.ordered;
    how.drop_last = true;
    how.seed = one.seed;
    const std::size_t round = how.batch_size * std::max<std::size_t>(workers, 1);
    how.epoch_samples = one.what.cold ? std::max(one.data->all.samples, how.batch_size) : 64 * round;
    return how;
}

/// Checks the transform of the first samples that can be loaded (at most two, of sixteen tried) against the float64
/// reference: verification_error beyond 2 levels of 255 (mean). Returns how many were checked.
inline std::size_t verify_transform(const pipeline& all, const augmentation& how, std::uint64_t seed) {
    const stages own = all.make();
    std::vector<std::byte> sample(all.sample_bytes);
    work unit;
    std::size_t checked = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(all.samples, 16) && checked < 2; ++i) {
        unit.sample = i;
        unit.random = sample_random(seed, 0, i);
        try {
            own.read(unit);
            if (own.decode) own.decode(unit);
            if (unit.pixels.reduction != 1) continue;                 // the reference wants every pixel
            std::fill(sample.begin(), sample.end(), std::byte{0xff}); // reads as not-a-number in both types
            own.transform(unit, sample.data());
        } catch (const sample_error&) {
            continue;
        }
        const auto expected = reference_levels(unit.pixels, unit.box, unit.flipped, how.size);
        const double off = mean_difference(levels_of(sample.data(), how), expected);
        if (!(off <= 2)) {
            throw verification_error("sample " + std::to_string(i) + " is off by " + std::to_string(off) +
                                         " levels (mean), 2 are allowed",
                                     off, off / 255, i);
        }
        ++checked;
    }
    return checked;
}

/// The demand of a case with a number of workers.
[[nodiscard]] inline demand demand_of(const loader_case& one, std::size_t workers, std::size_t prefetch,
                                      bool driver_pins) {
    demand asks;
    asks.workers = workers;
    asks.ring_bytes = (std::max<std::size_t>(workers * prefetch, 1) + 2) * one.what.batch * one.data->all.sample_bytes;
    asks.data_bytes = one.data->bytes;
    asks.pinned = one.what.pinned && !driver_pins;
    asks.cold = one.what.cold;
    return asks;
}

/// Refuses what would not leave half of the memory to everybody else: unsupported_error.
inline void check_memory(const machine_limits& has, const demand& asks) {
    const auto ring = static_cast<std::int64_t>(asks.ring_bytes);
    if (!has.available_bytes || ring <= *has.available_bytes / 2) return;
    throw unsupported_error(std::to_string(asks.workers) + " workers need " + detail::mebibytes(ring) +
                            " for the batches in flight, more than half of the " +
                            detail::mebibytes(*has.available_bytes) +
                            " of memory available; ask for fewer workers or smaller batches (wNpM, bN in the id)");
}

namespace detail {

/// Times one loader.
inline throughput run_loader(const loader_case& one, const machine_limits& has, std::size_t workers,
                             std::size_t prefetch, std::chrono::nanoseconds budget) {
    check_memory(has, demand_of(one, workers, prefetch, false));
    const transfer way = one.make_transfer ? one.make_transfer() : transfer{};
    data_loader timed(one.data->all, options_of(one, workers, prefetch), way.memory, way.copy);
    throughput_plan plan;
    plan.budget = budget;
    plan.consumer = one.consumer;
    plan.whole_epochs = one.what.cold;
    if (one.what.cold) plan.before_epoch = [&one] { drop_from_page_cache(one.data->files); };
    return measure_throughput(timed, plan);
}

/// Brings the page cache into the state the benchmark asks for and returns the share that is cached then.
inline double prepare_cache(const loader_case& one) {
    if (!one.what.cold) {
        read_into_page_cache(one.data->files);
        return resident_share(one.data->files);
    }
    if (one.data->files.empty()) throw unsupported_error("nothing is read from files, so no cache can be cold");
    drop_from_page_cache(one.data->files);
    const double left = resident_share(one.data->files);
    if (left <= 0.05) return left;
    throw unsupported_error("the page cache keeps " + short_number(100 * left) + " % of " +
                            one.data->files.front().parent_path().string() +
                            " although told to drop it; a cold cache cannot be measured on this file system");
}

inline void note_stages(scalar_map& state, const throughput& seen) {
    const double images = static_cast<double>(std::max<std::size_t>(seen.samples, 1));
    for (std::size_t i = 0; i < stage_count; ++i) {
        const std::string stage_name = name(static_cast<stage>(i));
        state[stage_name + "_us_per_image"] = seen.stage_ns[i] * 1e-3 / images;
        state["waiting_for_" + stage_name + "_share"] =
            seen.seconds > 0 ? seen.waited_for_ns[i] * 1e-9 / seen.seconds : 0;
    }
}

inline scalar_map state_of(const throughput& seen, std::size_t workers, std::size_t prefetch) {
    scalar_map state;
    state["workers"] = static_cast<std::int64_t>(workers);
    state["prefetch"] = static_cast<std::int64_t>(prefetch);
    state["images_per_s"] = seen.rate();
    state["read_mb_per_s"] = seen.read_bytes_per_s() * 1e-6;
    state["built_mb_per_s"] = seen.seconds > 0 ? static_cast<double>(seen.bytes_built) * 1e-6 / seen.seconds : 0;
    state["cpu_us_per_image"] = seen.cpu_ns_per_image() * 1e-3;
    state["waiting_share"] = seen.waiting_share();
    state["consumer_ms"] = seen.consumer_ns() * 1e-6;
    state["epoch_start_ms"] = seen.epoch_start_ns * 1e-6;
    state["first_batch_ms"] = seen.first_batch_ns * 1e-6;
    if (seen.epochs > 1) state["later_first_batch_ms"] = seen.later_first_batch_ns * 1e-6;
    state["failed_samples"] = static_cast<std::int64_t>(seen.failures.total());
    if (seen.failures.total() != 0) state["failures"] = seen.failures.text();
    state["oriented_samples"] = static_cast<std::int64_t>(seen.oriented);
    note_stages(state, seen);
    return state;
}

/// Limits that showed during a measurement: stopped by the quota, or CPUs shared with something else.
inline std::vector<limit> limits_seen(const throughput& seen, const std::optional<environment::cpu_throttling>& before,
                                      const std::optional<environment::cpu_throttling>& after) {
    std::vector<limit> limits;
    if (before && after && after->throttled > before->throttled) {
        limits.push_back({"throttled", "the CPU quota stopped the process in " +
                                           std::to_string(after->throttled - before->throttled) +
                                           " periods during the measurement"});
    }
    if (seen.cpu_share() < contended) {
        limits.push_back({"cpu_contention", "workers with work to do had a CPU for only " +
                                                short_number(100 * seen.cpu_share()) +
                                                " % of the time: other processes, or fewer CPUs than workers"});
    }
    return limits;
}

inline void note_limits(scalar_map& state, const std::vector<limit>& limits, const machine_limits& has) {
    state["usable_cpus"] = has.usable_cpus;
    for (const limit& one : limits) state["limit_" + one.name] = one.text;
}

inline void note_recommendation(scalar_map& state, const recommendation& found) {
    state["curve"] = found.curve_text();
    state["recommended_workers"] = static_cast<std::int64_t>(found.num_workers);
    state["recommended_prefetch"] = static_cast<std::int64_t>(found.prefetch_factor);
    state["recommended_pin_memory"] = found.pin_memory;
    state["recommended_because"] = found.reason;
}

/// The recommendation that note_recommendation() wrote, without its limits; empty if there is none.
[[nodiscard]] inline std::optional<recommendation> noted_recommendation(const scalar_map& state) {
    const auto value = [&state]<class T>(const char* name, T) -> const T* {
        const auto at = state.find(name);
        return at == state.end() ? nullptr : std::get_if<T>(&at->second);
    };
    const auto* curve = value("curve", std::string());
    const auto* workers = value("recommended_workers", std::int64_t{});
    const auto* prefetch = value("recommended_prefetch", std::int64_t{});
    const auto* pin = value("recommended_pin_memory", bool{});
    const auto* because = value("recommended_because", std::string());
    if (curve == nullptr || workers == nullptr || prefetch == nullptr || pin == nullptr || because == nullptr)
        return {};
    if (*workers < 1 || *prefetch < 1) return {};
    recommendation found;
    found.num_workers = static_cast<std::size_t>(*workers);
    found.prefetch_factor = static_cast<std::size_t>(*prefetch);
    found.pin_memory = *pin;
    found.reason = *because;
    std::istringstream points(*curve);
    sweep_point at;
    for (char colon = 0; points >> at.workers >> colon >> at.images_per_s;) found.curve.push_back(at);
    return found;
}

} // namespace detail

/// Sweeps the number of workers, each for `each`, and recommends.
[[nodiscard]] inline recommendation recommend_for(const loader_case& one, const machine_limits& has,
                                                  std::chrono::nanoseconds each, bool device) {
    const auto rate = [&](std::size_t workers, std::size_t prefetch) {
        const throughput seen = detail::run_loader(one, has, workers, prefetch, each);
        return sweep_point{workers, prefetch, seen.rate(), seen.cpu_ns_per_image(), seen.cpu_share()};
    };
    const auto all = static_cast<std::size_t>(has.usable_cpus);
    return sweep(rate, has, demand_of(one, all, 2, device), device);
}

/// The number of workers that parameters ask for on this machine. `best` looks at `found`, which must be there then.
[[nodiscard]] inline std::size_t resolve(const workload::dataloader::worker_count& asked, const machine_limits& has,
                                         const std::optional<recommendation>& found) {
    using rule = workload::dataloader::worker_count::rule;
    const auto all = static_cast<std::size_t>(has.usable_cpus);
    switch (asked.kind) {
    case rule::half:
        return std::max<std::size_t>(1, all / 2);
    case rule::all:
        return all;
    case rule::best:
        if (found) return found->num_workers;
        throw usage_error("the best number of workers is known only after a sweep");
    case rule::number:
        break;
    }
    return asked.number;
}

/// Measures one DataLoader benchmark: the sweep first if the best number of workers is asked for. `sweep_done` keeps
/// a sweep for the next benchmark over the same data, `time.earlier` one of an earlier session. Everything that is not
/// the metric is in its state.
[[nodiscard]] inline measure::procedure_result measure_loader(const loader_case& one, const measure::budget& time,
                                                              std::optional<recommendation>& sweep_done) {
    measure::procedure_result out;
    const augmentation how = augmentation_of(one.what);
    const double resident = detail::prepare_cache(one);
    out.verified = verify_transform(one.data->all, how, one.seed) != 0;
    const std::string folder =
        one.data->files.empty() ? std::string() : std::filesystem::absolute(one.data->files.front()).string();
    const machine_limits has = read_limits(*one.machine, folder);
    const bool device = one.make_transfer && static_cast<bool>(one.make_transfer().copy);
    if (one.what.workers.kind == workload::dataloader::worker_count::rule::best && !sweep_done) {
        // One sweep a run: its sessions are compared, so they use the same number of workers.
        sweep_done = detail::noted_recommendation(time.earlier);
        if (!sweep_done) sweep_done = recommend_for(one, has, time.total / 4, device);
    }
    const std::size_t workers = resolve(one.what.workers, has, sweep_done);
    const auto throttled_before = environment::read_throttling(*one.machine);
    const throughput seen = detail::run_loader(one, has, workers, one.what.prefetch, time.total);
    const auto throttled_after = environment::read_throttling(*one.machine);

    measure::metric figure;
    const workload::description what = describe(one.what);
    figure.name = what.metric;
    figure.unit = what.unit;
    figure.better = what.better;
    figure.samples = what.metric == "time" ? seen.step_ns : seen.images_per_s;
    figure.state = detail::state_of(seen, workers, one.what.prefetch);
    std::vector<limit> limits = detail::limits_seen(seen, throttled_before, throttled_after);
    const std::vector<limit> standing = name_limits(has, demand_of(one, workers, one.what.prefetch, device));
    limits.insert(limits.end(), standing.begin(), standing.end());
    detail::note_limits(figure.state, limits, has);
    if (sweep_done) detail::note_recommendation(figure.state, *sweep_done);
    if (!one.data->files.empty()) {
        figure.state["cached_share_before"] = resident;
        figure.state["data_path"] = one.data->place.string();
    }
    if (one.finish) one.finish(figure.state);
    out.hot = one.what.train;
    out.metrics.push_back(std::move(figure));
    out.ran.implementation = one.data->decoder + '/' + best_kernels().name;
    out.ran.parts = {{"decoder", one.data->decoder}, {"pixel_kernels", std::string(best_kernels().name)}};
    return out;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
