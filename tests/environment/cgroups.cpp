// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "fake_machine.hpp"

using namespace plumbline_tests;
using plumbline::scalar;

namespace {

constexpr const char* v2_mount = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
constexpr const char* v1_mounts = "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
                                  "32 24 0:28 / /sys/fs/cgroup/memory rw shared:6 - cgroup cgroup rw,memory\n"
                                  "33 24 0:29 / /sys/fs/cgroup/pids rw shared:7 - cgroup cgroup rw,pids\n";

void allow(fake_machine& m, const std::string& cpus) {
    m.file("/proc/self/status", "Cpus_allowed_list:\t" + cpus + "\n");
}

scalar value(const plumbline::result::reading& read) {
    REQUIRE_MESSAGE(read.known(), read.reason);
    return read.value;
}

} // namespace

TEST_CASE("a pod under cgroup v2: the tightest limit on the way up counts") {
    fake_machine m;
    allow(m, "0-63");
    m.file("/proc/self/cgroup", "0::/kubepods/pod7/c1\n").file("/proc/self/mountinfo", v2_mount);
    m.file("/sys/fs/cgroup/kubepods/pod7/c1/cpu.max", "max 100000\n");
    m.file("/sys/fs/cgroup/kubepods/pod7/cpu.max", "350000 100000\n");
    m.file("/sys/fs/cgroup/kubepods/cpu.max", "6400000 100000\n");
    m.file("/sys/fs/cgroup/kubepods/pod7/c1/memory.max", "34359738368\n");
    m.file("/sys/fs/cgroup/kubepods/pod7/memory.max", "17179869184\n");
    m.file("/sys/fs/cgroup/kubepods/pod7/c1/pids.max", "max\n");
    m.file("/sys/fs/cgroup/kubepods/pod7/c1/cpu.stat",
           "usage_usec 123\nnr_periods 1000\nnr_throttled 250\nthrottled_usec 4500000\n");
    CHECK(value(env::cpu_quota(m.host)) == scalar{3.5});
    CHECK(value(env::usable_cpus(m.host)) == scalar{std::int64_t{4}});
    const auto throttled = env::read_throttling(m.host);
    REQUIRE(throttled);
    CHECK(throttled->periods == 1000);
    CHECK(throttled->throttled == 250);
    CHECK(throttled->throttled_ms == doctest::Approx(4500));
    const auto f = m.fingerprint();
    CHECK(value(f.find("cgroup.version")->read) == scalar{std::string("v2")});
    CHECK(value(f.find("cgroup.memory_limit_bytes")->read) == scalar{std::int64_t{17179869184}});
    CHECK(value(f.find("cgroup.pids_limit")->read) == scalar{std::string("unlimited")});
    CHECK(value(f.find("cgroup.throttled_periods")->read) == scalar{std::int64_t{250}});
}

TEST_CASE("a pod under cgroup v1") {
    fake_machine m;
    allow(m, "0-7");
    m.file("/proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:pids:/docker/abc\n");
    m.file("/proc/self/mountinfo", v1_mounts);
    const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct/docker/abc/";
    m.file(cpu + "cpu.cfs_quota_us", "150000\n").file(cpu + "cpu.cfs_period_us", "100000\n");
    m.file(cpu + "cpu.stat", "nr_periods 10\nnr_throttled 3\nthrottled_time 2000000\n");
    m.file("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "8589934592\n");
    m.file("/sys/fs/cgroup/pids/docker/abc/pids.max", "512\n");
    CHECK(value(env::cpu_quota(m.host)) == scalar{1.5});
    CHECK(value(env::usable_cpus(m.host)) == scalar{std::int64_t{2}});
    CHECK(env::read_throttling(m.host)->throttled_ms == doctest::Approx(2));
    const auto f = m.fingerprint();
    CHECK(value(f.find("cgroup.version")->read) == scalar{std::string("v1")});
    CHECK(value(f.find("cgroup.memory_limit_bytes")->read) == scalar{std::int64_t{8589934592}});
    CHECK(value(f.find("cgroup.pids_limit")->read) == scalar{std::int64_t{512}});
    // No quota is written as -1, no memory limit as a number near 2^63.
    m.file(cpu + "cpu.cfs_quota_us", "-1\n");
    m.file("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(value(env::cpu_quota(m.host)) == scalar{std::string("unlimited")});
    CHECK(value(m.fingerprint().find("cgroup.memory_limit_bytes")->read) == scalar{std::string("unlimited")});
    CHECK(value(env::usable_cpus(m.host)) == scalar{std::int64_t{8}});
}

TEST_CASE("hybrid: a v1 controller wins over the unified hierarchy") {
    fake_machine m;
    allow(m, "0-3");
    m.file("/proc/self/cgroup", "4:cpu,cpuacct:/\n0::/a\n")
        .file("/proc/self/mountinfo", std::string(v2_mount) + v1_mounts);
    m.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n");
    m.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    m.file("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    CHECK(value(env::cpu_quota(m.host)) == scalar{1.0});
    CHECK(value(m.fingerprint().find("cgroup.version")->read) == scalar{std::string("hybrid")});
}

TEST_CASE("a container that sees only its part of the hierarchy") {
    fake_machine m;
    allow(m, "0-15");
    m.file("/proc/self/cgroup", "0::/docker/abc\n");
    m.file("/proc/self/mountinfo", "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    m.file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK(value(env::cpu_quota(m.host)) == scalar{2.0});
    // A path that does not exist below the mount point is that of the host: the mount point is then ours.
    m.file("/proc/self/cgroup", "0::/somewhere/else\n");
    CHECK(value(env::cpu_quota(m.host)) == scalar{2.0});
}

TEST_CASE("affinity narrower than the quota decides; neither readable is unknown, not zero") {
    fake_machine m;
    allow(m, "2,5");
    m.file("/proc/self/cgroup", "0::/\n").file("/proc/self/mountinfo", v2_mount);
    m.file("/sys/fs/cgroup/cpu.max", "800000 100000\n");
    CHECK(value(env::usable_cpus(m.host)) == scalar{std::int64_t{2}});
    m.file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    CHECK(value(env::usable_cpus(m.host)) == scalar{std::int64_t{1}});
    fake_machine empty;
    CHECK_FALSE(env::usable_cpus(empty.host).known());
    CHECK_FALSE(env::cpu_quota(empty.host).known());
    CHECK_FALSE(env::read_throttling(empty.host));
}

TEST_CASE("lists of CPUs, and texts that are none") {
    CHECK(env::parse_id_list("0-3,8,10-11\n") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
    CHECK(env::parse_id_list("5") == std::vector<int>{5});
    CHECK(env::parse_id_list("").empty());
    for (const char* bad : {"a", "3-1", "-2", "1-", "0-99999999999", "1,x"}) {
        CAPTURE(bad);
        CHECK(env::parse_id_list(bad).empty());
    }
}

TEST_CASE("numbers are read whole or not at all, whatever the locale") {
    CHECK(env::detail::integer(" 42\n") == 42);
    CHECK_FALSE(env::detail::integer("42 kB"));
    CHECK_FALSE(env::detail::integer(""));
    CHECK(env::detail::number("1.5") == 1.5);
    CHECK_FALSE(env::detail::number("1,5"));
    CHECK(env::detail::shown(1.5) == "1.5");
    CHECK(env::detail::shown(700.0) == "700");
    CHECK(env::detail::shown_bytes(1536.0 * 1024 * 1024) == "1.5 GiB");
}
