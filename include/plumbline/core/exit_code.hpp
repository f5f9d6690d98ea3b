// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_EXIT_CODE_HPP
#define PLUMBLINE_CORE_EXIT_CODE_HPP

#include <initializer_list>

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// The process exit codes of every plumbline program. Fixed for good; never a count.
enum class exit_code : int {
    ok = 0,            ///< nothing regressed; everything required was measured and valid
    regressed = 1,     ///< at least one regression
    usage = 2,         ///< usage or input error: bad flag, unreadable or invalid file, unknown schema
    incomparable = 3,  ///< nothing is comparable: other hardware, other workloads
    incomplete = 4,    ///< missing, failed, incomparable, invalid, suspicious, or nothing matched
    inconclusive = 5,  ///< inconclusive, only with --strict
    precondition = 6,  ///< precondition not met before measuring
    interrupted = 130, ///< SIGINT; what was measured is saved
    terminated = 143,  ///< SIGTERM; what was measured is saved
};

/// Of two exit codes the one a program must end with:
/// 130/143 > 2 > 6 > 3 > 1 > 4 > 5 > 0.
constexpr exit_code worse(exit_code a, exit_code b) noexcept {
    for (exit_code code : {exit_code::interrupted, exit_code::terminated, exit_code::usage, exit_code::precondition,
                           exit_code::incomparable, exit_code::regressed, exit_code::incomplete,
                           exit_code::inconclusive}) {
        if (a == code || b == code) return code;
    }
    return exit_code::ok;
}

PLUMBLINE_NAMESPACE_END

#endif
