// SPDX-License-Identifier: Apache-2.0
// Several baselines: pooled, accepted, ranked.
#include <cmath>

#include <doctest/doctest.h>

#include "build.hpp"
#include "plumbline/compare/accept.hpp"
#include "plumbline/compare/siblings.hpp"

namespace compare = plumbline::compare;
namespace result = plumbline::result;
using build::scaled;
using build::values;
using compare::verdict;
using doctest::Approx;
using doctest::Contains;
using plumbline::usage_error;

namespace {

const values five{100, 100.1, 99.9, 100.05, 99.95};

result::baseline on_day(const std::string& day, const values& of = five) {
    auto b = build::baseline(of.size(), "board", "boot", day);
    build::add(b, "a", of);
    return b;
}

result::event because(const std::string& reason) {
    result::event e;
    e.when = "2026-12-01T00:00:00Z";
    e.who = "ada";
    e.reason = reason;
    return e;
}

} // namespace

TEST_CASE("merge: sessions and epochs of one side") {
    auto first = on_day("2026-11-01");
    first.noise["kernel"].d0 = 5;
    first.labels["ticket"] = std::string("1");
    first.device.ceilings = {{"copy", 5.0}, {"gemm", 1.0}};
    first.selected.left_out = {"b", "c"};
    first.history.push_back(because("first"));
    auto second = on_day("2026-11-02", scaled(five, 1.01));
    build::add(second, "b", five);
    second.labels["ticket"] = std::string("2");
    second.device.ceilings = {{"copy", 4.0}, {"gemm", 2.0}};
    second.device.properties["sm_count"] = std::int64_t{132};
    second.selected.left_out = {"c"};
    second.environment.attributes["driver"] = {};
    second.tool["version"] = std::string("2");
    second.checks["ecc"] = std::string("ok");
    second.history.push_back(because("second"));
    second.noise["host"].d0 = 6;
    const auto pool = compare::merge({first, second, on_day("2026-11-03", scaled(five, 0.99))});
    CHECK(pool.created == first.created);
    CHECK(pool.sessions.size() == 15);
    REQUIRE(pool.results.size() == 2);
    const auto& a = pool.results[0];
    REQUIRE(a.sessions.size() == 15);
    for (std::size_t i = 0; i < 15; ++i) CHECK(a.sessions[i].session == i);
    CHECK(a.sessions[5].samples == values{101});
    CHECK(pool.results[1].sessions[0].session == 5);
    CHECK(pool.sessions[pool.results[1].sessions[4].session].when.day == "2026-11-02");
    CHECK(plumbline::to_string(pool.labels.at("ticket")) == "2");
    CHECK(pool.device.ceilings.at("copy") == 5);
    CHECK(pool.device.ceilings.at("gemm") == 2);
    CHECK(pool.device.properties.count("sm_count") == 1);
    CHECK(pool.selected.left_out.empty()); // the third left nothing out
    CHECK(compare::merge({first, second}).selected.left_out == std::vector<std::string>{"c"});
    CHECK(compare::merge({first, second}).environment.attributes.count("driver") == 1);
    CHECK(compare::merge({first, second}).tool.count("version") == 1);
    CHECK(compare::merge({first, second}).checks.count("ecc") == 1);
    CHECK(pool.environment.attributes.empty()); // that of the last
    CHECK(pool.history.size() == 2);
    CHECK(pool.noise.at("kernel").d0 == 5);
    CHECK(pool.noise.at("host").d0 == 6);
    REQUIRE(pool.noise.count("a") == 1); // three epochs, fifteen sessions
    CHECK(pool.noise.at("a").s_e.value() > 0.009);
    CHECK(pool.noise.at("a").s0.value() < 0.001);
    CHECK(compare::merge({first}).noise.count("a") == 0);
    CHECK(compare::merge({on_day("2026-11-01", values(10, 100.0))}).noise.empty()); // one file is taken as it is
    const auto got = compare::compare(pool, on_day("2026-11-04"));
    const auto& found = build::at(got, "a");
    CHECK(found.base.epochs == 3);
    CHECK(found.base.sessions == 15);
}

