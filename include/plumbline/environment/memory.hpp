// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_MEMORY_HPP
#define PLUMBLINE_ENVIRONMENT_MEMORY_HPP

#include <limits>
#include <optional>
#include <string>

#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

namespace detail {

/// A line of /proc/meminfo in bytes ("MemTotal:  1234 kB").
[[nodiscard]] inline result::reading meminfo_bytes(const text_file& file, const std::string& name) {
    if (!file.known()) return file.why;
    const auto text = field_of(file.text, name);
    const auto words = text ? split(*text, ' ') : std::vector<std::string>{};
    const auto value = words.empty() ? std::nullopt : integer(words[0]);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 1024;
    if (!value || *value < 0 || *value > most) return result::reading::absent("/proc/meminfo: no " + name);
    return result::reading::of(*value * 1024);
}

/// "avg10" of the line "some" of /proc/pressure/*: percent of the last ten seconds that someone waited.
[[nodiscard]] inline result::reading pressure(const host& machine, const std::string& what) {
    const std::string path = "/proc/pressure/" + what;
    const text_file file = read_file(machine, path);
    if (!file.known()) return file.why;
    for (const std::string& line : split(file.text, '\n')) {
        const auto words = split(line, ' ');
        if (words.size() < 2 || words[0] != "some" || words[1].rfind("avg10=", 0) != 0) continue;
        if (const auto value = number(std::string_view(words[1]).substr(6))) return result::reading::of(*value);
    }
    return result::reading::unsupported(path + ": no 'some avg10='");
}

} // namespace detail

/// Memory and load: RAM, huge pages, swapping policy, /dev/shm, load average, pressure.
inline void read_memory(result::fingerprint& into, const host& machine) {
    recorder proc(into, "proc");
    const text_file meminfo = read_file(machine, "/proc/meminfo");
    result::reading total = detail::meminfo_bytes(meminfo, "MemTotal");
    if (total.known()) {
        // A kernel update moves MemTotal by some MiB: rounded, it changes with the hardware only.
        const auto bytes = std::get<std::int64_t>(total.value);
        total.value = (bytes + (std::int64_t{1} << 29)) >> 30;
    }
    proc.config("memory.total_gib", 4, total);
    proc.state("memory.available_bytes", 4, detail::meminfo_bytes(meminfo, "MemAvailable"));
    const auto swap = detail::meminfo_bytes(meminfo, "SwapTotal"), free = detail::meminfo_bytes(meminfo, "SwapFree");
    proc.state("memory.swap_used_bytes", 4,
               swap.known() && free.known()
                   ? result::reading::of(std::get<std::int64_t>(swap.value) - std::get<std::int64_t>(free.value))
                   : swap);
    proc.config("memory.huge_pages", 4, read_integer(machine, "/proc/sys/vm/nr_hugepages"));
    proc.config("memory.swappiness", 4, read_integer(machine, "/proc/sys/vm/swappiness"));
    proc.config("memory.overcommit", 4, read_integer(machine, "/proc/sys/vm/overcommit_memory"));
    proc.config("memory.zone_reclaim", 4, read_integer(machine, "/proc/sys/vm/zone_reclaim_mode"));
    const auto load = detail::split(read_file(machine, "/proc/loadavg").text, ' ');
    const auto one = load.empty() ? std::nullopt : detail::number(load[0]);
    proc.state("load.one_minute", 4, one ? result::reading::of(*one) : result::reading::absent("/proc/loadavg"));
    for (const char* what : {"cpu", "io", "memory"}) {
        proc.state(std::string("load.pressure_") + what, 4, detail::pressure(machine, what));
    }
    recorder sys(into, "sys");
    sys.config("memory.thp", 4, read_choice(machine, "/sys/kernel/mm/transparent_hugepage/enabled"));
    sys.config("memory.thp_defrag", 4, read_choice(machine, "/sys/kernel/mm/transparent_hugepage/defrag"));
    recorder space(into, "statvfs");
    const auto shm = machine.space_of && exists(machine, "/dev/shm")
                         ? machine.space_of(detail::below(machine, "/dev/shm"))
                         : std::nullopt;
    const auto none = result::reading::absent("/dev/shm");
    const auto size = [&](std::uint64_t bytes) { return result::reading::of(static_cast<std::int64_t>(bytes)); };
    space.config("memory.shm_bytes", 4, shm ? size(shm->total_bytes) : none);
    space.state("memory.shm_free_bytes", 4, shm ? size(shm->free_bytes) : none);
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
