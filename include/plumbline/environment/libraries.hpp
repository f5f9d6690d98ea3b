// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_LIBRARIES_HPP
#define PLUMBLINE_ENVIRONMENT_LIBRARIES_HPP

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/environment/elf.hpp"
#include "plumbline/environment/reader.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// A shared library that is mapped into this process.
struct mapped_library {
    std::string name;     ///< without path, ".so" and version: "libcudnn_ops"
    std::string path;     ///< the file that is really mapped, symbolic links resolved
    std::string folder;   ///< of path
    bool deleted = false; ///< the file was replaced or removed after it was mapped
};

namespace detail {

/// Prefixes of library names that matter to a benchmark, and the link of the chain they belong to.
struct known_library {
    std::string_view prefix;
    int link;
};
inline constexpr std::array<known_library, 31> known_libraries{{
    {"libcuda.", 1},    {"libnvidia-", 1},   {"libnccl", 1},           {"libcudart", 2},
    {"libcublas", 2},   {"libcudnn", 2},     {"libnvrtc", 2},          {"libnvJitLink", 2},
    {"libnvfatbin", 2}, {"libcufft", 2},     {"libcusparse", 2},       {"libcusolver", 2},
    {"libcupti", 2},    {"libdnnl", 2},      {"libmkldnn", 2},         {"libmkl", 4},
    {"libopenblas", 4}, {"libblis", 4},      {"libgomp", 4},           {"libomp.", 4},
    {"libiomp5", 4},    {"libtbb", 4},       {"libtcmalloc", 4},       {"libjemalloc", 4},
    {"libmimalloc", 4}, {"libjpeg", 4},      {"libturbojpeg", 4},      {"libasan", 4},
    {"libtsan", 4},     {"libsanitizer", 1}, {"libToolsInjection", 1},
}};

[[nodiscard]] inline int library_link(std::string_view file_name) {
    for (const known_library& known : known_libraries) {
        if (file_name.substr(0, known.prefix.size()) == known.prefix) return known.link;
    }
    return 0;
}

/// "libcudnn_ops" of "libcudnn_ops.so.9.19.0".
[[nodiscard]] inline std::string library_name(std::string_view file_name) {
    return std::string(file_name.substr(0, file_name.find(".so")));
}

} // namespace detail

/// The shared libraries that matter among those mapped now, by name and path. cuDNN's parts are loaded when they are
/// first needed, so this is called after the libraries have worked.
[[nodiscard]] inline std::vector<mapped_library> mapped_libraries(const host& machine) {
    std::set<std::string> seen;
    std::vector<mapped_library> found;
    for (const std::string& line : detail::split(read_file(machine, "/proc/self/maps", 64u << 20).text, '\n')) {
        const auto slash = line.find('/');
        if (slash == std::string::npos) continue;
        std::string path = line.substr(slash);
        constexpr std::string_view mark = " (deleted)";
        const bool deleted = path.size() > mark.size() && path.substr(path.size() - mark.size()) == mark;
        if (deleted) path.resize(path.size() - mark.size());
        const auto file = path.substr(path.rfind('/') + 1);
        if (file.find(".so") == std::string::npos || detail::library_link(file) == 0) continue;
        if (!seen.insert(path).second) continue;
        found.push_back({detail::library_name(file), path, path.substr(0, path.rfind('/')), deleted});
    }
    std::sort(found.begin(), found.end(),
              [](auto& a, auto& b) { return std::tie(a.name, a.path) < std::tie(b.name, b.path); });
    return found;
}

/// What is wrong with the set of mapped libraries, one line each; empty when nothing is: two files of one library
/// (their state is apart, and which one answers depends on the order of loading), parts of cuDNN from different
/// folders (pytorch/pytorch#188892), a file that was replaced while it was in use.
[[nodiscard]] inline std::vector<std::string> library_conflicts(const std::vector<mapped_library>& libraries) {
    std::vector<std::string> found;
    std::map<std::string, std::vector<std::string>> files;
    std::map<std::string, std::string> cudnn_folders;
    for (const mapped_library& library : libraries) {
        files[library.name].push_back(library.path);
        if (library.name.rfind("libcudnn", 0) == 0) cudnn_folders.emplace(library.folder, library.name);
        if (library.deleted) found.push_back(library.path + " was replaced or removed while it was in use");
    }
    for (const auto& [name, paths] : files) {
        if (paths.size() > 1) found.push_back("two copies of " + name + ": " + detail::join(paths, ", "));
    }
    if (cudnn_folders.size() > 1) {
        std::vector<std::string> folders;
        for (const auto& [folder, example] : cudnn_folders) folders.push_back(folder + " (" + example + ")");
        found.push_back("cuDNN from different folders: " + detail::join(folders, ", "));
    }
    return found;
}

/// Libraries as really mapped: path, soname and build id of each, and whether any of them conflict.
inline void read_libraries(result::fingerprint& into, const host& machine) {
    recorder out(into, "maps");
    const text_file maps = read_file(machine, "/proc/self/maps", 16);
    out.state("process.libraries_captured", 2, maps.known() ? result::reading::of(true) : maps.why);
    if (!maps.known()) return;
    const auto libraries = mapped_libraries(machine);
    std::map<std::string, int> copies;
    for (const mapped_library& library : libraries) {
        const int copy = ++copies[library.name];
        const std::string name = "lib." + library.name + (copy > 1 ? "#" + std::to_string(copy) : std::string()) + ".";
        const int link = detail::library_link(library.path.substr(library.path.rfind('/') + 1));
        out.config(name + "path", link, result::reading::of(library.path));
        const auto elf = read_elf(detail::below(machine, library.path));
        const auto unread = result::reading::unsupported(library.path + ": no ELF file of this machine");
        const auto part = [&](std::string elf_identity::*which, const char* what) {
            if (!elf) return unread;
            const std::string& text = (*elf).*which;
            return text.empty() ? result::reading::absent(library.path + ": no " + what) : result::reading::of(text);
        };
        out.config(name + "soname", link, part(&elf_identity::soname, "soname"));
        out.config(name + "build_id", link, part(&elf_identity::build_id, "build id"));
        if (library.name == "libcuda") {
            const bool compat = library.path.find("/compat/") != std::string::npos;
            out.config("driver.forward_compatibility", 1, result::reading::of(compat));
        }
    }
    const auto conflicts = library_conflicts(libraries);
    out.config("process.library_conflicts", 2,
               result::reading::of(conflicts.empty() ? std::string("none") : detail::join(conflicts, "; ")));
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
