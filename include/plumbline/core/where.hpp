// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_CORE_WHERE_HPP
#define PLUMBLINE_CORE_WHERE_HPP

#include "plumbline/version.hpp"

PLUMBLINE_NAMESPACE_BEGIN

/// A call site: file and line of the code that called a function whose last parameter is
/// `where at = where::here()`. Stands in for std::source_location, which clang 14 does not have.
struct where {
    const char* file = "";
    int line = 0;

    static constexpr where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
        return where{file, line};
    }
};

PLUMBLINE_NAMESPACE_END

#endif
