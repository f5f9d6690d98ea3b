// SPDX-License-Identifier: Apache-2.0
// bench --data from end to end: what a person gets who names images, records, or something that is neither.
#include <doctest/doctest.h>

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "broken_images.hpp"
#include "plumbline/json/store.hpp"
#include "process_under_test.hpp"

namespace fs = std::filesystem;
namespace json = plumbline::json;
namespace result = plumbline::result;

namespace {

struct place {
    test_folder folder;
    std::map<std::string, std::string> variables;

    place() {
        variables["PLUMBLINE_BASELINE_DIR"] = folder / "baselines";
        variables["PLUMBLINE_CACHE_DIR"] = folder / "cache";
        std::ofstream(folder / "suite.json") << R"({"name": "loading", "cpu": [
            "dataloader/jpeg/w2p2/b8", "dataloader/raw/w1p1/b8",
            "dataloader/memory/wbestp2/b8"]})";
        fs::create_directory(folder / "data");
    }

    /// Runs one session of the benchmarks that match, with a fraction of a second for each.
    ended bench(const std::string& filter, const std::string& data) const {
        std::vector<std::string> arguments{
            "--backend=cpu",     "--sessions=1",       "--suite=" + (folder / "suite.json"),
            "--save=" + saved(), "--filter=" + filter, "--time-budget=2"};
        if (!data.empty()) arguments.push_back("--data=" + data);
        return run_program(BENCH, arguments, variables, folder.text());
    }
    [[nodiscard]] std::string saved() const { return folder / "run.json"; }
    [[nodiscard]] result::result measured() const { return json::load(saved()).results.at(0); }
    [[nodiscard]] std::string data() const { return folder / "data"; }
};

std::string text_of(const result::result& from, const std::string& name) {
    const auto& state = from.sessions.at(0).state;
    const auto at = state.find(name);
    return at == state.end() ? "" : plumbline::to_string(at->second);
}

/// A control group with a quota of one CPU, where this process may make one; removed at its end.
class quota_of_one_cpu {
public:
    quota_of_one_cpu() {
        for (const char* parent : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
            const fs::path group = fs::path(parent) / ("plumbline-test-" + std::to_string(::getpid()));
            std::error_code problem;
            if (!fs::create_directory(group, problem)) continue;
            std::ofstream(group / "cpu.max") << "100000 100000";   // version 2
            std::ofstream(group / "cpu.cfs_quota_us") << "100000"; // version 1
            const std::string two = contents(group / "cpu.max"), one = contents(group / "cpu.cfs_quota_us");
            if (two == "100000 100000\n" || one == "100000\n") {
                path_ = group;
                return;
            }
            ::rmdir(group.c_str());
        }
    }
    quota_of_one_cpu(const quota_of_one_cpu&) = delete;
    quota_of_one_cpu& operator=(const quota_of_one_cpu&) = delete;
    ~quota_of_one_cpu() {
        // The last process may still be on its way out.
        for (int i = 0; !path_.empty() && ::rmdir(path_.c_str()) != 0 && i < 100; ++i) ::poll(nullptr, 0, 10);
    }
    [[nodiscard]] const fs::path& path() const { return path_; } ///< empty where none could be made

private:
    fs::path path_;
};

void write_text(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
}

} // namespace

