// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/environment/collect.hpp"
#include "plumbline/loader/limits.hpp"
#include "plumbline/loader/sweep.hpp"
#include "support.hpp"

using namespace plumbline;

namespace {

/// A made-up machine of 16 CPUs.
struct fake_machine {
    test::temporary_folder root;
    environment::host host;

    explicit fake_machine(const std::string& allowed = "0-15", const std::string& quota = "") {
        std::string cpuinfo;
        for (int i = 0; i < 16; ++i) cpuinfo += "processor\t: " + std::to_string(i) + "\nmodel name\t: Made up\n\n";
        root.write("proc/cpuinfo", cpuinfo);
        root.write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t" + allowed + "\n");
        root.write("proc/self/limits", "Limit  Soft Limit  Hard Limit  Units\n"
                                       "Max locked memory         8388608              8388608              bytes\n");
        root.write("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:    2000000 kB\n");
        root.write("proc/self/cgroup", "0::/job\n");
        root.write("proc/self/mountinfo",
                   "25 1 0:1 / / rw - overlay overlay rw\n30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
                   "31 25 0:40 / /remote rw - nfs4 server:/x rw\n32 25 8:0 / /spinning rw - ext4 /dev/sda rw\n");
        root.write("sys/dev/block/8:0/queue/rotational", "1\n");
        root.write("sys/fs/cgroup/job/cpu.max", quota.empty() ? "max 100000\n" : quota + " 100000\n");
        root.write("dev/shm/x", "");
        host.root = root.path();
        host.space_of = [](const std::filesystem::path&) {
            return environment::file_system_space{64u << 20, 64u << 20};
        };
    }
};

std::string text_of(const std::vector<loader::limit>& limits, const std::string& name) {
    for (const loader::limit& one : limits) {
        if (one.name == name) return one.text;
    }
    return {};
}

/// A loader that scales perfectly up to the CPUs it may use, as a decode-bound one does.
loader::sweep_point scaling(std::size_t workers, std::size_t prefetch, double cpus) {
    const double rate = 1000 * std::min(static_cast<double>(workers), cpus);
    return {workers, prefetch, rate, 1e6};
}

loader::recommendation swept(const loader::machine_limits& has, double cpus) {
    return loader::sweep([&](std::size_t w, std::size_t p) { return scaling(w, p, cpus); }, has, {}, false);
}

} // namespace

TEST_CASE("the limits of a machine are read where they are") {
    const fake_machine machine("0-15", "350000");
    const loader::machine_limits has = loader::read_limits(machine.host, "/remote/images");
    CHECK(has.logical_cpus == 16);
    CHECK(has.allowed_cpus == 16);
    CHECK(has.quota_cpus == 3.5);
    CHECK(has.usable_cpus == 4);
    CHECK(has.shm_bytes == std::int64_t{64} << 20);
    CHECK(has.memlock_bytes == 8388608);
    CHECK(has.available_bytes == std::int64_t{2000000} * 1024);
    CHECK(has.file_system == "nfs4");
    CHECK(!has.rotational);
    CHECK(loader::read_limits(machine.host, "/spinning/images").rotational);
    CHECK(loader::read_limits(fake_machine("2-5").host).usable_cpus == 4);
    CHECK(!loader::read_limits(fake_machine("2-5").host).quota_cpus);
}

TEST_CASE("a machine of which nothing can be read still has one CPU and no limit is invented") {
    const test::temporary_folder nothing;
    environment::host host;
    host.root = nothing.path();
    const loader::machine_limits has = loader::read_limits(host, "/x");
    CHECK(has.usable_cpus == 1);
    CHECK(!has.quota_cpus);
    CHECK(!has.memlock_bytes);
    loader::demand asks;
    asks.ring_bytes = asks.data_bytes = std::size_t{1} << 40;
    asks.pinned = asks.cold = true;
    CHECK(loader::name_limits(has, asks).empty());
}

TEST_CASE("each limit is named when it bears on the loader, and only then") {
    loader::machine_limits has;
    has.logical_cpus = 16;
    has.allowed_cpus = has.usable_cpus = 16;
    has.shm_bytes = has.memlock_bytes = std::int64_t{64} << 20;
    has.available_bytes = std::int64_t{1} << 30;
    loader::demand asks;
    asks.workers = 16;
    asks.ring_bytes = std::size_t{64} << 20;
    asks.data_bytes = std::size_t{1} << 30;
    asks.pinned = true;
    CHECK(loader::name_limits(has, asks).empty());

    const auto named = [](const loader::machine_limits& with, const loader::demand& of, const std::string& name) {
        return text_of(loader::name_limits(with, of), name);
    };
    loader::machine_limits less = has;
    less.quota_cpus = 2.5;
    less.usable_cpus = 3;
    CHECK(named(less, asks, "cpu_quota") == "the control group's CPU quota is 2.5 CPUs, 16 are in the affinity mask");
    CHECK(named(less, asks, "oversubscribed") == "16 workers share 3 usable CPUs");
    less = has;
    less.allowed_cpus = less.usable_cpus = 2;
    CHECK(named(less, asks, "affinity") == "the affinity mask allows 2 of the machine's 16 CPUs");
    loader::demand more = asks;
    more.ring_bytes = std::size_t{65} << 20;
    CHECK(named(has, more, "memlock").find("64 MiB") != std::string::npos);
    CHECK(named(has, more, "shm").find("PyTorch") != std::string::npos);
    more.pinned = false;
    CHECK(named(has, more, "memlock").empty());
    more = asks;
    more.data_bytes = std::size_t{2} << 30;
    CHECK(!named(has, more, "page_cache").empty());
    less = has;
    less.file_system = "nfs4";
    less.rotational = true;
    CHECK(named(less, asks, "disk").empty()); // everything comes from the page cache
    more = asks;
    more.cold = true;
    CHECK(named(less, more, "disk").find("nfs4") != std::string::npos);
    less = has;
    less.numa_nodes = 2;
    CHECK(!named(less, asks, "numa").empty());
}

