// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_PATHS_HPP
#define PLUMBLINE_RUN_PATHS_HPP

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "plumbline/core/error.hpp"
#include "plumbline/core/utc.hpp"
#include "plumbline/result/baseline.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

/// A name that is safe in every file system: lower-case letters and digits, all else one '-'.
[[nodiscard]] inline std::string file_name_of(std::string_view text) {
    std::string name;
    for (char c : text) {
        const bool upper = c >= 'A' && c <= 'Z';
        const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || upper;
        if (plain) name += upper ? static_cast<char>(c - 'A' + 'a') : c;
        if (!plain && !name.empty() && name.back() != '-') name += '-';
    }
    while (!name.empty() && name.back() == '-') name.pop_back();
    return name.empty() ? "unknown" : name;
}

/// The folder of baselines: $PLUMBLINE_BASELINE_DIR, else baselines/local.
[[nodiscard]] inline std::filesystem::path baseline_folder(const std::map<std::string, std::string>& variables) {
    const auto at = variables.find("PLUMBLINE_BASELINE_DIR");
    if (at != variables.end() && !at->second.empty()) return at->second;
    return std::filesystem::path("baselines") / "local";
}

/// The name a device's files begin with: model and the first 8 digits of its hashed UUID.
[[nodiscard]] inline std::string device_file_stem(const result::device& device) {
    const std::string unique = device.uuid.empty() ? "unknown" : device.uuid.substr(0, 8);
    return file_name_of(device.model) + "-" + file_name_of(unique);
}

/// Where a device's accepted baseline lies.
[[nodiscard]] inline std::filesystem::path baseline_path(const std::filesystem::path& folder,
                                                         const result::device& device) {
    return folder / (device_file_stem(device) + ".json");
}

/// Where a run that is no baseline is kept: runs/<device>-<UTC time>.json, with a number when there is one already.
[[nodiscard]] inline std::filesystem::path run_path(const std::filesystem::path& folder, const result::device& device,
                                                    std::time_t at) {
    std::string stamp = utc_text(at);
    stamp.erase(std::remove_if(stamp.begin(), stamp.end(), [](char c) { return c == '-' || c == ':'; }), stamp.end());
    const std::filesystem::path runs = folder / "runs";
    std::filesystem::path path = runs / (device_file_stem(device) + "-" + stamp + ".json");
    for (int n = 2; std::filesystem::exists(path) || std::filesystem::exists(path.string() + ".partial"); ++n) {
        path = runs / (device_file_stem(device) + "-" + stamp + "-" + std::to_string(n) + ".json");
    }
    return path;
}

/// The newest unfinished run of a device in runs/, as the file it would have become; empty when there is none.
[[nodiscard]] inline std::filesystem::path unfinished_run(const std::filesystem::path& folder,
                                                          const result::device& device) {
    const std::string stem = device_file_stem(device) + "-";
    const std::string ending = ".json.partial";
    std::string newest; // names end with the time, so the last by name is the newest
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "runs", ignored)) {
        const std::string name = entry.path().filename().string();
        const bool ours = name.size() > ending.size() && name.rfind(stem, 0) == 0 &&
                          name.find('.') == name.size() - ending.size() &&
                          name.compare(name.find('.'), name.size(), ending) == 0;
        if (ours && name > newest) newest = name;
    }
    if (newest.empty()) return {};
    return folder / "runs" / newest.substr(0, newest.size() - std::string_view(".partial").size());
}

/// The newest finished runs of a device in runs/, newest first, `most` at the most: what times are predicted from.
[[nodiscard]] inline std::vector<std::filesystem::path> finished_runs(const std::filesystem::path& folder,
                                                                      const result::device& device, std::size_t most) {
    const std::string stem = device_file_stem(device) + "-";
    std::vector<std::filesystem::path> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "runs", ignored)) {
        const std::string name = entry.path().filename().string();
        // Another dot is the other side of an interleaved run, or something unfinished.
        if (name.rfind(stem, 0) == 0 && name.find('.') == name.rfind(".json") && entry.path().extension() == ".json") {
            found.push_back(entry.path());
        }
    }
    std::sort(found.rbegin(), found.rend());
    if (found.size() > most) found.resize(most);
    return found;
}

/// How many runs of each device stay in runs/: $PLUMBLINE_KEEP, else 100. usage_error when that is no whole number from
/// 1 on.
[[nodiscard]] inline std::size_t runs_to_keep(const std::map<std::string, std::string>& variables) {
    const auto at = variables.find("PLUMBLINE_KEEP");
    if (at == variables.end() || at->second.empty()) return 100;
    const std::string& text = at->second;
    std::size_t count = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), count);
    if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || count == 0) {
        throw usage_error("PLUMBLINE_KEEP=" + text + " is not a number from 1 on: how many runs of a device are kept");
    }
    return count;
}

/// Removes all but the newest runs of a device from runs/, each with its other side and what was left unfinished of it.
/// Files that are not named by their time are nobody's to remove.
inline void remove_old_runs(const std::filesystem::path& folder, const result::device& device, std::size_t keep) {
    const std::string stem = device_file_stem(device) + "-";
    const auto is_stamp = [](std::string_view text) { // 20261130T210000Z, perhaps with -2
        const std::string_view form = "00000000T000000Z";
        if (text.size() < form.size() || (text.size() > form.size() && text[form.size()] != '-')) return false;
        for (std::size_t i = 0; i < form.size(); ++i) {
            const bool digit = text[i] >= '0' && text[i] <= '9';
            if (form[i] == '0' ? !digit : text[i] != form[i]) return false;
        }
        return true;
    };
    std::map<std::string, std::vector<std::filesystem::path>> runs; // by time, oldest first
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "runs", ignored)) {
        const std::string name = entry.path().filename().string();
        const std::string run = name.substr(0, name.find('.'));
        if (run.rfind(stem, 0) == 0 && is_stamp(std::string_view(run).substr(stem.size()))) {
            runs[run].push_back(entry.path());
        }
    }
    for (; runs.size() > keep; runs.erase(runs.begin())) {
        for (const std::filesystem::path& each : runs.begin()->second) std::filesystem::remove(each, ignored);
    }
}

/// Where the old file is kept when a baseline is replaced: beside it, with the time it was replaced.
[[nodiscard]] inline std::filesystem::path replaced_path(const std::filesystem::path& baseline, std::time_t at) {
    std::string stamp = utc_text(at);
    stamp.erase(std::remove_if(stamp.begin(), stamp.end(), [](char c) { return c == '-' || c == ':'; }), stamp.end());
    const std::string stem = (baseline.parent_path() / baseline.stem()).string();
    std::filesystem::path path = stem + ".replaced-" + stamp + ".json";
    for (int n = 2; std::filesystem::exists(path); ++n) {
        path = stem + ".replaced-" + stamp + "-" + std::to_string(n) + ".json";
    }
    return path;
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
