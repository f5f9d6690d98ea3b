// SPDX-License-Identifier: Apache-2.0
// What the candidate's own evidence says against it, beside the verdict.
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/compare.hpp"
#include "plumbline/report/github.hpp"
#include "plumbline/report/markdown.hpp"
#include "plumbline/report/text.hpp"

namespace compare = plumbline::compare;
namespace report = plumbline::report;
namespace result = plumbline::result;
namespace code = plumbline::result::alarm_code;
using compare::verdict;

namespace {

const build::values five{100, 100.1, 99.9, 100.05, 99.95};

/// A tf32 product whose sessions used tensor cores or did not.
result::baseline tf32(bool tensor_cores) {
    result::baseline made = build::baseline(5);
    result::result& product = build::add(made, "gemm/tf32/tn/m4096n4096k4096", five);
    product.what.family = "gemm";
    product.what.params["dtype"] = std::string("tf32");
    for (result::session_result& each : product.sessions) each.ran.parts["tensor_cores"] = tensor_cores;
    return made;
}

std::string text_of(const compare::comparison& from) {
    std::ostringstream out;
    report::write_text(out, from);
    return out.str();
}

} // namespace

TEST_CASE("an alarm of the candidate is told, with whether the base had it, and leaves verdict and exit code alone") {
    const auto sound = compare::compare(tf32(true), tf32(true));
    CHECK(sound.findings.at(0).alarms.empty());
    CHECK(text_of(sound).find("ALARM") == std::string::npos);

    const auto broken = compare::compare(tf32(true), tf32(false));
    CHECK(broken.exit == sound.exit);
    CHECK(broken.findings.at(0).outcome == verdict::equivalent);
    REQUIRE(broken.findings.at(0).alarms.size() == 1);
    CHECK(broken.findings.at(0).alarms[0].what.code == code::no_tf32);
    CHECK(broken.findings.at(0).alarms[0].what.sessions == 5);
    CHECK_FALSE(broken.findings.at(0).alarms[0].in_base);
    CHECK(text_of(broken).find("ALARM: TF32 was asked for and not used: see NVIDIA_TF32_OVERRIDE\n") !=
          std::string::npos);

    const auto always = compare::compare(tf32(false), tf32(false));
    CHECK(always.findings.at(0).alarms.at(0).in_base);
    CHECK(text_of(always).find("(the base has it too)") != std::string::npos);
    CHECK(compare::compare(tf32(false), tf32(true)).findings.at(0).alarms.empty());
}

TEST_CASE("an alarm of an equivalent result is not hidden among those that nobody needs to read") {
    const auto broken = compare::compare(tf32(true), tf32(false));
    std::ostringstream markdown, github;
    report::write_markdown(markdown, broken);
    const std::size_t told = markdown.str().find("ALARM");
    CHECK(told != std::string::npos);
    CHECK(told < markdown.str().find("<details>"));
    report::write_github(github, broken);
    CHECK(github.str().find("::warning title=plumbline%3A equivalent::") != std::string::npos);
    CHECK(github.str().find("ALARM: TF32") != std::string::npos);
}

TEST_CASE("a result that only the candidate has raises its alarms, and a missing one none") {
    const result::baseline none = build::baseline(5);
    const auto added = compare::compare(none, tf32(false));
    REQUIRE(added.findings.at(0).outcome == verdict::new_benchmark);
    CHECK(added.findings.at(0).alarms.size() == 1);
    const auto gone = compare::compare(tf32(false), none);
    REQUIRE(gone.findings.at(0).outcome == verdict::missing);
    CHECK(gone.findings.at(0).alarms.empty());
}

TEST_CASE("far below the limit is judged by the candidate's own device") {
    result::baseline slow = tf32(true);
    slow.results[0].what.flop = 400e12 * 100e-6; // 100 us at 400 TFLOP/s
    slow.results[0].what.bytes = 1;
    slow.device.ceilings = {{"gemm_tf32_flop_per_s", 400e12}, {"copy_bytes_per_s", 4e12}};
    CHECK(compare::compare(slow, slow).findings.at(0).alarms.empty());
    result::baseline slower = slow;
    for (auto& session : slower.results[0].sessions) session.samples = {2500};
    const auto found = compare::compare(slow, slower);
    REQUIRE(found.findings.at(0).alarms.size() == 1);
    CHECK(found.findings.at(0).alarms[0].what.code == code::far_below_limit);
    CHECK(found.findings.at(0).alarms[0].what.text.find(" 4 % ") != std::string::npos);
    CHECK_FALSE(found.findings.at(0).alarms[0].in_base);
}
