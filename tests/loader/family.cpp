// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/environment/collect.hpp"
#include "plumbline/loader/family.hpp"
#include "plumbline/loader/jpeg/data.hpp"
#include "support.hpp"

using namespace plumbline;
using namespace std::chrono_literals;

namespace {

struct fake_backend {
    std::size_t trained = 0;
};

loader::family_settings<fake_backend> settings(const test::temporary_folder& cache) {
    loader::generated_set small;
    small.samples = 24;
    small.width = 120;
    small.height = 90;
    loader::family_settings<fake_backend> made;
    made.data.jpeg = loader::jpeg_data({}, cache.path(), 2, small);
    made.data.raw = loader::generated_records(cache.path(), 2, 8);
    made.data.memory = loader::memory_data(2, 8);
    return made;
}

measure::procedure_result run(const measure::family<fake_backend>& from, const std::string& id, fake_backend& on,
                              std::chrono::nanoseconds budget = 150ms) {
    const measure::benchmark<fake_backend> one = from.make(id);
    CHECK(one.what.id == id);
    CHECK(one.how == measure::regime::sustained);
    return one.measure(on, measure::budget{budget});
}

std::string text(const scalar_map& state, const std::string& name) {
    const auto at = state.find(name);
    return at == state.end() ? "" : to_string(at->second);
}

} // namespace

TEST_CASE("every source is measured and verified, with everything that belongs to the figure in its state") {
    const test::temporary_folder cache;
    const auto family = loader::family(settings(cache));
    fake_backend on;
    CHECK(family.name == "dataloader");
    for (const char* id : {"dataloader/jpeg/w2p2/b8", "dataloader/raw/w1p2/fp16/b8", "dataloader/memory/w0p1/hwc/b8",
                           "dataloader/jpeg/w2p2/unordered/fp16/hwc/b8"}) {
        CAPTURE(id);
        const measure::procedure_result seen = run(family, id, on);
        CHECK(seen.verified);
        REQUIRE(seen.metrics.size() == 1);
        const measure::metric& figure = seen.metrics[0];
        CHECK(figure.name == "throughput");
        CHECK(figure.unit == "items/s");
        CHECK(figure.better == direction::higher);
        REQUIRE(!figure.samples.empty());
        for (const double rate : figure.samples) CHECK(rate > 0);
        for (const char* name :
             {"workers", "prefetch", "images_per_s", "read_mb_per_s", "built_mb_per_s", "cpu_us_per_image",
              "waiting_share", "epoch_start_ms", "first_batch_ms", "failed_samples", "read_us_per_image",
              "decode_us_per_image", "transform_us_per_image", "waiting_for_decode_share", "usable_cpus"}) {
            CAPTURE(name);
            CHECK(figure.state.count(name) == 1);
        }
        CHECK(text(figure.state, "failed_samples") == "0");
        CHECK(!seen.ran.implementation.empty());
    }
}

TEST_CASE("rules for the number of workers follow the CPUs, and the best one comes with its curve and reason") {
    const test::temporary_folder cache;
    const auto family = loader::family(settings(cache));
    fake_backend on;
    const loader::machine_limits has = loader::read_limits(environment::this_machine("cpu"));
    const auto workers = [&](const char* id) { return text(run(family, id, on).metrics[0].state, "workers"); };
    CHECK(workers("dataloader/memory/wallp2/b8") == std::to_string(has.usable_cpus));
    CHECK(workers("dataloader/memory/whalfp2/b8") == std::to_string(std::max<std::int64_t>(1, has.usable_cpus / 2)));
    const measure::procedure_result best = run(family, "dataloader/memory/wbestp2/b8", on);
    const scalar_map& state = best.metrics[0].state;
    CHECK(text(state, "workers") == text(state, "recommended_workers"));
    CHECK(text(state, "curve").rfind("1:", 0) == 0);
    CHECK(!text(state, "recommended_because").empty());
    CHECK(text(state, "recommended_pin_memory") == "false");
    // A later session of the run takes the first one's recommendation, whatever it would find itself.
    measure::budget later{1ms, state};
    later.earlier["recommended_workers"] = std::int64_t{3};
    later.earlier["curve"] = std::string("1:10 3:27");
    const auto session = loader::family(settings(cache)); // a session is a process
    const auto again = session.make("dataloader/memory/wbestp2/b8").measure(on, later);
    CHECK(text(again.metrics[0].state, "workers") == "3");
    CHECK(text(again.metrics[0].state, "curve") == "1:10 3:27");
    CHECK(text(again.metrics[0].state, "recommended_because") == text(state, "recommended_because"));
    // One without it sweeps.
    later.earlier.erase("recommended_because");
    CHECK(text(family.make("dataloader/memory/wbestp2/b16").measure(on, later).metrics[0].state, "curve") !=
          "1:10 3:27");
}

