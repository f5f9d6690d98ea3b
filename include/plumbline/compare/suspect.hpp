// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_SUSPECT_HPP
#define PLUMBLINE_COMPARE_SUSPECT_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/glob.hpp"
#include "plumbline/compare/knowledge.hpp"
#include "plumbline/compare/symptom.hpp"
#include "plumbline/environment/diff.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare::detail {

/// A component that changed, with what is known about it. `known` lives in the table.
struct suspect {
    std::string name;
    const knowledge* known = nullptr;
    std::vector<environment::difference> changes; ///< the telling one first
    std::optional<environment::difference> through;
};

[[nodiscard]] inline bool matches_any(const std::vector<std::string>& patterns, const std::string& text) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const auto& each) { return glob_matches(each, text); });
}

/// A reading as a number: false is 0, true is 1, a text that begins with a number is that ("32.0 GT/s PCIe").
[[nodiscard]] inline std::optional<double> number_of(const result::reading& read) {
    if (!read.known()) return std::nullopt;
    if (const auto* flag = std::get_if<bool>(&read.value)) return *flag ? 1 : 0;
    if (const auto* whole = std::get_if<std::int64_t>(&read.value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&read.value)) return *real;
    const std::string& text = std::get<std::string>(read.value);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || !std::isfinite(value)) return std::nullopt;
    return value;
}

/// Whether a change is one that the table speaks of: the right way, large enough, to the right value.
[[nodiscard]] inline bool counts(const environment::difference& change, const knowledge& known) {
    if (!known.to.empty() && !matches_any(known.to, lower_case(environment::describe(change.to)))) return false;
    const auto from = number_of(change.from), to = number_of(change.to);
    if (!from || !to) return known.way == turn::any || change.kind != result::attribute_class::state;
    const double moved = *to - *from;
    if (known.way == turn::up && moved <= 0) return false;
    if (known.way == turn::down && moved >= 0) return false;
    const double larger = std::max(std::abs(*from), std::abs(*to));
    if (*to < known.reaches) return false;
    return std::abs(moved) >= known.at_least && std::abs(moved) >= known.at_least_share * larger;
}

/// How large changes of numbers are, as ln of the ratio of old and new, the largest of them: halving and doubling are
/// both 0.69. Absent when one of them is not a positive number on both sides.
[[nodiscard]] inline std::optional<double> size_of(const std::vector<environment::difference>& changes) {
    std::optional<double> largest;
    for (const environment::difference& each : changes) {
        const auto from = number_of(each.from), to = number_of(each.to);
        if (!from || !to || *from <= 0 || *to <= 0) return std::nullopt;
        double size = std::abs(std::log(*to / *from));
        // Each generation of PCIe has twice the rate of the one before.
        if (each.name == "pcie.generation" || each.name == "pcie.max_generation")
            size = std::abs(*to - *from) * std::log(2.0);
        largest = std::max(largest.value_or(0), size);
    }
    return largest;
}

/// Pages of a process on each NUMA node, "N0=44998 N1=3", as the node with most of them and its share.
[[nodiscard]] inline std::pair<std::string, double> main_node(const std::string& pages) {
    std::map<std::string, double> count;
    double all = 0;
    for (std::size_t at = 0; at < pages.size();) {
        const std::size_t end = std::min(pages.find(' ', at), pages.size());
        const std::size_t equals = pages.find('=', at);
        if (equals < end) {
            const double value = std::strtod(pages.c_str() + equals + 1, nullptr);
            count[pages.substr(at, equals - at)] += value;
            all += value;
        }
        at = end + 1;
    }
    const auto most =
        std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == count.end() || all <= 0) return {};
    return {most->first, most->second / all};
}

/// Mechanisms that the environments themselves show. Readings of state are taken at the start of the first session.
[[nodiscard]] inline signs_seen read_machine(const std::vector<environment::difference>& changes,
                                             const canaries& canary) {
    signs_seen seen;
    if (canary.state == canary_state::slower) seen[mechanism::canary_slower] = canary.text;
    if (canary.memory.value_or(0) > 0 && canary.compute && *canary.compute == 0) {
        seen[mechanism::memory_slower] = "memory-bound canary " + percent_text(*canary.memory) + ", compute as before";
    }
    for (const environment::difference& d : changes) {
        if (!d.changed()) continue;
        const auto from = number_of(d.from), to = number_of(d.to);
        const double moved = from && to ? *to - *from : 0;
        const std::string text = d.name + " " + environment::describe(d.from) + " -> " + environment::describe(d.to);
        const auto sees = [&](bool it, mechanism what) {
            if (it) seen.emplace(what, text);
        };
        sees(d.name == "cpu.usable" && moved < 0, mechanism::processors_fewer);
        sees(d.name == "cgroup.throttled_periods" && moved >= 5, mechanism::quota_hit);
        sees(d.name == "cublas.tf32_effective" || d.name == "cublas.fp32_exact", mechanism::precision_changed);
        sees(d.name == "gpu.utilization_percent" && moved >= 10, mechanism::foreign_work);
        sees(d.name == "gpu.memory_used_bytes" && moved >= 4e9, mechanism::memory_held);
        sees(d.name == "load.pressure_cpu" && moved >= 20, mechanism::cpu_contention);
        sees(d.name == "load.pressure_memory" && moved >= 5, mechanism::memory_pressure);
        sees(d.name == "memory.swap_used_bytes" && moved >= 1e9, mechanism::memory_pressure);
        sees(d.name.rfind("pcie.", 0) == 0 && d.name != "pcie.replays" && moved < 0, mechanism::link_lower);
        // A corrected error is nothing rare and costs nothing; what had to be repaired is.
        const bool faults = d.name == "gpu.ecc_uncorrected" || d.name.rfind("gpu.row", 0) == 0;
        sees(faults && d.kind == result::attribute_class::state && moved > 0, mechanism::memory_faults);
        sees(d.name == "cuda.device_code" && lower_case(environment::describe(d.to)).find("ptx") != std::string::npos,
             mechanism::code_compiled_anew);
        if (d.name == "numa.pages") {
            const auto before = main_node(environment::describe(d.from)),
                       after = main_node(environment::describe(d.to));
            sees(before.first != after.first || before.second - after.second > 0.15, mechanism::pages_remote);
        }
    }
    return seen;
}