TEST_CASE("merge: what cannot be pooled") {
    CHECK_THROWS_WITH_AS((void)compare::merge({}), Contains("no baseline"), usage_error);
    const auto first = on_day("2026-11-01");
    auto other = on_day("2026-11-02");
    other.device.uuid = "another";
    CHECK_THROWS_WITH_AS((void)compare::merge({first, other}), Contains("two devices (board and another)"),
                         usage_error);
    other.device.uuid.clear(); // unknown: the hardware must do
    CHECK(compare::merge({first, other}).sessions.size() == 10);
    CHECK(compare::merge({other, first}).sessions.size() == 10);
    auto hardware = on_day("2026-11-02");
    hardware.device.backend = "cpu";
    CHECK_THROWS_WITH_AS((void)compare::merge({first, hardware}), Contains("different hardware"), usage_error);
    CHECK_THROWS_WITH_AS((void)compare::merge({first, first}), Contains("in both"), usage_error);
    auto seeded = first;
    for (auto& s : seeded.sessions) s.seed = 7; // other sessions of the same second
    CHECK(compare::merge({first, seeded}).sessions.size() == 10);
    auto ordered = first;
    for (auto& s : ordered.sessions) s.order = {"a"};
    CHECK(compare::merge({first, ordered}).sessions.size() == 10);
    auto timeless = first;
    for (auto& s : timeless.sessions) s.started.clear();
    CHECK(compare::merge({timeless, timeless}).sessions.size() == 10); // nothing to tell them apart by
    const auto clash = [&](const auto& change) {
        auto b = on_day("2026-11-02");
        change(b.results[0]);
        CHECK_THROWS_WITH_AS((void)compare::merge({first, b}), Contains("'a' with metric 'time' is another workload"),
                             usage_error);
    };
    clash([](auto& r) { r.what.params["n"] = std::int64_t{1}; });
    clash([](auto& r) { r.what.unit = "ms"; });
    clash([](auto& r) { r.what.better = plumbline::direction::higher; });
    clash([](auto& r) { r.backend = "cpu"; });
    auto metric = on_day("2026-11-02");
    metric.results[0].what.metric = "throughput";
    CHECK(compare::merge({first, metric}).results.size() == 2);
}

TEST_CASE("merge: failed anywhere is failed, measured anywhere is not skipped") {
    using status = result::result_status;
    const auto merged = [](status a, status b) {
        auto first = on_day("2026-11-01");
        auto second = on_day("2026-11-02");
        first.results[0].status = a;
        first.results[0].reason = "first";
        second.results[0].status = b;
        second.results[0].reason = "second";
        return compare::merge({first, second}).results[0];
    };
    CHECK(merged(status::ok, status::failed).status == status::failed);
    CHECK(merged(status::ok, status::failed).reason == "second");
    CHECK(merged(status::failed, status::ok).status == status::failed);
    CHECK(merged(status::failed, status::ok).reason == "first");
    CHECK(merged(status::skipped, status::ok).status == status::ok);
    CHECK(merged(status::skipped, status::ok).reason == "second");
    CHECK(merged(status::ok, status::skipped).status == status::ok);
    CHECK(merged(status::skipped, status::failed).status == status::failed);
    CHECK(merged(status::skipped, status::skipped).reason == "first");
    auto first = on_day("2026-11-01");
    auto second = on_day("2026-11-02");
    CHECK(compare::merge({first, second}).results[0].verified);
    second.results[0].verified = false;
    CHECK_FALSE(compare::merge({first, second}).results[0].verified);
    CHECK_FALSE(compare::merge({second, first}).results[0].verified);
    // A benchmark that its backend does not know, or that ended its process, has neither sessions nor description.
    auto bare = on_day("2026-11-02");
    bare.results[0].what = {};
    bare.results[0].what.id = "a";
    bare.results[0].sessions.clear();
    bare.results[0].verified = false;
    bare.results[0].status = status::skipped;
    for (const auto& pool : {compare::merge({first, bare}), compare::merge({bare, first})}) {
        CHECK(pool.results[0].status == status::ok);
        CHECK(pool.results[0].verified);
        CHECK(pool.results[0].what.hash() == first.results[0].what.hash());
    }
    bare.results[0].status = status::failed;
    CHECK(compare::merge({first, bare}).results[0].status == status::failed);
    CHECK(compare::merge({bare, first}).results[0].what.unit == first.results[0].what.unit);
}