TEST_CASE("data that cannot be used end the program at once with 2, whatever it was to measure") {
    const place at;
    const auto refused = [&](const std::string& data, const std::string& why) {
        const ended r = at.bench("jpeg", data);
        CAPTURE(data);
        CAPTURE(r.err);
        CHECK(r.code == 2);
        CHECK(contains(r.err, "bench: error: "));
        CHECK(contains(r.err, why));
        CHECK_FALSE(fs::exists(at.saved()));
        CHECK_FALSE(fs::exists(at.folder / "cache")); // nothing was generated in its place
    };
    refused(at.folder / "missing", "missing: no such folder or file");
    refused(at.data(), "holds neither images nor records; expected files ending in .jpg, .jpeg, .npy, .bin");
    write_text(at.folder / "data/readme.txt", "no image");
    refused(at.data(), "holds neither images nor records");
    write_text(at.folder / "floats.npy", "\x93NUMPY nothing of the kind");
    refused(at.folder / "floats.npy", "floats.npy: ");
    write_text(at.folder / "odd.bin", std::string(3072, 'x'));
    refused(at.folder / "odd.bin", "records of 3073 bytes");
    write_text(at.folder / "empty.bin", "");
    refused(at.folder / "empty.bin", "records of 3073 bytes");
    CHECK(run_program(BENCH, {"--list", "--backend=cpu", "--data=" + (at.folder / "missing")}, at.variables).code == 2);
    CHECK(run_program(BENCH, {"--list", "--backend=cpu", "--data="}, at.variables).code == 2);
}

TEST_CASE("a training step consumes the batches, and how long it waits for them is in the report") {
    const place at;
    write_text(at.folder / "train.json", R"({"name": "train", "cpu": ["dataloader/memory/w1p2/b8/train"]})");
    const ended r = run_program(BENCH,
                                {"--backend=cpu", "--sessions=1", "--suite=" + (at.folder / "train.json"),
                                 "--save=" + at.saved(), "--time-budget=2"},
                                at.variables, at.folder.text());
    CAPTURE(r.err);
    CHECK(r.code == 0);
    const result::result seen = at.measured();
    CHECK(seen.what.metric == "time");
    CHECK(seen.verified);
    CHECK(plumbline::to_string(seen.what.params.at("trained")) == "training_step/bottleneck/fp32/n8c16h14k64");
    CHECK(std::stoul(text_of(seen, "trained_steps")) > 0);
    CHECK(text_of(seen, "skipped_steps") == "0");
    CHECK(contains(r.out, "trains training_step/bottleneck/fp32/n8c16h14k64: "));
}

TEST_CASE("a folder of images is measured, what is broken in it is named and counted, and the run goes on") {
    const place at;
    test::write_odd_images(at.data());
    test::write(at.folder / "data/turned.jpg", test::turned(test::encoded(60, 50)));
    const auto broken = test::write_broken_images(at.data());
    const ended r = at.bench("jpeg", at.data());
    CAPTURE(r.err);
    CAPTURE(r.out);
    CHECK(r.code == 0);
    const result::result seen = at.measured();
    CHECK(seen.status == result::result_status::ok);
    CHECK(seen.verified);
    CHECK(text_of(seen, "data_path") == at.data());
    CHECK(plumbline::to_string(seen.what.params.at("data")).rfind("folder:", 0) == 0);
    const std::string failures = text_of(seen, "failures");
    CAPTURE(failures);
    for (const auto& [name, kind] : broken) CHECK(contains(failures, plumbline::loader::name(kind)));
    CHECK(contains(failures, "first " + at.data()));
    CHECK(std::stoul(text_of(seen, "failed_samples")) >= broken.size());
    CHECK(std::stoul(text_of(seen, "oriented_samples")) > 0);
    CHECK(contains(r.out, "samples: " + failures.substr(0, failures.find(':'))));
    CHECK(contains(r.out, "EXIF orientation is not applied"));
    const auto environment = json::load(at.saved()).environment;
    CHECK(environment.find("data.file_system") != nullptr);
    CHECK_FALSE(fs::exists(at.folder / "cache"));
}

TEST_CASE("images of which not one can be read are a failed benchmark, and 4") {
    const place at;
    test::write_broken_images(at.data());
    const ended r = at.bench("jpeg", at.data());
    CAPTURE(r.err);
    CHECK(r.code == 4);
    CHECK(at.measured().status == result::result_status::failed);
    CHECK(contains(at.measured().reason, "not one sample of the data set could be loaded"));
    CHECK(contains(at.measured().reason, "truncated"));
    CHECK(contains(r.out, "FAILED: not one sample"));
}

