// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_STORAGE_HPP
#define PLUMBLINE_ENVIRONMENT_STORAGE_HPP

#include <string>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// Where data files lie: type of the file system, and whether the disk below it turns. `path` is absolute; it is
/// never recorded itself. The longest mount point that is a prefix of the path wins.
inline void read_data_path(result::fingerprint& into, const host& machine, const std::string& path) {
    recorder out(into, "mountinfo");
    const text_file file = read_file(machine, "/proc/self/mountinfo");
    std::string best_point, type, device;
    for (const std::string& line : detail::split(file.text, '\n')) {
        const auto words = detail::split(line, ' ');
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 7 || words.end() - dash < 2) continue;
        const std::string& point = words[4];
        const bool inside = point == "/" || path == point || path.rfind(point + "/", 0) == 0;
        if (!inside || point.size() < best_point.size()) continue;
        best_point = point, type = dash[1], device = words[2];
    }
    if (!file.known() || best_point.empty()) {
        const auto why =
            file.known() ? result::reading::absent("/proc/self/mountinfo: no mount of this path") : file.why;
        out.config("data.file_system", 4, why);
        out.config("data.rotational", 4, why);
        return;
    }
    out.config("data.file_system", 4, result::reading::of(type));
    result::reading turns = read_integer(machine, "/sys/dev/block/" + device + "/queue/rotational");
    // A partition has no queue of its own: the disk is one folder up.
    if (!turns.known()) turns = read_integer(machine, "/sys/dev/block/" + device + "/../queue/rotational");
    out.config("data.rotational", 4, turns);
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
