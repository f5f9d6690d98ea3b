// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_REPORT_TERMINAL_HPP
#define PLUMBLINE_REPORT_TERMINAL_HPP

#include <cstddef>

#include <sys/ioctl.h>
#include <unistd.h>

#include "plumbline/report/options.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace report {

/// Sets colour and width for the place a report is written to: a terminal gets colours (unless NO_COLOR) and lines of
/// its width; a file or a pipe, `fd` -1 included, gets neither colours nor wrapped lines.
inline void suit(options& how, int fd) {
    const bool is_terminal = fd >= 0 && ::isatty(fd) == 1;
    how.colour = wants_colour(is_terminal);
    how.width = 0;
    if (!is_terminal) return;
    struct winsize size {};
    // A terminal that does not know its width says 0: then the width of old.
    const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    how.width = known ? size.ws_col : std::size_t{80};
}

} // namespace report

PLUMBLINE_NAMESPACE_END

#endif