TEST_CASE("a consumer of fixed speed turns the figure into the time of its step") {
    const test::temporary_folder cache;
    auto made = settings(cache);
    made.trained = [](const workload::dataloader::params& what) { return "step of " + std::to_string(what.batch); };
    made.training_step = [](fake_backend& on, const workload::dataloader::params&) {
        loader::training_consumer consumer;
        consumer.step = [&on](const loader::batch& taken) { on.trained += taken.size(); };
        consumer.finish = [&on](scalar_map& state) {
            if (on.trained == 0) throw verification_error("nothing was trained", 0, 0, 0);
            state["trained"] = static_cast<std::int64_t>(on.trained);
        };
        return consumer;
    };
    const auto family = loader::family(std::move(made));
    fake_backend on;
    const measure::procedure_result step = run(family, "dataloader/memory/w1p2/b8/step20ms", on);
    CHECK(step.metrics[0].name == "time");
    CHECK(step.metrics[0].unit == "ns");
    CHECK(stats::median(step.metrics[0].samples) >= 20e6);
    CHECK(std::get<double>(step.metrics[0].state.at("consumer_ms")) >= 20);
    CHECK_FALSE(step.hot);
    const measure::procedure_result trained = run(family, "dataloader/memory/w1p2/b8/train", on);
    CHECK(on.trained > 8);
    CHECK(trained.metrics[0].name == "time");
    CHECK(trained.hot); // it may have left the device at its power cap
    CHECK(text(trained.metrics[0].state, "trained") == std::to_string(on.trained));
    CHECK(text(family.make("dataloader/memory/w1p2/b8/train").what.params, "trained") == "step of 8");
    CHECK(family.make("dataloader/memory/w1p2/b8").what.params.count("trained") == 0);
    CHECK_THROWS_AS((void)run(loader::family(settings(cache)), "dataloader/memory/w1p2/b8/train", on),
                    unsupported_error);
}

TEST_CASE("pinning goes through the backend where it has a way, and says so where memory cannot be locked") {
    const test::temporary_folder cache;
    std::size_t copied = 0;
    auto made = settings(cache);
    made.pinned = [&copied](fake_backend&) {
        loader::transfer way;
        way.copy.reserve = [](std::size_t, std::size_t) {};
        way.copy.start = [&copied](std::size_t, const std::byte*, std::size_t bytes) { copied += bytes; };
        way.copy.wait = [](std::size_t) {};
        way.copy.address = [](std::size_t) -> const void* { return nullptr; };
        return way;
    };
    fake_backend on;
    const measure::procedure_result seen = run(loader::family(std::move(made)), "dataloader/memory/w1p2/pinned/b8", on);
    CHECK(copied > 0);
    CHECK(text(seen.metrics[0].state, "copy_us_per_image") != "0");
    try {
        const auto locked = run(loader::family(settings(cache)), "dataloader/memory/w1p2/pinned/b8", on);
        CHECK(!locked.metrics.empty());
    } catch (const unsupported_error& problem) {
        CHECK(std::string(problem.what()).find("ulimit -l") != std::string::npos);
    }
}

TEST_CASE("a cold cache is measured by epochs, or refused where the file system keeps its pages") {
    const test::temporary_folder cache;
    fake_backend on;
    const auto family = loader::family(settings(cache));
    try {
        const measure::procedure_result cold = run(family, "dataloader/jpeg/w2p2/cold/b8", on);
        CHECK(std::stod(text(cold.metrics[0].state, "cached_share_before")) <= 0.05);
        const measure::procedure_result warm = run(family, "dataloader/jpeg/w2p2/b8", on);
        CHECK(text(warm.metrics[0].state, "cached_share_before") == "1");
    } catch (const unsupported_error& problem) {
        CHECK(std::string(problem.what()).find("page cache keeps") != std::string::npos);
    }
    CHECK_THROWS_AS((void)run(family, "dataloader/memory/w2p2/cold/b8", on), unsupported_error);
}