TEST_CASE("records are measured by raw, from one file and from the files of a folder") {
    const place at;
    const std::string batch(20 * 3073, '\x05');
    write_text(at.folder / "data/data_batch_1.bin", batch);
    write_text(at.folder / "data/data_batch_2.bin", batch);
    std::string npy = "{'descr': '|u1', 'fortran_order': False, 'shape': (16, 40, 50, 3), }\n";
    npy =
        std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(npy.size()) + '\0' + npy + std::string(16 * 6000, 'p');
    write_text(at.folder / "own.npy", npy);
    for (const std::string& data : {at.data(), at.folder / "data/data_batch_1.bin", at.folder / "own.npy"}) {
        const ended r = at.bench("raw", data);
        CAPTURE(data);
        CAPTURE(r.err);
        CHECK(r.code == 0);
        const result::result seen = at.measured();
        CHECK(seen.verified);
        CHECK(text_of(seen, "data_path") == data);
        CHECK(text_of(seen, "failed_samples") == "0");
    }
    write_text(at.folder / "data/data_batch_2.bin", batch + "x");
    CHECK(at.bench("raw", at.data()).code == 2);
}

TEST_CASE(
    "a cache folder that cannot be made, and a disk that fills up, fail the benchmarks that need it, with the remedy") {
    place at;
    write_text(at.folder / "file", "x");
    at.variables["PLUMBLINE_CACHE_DIR"] = at.folder / "file/below";
    const ended no_folder = at.bench("jpeg", "");
    CAPTURE(no_folder.err);
    CHECK(no_folder.code == 4);
    CHECK(contains(no_folder.out, "cannot create the cache folder"));
    CHECK(contains(no_folder.out, "PLUMBLINE_CACHE_DIR"));

    // A limit on the size of files makes a write fail in the middle, as a full disk does.
    at.variables["PLUMBLINE_CACHE_DIR"] = at.folder / "cache";
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small_files = before;
    small_files.rlim_cur = 10'000'000;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small_files) == 0);
    const ended full = at.bench("raw", "");
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, handler);
    CAPTURE(full.err);
    CHECK(full.code == 4);
    CHECK(contains(full.out, "cannot write 100663424 bytes"));
    CHECK(contains(full.out, "PLUMBLINE_CACHE_DIR"));
    CHECK(fs::is_empty(at.folder / "cache"));
}

TEST_CASE("one CPU of several, by affinity or by quota, moves the knee to one worker, and the report says why") {
    cpu_set_t before;
    REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
    if (CPU_COUNT(&before) < 2) {
        MESSAGE("this process has one CPU already");
        return;
    }
    const place at;
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    const ended masked = at.bench("memory", "");
    REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
    CAPTURE(masked.out);
    CHECK(masked.code == 0);
    CHECK(contains(masked.out, "recommended: num_workers=1, "));
    CHECK(contains(masked.out, "images/s, every usable CPU: the affinity mask allows 1 of the machine's "));
    CHECK(contains(masked.out, "affinity: the affinity mask allows 1 of the machine's "));

    const quota_of_one_cpu group;
    if (group.path().empty()) {
        MESSAGE("no control group can be made here; a quota is tested on a made-up machine only");
        return;
    }
    const std::string enter = "echo $$ > " + (group.path() / "cgroup.procs").string() + " && exec \"$0\" \"$@\"";
    const ended limited = run_program("/bin/sh",
                                      {"-c", enter, BENCH, "--backend=cpu", "--sessions=1", "--filter=memory",
                                       "--suite=" + (at.folder / "suite.json"), "--time-budget=2"},
                                      at.variables, at.folder.text());
    CAPTURE(limited.err);
    CAPTURE(limited.out);
    CHECK(limited.code == 0);
    CHECK(contains(limited.out, "recommended: num_workers=1, "));
    CHECK(contains(limited.out, "images/s, every usable CPU: the control group's CPU quota is 1 CPU, "));
}
