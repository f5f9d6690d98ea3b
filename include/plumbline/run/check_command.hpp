// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_RUN_CHECK_COMMAND_HPP
#define PLUMBLINE_RUN_CHECK_COMMAND_HPP

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "plumbline/json/checks.hpp"
#include "plumbline/json/fingerprint.hpp"
#include "plumbline/run/preflight.hpp"
#include "plumbline/run/select.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace run {

namespace detail {

/// A folder of this process for the files of a probe; removed at its end.
class scratch_folder {
public:
    scratch_folder() {
        std::error_code missing;
        const std::filesystem::path place = std::filesystem::temp_directory_path(missing);
        const char* remedy = "; set TMPDIR to a folder that can be written";
        if (missing) throw file_error("TMPDIR", "there is no folder for temporary files" + std::string(remedy));
        std::string name = (place / "plumbline-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw file_error(name, std::string("cannot be made: ") + std::strerror(errno) + remedy);
        path_ = name;
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// Whether the backend started: what every other check stands on.
[[nodiscard]] inline environment::check_outcome start_outcome(const context& in, const probe& seen) {
    environment::check_outcome made;
    made.name = "backend.starts";
    made.expected = "the " + in.on.name + " backend opens its device";
    made.seen = "the " + in.on.name + " backend opened its device";
    if (seen.started()) return made;
    made.status = environment::check_status::fail;
    made.seen = seen.session.reason;
    made.remedy = "see the checks of link 1";
    return made;
}

[[nodiscard]] inline std::string check_text(const std::vector<environment::check_outcome>& outcomes) {
    std::string text;
    std::size_t counts[4] = {};
    for (const environment::check_outcome& each : outcomes) {
        text += outcome_line(each) + "\n";
        ++counts[static_cast<std::size_t>(each.status)];
    }
    const auto count = [&](environment::check_status status) {
        return std::to_string(counts[static_cast<std::size_t>(status)]);
    };
    using environment::check_status;
    return text + count(check_status::fail) + " failed, " + count(check_status::warn) + " warnings, " +
           count(check_status::ok) + " ok, " + count(check_status::skipped) + " skipped\n";
}

} // namespace detail

/// `bench --check`: looks at the machine, and at a session that runs the suite "check".
[[nodiscard]] inline exit_code check_command(const context& in, const target_device& device) {
    if (!in.how.output.empty()) json::check_writable(in.how.output);
    const auto extent = in.how.full_check ? environment::extent::full : environment::extent::quick;
    const detail::scratch_folder scratch;
    const probe seen =
        run_probe(in, device, check_ids(in), in.how.full_check ? "full" : "quick", scratch.path() / "check.json");
    if (seen.session.interrupted) {
        return *seen.session.interrupted == SIGINT ? exit_code::interrupted : exit_code::terminated;
    }
    std::vector<environment::check_outcome> outcomes = check_machine(in, device, seen, extent);
    outcomes.insert(outcomes.begin(), detail::start_outcome(in, seen));
    write_report(in, in.how.format == output_format::json ? json::dump(outcomes) : detail::check_text(outcomes));
    return environment::code_of(outcomes);
}

/// `bench --fingerprint`: the environment as a session of this backend sees it. A device that does not open leaves
/// what can be read without it, and exit code 6.
[[nodiscard]] inline exit_code fingerprint_command(const context& in, const target_device& device) {
    if (!in.how.output.empty()) json::check_writable(in.how.output);
    const detail::scratch_folder scratch;
    const probe seen = run_probe(in, device, {}, "", scratch.path() / "fingerprint.json");
    if (seen.session.interrupted) {
        return *seen.session.interrupted == SIGINT ? exit_code::interrupted : exit_code::terminated;
    }
    if (seen.session.measured.sessions.empty()) require_started(in, device, seen);
    write_report(in, json::dump(seen.environment()));
    require_started(in, device, seen);
    return exit_code::ok;
}

} // namespace run

PLUMBLINE_NAMESPACE_END

#endif