TEST_CASE("a program without libjpeg-turbo or a training step skips what needs them, with the reason") {
    const test::temporary_folder cache;
    auto made = settings(cache);
    made.data.jpeg = {};
    const auto family = loader::family(std::move(made));
    fake_backend on;
    CHECK_THROWS_WITH_AS((void)run(family, "dataloader/jpeg/w1p2/b8", on), doctest::Contains("libjpeg-dev"),
                         unsupported_error);
    CHECK_THROWS_WITH_AS((void)run(family, "dataloader/memory/w1p2/b8/train", on), doctest::Contains("training step"),
                         unsupported_error);
    CHECK_THROWS_AS((void)family.make("dataloader/png/w1p2"), usage_error);
}

TEST_CASE("the user's own folder is part of the hash, is checked at once, and its broken files are in the state") {
    const test::temporary_folder cache;
    const test::temporary_folder own;
    const auto with_folder = [&](const std::filesystem::path& folder) {
        auto made = settings(cache);
        made.data.jpeg = loader::jpeg_data(folder, cache.path(), 2);
        return loader::family(std::move(made));
    };
    CHECK_THROWS_AS((void)with_folder(own.path()).make("dataloader/jpeg/w1p2/b4"), file_error);
    const auto pixels = loader::synthetic_image(80, 60, 1, 0);
    for (int i = 0; i < 7; ++i) {
        own.write(std::to_string(i) + ".jpg", loader::encode_jpeg(pixels.data(), 80, 60));
    }
    own.write("7.jpg", "broken");
    const auto family = with_folder(own.path());
    const std::string generated = loader::family(settings(cache)).make("dataloader/jpeg/w1p2/b4").what.hash();
    CHECK(family.make("dataloader/jpeg/w1p2/b4").what.hash() != generated);
    fake_backend on;
    const measure::procedure_result seen = run(family, "dataloader/jpeg/w1p2/b4", on);
    CHECK(text(seen.metrics[0].state, "failures").find("7.jpg: not a JPEG file") != std::string::npos);
    CHECK(seen.verified);
}

TEST_CASE("batches in flight that would take more than half of the memory are refused, not tried") {
    const test::temporary_folder cache;
    const loader::data_set data = settings(cache).data.memory.open({});
    loader::loader_case one;
    one.what = workload::dataloader::parse("dataloader/memory/w4p2/b8");
    one.data = &data;
    const loader::demand asks = loader::demand_of(one, 4, 2, false);
    CHECK(asks.ring_bytes == 10 * 8 * 3 * 224 * 224 * 4);
    loader::machine_limits has;
    CHECK_NOTHROW(loader::check_memory(has, asks)); // not known
    has.available_bytes = 2 * static_cast<std::int64_t>(asks.ring_bytes);
    CHECK_NOTHROW(loader::check_memory(has, asks));
    --*has.available_bytes;
    CHECK_THROWS_WITH_AS(loader::check_memory(has, asks), doctest::Contains("4 workers need 45 MiB"),
                         unsupported_error);
    fake_backend on;
    const auto family = loader::family(settings(cache));
    CHECK_THROWS_AS((void)run(family, "dataloader/memory/w1000p64/b65536", on), unsupported_error);
}

TEST_CASE("a transform that is wrong does not pass verification") {
    const test::temporary_folder cache;
    const loader::augmentation how;
    loader::data_set data = settings(cache).data.memory.open(how);
    CHECK(loader::verify_transform(data.all, how, 1) == 2);
    loader::pipeline wrong = data.all;
    wrong.make = [make = data.all.make] {
        loader::stages own = make();
        own.transform = [right = own.transform](loader::work& w, std::byte* out) {
            w.flipped = !w.flipped;
            right(w, out);
            w.flipped = !w.flipped;
        };
        return own;
    };
    CHECK_THROWS_AS((void)loader::verify_transform(wrong, how, 1), verification_error);
    wrong.make = [make = data.all.make] {
        loader::stages own = make();
        own.transform = [](loader::work&, std::byte*) {}; // leaves the output as it was
        return own;
    };
    CHECK_THROWS_AS((void)loader::verify_transform(wrong, how, 1), verification_error);
}
