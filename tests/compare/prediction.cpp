// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "build.hpp"
#include "plumbline/compare/prediction.hpp"
#include "plumbline/report/prediction.hpp"

using namespace plumbline;
using compare::foretold;

namespace {

result::evidence plan(const std::string& implementation, bool tensor_cores, std::int64_t version) {
    const std::string mode = implementation.find("FALLBACK") != std::string::npos ? "FALLBACK" : "A";
    return {implementation, {{"mode", mode}, {"tensor_cores", tensor_cores}, {"cudnn_version", version}}, {}};
}

/// Four bf16 convolutions that ran engine 38 with cuDNN 9.14.
result::baseline measured() {
    result::baseline base = build::baseline(3);
    for (const char* id : {"conv/a", "conv/b", "conv/c", "conv/d", "gemm/x"}) {
        auto& r = build::add(base, id, {100, 101, 99});
        r.what.family = std::string(id).substr(0, 4);
        r.what.params = {{"dtype", std::string("bf16")}};
        for (auto& s : r.sessions) s.ran = plan("cudnn/A/eng38", true, 91400);
    }
    // One session of three ran something else: the usual plan is what counts.
    base.results[0].sessions[0].ran = plan("cudnn/A/eng7", true, 91400);
    return base;
}

bool is_conv(const result::result& each) {
    return each.what.family == "conv";
}

} // namespace

TEST_CASE("a prediction tells worse from changed from the same") {
    const auto ask = [](const std::string& id) -> result::evidence {
        if (id == "conv/a") return plan("cudnn/A/eng38", true, 91900);
        if (id == "conv/b") return plan("cudnn/A/eng0", true, 91900);
        if (id == "conv/c") return plan("cudnn/FALLBACK/eng1", false, 91900);
        throw unsupported_error("no engine for " + id);
    };
    const compare::prediction found = compare::foretell(measured(), is_conv, ask);
    REQUIRE(found.results.size() == 4);
    CHECK(found.exit == exit_code::regressed);
    CHECK(found.count(foretold::worse) == 2);
    CHECK(found.results[0].id == "conv/c");
    CHECK(found.results[0].why.size() == 2); // the last resort, and no tensor cores
    CHECK(found.results[1].id == "conv/d");
    CHECK(found.results[1].after.empty());
    CHECK(found.results[2].what == foretold::changed);
    CHECK(found.results[3].what == foretold::same);
    std::ostringstream text;
    report::write_prediction(text, found);
    CHECK(text.str() == "cuDNN     91400 -> 91900 here, for the baseline's device\n"
                        "WORSE     conv/c   A/eng38 -> FALLBACK/eng1\n"
                        "            the library had nothing but its engine of last resort (cudnn/FALLBACK/eng1)\n"
                        "            bf16 was computed without tensor cores\n"
                        "WORSE     conv/d   does not run\n"
                        "            no engine for conv/d\n"
                        "changed   conv/b   eng38 -> eng0\n"
                        "2 worse, 1 changed, 1 as before; exit 1\n");
}

TEST_CASE("changed choices alone are no failure, nor is what was bad before") {
    result::baseline base = measured();
    for (auto& r : base.results) {
        for (auto& s : r.sessions) s.ran = plan("cudnn/FALLBACK/eng3", false, 91400);
    }
    const auto found =
        compare::foretell(base, is_conv, [](const std::string&) { return plan("cudnn/FALLBACK/eng4", false, 91900); });
    CHECK(found.exit == exit_code::ok);
    CHECK(found.count(foretold::changed) == 4);
}

TEST_CASE("an engine that is not offered on this machine makes the choice unknown, not changed") {
    result::baseline base = measured();
    for (auto& r : base.results) {
        for (auto& s : r.sessions) s.ran = plan("cudnn/A/eng62_k25=2", true, 91400);
    }
    const auto ask = [](const std::string& id) {
        result::evidence here = plan("cudnn/A/eng65_k2=1_k25=0", true, 91900);
        if (id == "conv/a")
            here.parts["offered_engines"] = std::string(" eng65_k2=1_k25=0 eng62_k25=7 "); // other knobs
        if (id == "conv/b") here.parts["offered_engines"] = std::string(" eng65_k2=1_k25=0 eng62_k2=1_k25=2 ");
        if (id == "conv/c") here.parts["offered_engines"] = std::string(" eng65_k2=1_k25=0 eng6_k25=2 ");
        return here;
    };
    const auto found = compare::foretell(base, is_conv, ask);
    CHECK(found.count(foretold::changed) == 2); // a, and d, of which nothing is said
    REQUIRE(found.count(foretold::unknown) == 2);
    CHECK(found.exit == exit_code::ok);
    std::ostringstream text;
    report::write_prediction(text, found);
    CHECK(text.str().find("unknown   conv/b   cudnn/A/eng62_k25=2 is not offered here\n") != std::string::npos);
    CHECK(text.str().find("0 worse, 2 changed, 2 unknown, 0 as before; exit 0\n") != std::string::npos);
}

TEST_CASE("a baseline without convolutions that ran cannot be foretold") {
    result::baseline base = measured();
    for (auto& r : base.results) r.status = result::result_status::failed;
    const auto never = [](const std::string&) -> result::evidence { throw error("not to be asked"); };
    CHECK_THROWS_AS((void)compare::foretell(base, is_conv, never), environment_error);
}
