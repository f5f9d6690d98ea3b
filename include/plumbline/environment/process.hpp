// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_PROCESS_HPP
#define PLUMBLINE_ENVIRONMENT_PROCESS_HPP

#include <map>
#include <string>
#include <vector>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "plumbline/environment/cgroup.hpp"
#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

namespace detail {

/// The soft limit of a line of /proc/self/limits: "Max locked memory   8388608   8388608   bytes". The value is an
/// integer, or the text "unlimited".
[[nodiscard]] inline result::reading soft_limit(const host& machine, const std::string& name) {
    const text_file file = read_file(machine, "/proc/self/limits");
    if (!file.known()) return file.why;
    for (const std::string& line : split(file.text, '\n')) {
        if (line.rfind(name + " ", 0) != 0) continue;
        const auto words = split(std::string_view(line).substr(name.size()), ' ');
        if (words.empty()) break;
        if (const auto value = integer(words[0])) return result::reading::of(*value);
        return result::reading::of(words[0]);
    }
    return result::reading::absent("/proc/self/limits: no '" + name + "'");
}

/// Pages of this process by node, of the mappings that have any: "N0=1200 N1=30".
[[nodiscard]] inline result::reading page_placement(const host& machine) {
    const text_file file = read_file(machine, "/proc/self/numa_maps");
    if (!file.known()) return file.why;
    std::map<int, std::int64_t> pages;
    for (const std::string& line : split(file.text, '\n')) {
        for (const std::string& word : split(line, ' ')) {
            const auto equal = word.find('=');
            if (word[0] != 'N' || equal == std::string::npos) continue;
            const auto node = integer(std::string_view(word).substr(1, equal - 1));
            const auto count = integer(std::string_view(word).substr(equal + 1));
            constexpr std::int64_t most = std::int64_t{1} << 40; // more pages than any machine has
            if (node && count && *node >= 0 && *node < 1 << 16 && *count >= 0 && *count <= most) {
                pages[static_cast<int>(*node)] += *count;
            }
        }
    }
    std::vector<std::string> nodes;
    for (const auto& [node, count] : pages) nodes.push_back("N" + std::to_string(node) + "=" + std::to_string(count));
    if (nodes.empty()) return result::reading::unsupported("/proc/self/numa_maps: no pages listed");
    return result::reading::of(join(nodes, " "));
}

} // namespace detail

/// This process: affinity, limits, security filters that cost time, C library.
inline void read_process(result::fingerprint& into, const host& machine) {
    recorder proc(into, "proc");
    const text_file status = read_file(machine, "/proc/self/status");
    const auto field = [&](const char* name) {
        if (!status.known()) return status.why;
        const auto value = field_of(status.text, name);
        return value ? result::reading::of(*value)
                     : result::reading::absent(std::string("/proc/self/status: no ") + name);
    };
    proc.config("cpu.allowed", 4, field("Cpus_allowed_list"));
    proc.config("numa.allowed", 4, field("Mems_allowed_list"));
    proc.config("process.seccomp", 1, field("Seccomp"));
    proc.config("process.speculation_store_bypass", 1, field("Speculation_Store_Bypass"));
    proc.config("process.no_new_privileges", 1, field("NoNewPrivs"));
    proc.config("process.limit_memlock_bytes", 4, detail::soft_limit(machine, "Max locked memory"));
    proc.config("process.limit_open_files", 4, detail::soft_limit(machine, "Max open files"));
    proc.config("process.limit_processes", 4, detail::soft_limit(machine, "Max processes"));
    proc.state("numa.pages", 4, detail::page_placement(machine));
#if defined(__GLIBC__)
    recorder libc(into, "libc");
    libc.config("process.libc", 4, result::reading::of(std::string("glibc ") + gnu_get_libc_version()));
#endif
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