TEST_CASE("accept: the whole run") {
    auto base = on_day("2026-11-01");
    build::add(base, "old", five);
    base.tool["version"] = std::string("1");
    base.noise["a"].d0 = 1;
    base.noise["old"].d0 = 1;
    auto run = on_day("2026-11-02", scaled(five, 1.1));
    build::add(run, "new", five);
    run.tool["version"] = std::string("2");
    run.labels["image"] = std::string("x");
    run.checks["ecc"] = std::string("ok");
    run.environment.attributes["driver"] = {};
    const auto into = compare::accept(base, run, {}, because("new cuDNN"));
    REQUIRE(into.results.size() == 3);
    CHECK(into.results[0].what.id == "old"); // nothing to replace it with
    CHECK(into.results[1].what.id == "a");
    CHECK(into.results[1].sessions[0].samples == values{scaled(five, 1.1)[0]});
    CHECK(into.results[2].what.id == "new");
    CHECK(into.sessions.size() == 10); // the old ones that "old" needs, and the new ones
    CHECK(into.sessions[into.results[0].sessions[2].session].when.day == "2026-11-01");
    CHECK(into.sessions[into.results[1].sessions[2].session].when.day == "2026-11-02");
    CHECK(plumbline::to_string(into.tool.at("version")) == "1"); // something old is left
    CHECK(into.environment.attributes.empty());
    CHECK(into.noise.count("a") == 0);
    CHECK(into.noise.count("old") == 1);
    REQUIRE(into.history.size() == 1);
    CHECK(into.history[0].what == "accepted");
    CHECK(into.history[0].who == "ada");
    CHECK(into.history[0].when == "2026-12-01T00:00:00Z");
    CHECK(into.history[0].reason == "new cuDNN");
    CHECK(into.history[0].ids == std::vector<std::string>{"a", "new"});
    CHECK(compare::compare(into, run).count(verdict::regressed) == 0);
    base.results.pop_back();
    const auto all = compare::accept(base, run, {}, because("new cuDNN"));
    CHECK(all.sessions.size() == 5);
    CHECK(plumbline::to_string(all.tool.at("version")) == "2");
    CHECK(all.environment.attributes.count("driver") == 1);
    CHECK(all.labels.count("image") == 1);
    CHECK(all.checks.count("ecc") == 1);
}

TEST_CASE("accept: by name, never improvements alone") {
    auto base = build::baseline(5);
    auto run = build::baseline(5, "board", "boot", "2026-12-01");
    const auto both = [&](const std::string& id, double factor) {
        build::add(base, id, five);
        build::add(run, id, scaled(five, factor));
    };
    both("same", 1);
    both("faster", 0.9);
    both("slower", 1.1);
    both("slowest", 1.2);
    build::add(base, "gone", five);
    build::add(base, "other", five);
    build::add(run, "other", five).what.params["n"] = std::int64_t{1};
    const auto accept = [&](const std::vector<std::string>& ids) {
        return compare::accept(base, run, ids, because("x"));
    };
    CHECK(accept({"slower"}).history.back().ids == std::vector<std::string>{"slower"});
    CHECK(accept({"slower"}).results.size() == 6);
    CHECK(accept({"faster", "slower", "slowest"}).history.back().ids.size() == 3);
    CHECK_THROWS_WITH_AS((void)accept({"faster"}), Contains("improvements alone"), usage_error);
    CHECK_THROWS_WITH_AS((void)accept({"faster", "same"}), Contains("while 'slow"), usage_error);
    CHECK_THROWS_WITH_AS((void)accept({"faster", "slower"}), Contains("while 'slowest' regressed"), usage_error);
    CHECK_THROWS_WITH_AS((void)accept({"gone"}), Contains("'gone' cannot be accepted: it is missing"), usage_error);
    CHECK_THROWS_WITH_AS((void)accept({"other"}), Contains("incomparable (the work is not the same"), usage_error);
    CHECK_THROWS_WITH_AS((void)accept({"nonsense"}), Contains("no result 'nonsense'"), usage_error);
    CHECK_THROWS_WITH_AS((void)compare::accept(base, run, {}, because("")), Contains("--reason"), usage_error);
    CHECK(accept({"same"}).results.size() == 6);
    run.results[2] = base.results[2]; // nothing regressed now
    run.results[3] = base.results[3];
    CHECK_THROWS_WITH_AS((void)accept({"faster"}), Contains("improvements alone are not accepted:"), usage_error);
    CHECK(accept({"faster", "same"}).history.back().ids.size() == 2);
    CHECK(accept({}).history.back().ids.size() == 4);
    auto device = run;
    device.device.uuid = "another";
    CHECK_THROWS_WITH_AS((void)compare::accept(base, device, {}, because("x")), Contains("two devices"), usage_error);
    auto nothing = build::baseline(5);
    CHECK_THROWS_WITH_AS((void)compare::accept(base, nothing, {}, because("x")), Contains("nothing can be accepted"),
                         usage_error);
}

