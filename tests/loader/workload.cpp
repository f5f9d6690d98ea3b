// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "plumbline/workload/dataloader.hpp"

using namespace plumbline;
namespace dataloader = workload::dataloader;

TEST_CASE("the id of a DataLoader benchmark and its parameters are inverse to each other") {
    for (const char* text :
         {"dataloader/jpeg/w8p2/pinned", "dataloader/jpeg/w0p1", "dataloader/raw/whalfp2", "dataloader/memory/wallp4",
          "dataloader/jpeg/wbestp2/pinned/unordered/cold/fp16/hwc/b32/step20ms", "dataloader/jpeg/w1024p64",
          "dataloader/jpeg/wallp2/pinned/train"}) {
        CAPTURE(text);
        CHECK(dataloader::id(dataloader::parse(text)) == text);
    }
    const dataloader::params p = dataloader::parse("dataloader/jpeg/w8p3/pinned/fp16/b64/step15ms");
    CHECK(p.workers == dataloader::worker_count{dataloader::worker_count::rule::number, 8});
    CHECK(p.prefetch == 3);
    CHECK(p.pinned);
    CHECK(p.type == workload::dtype::fp16);
    CHECK(p.batch == 64);
    CHECK(p.step_ms == 15);
}

TEST_CASE("an id that is not spelled the one right way is refused") {
    for (const char* text : {"",
                             "dataloader",
                             "dataloader/jpeg",
                             "dataloader/png/w1p1",
                             "dataloader/jpeg/w1",
                             "dataloader/jpeg/wp2",
                             "dataloader/jpeg/w08p2",
                             "dataloader/jpeg/w8p0",
                             "dataloader/jpeg/w8p2/",
                             "dataloader/jpeg/w8p2/b128",
                             "dataloader/jpeg/w8p2/b0",
                             "dataloader/jpeg/w8p2/hwc/fp16",
                             "dataloader/jpeg/w8p2/pinned/pinned",
                             "dataloader/jpeg/w8p2/step0ms",
                             "dataloader/jpeg/w-1p2",
                             "dataloader/jpeg/w2000p2",
                             "dataloader/jpeg/w99999999999999999999p2",
                             "gemm/jpeg/w8p2",
                             "dataloader/jpeg/w8p2/fp32",
                             "dataloader/jpeg/w8p2/step9ms/train",
                             "dataloader/jpeg/w8p2/b",
                             "dataloader/jpeg/w8p2/stepms"}) {
        CAPTURE(text);
        CHECK_THROWS_AS((void)dataloader::parse(text), usage_error);
    }
}

TEST_CASE("every parameter that changes what is loaded changes the hash") {
    const dataloader::params base;
    std::set<std::string> hashes{describe(base).hash()};
    const auto differs = [&](auto change) {
        dataloader::params other = base;
        change(other);
        CHECK(hashes.insert(describe(other).hash()).second);
    };
    differs([](auto& p) { p.from = dataloader::source::raw; });
    differs([](auto& p) { p.from = dataloader::source::memory; });
    differs([](auto& p) { p.workers.number = 2; });
    differs([](auto& p) { p.workers.kind = dataloader::worker_count::rule::all; });
    differs([](auto& p) { p.prefetch = 4; });
    differs([](auto& p) { p.pinned = true; });
    differs([](auto& p) { p.ordered = false; });
    differs([](auto& p) { p.cold = true; });
    differs([](auto& p) { p.type = workload::dtype::fp16; });
    differs([](auto& p) { p.order = dataloader::layout::hwc; });
    differs([](auto& p) { p.batch = 64; });
    differs([](auto& p) { p.size = 299; });
    differs([](auto& p) { p.step_ms = 5; });
    differs([](auto& p) { p.train = true; });
    differs([](auto& p) { p.data = "folder"; });
}

TEST_CASE("a DataLoader alone is judged by throughput, with a consumer by the time of its step") {
    CHECK(describe(dataloader::parse("dataloader/jpeg/w1p2")).better == direction::higher);
    CHECK(describe(dataloader::parse("dataloader/jpeg/w1p2")).metric == "throughput");
    for (const char* text : {"dataloader/jpeg/w1p2/step10ms", "dataloader/jpeg/w1p2/train"}) {
        const workload::description step = describe(dataloader::parse(text));
        CHECK(step.metric == "time");
        CHECK(step.unit == "ns");
        CHECK(step.better == direction::lower);
        CHECK(step.kind == benchmark_class::dataloader);
    }
}
