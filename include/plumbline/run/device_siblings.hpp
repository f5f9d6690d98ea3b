// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_DEVICE_SIBLINGS_HPP
#define PLUMBLINE_RUN_DEVICE_SIBLINGS_HPP

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/compare/siblings.hpp"
#include "plumbline/report/format.hpp"
#include "plumbline/run/context.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

namespace detail {

/// The remark about one group of devices of the same hardware.
inline void tell_ranking(progress& remarks, const compare::ranking& found) {
    const std::size_t count = found.machines.size();
    if (count < 2) return;
    const auto line = [&](const compare::sibling& each) {
        std::string text = each.name + ": cost " + report::signed_percent(each.ratio - 1) + " against its " +
                           report::counted(count - 1, "sibling") + " over " + report::counted(each.pairs, "result");
        if (!each.outstanding.empty()) {
            const auto& [id, ratio] = each.outstanding.front();
            text += "; most: " + id + " " + report::signed_percent(ratio - 1);
        }
        return text;
    };
    if (count == 2) {
        remarks.note("two devices: " + line(found.machines.back()) + "; nobody can say which of two is the odd one");
        return;
    }
    std::size_t odd = 0;
    for (const compare::sibling& each : found.machines) {
        if (!each.odd && each.outstanding.empty()) continue;
        ++odd;
        remarks.warn((each.odd ? "the odd one of " : "stands apart in some results, of ") + std::to_string(count) +
                     " devices, " + line(each));
    }
    if (odd == 0) remarks.note(std::to_string(count) + " devices, none stands apart from the others");
}

} // namespace detail

/// Says which of several devices, each judged by its own numbers, stands apart from the others of its hardware. The
/// exit code is that of the devices themselves: bench-compare --siblings makes one of it.
inline void tell_siblings(progress& remarks, std::vector<finished_device> devices) {
    while (devices.size() > 1) {
        std::vector<std::pair<std::string, result::baseline>> others;
        for (std::size_t i = 1; i < devices.size(); ++i) others.emplace_back(devices[i].name, devices[i].measured);
        const compare::ranking found = compare::rank_siblings(others, {devices[0].name, devices[0].measured});
        detail::tell_ranking(remarks, found);
        // What is of other hardware is ranked by itself.
        const auto left_out = [&](const finished_device& each) {
            return std::any_of(found.left_out.begin(), found.left_out.end(),
                               [&](const auto& other) { return other.first == each.name; });
        };
        const std::string first = devices[0].name;
        devices.erase(std::remove_if(devices.begin(), devices.end(),
                                     [&](const auto& each) { return each.name == first || !left_out(each); }),
                      devices.end());
    }
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