TEST_CASE("the knee is the fewest workers within 5 % of the best") {
    const auto at = [](std::size_t workers, double rate) { return loader::sweep_point{workers, 2, rate, 0}; };
    CHECK(loader::find_knee({at(1, 100), at(2, 200), at(4, 400), at(8, 800)}).workers == 8);
    CHECK(loader::find_knee({at(1, 100), at(2, 200), at(4, 381), at(8, 400)}).workers == 4);
    CHECK(loader::find_knee({at(1, 100), at(2, 200), at(4, 379), at(8, 400)}).workers == 8);
    CHECK(loader::find_knee({at(1, 100), at(2, 200), at(4, 400), at(8, 300)}).workers == 4); // too many hurt
    CHECK(loader::find_knee({at(1, 100)}).workers == 1);
    CHECK_THROWS_AS((void)loader::find_knee({}), usage_error);
    CHECK(loader::sweep_candidates(16) == std::vector<std::size_t>{1, 2, 4, 8, 16});
    CHECK(loader::sweep_candidates(12) == std::vector<std::size_t>{1, 2, 4, 8, 12});
    CHECK(loader::sweep_candidates(1) == std::vector<std::size_t>{1});
    CHECK(loader::sweep_candidates(0) == std::vector<std::size_t>{1});
}

TEST_CASE("a CPU quota or an affinity mask moves the recommendation, and the reason names it") {
    const loader::recommendation whole = swept(loader::read_limits(fake_machine().host), 16);
    CHECK(whole.num_workers == 16);
    CHECK(whole.reason == "16 workers give 16000 images/s, every usable CPU: bounded by the CPUs of the machine");
    CHECK(whole.efficiency(whole.curve.back()) == doctest::Approx(1.0));
    CHECK(whole.curve_text() == "1:1000 2:2000 4:4000 8:8000 16:16000");
    CHECK(whole.prefetch_factor == 2);
    CHECK(!whole.pin_memory);

    const loader::recommendation quota = swept(loader::read_limits(fake_machine("0-15", "200000").host), 2);
    CHECK(quota.num_workers == 2);
    CHECK(quota.reason.find("CPU quota is 2 CPUs") != std::string::npos);
    CHECK(!text_of(quota.limits, "cpu_quota").empty());

    const loader::recommendation mask = swept(loader::read_limits(fake_machine("3,7").host), 2);
    CHECK(mask.num_workers == 2);
    CHECK(mask.reason.find("affinity mask allows 2 of the machine's 16 CPUs") != std::string::npos);

    // CPUs that somebody else has are not the fault of what workers share.
    const loader::recommendation shared = loader::sweep(
        [](std::size_t w, std::size_t p) {
            return loader::sweep_point{w, p, 1000, 1e6, w > 1 ? 0.25 : 0.9};
        },
        loader::read_limits(fake_machine().host), {}, false);
    CHECK(shared.num_workers == 1);
    CHECK(shared.reason ==
          "1 worker gives 1000 images/s, more gain less than 5 %: 16 of them had a CPU for only 25 % of "
          "their work, so something else has part of the 16 usable CPUs");

    // Storage that gives 4000 images/s is a limit too, and not one of CPUs.
    const loader::recommendation storage = swept(loader::read_limits(fake_machine().host), 4);
    CHECK(storage.num_workers == 4);
    CHECK(storage.reason.find("not by the 16 usable CPUs") != std::string::npos);
}

TEST_CASE("a deeper prefetch is recommended when it pays, and pinning when there is a device") {
    loader::machine_limits has;
    has.usable_cpus = 4;
    const auto rate = [](std::size_t workers, std::size_t prefetch) {
        return loader::sweep_point{workers, prefetch, static_cast<double>(workers) * (prefetch == 4 ? 110 : 100), 0};
    };
    const loader::recommendation found = loader::sweep(rate, has, {}, true);
    CHECK(found.num_workers == 4);
    CHECK(found.prefetch_factor == 4);
    CHECK(found.pin_memory);
}

TEST_CASE("restricting this very process to one CPU is seen") {
    cpu_set_t before;
    REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
    const environment::host here = environment::this_machine("cpu");
    const loader::machine_limits all = loader::read_limits(here);
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    const loader::machine_limits restricted = loader::read_limits(here);
    REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
    CHECK(restricted.allowed_cpus == 1);
    CHECK(restricted.usable_cpus == 1);
    CHECK(all.allowed_cpus == CPU_COUNT(&before));
    if (restricted.logical_cpus.value_or(1) > 1) {
        const loader::recommendation moved = swept(restricted, 1);
        CHECK(moved.num_workers == 1);
        CHECK(moved.reason.find("affinity mask") != std::string::npos);
    }
}