TEST_CASE("accept: noise is estimated anew from what was moved") {
    auto base = on_day("2026-11-01");
    const auto run = compare::merge({on_day("2026-11-02"), on_day("2026-11-03"), on_day("2026-11-04")});
    base.noise["a"].s_e = 9;
    const auto into = compare::accept(base, run, {}, because("x"));
    CHECK(into.noise.at("a").epochs == 3);
    CHECK(into.noise.at("a").s_e.value() < 0.01);
}

TEST_CASE("siblings: ranked by their own numbers, the odd one named") {
    const auto machine = [](double factor, double b_factor = 1) {
        auto m = build::baseline(5);
        build::add(m, "a", scaled(five, factor));
        build::add(m, "b", scaled(five, factor * b_factor));
        return m;
    };
    const std::vector<std::pair<std::string, result::baseline>> others{
        {"m1", machine(1)}, {"m2", machine(1.005)}, {"m3", machine(0.995)}};
    const auto slow = compare::rank_siblings(others, {"mine", machine(1.1, 1.1)});
    REQUIRE(slow.machines.size() == 4);
    CHECK(slow.left_out.empty());
    CHECK(slow.machines[0].name == "m3");
    CHECK(slow.machines[0].rank == 1);
    CHECK(slow.machines[1].name == "m1");
    const auto& mine = slow.machines[3];
    CHECK(mine.name == "mine");
    CHECK(mine.rank == 4);
    CHECK(mine.subject);
    CHECK_FALSE(slow.machines[0].subject);
    CHECK(mine.pairs == 2);
    CHECK(mine.ratio == Approx(1.1 * std::sqrt(1.1)));
    CHECK(mine.odd);
    for (int i = 0; i < 3; ++i) CHECK_FALSE(slow.machines[static_cast<std::size_t>(i)].odd);
    REQUIRE(mine.outstanding.size() == 2);
    CHECK(mine.outstanding[0].first == "b");
    CHECK(mine.outstanding[0].second == Approx(1.21));
    CHECK(mine.outstanding[1].first == "a");
    CHECK(slow.machines[0].outstanding.empty());

    const auto fine = compare::rank_siblings(others, {"mine", machine(1.01)});
    CHECK_FALSE(fine.machines[3].odd);
    CHECK(fine.machines[3].outstanding.empty()); // 1 % is inside the margin
    const auto part = compare::rank_siblings(others, {"mine", machine(1, 1.03)});
    CHECK_FALSE(part.machines[3].odd);
    REQUIRE(part.machines[3].outstanding.size() == 1);
    CHECK(part.machines[3].outstanding[0].first == "b");
    compare::policy wide;
    wide.rules.resize(1);
    wide.rules[0].match = "b";
    wide.rules[0].margin = 0.1;
    CHECK(compare::rank_siblings(others, {"mine", machine(1, 1.03)}, wide).machines[3].outstanding.empty());
    // Another of them may be the odd one.
    const auto another = compare::rank_siblings({{"m1", machine(1)}, {"m2", machine(1.2)}, {"m3", machine(1.001)}},
                                                {"mine", machine(1)});
    CHECK(another.machines[3].name == "m2");
    CHECK(another.machines[3].odd);
    CHECK_FALSE(another.machines[3].subject);
}

