// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_WORKLOAD_MODES_HPP
#define PLUMBLINE_WORKLOAD_MODES_HPP

#include <cstddef>
#include <string>
#include <string_view>

#include "plumbline/core/scalar.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace workload {

/// Which implementation of the library is timed.
enum class plan_choice {
    heuristic, ///< the library's own first choice, asked anew in each session (default)
    best,      ///< the fastest of the first 16 that the library offers
    pinned,    ///< one recorded in a baseline, replayed
};

/// How a benchmark is run, as far as its id says so. Shared by all families of kernels; what is default is not
/// written in the id.
struct modes {
    plan_choice plan = plan_choice::heuristic;
    bool hot = false;       ///< "hot": one set of buffers, so that the cache may hold them; default cold
    bool sustained = false; ///< "sustained": back to back for seconds; default burst
    bool stream = false;    ///< "stream": single launches; default a graph

    bool operator==(const modes&) const = default;
};

/// The suffix of an id that says these modes, each preceded by a slash, always in the same order; "" for defaults.
[[nodiscard]] inline std::string suffix(const modes& mode) {
    std::string text;
    if (mode.plan == plan_choice::best) text += "/best";
    if (mode.plan == plan_choice::pinned) text += "/pinned";
    if (mode.hot) text += "/hot";
    if (mode.sustained) text += "/sustained";
    if (mode.stream) text += "/stream";
    return text;
}

/// Takes one part of an id as a mode. False if it is none or contradicts one already set (twice the same, or best
/// and pinned together).
[[nodiscard]] inline bool set_mode(modes& mode, std::string_view part) {
    const auto turn_on = [](bool& flag) { return flag ? false : (flag = true); };
    const auto choose = [&mode](plan_choice plan) {
        if (mode.plan != plan_choice::heuristic) return false;
        mode.plan = plan;
        return true;
    };
    if (part == "best") return choose(plan_choice::best);
    if (part == "pinned") return choose(plan_choice::pinned);
    if (part == "hot") return turn_on(mode.hot);
    if (part == "sustained") return turn_on(mode.sustained);
    if (part == "stream") return turn_on(mode.stream);
    return false;
}

/// What an id says: the work, and the modes at its end.
struct split_id {
    std::string work;
    modes mode;
};

/// Takes the modes off an id: "gemm/.../best/hot" is "gemm/..." with plan best and hot. Parts that are no modes belong
/// to the work.
[[nodiscard]] inline split_id split_modes(std::string_view id) {
    split_id found{std::string(id), {}};
    for (std::size_t slash = id.rfind('/'); slash != std::string_view::npos; slash = id.rfind('/')) {
        if (!set_mode(found.mode, id.substr(slash + 1))) break;
        id = id.substr(0, slash);
    }
    found.work = std::string(id);
    return found;
}

/// The id of the same work in the same modes with another plan: "gemm/.../hot" with `best` is "gemm/.../best/hot".
[[nodiscard]] inline std::string with_plan(std::string_view id, plan_choice plan) {
    split_id parts = split_modes(id);
    parts.mode.plan = plan;
    return parts.work + suffix(parts.mode);
}

/// Adds the modes to the parameters that make up workload.hash.
inline void add_modes(scalar_map& params, const modes& mode) {
    params["plan"] = std::string(mode.plan == plan_choice::heuristic ? "heuristic"
                                 : mode.plan == plan_choice::best    ? "best"
                                                                     : "pinned");
    params["cache"] = std::string(mode.hot ? "hot" : "cold");
    params["regime"] = std::string(mode.sustained ? "sustained" : "burst");
    params["launch"] = std::string(mode.stream ? "stream" : "graph");
}

} // namespace workload

PLUMBLINE_NAMESPACE_END

#endif
