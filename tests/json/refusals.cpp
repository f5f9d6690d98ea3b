// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <optional>

#include <doctest/doctest.h>

#include "mutilated.hpp"
#include "plumbline/json/fingerprint.hpp"
#include "plumbline/json/suite.hpp"

using namespace plumbline;

namespace {

/// The error that a reader ends with, if it does.
template <class Read>
std::optional<schema_error> refusal_of(Read&& read) {
    try {
        read();
    } catch (const schema_error& problem) {
        return problem;
    }
    return std::nullopt;
}

std::optional<schema_error> refusal(const std::string& text) {
    return refusal_of([&] { static_cast<void>(json::parse_baseline(text, "file.json")); });
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

void check_refusal(const std::string& text, const std::string& pointer, const std::string& message) {
    const auto problem = refusal(text);
    REQUIRE(problem.has_value());
    CHECK(problem->pointer() == pointer);
    CHECK(problem->code() == exit_code::usage);
    CHECK_MESSAGE(contains(problem->what(), message), problem->what());
    const std::string at = pointer.empty() ? "file.json: at the top level: " : "file.json: at " + pointer + ": ";
    CHECK_MESSAGE(std::string(problem->what()).rfind(at, 0) == 0, problem->what());
}

} // namespace

TEST_CASE("the document that is spoilt below is good") {
    CHECK_FALSE(refusal(tests::sample_document().dump()));
}

TEST_CASE("every spoilt document is refused with its place and what was expected") {
    for (const tests::mutilation& each : tests::mutilations()) {
        CAPTURE(each.name);
        tests::tree document = tests::sample_document();
        each.spoil(document);
        check_refusal(document.dump(), each.pointer, each.message);
    }
}

TEST_CASE("a newer minor version may have members that are not known; an unknown major one is refused") {
    tests::tree document = tests::sample_document();
    document["weather"] = "fine";
    document["results"][0]["sessions"][0]["humidity"] = 0.4;
    CHECK(refusal(document.dump()));
    document["schema"]["minor"] = 2;
    CHECK_FALSE(refusal(document.dump()));
    document["results"][0]["sessions"][0]["samples"] = "no";
    CHECK(refusal(document.dump()));
}

TEST_CASE("text that is not one JSON document is refused with line and place") {
    const std::string good = json::dump(tests::sample_baseline());
    check_refusal("", "", "is not JSON: parse error at line 1, column 1");
    check_refusal(good + "{}", "", "expected end of input");
    check_refusal(good.substr(0, good.size() / 2), refusal(good.substr(0, good.size() / 2))->pointer(), "is not JSON");
    check_refusal(R"({"schema": NaN})", "/schema", "invalid literal");
    check_refusal(R"({"schema": {"version": 1e999}})", "/schema/version", "number overflow");
    check_refusal("{\"schema\": \"\xff\"}", "/schema", "ill-formed UTF-8");
    check_refusal("{\"schema\": \"\xed\xa0\x80\"}", "/schema", "ill-formed UTF-8"); // a surrogate
    check_refusal("{\"schema\": \"a\x01\"}", "/schema", "control character");
    check_refusal("{\"a\": [1, 2,]}", "/a/2", "is not JSON");
    check_refusal("// no comments in files that programs write\n{}", "", "is not JSON");
}

TEST_CASE("a key that occurs twice is refused wherever it is") {
    check_refusal(R"({"schema": 1, "schema": 2})", "/schema", "the key occurs twice");
    check_refusal(R"({"schema": {"name": "plumbline/baseline", "version": 1}, "results": [{"id": "a", "id": "b"}]})",
                  "/results/0/id", "the key occurs twice");
    check_refusal(R"({"a/b": {"~": [0, {"": 1, "": 1}]}})", "/a~1b/~0/1/", "the key occurs twice");
}

TEST_CASE("hostile sizes end early, in little time") {
    const auto start = std::chrono::steady_clock::now();
    check_refusal(std::string(1'000'000, '['), std::string(refusal(std::string(1'000'000, '['))->pointer()),
                  "nested more than 32 levels");
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
    CHECK(contains(refusal(deep)->what(), "nested more than 32 levels"));

    std::string wide = R"({"checks": [0)";
    for (int i = 0; i < 4'000'000; ++i) wide += ",0";
    CHECK(contains(refusal(wide + "]}")->what(), "has more than 4000000 values"));

    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

TEST_CASE("the limits of a document are those that are given") {
    const json::limits small{2, 5, 8};
    const auto parse = [&](const std::string& text) {
        return refusal_of([&] { static_cast<void>(json::parse_document(text, "f", json::comments::refused, small)); });
    };
    CHECK_FALSE(parse("[[1, 2, 3]]"));
    CHECK(parse("[[[]]]"));
    CHECK(parse("[1, 2, 3, 4, 5]"));
}

TEST_CASE("streamed elements count only until they are handed over, but all values have a limit too") {
    std::vector<std::size_t> seen;
    const json::element_stream stream{
        "list", "head", [&](const nlohmann::json& document, std::size_t index, const nlohmann::json& each) {
            CHECK(document["head"] == 1);
            CHECK(each.size() == 2);
            seen.push_back(index);
        }};
    const auto parse = [&](const std::string& text) {
        seen.clear();
        return refusal_of([&] {
            static_cast<void>(json::parse_document(text, "f", json::comments::refused, {3, 7, 30}, &stream));
        });
    };
    CHECK_FALSE(parse(R"({"head": 1, "list": [[1,2],[3,4],[5,6],[7,8],[9,0]], "tail": [1, 2]})"));
    CHECK(seen == std::vector<std::size_t>{0, 1, 2, 3, 4});
    const auto held = parse(R"({"list": [[1,2],[3,4],[5,6]], "head": 1})");
    REQUIRE(held);
    CHECK(seen.empty());
    CHECK(contains(held->what(), "write \"head\" before \"list\""));
    const auto many = parse(R"({"head": 1, "list": [[1,2],[3,4],[5,6],[1,2],[3,4],[5,6],[1,2],[3,4],[5,6],[7,8]]})");
    REQUIRE(many);
    CHECK(many->pointer() == "/list/9");
    CHECK(contains(many->what(), "has more than 30 values"));
}

TEST_CASE("a fingerprint is read back, and refused when it was edited") {
    const result::fingerprint before = tests::sample_baseline().environment;
    const std::string text = json::dump(before);
    CHECK(json::parse_fingerprint(text, "f.json").attributes == before.attributes);
    tests::tree edited = tests::tree::parse(text);
    edited["comparability"]["fields"]["gpu.sm_count"]["value"] = 1;
    const auto problem = refusal_of([&] { static_cast<void>(json::parse_fingerprint(edited.dump(), "f.json")); });
    REQUIRE(problem);
    CHECK(problem->pointer() == "/comparability/hash");
}

TEST_CASE("a suite lists ids by backend, may have comments, and repeats nothing") {
    const workload::suite suite = json::parse_suite(R"({
        // the smallest useful one
        "name": "tiny", "description": "two of them",
        "cuda": ["gemm/bf16/tn/m1000n1000k1000", "probe/launch"], /* and */ "cpu": ["gemm/fp32/tn/m64n64k64"]})",
                                                    "tiny.json");
    CHECK(suite.name == "tiny");
    CHECK(suite.of("cuda") == std::vector<std::string>{"gemm/bf16/tn/m1000n1000k1000", "probe/launch"});
    CHECK(suite.of("cpu").size() == 1);
    CHECK_THROWS_AS(static_cast<void>(suite.of("metal")), usage_error);

    const auto refused = [](const std::string& text) {
        const auto problem = refusal_of([&] { static_cast<void>(json::parse_suite(text, "s.json")); });
        return problem ? problem->what() : std::string("accepted");
    };
    CHECK(contains(refused(R"({"name": "a", "cuda": ["x", "x"]})"), "at /cuda/1: \"x\" is listed twice"));
    CHECK(contains(refused(R"({"name": "a", "cuda": [""]})"), "at /cuda/0: must be a benchmark id"));
    CHECK(contains(refused(R"({"name": "a", "cuda": "x"})"), "at /cuda: must be an array"));
    CHECK(contains(refused(R"({"name": "a", "CUDA": ["x"]})"), "at /CUDA: is not a known member"));
    CHECK(contains(refused(R"({"name": "a"})"), "lists no benchmarks"));
    CHECK(contains(refused(R"({"cuda": ["x"]})"), "lacks the member \"name\""));
}