TEST_CASE("siblings: spread, too few, and those that cannot be ranked") {
    const auto machine = [](double factor, const std::string& id = "a") {
        auto m = build::baseline(5);
        build::add(m, id, scaled(five, factor));
        return m;
    };
    // Others that differ by 10 % themselves: 12 % more is nothing special (3 * 1.48 * 10 %).
    const auto restless = compare::rank_siblings({{"m1", machine(1)}, {"m2", machine(1.1)}, {"m3", machine(0.9)}},
                                                 {"mine", machine(1.12)});
    CHECK_FALSE(restless.machines[3].odd);
    CHECK(restless.machines[3].outstanding.empty());
    // Just inside and just outside of three times 1.4826 MAD, here 0.0445 (and the 3 % of the limit).
    const auto at = [&](double shift) {
        return compare::rank_siblings(
            {{"m1", machine(1)}, {"m2", machine(std::exp(0.01))}, {"m3", machine(std::exp(-0.01))}},
            {"mine", machine(std::exp(shift))});
    };
    CHECK(at(0.043).machines[3].outstanding.empty());
    CHECK(at(0.046).machines[3].outstanding.size() == 1);
    // Of two nobody can say which one is odd.
    const auto two = compare::rank_siblings({{"m1", machine(1)}}, {"mine", machine(2)});
    REQUIRE(two.machines.size() == 2);
    CHECK_FALSE(two.machines[1].odd);
    CHECK(two.machines[1].outstanding.empty());
    CHECK(two.machines[1].ratio == Approx(2));
    CHECK(two.machines[0].ratio == Approx(0.5));
    auto hardware = machine(1);
    hardware.device.backend = "cpu";
    const auto some = compare::rank_siblings({{"m1", machine(1)}, {"cpu", hardware}, {"strange", machine(1, "z")}},
                                             {"mine", machine(1)});
    CHECK(some.machines.size() == 2);
    REQUIRE(some.left_out.size() == 2);
    CHECK(some.left_out[0].first == "cpu");
    CHECK(some.left_out[0].second.find("other hardware: backend") == 0);
    CHECK(some.left_out[1].first == "strange");
    CHECK(some.left_out[1].second.find("no result in common") == 0);
    const auto alone = compare::rank_siblings({}, {"mine", machine(1)});
    CHECK(alone.machines.empty());
    CHECK(alone.left_out.size() == 1);
    auto broken = machine(1);
    broken.results[0].sessions[0].samples = {0};
    CHECK(compare::rank_siblings({{"m1", machine(1)}}, {"mine", broken}).machines.empty());
    build::add(broken, "b", five);
    auto with_b = machine(1);
    build::add(with_b, "b", five);
    CHECK(compare::rank_siblings({{"m1", with_b}}, {"mine", broken}).machines.at(0).pairs == 1); // the next one counts
    auto lonely = with_b;
    lonely.results[0].what.id = "0 nobody else has it";
    CHECK(compare::rank_siblings({{"m1", with_b}}, {"mine", lonely}).machines.at(0).pairs == 1);
    auto failed = machine(1);
    failed.results[0].status = result::result_status::skipped;
    CHECK(compare::rank_siblings({{"m1", machine(1)}}, {"mine", failed}).machines.empty());
    auto unit = machine(1);
    unit.results[0].what.unit = "parsec";
    CHECK(compare::rank_siblings({{"m1", machine(1)}}, {"mine", unit}).machines.empty());
    auto other = machine(1);
    other.results[0].what.params["n"] = std::int64_t{1};
    CHECK(compare::rank_siblings({{"m1", machine(1)}}, {"mine", other}).machines.empty());
    auto milli = machine(1e-3);
    milli.results[0].what.unit = "ms";
    CHECK(compare::rank_siblings({{"m1", machine(1)}}, {"mine", milli}).machines[0].ratio == Approx(1));
    auto metric = machine(1);
    metric.results[0].what.metric = "throughput";
    auto slower = metric;
    slower.results[0].sessions = machine(2).results[0].sessions;
    const auto named = compare::rank_siblings({{"m1", metric}, {"m2", metric}}, {"mine", slower});
    CHECK(named.machines[2].outstanding.at(0).first == "a#throughput");
}

TEST_CASE("siblings: a machine nobody has judged") {
    const compare::sibling m;
    CHECK(m.rank == 0);
    CHECK(m.pairs == 0);
    CHECK(m.ratio == 1);
    CHECK_FALSE(m.odd);
    CHECK_FALSE(m.subject);
}