/// Where an attribute stands among those of its component: 0 is the most telling.
[[nodiscard]] inline std::size_t rank_of(const knowledge& known, const std::string& attribute) {
    const auto at = std::find_if(known.attributes.begin(), known.attributes.end(),
                                 [&](const auto& each) { return glob_matches(each, attribute); });
    return static_cast<std::size_t>(at - known.attributes.begin());
}

/// The first entry that speaks of an attribute; null when none does.
[[nodiscard]] inline const knowledge* find_knowledge(const std::vector<knowledge>& table, const std::string& attribute,
                                                     const std::string& backend) {
    for (const knowledge& each : table) {
        const bool here = each.backend.empty() || backend.empty() || each.backend == backend;
        if (here && matches_any(each.attributes, attribute)) return &each;
    }
    return nullptr;
}

/// "lib.libcudnn" of "lib.libcudnn.path"; empty for what is no library's path.
[[nodiscard]] inline std::string library_of_path(const std::string& attribute) {
    const std::string ending = ".path";
    if (attribute.rfind("lib.", 0) != 0 || attribute.size() <= ending.size()) return {};
    const std::size_t end = attribute.size() - ending.size();
    return attribute.compare(end, ending.size(), ending) == 0 ? attribute.substr(0, end) : std::string();
}

/// Whether an attribute says no more than where a library lies that is the same build in both environments.
[[nodiscard]] inline bool is_mere_move(const std::string& attribute, const result::fingerprint& base,
                                       const result::fingerprint& candidate) {
    const std::string library = library_of_path(attribute);
    if (library.empty()) return false;
    const result::attribute *before = base.find(library + ".build_id"), *after = candidate.find(library + ".build_id");
    return before != nullptr && after != nullptr && before->read.known() && before->read == after->read;
}

/// Whether the list of mapped libraries was taken in an environment.
[[nodiscard]] inline bool lists_libraries(const result::fingerprint& environment) {
    const result::attribute* captured = environment.find("process.libraries_captured");
    return captured != nullptr && captured->read.known();
}

/// Everything that changed and is known or unknown to matter, by component. Where both environments list their mapped
/// libraries, a variable that says where to look for them is no suspect of its own: it does nothing but bring another
/// library in, which is then seen.
[[nodiscard]] inline std::vector<suspect> find_suspects(const std::vector<environment::difference>& changes,
                                                        const std::vector<knowledge>& table, const std::string& backend,
                                                        const signs_seen& machine, const result::fingerprint& base,
                                                        const result::fingerprint& candidate) {
    std::vector<suspect> found;
    const bool libraries_known = lists_libraries(base) && lists_libraries(candidate);
    std::optional<environment::difference> loader;
    for (const environment::difference& d : changes) {
        if (d.changed() && d.name == "env.LD_LIBRARY_PATH") loader = d;
    }
    for (const environment::difference& d : changes) {
        if (!d.changed() || d.kind == result::attribute_class::identity) continue;
        const bool searches = d.name == "env.LD_LIBRARY_PATH" || d.name == "env.CUDNN_PATH";
        if ((searches && libraries_known) || is_mere_move(d.name, base, candidate)) continue;
        const knowledge* known = find_knowledge(table, d.name, backend);
        if (known == nullptr || !counts(d, *known)) continue;
        // State differs at every reading: only what the table names is worth a suspicion.
        const bool general = matches_any(known->attributes, "?");
        if (d.kind == result::attribute_class::state && general) continue;
        if (d.name == "numa.pages" && machine.count(mechanism::pages_remote) == 0) continue;
        const std::string name = known->component.empty() ? d.name : known->component;
        auto at = std::find_if(found.begin(), found.end(), [&](const suspect& each) { return each.name == name; });
        if (at == found.end()) at = found.insert(found.end(), suspect{name, known, {}, {}});
        at->changes.push_back(d);
        if (loader && !library_of_path(d.name).empty()) at->through = loader;
    }
    for (suspect& each : found) {
        std::stable_sort(each.changes.begin(), each.changes.end(), [&](const auto& a, const auto& b) {
            return rank_of(*each.known, a.name) < rank_of(*each.known, b.name);
        });
    }
    return found;
}

} // namespace compare::detail

PLUMBLINE_NAMESPACE_END

#endif
