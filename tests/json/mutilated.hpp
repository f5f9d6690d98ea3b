// SPDX-License-Identifier: Apache-2.0
#ifndef PLUMBLINE_TESTS_JSON_MUTILATED_HPP
#define PLUMBLINE_TESTS_JSON_MUTILATED_HPP

#include <functional>
#include <string>
#include <vector>

#include "plumbline/json/baseline.hpp"
#include "sample.hpp"

namespace plumbline::tests {

using tree = nlohmann::ordered_json;

/// A way to spoil a good document, where the reader must see it, and what it must say.
struct mutilation {
    std::string name;
    std::function<void(tree&)> spoil;
    std::string pointer;   ///< in the error
    std::string message;   ///< part of the error
    bool by_schema = true; ///< a JSON Schema can see it too
};

inline tree sample_document() {
    return tree::parse(json::dump(sample_baseline()));
}

inline std::vector<mutilation> mutilations() {
    const std::string gpu = "gpu.sm_count";
    const auto session = [](tree& d) -> tree& { return d["results"][0]["sessions"][0]; };
    return {
        // The head.
        {"not an object", [](tree& d) { d = tree::array(); }, "", "must be an object, is an array"},
        {"no schema", [](tree& d) { d.erase("schema"); }, "", "lacks the member \"schema\""},
        {"other schema", [](tree& d) { d["schema"]["name"] = "nvbench"; }, "/schema/name", "is \"nvbench\""},
        {"next version", [](tree& d) { d["schema"]["version"] = 2; }, "/schema/version", "is schema version 2"},
        {"version zero", [](tree& d) { d["schema"]["version"] = 0; }, "/schema/version", "is schema version 0"},
        {"version as text", [](tree& d) { d["schema"]["version"] = "1"; }, "/schema/version", "must be a whole number"},
        {"version negative", [](tree& d) { d["schema"]["version"] = -1; }, "/schema/version", "is the number -1"},
        {"unknown member of schema", [](tree& d) { d["schema"]["date"] = "x"; }, "/schema/date", "not a known member"},
        {"unknown member", [](tree& d) { d["resluts"] = 1; }, "/resluts", "did you mean \"results\"?"},
        {"no created", [](tree& d) { d.erase("created"); }, "", "lacks the member \"created\""},
        {"created local", [](tree& d) { d["created"] = "2026-11-30 20:15"; }, "/created", "must be a UTC time"},
        {"created with zone", [](tree& d) { d["created"] = "2026-11-30T20:15:00+01:00"; }, "/created", "UTC time"},
        {"created number", [](tree& d) { d["created"] = 5; }, "/created", "must be a string, is the number 5"},
        {"tool list", [](tree& d) { d["tool"] = tree::array({1}); }, "/tool", "must be an object, is an array"},
        {"nested label", [](tree& d) { d["labels"]["a"] = tree::object(); }, "/labels/a", "is an object"},
        {"null label", [](tree& d) { d["labels"]["a/b~c"] = nullptr; }, "/labels/a~1b~0c", "is null"},
        {"selection", [](tree& d) { d["selection"]["left_out"][0] = 3; }, "/selection/left_out/0", "must be a string"},
        {"selection short", [](tree& d) { d["selection"].erase("filter"); }, "/selection", "lacks"},
        // The fingerprint.
        {"no fingerprint", [](tree& d) { d.erase("fingerprint"); }, "", "lacks the member \"fingerprint\""},
        {"no hash", [](tree& d) { d["fingerprint"]["provenance"].erase("hash"); }, "/fingerprint/provenance", "lacks"},
        {"edited identity", [=](tree& d) { d["fingerprint"]["comparability"]["fields"][gpu]["value"] = 114; },
         "/fingerprint/comparability/hash", "the file was edited or damaged", false},
        {"edited type", [=](tree& d) { d["fingerprint"]["comparability"]["fields"][gpu]["value"] = 132.0; },
         "/fingerprint/comparability/hash", "restore it, or measure again", false},
        {"edited config", [](tree& d) { d["fingerprint"]["provenance"]["fields"].erase("cudnn.version"); },
         "/fingerprint/provenance/hash", "does not belong to these fields", false},
        {"attribute without reading", [=](tree& d) { d["fingerprint"]["comparability"]["fields"][gpu].erase("value"); },
         "/fingerprint/comparability/fields/gpu.sm_count", "has 0"},
        {"attribute with two", [=](tree& d) { d["fingerprint"]["comparability"]["fields"][gpu]["absent"] = "x"; },
         "/fingerprint/comparability/fields/gpu.sm_count", "has 2"},
        {"link zero", [=](tree& d) { d["fingerprint"]["comparability"]["fields"][gpu]["link"] = 0; },
         "/fingerprint/comparability/fields/gpu.sm_count/link", "1 to 6, is 0"},
        {"link seven", [=](tree& d) { d["fingerprint"]["comparability"]["fields"][gpu]["link"] = 7; },
         "/fingerprint/comparability/fields/gpu.sm_count/link", "at most 6, is 7"},
        {"no source", [=](tree& d) { d["fingerprint"]["comparability"]["fields"][gpu].erase("source"); },
         "/fingerprint/comparability/fields/gpu.sm_count", "lacks the member \"source\""},
        {"attribute in two classes",
         [=](tree& d) { d["fingerprint"]["state"]["fields"][gpu] = d["fingerprint"]["comparability"]["fields"][gpu]; },
         "/fingerprint/state/fields/gpu.sm_count", "in two classes", false},
        {"hashed state", [](tree& d) { d["fingerprint"]["state"]["hash"] = "0"; }, "/fingerprint/state/hash",
         "not a known member"},
        // Device, noise, history.
        {"ceiling text", [](tree& d) { d["device"]["ceilings"]["copy_bytes_per_s"] = "fast"; },
         "/device/ceilings/copy_bytes_per_s", "must be a number, is a string"},
        {"no model", [](tree& d) { d["device"].erase("model"); }, "/device", "lacks the member \"model\""},
        {"negative noise", [](tree& d) { d["noise"]["kernel"]["s0"] = -0.1; }, "/noise/kernel", "from 0 to 1000"},
        {"noise without bounds", [](tree& d) { d["noise"]["kernel"]["s0"] = 1e300; }, "/noise/kernel", "to 1000"},
        {"noise worth nothing", [](tree& d) { d["noise"]["kernel"]["d0"] = 0; }, "/noise/kernel/d0", "more than 0"},
        {"noise worth all", [](tree& d) { d["noise"]["kernel"]["d0"] = 1e300; }, "/noise/kernel/d0", "at most"},
        {"noise name", [](tree& d) { d["noise"]["kernel"]["s_0"] = 0.1; }, "/noise/kernel/s_0", "did you mean \"s0\"?"},
        {"event without reason", [](tree& d) { d["history"][1].erase("reason"); }, "/history/1", "lacks"},
        {"event time", [](tree& d) { d["history"][1]["when"] = "now"; }, "/history/1/when", "must be a UTC time"},
        {"check list", [](tree& d) { d["checks"]["driver"] = tree::array(); }, "/checks/driver", "is an array"},
        // Sessions.
        {"sessions object", [](tree& d) { d["sessions"] = tree::object(); }, "/sessions", "must be an array"},
        {"no epoch", [](tree& d) { d["sessions"][1].erase("epoch"); }, "/sessions/1", "lacks the member \"epoch\""},
        {"bad day", [](tree& d) { d["sessions"][1]["epoch"]["day"] = "30.11.2026"; }, "/sessions/1/epoch/day",
         "a date"},
        {"negative seed", [](tree& d) { d["sessions"][0]["seed"] = -1; }, "/sessions/0/seed", "0 or more"},
        {"fractional seed", [](tree& d) { d["sessions"][0]["seed"] = 1.5; }, "/sessions/0/seed", "whole number"},
        {"failed as number", [](tree& d) { d["sessions"][0]["failed"] = 0; }, "/sessions/0/failed", "true or false"},
        {"negative time", [](tree& d) { d["sessions"][0]["seconds"] = -1; }, "/sessions/0/seconds", "0 or more"},
        // Results.
        {"no results", [](tree& d) { d.erase("results"); }, "", "lacks the member \"results\""},
        {"result text", [](tree& d) { d["results"][1] = "x"; }, "/results/1", "must be an object, is a string"},
        {"empty id", [](tree& d) { d["results"][1]["id"] = ""; }, "/results/1/id", "must not be empty"},
        {"same id twice", [](tree& d) { d["results"].push_back(d["results"][0]); }, "/results/2",
         "the benchmark \"gemm/bf16/tn/m4096n4096k4096\" has two results of the metric \"time\"", false},
        {"no unit", [](tree& d) { d["results"][0].erase("unit"); }, "/results/0", "lacks the member \"unit\""},
        {"better", [](tree& d) { d["results"][0]["better"] = "faster"; }, "/results/0/better",
         "must be one of \"lower\", \"higher\", is \"faster\""},
        {"status", [](tree& d) { d["results"][0]["status"] = "OK"; }, "/results/0/status", "is \"OK\""},
        {"verified", [](tree& d) { d["results"][0]["verified"] = "yes"; }, "/results/0/verified", "true or false"},
        {"class", [](tree& d) { d["results"][0]["workload"]["class"] = "gpu"; }, "/results/0/workload/class",
         "must be one of \"kernel\""},
        {"edited workload", [](tree& d) { d["results"][0]["workload"]["params"]["m"] = 8192; },
         "/results/0/workload/hash", "the file was edited or damaged", false},
        {"edited metric", [](tree& d) { d["results"][0]["metric"] = "cycles"; }, "/results/0/workload/hash",
         "does not belong", false},
        {"negative flop", [](tree& d) { d["results"][0]["workload"]["flop"] = -1; }, "/results/0/workload/flop",
         "0 or more"},
        {"no samples", [=](tree& d) { session(d).erase("samples"); }, "/results/0/sessions/0", "lacks"},
        {"null sample", [=](tree& d) { session(d)["samples"][1] = nullptr; }, "/results/0/sessions/0/samples/1",
         "must be a number, is null"},
        {"text sample", [=](tree& d) { session(d)["samples"][1] = "1.5"; }, "/results/0/sessions/0/samples/1",
         "must be a number, is a string"},
        {"samples number", [=](tree& d) { session(d)["samples"] = 1.5; }, "/results/0/sessions/0/samples",
         "must be an array"},
        {"cycles short", [=](tree& d) { session(d)["cycles"].erase(0); }, "/results/0/sessions/0/cycles",
         "one value for each of the 3 samples, has 2", false},
        {"clean long", [=](tree& d) { session(d)["clean"].push_back(true); }, "/results/0/sessions/0/clean", "has 4",
         false},
        {"clean numbers", [=](tree& d) { session(d)["clean"][0] = 1; }, "/results/0/sessions/0/clean/0",
         "must be true or false, is the number 1"},
        {"session out of range", [=](tree& d) { session(d)["session"] = 2; }, "/results/0/sessions/0/session",
         "an index into /sessions, which has 2, is 2", false},
        {"session huge", [=](tree& d) { session(d)["session"] = 4294967296; }, "/results/0/sessions/0/session",
         "must be at most 4294967295"},
        {"session twice", [](tree& d) { d["results"][0]["sessions"][1]["session"] = 0; },
         "/results/0/sessions/1/session", "session 0 occurs twice", false},
        {"flag number", [=](tree& d) { session(d)["flags"][0] = 1; }, "/results/0/sessions/0/flags/0", "a string"},
        {"evidence without implementation", [=](tree& d) { session(d)["evidence"].erase("implementation"); },
         "/results/0/sessions/0/evidence", "lacks"},
        {"evidence nested", [=](tree& d) { session(d)["evidence"]["parts"]["x"] = tree::array(); },
         "/results/0/sessions/0/evidence/parts/x", "is an array"},
        {"unknown member of a sample", [=](tree& d) { session(d)["sample"] = 1; }, "/results/0/sessions/0/sample",
         "did you mean \"samples\"?"},
    };
}

} // namespace plumbline::tests

#endif
