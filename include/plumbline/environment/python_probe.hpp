// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_ENVIRONMENT_PYTHON_PROBE_HPP
#define PLUMBLINE_ENVIRONMENT_PYTHON_PROBE_HPP

#include <chrono>
#include <string>
#include <vector>

#include "plumbline/environment/child.hpp"
#include "plumbline/environment/host.hpp"
#include "plumbline/environment/python_script.hpp"
#include "plumbline/result/reading.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace environment {

/// What the Python probe wrote, one JSON object a line ({"name": ..., "value": ..., "link": ...}), and how it ended.
/// The lines are worth reading even if it was killed half way; json/python_probe.hpp does.
struct python_answer {
    std::string lines;
    result::reading ended; ///< value true when it ran to its end; else why it did not
};

/// Asks the Python on PATH which frameworks are installed and how they are set (link 3 to 6). The interpreter runs in
/// a child process without access to a GPU, is killed at the time limit, and can do no harm to the caller. Absent
/// where there is no Python. `program` is looked up in PATH.
[[nodiscard]] inline python_answer run_python_probe(const host& machine,
                                                    std::chrono::milliseconds time_limit = std::chrono::seconds(15),
                                                    const std::string& program = "python3") {
    std::vector<std::string> variables;
    for (const auto& [name, value] : machine.variables) {
        if (name != "CUDA_VISIBLE_DEVICES" && name != "PYTHONSTARTUP") variables.push_back(name + "=" + value);
    }
    // A framework must not open a context beside the one that is measured, nor preallocate memory.
    variables.emplace_back("CUDA_VISIBLE_DEVICES=");
    variables.emplace_back("PYTHONDONTWRITEBYTECODE=1");
    variables.emplace_back("TF_CPP_MIN_LOG_LEVEL=3");
    const child_outcome child = run_child({program, "-c", python_probe_script()}, variables, time_limit);
    python_answer answer{child.output, result::reading::of(true)};
    if (!child.started || child.status == 127) {
        answer.ended = result::reading::absent("no " + program + " on PATH");
    } else if (child.timed_out) {
        answer.ended = result::reading::unsupported(program + " took longer than " +
                                                    std::to_string(time_limit.count()) + " ms and was ended");
    } else if (child.status != 0) {
        answer.ended = result::reading::unsupported(program + " ended with status " + std::to_string(child.status));
    }
    return answer;
}

} // namespace environment

PLUMBLINE_NAMESPACE_END

#endif
