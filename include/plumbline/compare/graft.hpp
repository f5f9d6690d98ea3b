// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_GRAFT_HPP
#define PLUMBLINE_COMPARE_GRAFT_HPP

#include <cstddef>
#include <map>

#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

namespace detail {

/// Brings sessions of one baseline into another, each once, and remembers where they went.
class session_mover {
public:
    session_mover(result::baseline& into, const result::baseline& from) : into_(&into), from_(&from) {}

    /// Index in the target of session `index` of the source.
    [[nodiscard]] std::size_t move(std::size_t index) {
        const auto [at, added] = moved_.try_emplace(index, into_->sessions.size());
        if (added) into_->sessions.push_back(from_->sessions[index]);
        return at->second;
    }

    /// A copy of a result of the source whose sessions are those of the target.
    [[nodiscard]] result::result move(result::result what) {
        for (auto& s : what.sessions) s.session = move(s.session);
        return what;
    }

private:
    result::baseline* into_;
    const result::baseline* from_;
    std::map<std::size_t, std::size_t> moved_;
};

} // namespace detail

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
