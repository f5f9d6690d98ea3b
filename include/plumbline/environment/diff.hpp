// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_DIFF_HPP
#define PLUMBLINE_ENVIRONMENT_DIFF_HPP

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// How an attribute differs between two environments.
enum class difference_kind {
    changed,        ///< read in both, or set, unset, loaded or not loaded in a complete list: may explain something
    became_known,   ///< could be read only in the candidate: never a change
    became_unknown, ///< could be read only in the base: never a change
};

/// One attribute that is not the same in two environments.
struct difference {
    std::string name; ///< "driver.version", "env.NVIDIA_TF32_OVERRIDE"
    int link = 1;     ///< link of the chain, 1 to 6 (result::attribute::link)
    result::attribute_class kind = result::attribute_class::config;
    std::string source; ///< where it was read
    difference_kind how = difference_kind::changed;
    result::reading from; ///< in the base
    result::reading to;   ///< in the candidate

    [[nodiscard]] bool changed() const noexcept { return how == difference_kind::changed; }
};

/// A reading for people: its value in quotes where it is text, "not set", or the reason why it is unknown.
[[nodiscard]] inline std::string describe(const result::reading& read) {
    switch (read.status) {
    case result::reading_status::value:
        return plumbline::to_string(read.value);
    case result::reading_status::absent:
        return read.reason.empty() ? "absent" : read.reason;
    case result::reading_status::denied:
        return "denied: " + read.reason;
    case result::reading_status::unsupported:
        return "unsupported: " + read.reason;
    }
    return {};
}

namespace detail {

/// Whether absence from the fingerprint is knowledge: variables and mapped libraries are complete lists where
/// their list was taken at all, so an entry that is missing from one is known to be unset or not loaded.
[[nodiscard]] inline const char* missing_from_list(const result::fingerprint& environment, const std::string& name) {
    const auto taken = [&](const char* marker) {
        const auto* entry = environment.find(marker);
        return entry != nullptr && entry->read.known();
    };
    if (name.rfind("env.", 0) == 0 && taken("process.variables_captured")) return "not set";
    if (name.rfind("lib.", 0) == 0 && taken("process.libraries_captured")) return "not loaded";
    return nullptr;
}

} // namespace detail

/// What differs between two environments: identity first, then configuration, then state; by link, then by name;
/// in each class real changes before attributes that were merely unreadable on one side.
[[nodiscard]] inline std::vector<difference> diff(const result::fingerprint& base,
                                                  const result::fingerprint& candidate) {
    std::vector<difference> found;
    const auto visit = [&](const std::string& name, const result::attribute* b, const result::attribute* c) {
        const result::attribute& any = c != nullptr ? *c : *b;
        difference d{name, any.link, any.kind, any.source, difference_kind::changed, {}, {}};
        const auto side = [&](const result::attribute* entry, const result::fingerprint& all, result::reading& into) {
            if (entry != nullptr) {
                into = entry->read;
                return entry->read.known();
            }
            const char* listed = detail::missing_from_list(all, name);
            into = result::reading::absent(listed != nullptr ? listed : "not recorded");
            return listed != nullptr;
        };
        const bool known_before = side(b, base, d.from);
        const bool known_after = side(c, candidate, d.to);
        if (!known_before && !known_after) return; // two reasons for not knowing are no difference of the machine
        if (known_before && known_after && d.from == d.to) return;
        if (!known_before) d.how = difference_kind::became_known;
        if (!known_after) d.how = difference_kind::became_unknown;
        found.push_back(std::move(d));
    };
    for (const auto& [name, entry] : base.attributes) visit(name, &entry, candidate.find(name));
    for (const auto& [name, entry] : candidate.attributes) {
        if (base.find(name) == nullptr) visit(name, nullptr, &entry);
    }
    std::sort(found.begin(), found.end(), [](const difference& a, const difference& b) {
        return std::tuple(a.kind, a.how, a.link, a.name) < std::tuple(b.kind, b.how, b.link, b.name);
    });
    return found;
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
