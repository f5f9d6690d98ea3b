// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_COMPARE_CAUSE_HPP
#define PLUMBLINE_COMPARE_CAUSE_HPP

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/environment/diff.hpp"

PLUMBLINE_NAMESPACE_BEGIN

namespace compare {

/// A trace that a cause leaves in the measurements, apart from the slowdown itself.
enum class mechanism {
    implementation_changed, ///< the library chose another kernel for the same work
    library_replaced,       ///< the results say that another version of the library did the work
    instruction_set_lower,  ///< the kernel's name says an older instruction set
    tensor_cores_lost,      ///< matrix units worked before and do not now
    precision_changed,      ///< a numeric probe: fp32 or TF32 is not what it was
    fallback_chosen,        ///< cuDNN's FALLBACK heuristic had to answer
    workspace_smaller,      ///< the plan has less workspace than before
    cannot_run,             ///< what ran before cannot be made at all
    out_of_memory,          ///< there was no memory for what ran before
    threads_changed,        ///< the library works with another number of threads
    processors_fewer,       ///< the process may use fewer processors
    quota_hit,              ///< the kernel held the process back for its CPU quota
    clock_lower,            ///< fewer cycles a second for the same cycles of work
    canary_slower,          ///< the library-free canary, the same machine code, is slower too
    memory_slower,          ///< memory-bound work is slower and compute-bound work is not
    host_slower,            ///< enqueueing takes longer than before
    launch_synchronous,     ///< launches wait for the work they start
    foreign_work,           ///< another process worked on the device
    memory_held,            ///< less memory of the device is free
    cpu_contention,         ///< other work waits for the same processors
    memory_pressure,        ///< the host is short of memory
    link_lower,             ///< the PCIe link runs below what it did
    pages_remote,           ///< memory lies on another node than before
    code_compiled_anew,     ///< the driver compiles PTX where the binary had machine code
    decode_slower,          ///< decoding an item takes more time than before
    read_slower,            ///< reading an item takes more time than before
    memory_faults,          ///< the device's memory has reported errors
};

/// How well a cause is founded. Never more than was seen.
enum class strength {
    associated, ///< it changed and fits
    consistent, ///< it changed, fits, and a mechanism was seen that no other candidate explains as well
    confirmed,  ///< proven by setting it back and forth
};

/// A mechanism that was seen.
struct sign {
    mechanism what = mechanism::implementation_changed;
    std::string text;        ///< for people: "brg:avx512_core -> gemm:jit"
    std::size_t results = 0; ///< in how many of the covered results; 0: seen on the machine, not in a result
};

/// A verdict that a cause accounts for.
struct covered_result {
    std::string id;
    std::string metric;
    double share = 0; ///< of the slowdown, in ln units, that the cause can account for; 0 where there is no number
};

/// What became of setting a cause back and forth.
struct trial {
    enum class outcome {
        proven,    ///< recovered with the old setting, lost again with the new one
        cleared,   ///< the old setting recovered nothing
        undecided, ///< the machine moved, or sessions failed: proves nothing either way
        not_tried, ///< cannot be set from outside, or there was no time
    };
    outcome result = outcome::not_tried;
    std::string text;          ///< for people, in one sentence
    std::size_t recovered = 0; ///< regressed results that recovered and were lost again
    std::size_t tried = 0;     ///< regressed results that were run
};

/// One thing that changed (all attributes of one component together) and what it accounts for.
struct cause {
    std::string name;                               ///< "cuDNN", "env.OMP_NUM_THREADS", "this machine"
    int link = 1;                                   ///< of the chain, 1 to 6
    std::vector<environment::difference> changes;   ///< the telling one first; none for what the canary or clock says
    std::optional<environment::difference> through; ///< the setting that brought it about: LD_LIBRARY_PATH
    std::vector<covered_result> covers;
    std::vector<sign> signs; ///< mechanisms that were seen, the most telling first
    strength how_sure = strength::associated;
    std::string effect;               ///< what such a change can do
    std::string remedy;               ///< what to do about it
    std::string experiment;           ///< what a person does to prove it where it cannot be set from outside
    std::vector<std::string> sources; ///< public reports of the same: "pytorch/pytorch#146096"
    std::optional<trial> tried;       ///< after --confirm
    std::string set_aside;            ///< why it is not blamed; empty for a cause
};

/// The settings of a cause that can be given to a new process from outside: environment variables whose old value is
/// known as it was, and the CPU affinity. Empty for what only a person can set back.
[[nodiscard]] inline std::vector<environment::difference> settable(const cause& of) {
    const auto plain = [](const result::reading& read) {
        if (!read.known()) return read.status == result::reading_status::absent;
        // Values that may be private or name a device are stored hashed and cannot be given back.
        const std::string text = plumbline::to_string(read.value);
        return text.rfind("hash ", 0) != 0 && text.find("-#") == std::string::npos;
    };
    std::vector<environment::difference> found;
    const auto take = [&](const environment::difference& d) {
        const bool variable = d.name.rfind("env.", 0) == 0 && d.name != "env.PATH";
        const bool affinity = d.name == "cpu.allowed" && d.from.known() && d.to.known();
        if ((variable || affinity) && plain(d.from) && plain(d.to)) found.push_back(d);
    };
    for (const environment::difference& each : of.changes) take(each);
    if (of.through) take(*of.through);
    return found;
}

/// What the library-free canaries say: they run the same machine code whatever libraries do.
enum class canary_state {
    absent,     ///< none was measured on both sides
    other_code, ///< its machine code is not the same in both files, so it says nothing
    unclear,    ///< measured, but too noisy to say
    unchanged,  ///< libraries or configuration are to be suspected
    slower,     ///< hardware or state is to be suspected
};

/// Which changes explain the verdicts.
struct explanation {
    std::vector<cause> causes;    ///< most credible first
    std::vector<cause> set_aside; ///< changes that could have been and are not blamed, with the reason
    std::vector<std::pair<std::string, std::string>> unexplained; ///< (id, metric) of verdicts that no cause covers
    canary_state canary = canary_state::absent;
    std::string canary_text; ///< the same in one sentence, empty when there is nothing to say
    std::string conclusion;  ///< what remains to be said when no recorded change explains everything; else empty

