// SPDX-License-Identifier: Apache-2.0
// The suites that are compiled into bench hold ids that exist.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "plumbline/json/suite.hpp"
#include "plumbline/workload/conv.hpp"
#include "plumbline/workload/dataloader.hpp"
#include "plumbline/workload/gemm.hpp"
#include "plumbline/workload/id.hpp"
#include "plumbline/workload/layernorm.hpp"
#include "plumbline/workload/probe.hpp"
#include "plumbline/workload/training_step.hpp"

namespace workload = plumbline::workload;

namespace {

workload::suite load(const std::string& name) {
    return plumbline::json::load_suite(std::filesystem::path(BENCH_SUITES) / (name + ".json"));
}

bool holds(const std::vector<std::string>& all, const std::vector<std::string>& part) {
    return std::all_of(part.begin(), part.end(),
                       [&](const std::string& id) { return std::find(all.begin(), all.end(), id) != all.end(); });
}

} // namespace

TEST_CASE("every id of every suite is one that its family makes") {
    std::size_t ids = 0;
    for (const auto& entry : std::filesystem::directory_iterator(BENCH_SUITES)) {
        const workload::suite suite = plumbline::json::load_suite(entry.path());
        CHECK(suite.name == entry.path().stem());
        for (const auto& [backend, list] : suite.ids) {
            CHECK((backend == "cuda" || backend == "cpu"));
            for (const std::string& id : list) {
                CAPTURE(id);
                ++ids;
                const std::string family = workload::family_of(id);
                if (family == "conv") CHECK_NOTHROW((void)workload::conv::parse(id));
                if (family == "gemm") CHECK_NOTHROW((void)workload::gemm::parse(id));
                if (family == "probe") CHECK_NOTHROW((void)workload::probe::parse(id));
                if (family == "layernorm") CHECK_NOTHROW((void)workload::layernorm::parse(id));
                if (family == "dataloader") CHECK_NOTHROW((void)workload::dataloader::parse(id));
                if (family == "training_step") CHECK_NOTHROW((void)workload::training_step::parse(id));
                const std::set<std::string> known{"conv", "dataloader", "gemm", "layernorm", "probe", "training_step"};
                CHECK(known.count(family) == 1);
            }
        }
    }
    CHECK(ids > 100);
}

TEST_CASE("quick is part of standard, standard of full; each fits its time") {
    const workload::suite quick = load("quick"), standard = load("standard"), full = load("full");
    for (const char* backend : {"cuda", "cpu"}) {
        CHECK(holds(standard.of(backend), quick.of(backend)));
        CHECK(holds(full.of(backend), standard.of(backend)));
        CHECK(quick.of(backend).size() <= 15);
        CHECK(standard.of(backend).size() <= 60);
        CHECK_FALSE(load("check").of(backend).empty());
    }
}

TEST_CASE("the standard suite has as many of each family as the design names, and a DataLoader without a GPU") {
    const workload::suite standard = load("standard");
    const auto count = [&](const char* backend, const char* family) {
        const auto& ids = standard.of(backend);
        return std::count_if(ids.begin(), ids.end(),
                             [&](const std::string& id) { return workload::family_of(id) == family; });
    };
    CHECK(count("cuda", "probe") == 12);
    CHECK(count("cuda", "gemm") == 12);
    CHECK(count("cuda", "conv") == 14);
    CHECK(count("cuda", "layernorm") == 10);
    CHECK(count("cuda", "training_step") == 6);
    CHECK(count("cuda", "dataloader") == 6);
    CHECK(count("cpu", "dataloader") == 6);
    for (const char* id : {"dataloader/jpeg/w1p2", "dataloader/jpeg/whalfp2", "dataloader/jpeg/wallp2",
                           "dataloader/jpeg/wbestp2", "dataloader/raw/whalfp2", "dataloader/jpeg/wallp2/step100ms"}) {
        CHECK(holds(standard.of("cpu"), {id}));
    }
}
