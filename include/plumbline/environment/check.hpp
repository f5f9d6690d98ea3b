// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_CHECK_HPP
#define PLUMBLINE_ENVIRONMENT_CHECK_HPP

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/core/exit_code.hpp"
#include "plumbline/core/scalar.hpp"
#include "plumbline/environment/host.hpp"
#include "plumbline/result/baseline.hpp"
#include "plumbline/result/fingerprint.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// How a check ended.
enum class check_status {
    ok,
    warn, ///< measuring is possible, but the numbers will not be what this hardware can do
    fail,
    skipped, ///< does not apply here, or what it needs could not be read; `seen` says which
};

/// What a failed check means to the program that ran it.
enum class consequence {
    precondition, ///< nothing can be measured yet: exit code 6
    fault,        ///< something was measured and is wrong: exit code 4
};

/// The set a check belongs to.
enum class extent {
    quick, ///< the preflight of `bench --baseline`, up to 20 seconds in all
    full,  ///< `bench --check=full`, up to five minutes; includes the quick ones
};

/// The outcome of one check, for people and for JSON.
struct check_outcome {
    std::string name; ///< "driver.versions_agree"
    int link = 1;     ///< link of the chain, 1 to 6
    check_status status = check_status::ok;
    consequence if_failed = consequence::precondition;
    std::string seen;     ///< what was found, in one line
    std::string expected; ///< what it should be
    std::string remedy;   ///< what to do, in one line; empty when ok
    double seconds = 0;   ///< how long the check took
};

/// PCIe link of a GPU, read while data moved over it.
struct link_reading {
    int generation = 0;
    int width = 0;
    int max_generation = 0; ///< of this GPU in this slot
    int max_width = 0;
};

/// What checks look at. Everything that needs work on the device is handed in; what is absent makes the checks
/// that need it end as skipped, and they say so.
struct check_context {
    const struct host* machine = nullptr;             ///< never null
    const result::fingerprint* fingerprint = nullptr; ///< of this process, after the libraries were used; never null
    const result::baseline* measured = nullptr;       ///< the child session that ran the suite "check"
    bool cuda_expected = false;                       ///< the run is to use the CUDA backend
    std::optional<int> cuda_error;                    ///< what the CUDA runtime answered; 0 is success
    std::string cuda_error_name;                      ///< "cudaErrorInsufficientDriver"
    std::optional<int> cuda_devices;                  ///< devices that the CUDA runtime sees
    std::function<std::optional<link_reading>()> link_under_load; ///< reads the link during a copy
    std::function<std::string()> nccl_all_reduce; ///< "" when every visible GPU took part, else what went wrong
};

/// One check: what it is called and how it is done. `run` fills in status, seen, expected and remedy.
struct check {
    std::string name;
    int link = 1;
    consequence if_failed = consequence::precondition;
    extent set = extent::quick;
    std::function<check_outcome(const check_context&)> run;
};

/// The exit code a list of outcomes stands for: 6 for a failed precondition, 4 for a fault, else 0.
[[nodiscard]] inline exit_code code_of(const std::vector<check_outcome>& outcomes) {
    exit_code code = exit_code::ok;
    for (const check_outcome& outcome : outcomes) {
        if (outcome.status != check_status::fail) continue;
        code = worse(code,
                     outcome.if_failed == consequence::precondition ? exit_code::precondition : exit_code::incomplete);
    }
    return code;
}

using plumbline::to_string; // of values: the one below would hide it in this namespace

/// "ok", "warn", "fail" or "skipped".
[[nodiscard]] inline const char* to_string(check_status status) noexcept {
    switch (status) {
    case check_status::ok:
        return "ok";
    case check_status::warn:
        return "warn";
    case check_status::fail:
        return "fail";
    case check_status::skipped:
        return "skipped";
    }
    return "";
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