    /// Whether there was anything to explain.
    [[nodiscard]] bool empty() const { return causes.empty() && set_aside.empty() && conclusion.empty(); }
};

/// Names of the mechanisms in files and tables.
inline constexpr std::array<std::pair<mechanism, const char*>, 27> mechanism_names{{
    {mechanism::implementation_changed, "implementation_changed"},
    {mechanism::library_replaced, "library_replaced"},
    {mechanism::instruction_set_lower, "instruction_set_lower"},
    {mechanism::tensor_cores_lost, "tensor_cores_lost"},
    {mechanism::precision_changed, "precision_changed"},
    {mechanism::fallback_chosen, "fallback_chosen"},
    {mechanism::workspace_smaller, "workspace_smaller"},
    {mechanism::cannot_run, "cannot_run"},
    {mechanism::out_of_memory, "out_of_memory"},
    {mechanism::threads_changed, "threads_changed"},
    {mechanism::processors_fewer, "processors_fewer"},
    {mechanism::quota_hit, "quota_hit"},
    {mechanism::clock_lower, "clock_lower"},
    {mechanism::canary_slower, "canary_slower"},
    {mechanism::memory_slower, "memory_slower"},
    {mechanism::host_slower, "host_slower"},
    {mechanism::launch_synchronous, "launch_synchronous"},
    {mechanism::foreign_work, "foreign_work"},
    {mechanism::memory_held, "memory_held"},
    {mechanism::cpu_contention, "cpu_contention"},
    {mechanism::memory_pressure, "memory_pressure"},
    {mechanism::link_lower, "link_lower"},
    {mechanism::pages_remote, "pages_remote"},
    {mechanism::code_compiled_anew, "code_compiled_anew"},
    {mechanism::decode_slower, "decode_slower"},
    {mechanism::read_slower, "read_slower"},
    {mechanism::memory_faults, "memory_faults"},
}};

/// The mechanism's name in files.
[[nodiscard]] inline const char* to_string(mechanism what) noexcept {
    for (const auto& [each, name] : mechanism_names) {
        if (each == what) return name;
    }
    return "";
}

/// The strength's name in files and reports.
[[nodiscard]] inline const char* to_string(strength how) noexcept {
    switch (how) {
    case strength::associated:
        return "associated";
    case strength::consistent:
        return "consistent";
    case strength::confirmed:
        return "confirmed";
    }
    return "";
}

/// The name of what the canaries say.
[[nodiscard]] inline const char* to_string(canary_state state) noexcept {
    switch (state) {
    case canary_state::absent:
        return "absent";
    case canary_state::other_code:
        return "other_code";
    case canary_state::unclear:
        return "unclear";
    case canary_state::unchanged:
        return "unchanged";
    case canary_state::slower:
        return "slower";
    }
    return "";
}

/// The name of a trial's outcome.
[[nodiscard]] inline const char* to_string(trial::outcome result) noexcept {
    switch (result) {
    case trial::outcome::proven:
        return "proven";
    case trial::outcome::cleared:
        return "cleared";
    case trial::outcome::undecided:
        return "undecided";
    case trial::outcome::not_tried:
        return "not_tried";
    }
    return "";
}

} // namespace compare

PLUMBLINE_NAMESPACE_END

#endif
