// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include <doctest/doctest.h>

#include "golden.hpp"
#include "plumbline/report/github.hpp"
#include "plumbline/report/junit.hpp"
#include "plumbline/report/markdown.hpp"
#include "plumbline/report/siblings.hpp"
#include "plumbline/report/text.hpp"
#include "sample_comparison.hpp"

using namespace plumbline;

namespace {

template <class Write>
std::string written(Write&& write) {
    std::ostringstream out;
    write(out);
    return out.str();
}

std::string text_of(const compare::comparison& what, const report::options& how) {
    return written([&](std::ostream& out) { report::write_text(out, what, how); });
}

std::string markdown_of(const compare::comparison& what, const report::options& how = {}) {
    return written([&](std::ostream& out) { report::write_markdown(out, what, how); });
}

std::string junit_of(const compare::comparison& what) {
    return written([&](std::ostream& out) { report::write_junit(out, what); });
}

std::string github_of(const compare::comparison& what) {
    return written([&](std::ostream& out) { report::write_github(out, what); });
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

/// A comparison whose every text tries to break out of the report.
compare::comparison hostile_comparison(const std::string& text) {
    compare::comparison all = tests::sample_comparison();
    for (compare::finding& each : all.findings) {
        each.id = text;
        each.metric = text;
        each.unit = text;
        for (auto& reason : each.reasons) reason.text = text;
        for (auto* side : {&each.base, &each.candidate}) {
            for (auto& implementation : side->implementations) implementation.name = text;
            for (auto& mode : side->modes) mode.implementations = {text};
        }
    }
    for (auto& each : all.environment) {
        each.name = text;
        each.to = result::reading::of(text);
    }
    for (auto* list : {&all.why.causes, &all.why.set_aside}) {
        for (auto& each : *list) {
            each.name = each.effect = each.remedy = each.experiment = text;
            each.sources = {text};
            for (auto& change : each.changes) change.name = text;
            for (auto& sign : each.signs) sign.text = text;
            for (auto& covered : each.covers) covered.id = text;
            if (each.tried) each.tried->text = text;
            if (!each.set_aside.empty()) each.set_aside = text;
        }
    }
    all.why.canary_text = all.why.conclusion = text;
    all.notes = {text};
    all.board = compare::board_factor{text, text, text, 0.1, 0.1, true, ""};
    return all;
}

} // namespace

TEST_CASE("the text report") {
    report::options how = tests::sample_options();
    tests::check_golden("full.txt", text_of(tests::sample_comparison(), how));
    tests::check_golden("shifted.txt", text_of(tests::shifted_comparison(), how));
    how.width = 80;
    tests::check_golden("narrow.txt", text_of(tests::sample_comparison(), how));
    how.width = 0;
    how.all = false;
    tests::check_golden("brief.txt", text_of(tests::sample_comparison(), how));
    tests::check_golden("nothing.txt", text_of(compare::comparison{}, report::options{}));
}

TEST_CASE("the report in one line says what is red and how sure its cause is, and nothing where nothing is") {
    compare::comparison what;
    CHECK(report::in_short(what).empty());
    what.findings.push_back(tests::finding_of(compare::verdict::regressed, "gemm/a", 100, 110));
    CHECK(report::in_short(what) == "1 regressed");
    what.why.conclusion = "nothing recorded changed";
    CHECK(report::in_short(what) == "1 regressed; no cause found");
    compare::cause one;
    one.name = "this machine";
    one.covers = {{"gemm/a", "time", 0.1}};
    what.why.causes = {one};
    CHECK(report::in_short(what) == "1 regressed; perhaps this machine (associated, covers 1)");
    what.why.causes[0].how_sure = compare::strength::consistent;
    CHECK(report::in_short(what) == "1 regressed; most likely this machine (consistent, covers 1)");
    what.findings[0].markers = {compare::marker::advisory};
    CHECK(report::in_short(what).empty());
}

TEST_CASE("sides whose usual implementation is the same have no change of it to show") {
    compare::finding one = tests::finding_of(compare::verdict::regressed, "gemm/a", 100, 110);
    one.markers = {compare::marker::implementation_changed, compare::marker::implementation_varies};
    one.base.implementations = {{"lt/id66", 5, 100}};
    one.candidate.implementations = {{"lt/id66", 3, 100}, {"lt/id21", 2, 120}};
    CHECK(report::implementation_change(one).empty());
    one.candidate.implementations[0].name = "lt/id7";
    CHECK(report::implementation_change(one) == "id66 -> id7");
}

TEST_CASE("after an upgrade of everything the report shows a dozen of the other changes and counts the rest") {
    compare::comparison what;
    for (int i = 0; i < 20; ++i) {
        what.environment.push_back({"python.p" + std::to_string(i), 3, result::attribute_class::config, "test",
                                    environment::difference_kind::changed, result::reading::of(std::string("1")),
                                    result::reading::of(std::string("2"))});
    }
    std::ostringstream out;
    report::write_text(out, what);
    CHECK(out.str().find("changed       python.p11  1 -> 2\n") != std::string::npos);
    CHECK(out.str().find("python.p12") == std::string::npos);
    CHECK(out.str().find("changed       and 8 more attributes: --format=json has them all") != std::string::npos);
}

TEST_CASE("no line of the text report is wider than the terminal") {
    report::options how = tests::sample_options();
    for (const std::size_t width : {80U, 100U, 120U, 200U}) {
        how.width = width;
        std::istringstream lines(text_of(tests::sample_comparison(), how));
        for (std::string line; std::getline(lines, line);) {
            CAPTURE(line);
            CHECK(report::columns(line) <= width);
        }
    }
}

TEST_CASE("colours are on a terminal only, and never with NO_COLOR") {
    report::options how = tests::sample_options();
    const std::string plain = text_of(tests::sample_comparison(), how);
    CHECK(plain.find('\x1b') == std::string::npos);
    how.colour = true;
    const std::string coloured = text_of(tests::sample_comparison(), how);
    CHECK(coloured.find("\x1b[1;31mREGRESSED") != std::string::npos);
    CHECK(coloured.find("\x1b[33minconclusive") != std::string::npos);
    ::unsetenv("NO_COLOR");
    CHECK(report::wants_colour(true));
    CHECK_FALSE(report::wants_colour(false));
    ::setenv("NO_COLOR", "", 1);
    CHECK(report::wants_colour(true));
    ::setenv("NO_COLOR", "1", 1);
    CHECK_FALSE(report::wants_colour(true));
    ::unsetenv("NO_COLOR");
}

TEST_CASE("the report for a pull request") {
    tests::check_golden("full.md", markdown_of(tests::sample_comparison(), tests::sample_options()));
    tests::check_golden("shifted.md", markdown_of(tests::shifted_comparison()));
}

TEST_CASE("the report for a pull request keeps its budget, whatever the size, and counts what it left out") {
    for (const std::size_t count : {1U, 100U, 300U, 1000U, 10'000U}) {
        const std::string text = markdown_of(tests::large_comparison(count), tests::sample_options());
        CAPTURE(count);
        CHECK(text.size() < 60'000);
        CHECK(count_of(text, "<details>") == count_of(text, "</details>"));
        const bool truncated = count >= 300;
        CHECK((text.find("more finding") != std::string::npos) == truncated);
    }
    // The worst is never what is left out.
    CHECK(markdown_of(tests::large_comparison(10'000)).find("**regressed**") != std::string::npos);
}

TEST_CASE("the report for a CI system") {
    const std::string text = junit_of(tests::sample_comparison());
    tests::check_golden("full.xml", text);
    tests::check_golden("shifted.xml", junit_of(tests::shifted_comparison()));
    CHECK(count_of(text, "<testcase ") == 13);
    CHECK(count_of(text, "<failure ") == 1); // the other regression is advisory
    CHECK(count_of(text, "<error ") == 4);   // invalid, incomparable, missing, suspicious
    CHECK(count_of(text, "<skipped ") == 5); // 2 inconclusive, new, skipped, advisory
    CHECK(text.find("failures=\"1\" errors=\"4\" skipped=\"5\"") != std::string::npos);
}

TEST_CASE("annotations: the worst first, nine of a kind, the rest counted") {
    tests::check_golden("full.github", github_of(tests::sample_comparison()));
    const std::string large = github_of(tests::large_comparison(1000));
    CHECK(count_of(large, "::error ") == 9);
    CHECK(count_of(large, "::warning ") == 9);
    CHECK(large.rfind("::error title=plumbline%3A regressed::conv", 0) == 0);
    CHECK(large.find("more annotations left out") != std::string::npos);
    for (const char* level : {"::error title=plumbline%3A machine-wide::", "::notice title=plumbline::"}) {
        CHECK(github_of(tests::shifted_comparison()).find(level) != std::string::npos);
    }
}

TEST_CASE("texts from files cannot break out of a report") {
    const compare::comparison terminal = hostile_comparison("a\x1b[2J\r\nPASSED\t\x7f\xc2\x9b"
                                                            "b");
    for (const std::string& text :
         {text_of(terminal, tests::sample_options()), markdown_of(terminal), junit_of(terminal), github_of(terminal)}) {
        CHECK(text.find('\x1b') == std::string::npos);
        CHECK(text.find('\r') == std::string::npos);
        CHECK(text.find("\nPASSED") == std::string::npos);
        CHECK(text.find("\xc2\x9b") == std::string::npos);
    }
    const std::string markdown = markdown_of(hostile_comparison("</details><img src=x>|`@you` [a](b)"));
    CHECK(markdown.find("<img") == std::string::npos);
    CHECK(markdown.find("@you") == std::string::npos);
    CHECK(count_of(markdown, "</details>") == 1);
    CHECK(markdown.find("](b)") == markdown.find("\\](b)") + 1);
    const std::string junit = junit_of(hostile_comparison("\"/><failure/>&<![CDATA["));
    CHECK(junit.find("<failure/>") == std::string::npos);
    CHECK(junit.find("CDATA") != std::string::npos);
    CHECK(junit.find("<![CDATA") == std::string::npos);
    const std::string github = github_of(hostile_comparison("x\n::set-output name=a::b%0A"));
    CHECK(github.find("\n::set-output") == std::string::npos);
    CHECK(github.find("%250A") != std::string::npos);
}

TEST_CASE("the ranking of machines") {
    compare::ranking all;
    all.machines = {{"node01.json", 1, 60, 0.995, false, false, {}},
                    {"node02.json", 2, 60, 1.001, false, true, {{"conv/a", 1.02}}},
                    {"node03.json", 3, 58, 1.062, true, false, {}}};
    for (int i = 0; i < 12; ++i) all.machines[2].outstanding.emplace_back("gemm/" + std::to_string(i), 1.07);
    all.left_out = {{"cpu.json", "other hardware: gpu.sm_count"}};
    tests::check_golden("siblings.txt", written([&](std::ostream& out) { report::write_siblings(out, all); }));
}
