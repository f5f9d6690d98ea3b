// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_LOADER_FAMILY_HPP
#define PLUMBLINE_LOADER_FAMILY_HPP

// The benchmarks `dataloader/...` for any backend:
//
//     loader::family_settings<cpu::backend> settings;
//     settings.data.jpeg = loader::jpeg_data("", loader::cache_folder(), 8); // with libjpeg-turbo;
//     loader/jpeg/data.hpp catalogue.push_back(loader::family(std::move(settings)));

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/environment/collect.hpp"
#include "plumbline/loader/inputs.hpp"
#include "plumbline/loader/procedure.hpp"
#include "plumbline/measure/benchmark.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace loader {

/// What a program hands to the family. What is left empty makes the benchmarks that need it skipped, with the reason.
template <class B>
struct family_settings {
    environment::host machine = environment::this_machine_without_gpus();
    inputs data = default_inputs();
    /// Pinned ring and copy to the device; empty: the ring is locked in memory and there is no copy.
    std::function<transfer(B&)> pinned;
    /// The id of the training step of the backend that consumes the batches of `/train`: part of workload.hash.
    std::function<std::string(const workload::dataloader::params&)> trained;
    /// Makes that step for batches of `batch` images, `size` squared, of `type` in layout `order`. Called once for each
    /// benchmark, untimed.
    std::function<training_consumer(B&, const workload::dataloader::params&)> training_step;
};

namespace detail {

/// What the benchmarks of a family share in a process: opened data and sweeps, by the id of what they depend on.
template <class B>
class family_state {
public:
    explicit family_state(family_settings<B> settings) : settings_(std::move(settings)) {}

    [[nodiscard]] const data_provider& provider(workload::dataloader::source from) const {
        const data_provider& found = from == workload::dataloader::source::jpeg  ? settings_.data.jpeg
                                     : from == workload::dataloader::source::raw ? settings_.data.raw
                                                                                 : settings_.data.memory;
        return found;
    }

    [[nodiscard]] measure::procedure_result measure(B& on, const workload::dataloader::params& what,
                                                    const measure::budget& time) {
        loader_case one;
        one.what = what;
        one.machine = &settings_.machine;
        const bool jpeg_missing = what.from == workload::dataloader::source::jpeg && !settings_.data.jpeg.open;
        if (jpeg_missing) {
            throw unsupported_error("this program was built without libjpeg-turbo; install it (Debian and Ubuntu: "
                                    "apt-get install libjpeg-dev), configure and build again");
        }
        data_set& data = opened(what);
        one.data = &data;
        if (what.pinned) {
            one.make_transfer = [&] { return settings_.pinned ? settings_.pinned(on) : transfer{locked_memory(), {}}; };
        }
        if (what.step_ms != 0) one.consumer = timed_consumer(std::chrono::milliseconds(what.step_ms));
        if (what.train) {
            if (!settings_.training_step) throw unsupported_error("this backend offers no training step as a consumer");
            training_consumer made = settings_.training_step(on, what);
            one.consumer = std::move(made.step);
            one.finish = std::move(made.finish);
        }
        return measure_loader(one, time, sweeps_[sweep_key(what)]);
    }

    [[nodiscard]] std::string trained(const workload::dataloader::params& what) const {
        return what.train && settings_.trained ? settings_.trained(what) : std::string();
    }

private:
    [[nodiscard]] data_set& opened(const workload::dataloader::params& what) {
        const augmentation how = augmentation_of(what);
        const std::string key = std::to_string(static_cast<int>(what.from)) + '/' +
                                std::to_string(static_cast<int>(how.type)) + '/' +
                                std::to_string(static_cast<int>(how.layout)) + '/' + std::to_string(how.size);
        // What could not be made once is not tried again by every benchmark over it: a full disk stays full.
        if (const auto failed = failed_.find(what.from); failed != failed_.end()) throw failed->second;
        auto& slot = data_[key];
        try {
            if (!slot) slot = std::make_unique<data_set>(provider(what.from).open(how));
        } catch (const file_error& problem) {
            failed_.emplace(what.from, problem);
            throw;
        }
        return *slot;
    }

    /// A sweep depends on everything but the number of workers and the prefetch factor.
    static std::string sweep_key(workload::dataloader::params what) {
        what.workers = {};
        what.prefetch = 1;
        return workload::dataloader::id(what);
    }

    family_settings<B> settings_;
    std::map<std::string, std::unique_ptr<data_set>> data_;
    std::map<workload::dataloader::source, file_error> failed_;
    std::map<std::string, std::optional<recommendation>> sweeps_;
};

} // namespace detail

/// The family `dataloader`. Data are named when a benchmark is made (file_error if the user's are not there) and
/// opened, or generated, when the first benchmark over them runs.
template <class B>
[[nodiscard]] measure::family<B> family(family_settings<B> settings) {
    const auto shared = std::make_shared<detail::family_state<B>>(std::move(settings));
    measure::family<B> made;
    made.name = "dataloader";
    made.make = [shared](const std::string& id) {
        workload::dataloader::params what = workload::dataloader::parse(id);
        if (const auto& identity = shared->provider(what.from).identity) what.data = identity();
        what.trained = shared->trained(what);
        measure::benchmark<B> one;
        one.what = describe(what);
        one.how = measure::regime::sustained;
        one.measure = [shared, what](B& on, const measure::budget& time) { return shared->measure(on, what, time); };
        return one;
    };
    made.prepare = [shared](const std::vector<std::string>& ids, const measure::listener& to) {
        std::set<workload::dataloader::source> needed;
        for (const std::string& id : ids) needed.insert(workload::dataloader::parse(id).from);
        for (const workload::dataloader::source each : needed) {
            if (const auto& prepare = shared->provider(each).prepare) prepare(to);
        }
    };
    return made;
}

} // namespace loader

PLUMBLINE_NAMESPACE_END

#endif
