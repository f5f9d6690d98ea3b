// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_SCHEDULE_HPP
#define PLUMBLINE_RUN_SCHEDULE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// Shuffles ids by a seed alone: the same seed gives the same order with every standard library, which
/// std::shuffle does not promise. Fisher-Yates over mt19937_64 with rejection, so that no order is favoured.
[[nodiscard]] inline std::vector<std::string> shuffled(std::vector<std::string> ids, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t left = ids.size(); left > 1; --left) {
        const std::uint64_t limit = random.max() - random.max() % left;
        std::uint64_t drawn = random();
        while (drawn >= limit) drawn = random();
        std::swap(ids[left - 1], ids[drawn % left]);
    }
    return ids;
}

/// Which benchmarks the next session runs. Every benchmark is owed `sessions` sessions; one that has ended two
/// session processes (by a crash or a hang) is given up, so that it cannot take the others with it.
class schedule {
public:
    static constexpr std::size_t deaths_allowed = 2;

    schedule() = default; ///< nothing to do

    /// `done` says in how many sessions an id was measured already (--resume).
    schedule(const std::vector<std::string>& ids, std::size_t sessions, const std::map<std::string, std::size_t>& done)
        : ids_(ids) {
        for (const std::string& id : ids) {
            const auto at = done.find(id);
            const std::size_t had = at == done.end() ? 0 : at->second;
            owed_[id] = had >= sessions ? 0 : sessions - had;
        }
    }

    /// The benchmarks of the next session, in the suite's order: those that are owed most come in every session that
    /// is left, the others as often as they are owed. Empty when all is done.
    [[nodiscard]] std::vector<std::string> next() const {
        std::vector<std::string> todo;
        for (const std::string& id : ids_) {
            if (owed_.at(id) > 0) todo.push_back(id);
        }
        return todo;
    }

    /// Sessions that are left when nothing dies.
    [[nodiscard]] std::size_t sessions_left() const {
        std::size_t most = 0;
        for (const auto& entry : owed_) most = std::max(most, entry.second);
        return most;
    }

    /// Sessions each benchmark is still owed.
    [[nodiscard]] const std::map<std::string, std::size_t>& owed() const noexcept { return owed_; }

    /// Benchmark runs that are left when nothing dies.
    [[nodiscard]] std::size_t runs_left() const {
        std::size_t sum = 0;
        for (const auto& entry : owed_) sum += entry.second;
        return sum;
    }

    /// The benchmark has given an answer (ok, failed or, with `skipped`, that it cannot run here at all).
    void answered(const std::string& id, bool skipped) {
        const auto at = owed_.find(id);
        if (at == owed_.end() || at->second == 0) return;
        at->second = skipped ? 0 : at->second - 1;
    }

    /// The session process ended while it ran this benchmark. True when the benchmark is given up by that.
    bool died(const std::string& id) {
        if (owed_.find(id) == owed_.end() || ++deaths_[id] < deaths_allowed) return false;
        owed_[id] = 0;
        return true;
    }

private:
    std::vector<std::string> ids_;
    std::map<std::string, std::size_t> owed_;
    std::map<std::string, std::size_t> deaths_;
};

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
