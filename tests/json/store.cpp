// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "plumbline/json/store.hpp"
#include "sample.hpp"

using namespace plumbline;
namespace fs = std::filesystem;

namespace {

/// The message of the file_error that an action ends with, or "accepted".
template <class F>
std::string refused(F&& action) {
    try {
        action();
    } catch (const file_error& problem) {
        CHECK(problem.code() == exit_code::usage);
        return problem.what();
    }
    return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

void put(const fs::path& file, const std::string& text) {
    std::ofstream(file) << text;
}

std::size_t files_in(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

} // namespace

TEST_CASE("a baseline is saved, replaced and loaded, and nothing else stays in the folder") {
    const tests::scratch_folder folder;
    const result::baseline one = tests::sample_baseline();
    json::save(folder / "a.json", one);
    CHECK(json::dump(json::load(folder / "a.json")) == json::dump(one));
    result::baseline two = one;
    two.results.clear();
    json::save(folder / "a.json", two);
    CHECK(json::load(folder / "a.json").results.empty());
    CHECK(files_in(folder.path()) == 1);
    CHECK(json::partial_path(folder / "a.json") == (folder / "a.json.partial"));
}

TEST_CASE("a symbolic link stays and its target is replaced, through a chain and into a folder that has the file") {
    const tests::scratch_folder folder;
    fs::create_directory(folder / "store");
    put(folder / "store/real.json", "old");
    fs::create_symlink("store/real.json", folder / "near");
    fs::create_symlink("near", folder / "far");
    json::write_atomically(folder / "far", "new");
    CHECK(fs::is_symlink(folder / "far"));
    CHECK(fs::is_symlink(folder / "near"));
    CHECK(json::read_file(folder / "store/real.json") == "new");

    fs::create_symlink("store/not_yet.json", folder / "dangling");
    json::write_atomically(folder / "dangling", "made");
    CHECK(json::read_file(folder / "store/not_yet.json") == "made");

    fs::create_symlink("b", folder / "a");
    fs::create_symlink("a", folder / "b");
    CHECK(contains(refused([&] { json::write_atomically(folder / "a", "x"); }), "go round in a circle"));
}

TEST_CASE("the mode of a file is kept") {
    const tests::scratch_folder folder;
    put(folder / "a", "old");
    fs::permissions(folder / "a", fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
    json::write_atomically(folder / "a", "new");
    CHECK((fs::status(folder / "a").permissions() & fs::perms::mask) ==
          (fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read));
}

TEST_CASE("leftovers of killed writers are removed; those of living ones and other people's files are not") {
    const tests::scratch_folder folder;
    put(folder / "a.json.tmp.4194305.99", "left behind");
    put(folder / "a.json.tmp.1.2", "being written");
    for (const char* other : {"a.json.tmp.old", "a.json.tmp.", "a.json.tmp.7", "a.json.tmp.7.8.9",
                              "b.json.tmp.4194305.99", "a.json.tmp.7.x", "xa.json.tmp.7.8"}) {
        put(folder / other, "mine");
    }
    const int living = ::open((folder / "a.json.tmp.1.2").c_str(), O_RDONLY);
    REQUIRE(::flock(living, LOCK_EX) == 0);
    json::write_atomically(folder / "a.json", "x");
    ::close(living);
    CHECK_FALSE(fs::exists(folder / "a.json.tmp.4194305.99"));
    CHECK(fs::exists(folder / "a.json.tmp.1.2"));
    CHECK(files_in(folder.path()) == 9);
}

TEST_CASE("what cannot be read is refused with the reason") {
    const tests::scratch_folder folder;
    CHECK(contains(refused([&] { static_cast<void>(json::load(folder / "none.json")); }),
                   "none.json: cannot open: No such"));
    CHECK(contains(refused([&] { static_cast<void>(json::load(folder.path())); }), "is a folder"));
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    CHECK(contains(refused([&] { static_cast<void>(json::load(folder / "pipe")); }), "is not a regular file"));
    put(folder / "huge", "");
    fs::resize_file(folder / "huge", json::max_file_bytes + 1); // sparse: takes no room
    CHECK(contains(refused([&] { static_cast<void>(json::load(folder / "huge")); }), "larger than 512 MiB"));
    put(folder / "secret", "{}");
    fs::permissions(folder / "secret", fs::perms::none);
    if (::geteuid() != 0) {
        CHECK(contains(refused([&] { static_cast<void>(json::load(folder / "secret")); }), "Permission denied; check"));
    }
}

TEST_CASE("what cannot be written is found out beforehand, and an old file is left alone") {
    const tests::scratch_folder folder;
    json::check_writable(folder / "new/deep/a.json");
    CHECK(fs::is_directory(folder / "new/deep"));
    CHECK(files_in(folder / "new/deep") == 0);
    put(folder / "a.json", "old");
    json::check_writable(folder / "a.json");
    CHECK(json::read_file(folder / "a.json") == "old");

    CHECK(contains(refused([] { json::check_writable(""); }), "is no file name"));
    CHECK(contains(refused([&] { json::check_writable(folder.path()); }), "is a folder; name a file in it"));
    CHECK(contains(refused([&] { json::check_writable(folder / "a.json/b.json"); }), "cannot create the folder"));
    CHECK(contains(refused([] { json::check_writable("/proc/plumbline/a.json"); }), "cannot create the folder"));
    CHECK(
        contains(refused([] { json::write_atomically("/nowhere/a.json", "x"); }), "No such file or directory; check"));
    if (::geteuid() != 0) {
        fs::permissions(folder / "new", fs::perms::owner_read | fs::perms::owner_exec);
        CHECK(contains(refused([&] { json::check_writable(folder / "new/a.json"); }),
                       "Permission denied; check the owner"));
        fs::permissions(folder / "new", fs::perms::owner_all);
    }
}

TEST_CASE("places that take bytes but are no files are written to") {
    CHECK(refused([] { json::write_atomically("/dev/null", "x"); }) == "accepted");
    CHECK(refused([] { json::check_writable("/dev/null"); }) == "accepted");
    CHECK(fs::is_character_file("/dev/null"));
    if (fs::is_character_file("/dev/full"))
        CHECK(
            contains(refused([] { json::write_atomically("/dev/full", "x"); }), "No space left on device; make room"));
}

TEST_CASE("a disk that fills up while writing leaves the old file and no other") {
    const tests::scratch_folder folder;
    put(folder / "a.json", "old");
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGXFSZ, SIG_IGN);
        const struct rlimit most { 4096, 4096 };
        ::setrlimit(RLIMIT_FSIZE, &most);
        try {
            json::write_atomically(folder / "a.json", std::string(100'000, 'x'));
        } catch (const file_error&) {
            ::_exit(7);
        }
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(json::read_file(folder / "a.json") == "old");
    CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("kill -9 at any moment of a save leaves the old baseline or the new one") {
    const tests::scratch_folder folder;
    const fs::path file = folder / "a.json";
    result::baseline larger = tests::sample_baseline();
    const std::string first = json::dump(larger);
    for (int i = 0; i < 400; ++i) {
        larger.results.push_back(tests::gemm_result("gemm/bf16/tn/m" + std::to_string(i), {1.0, 2.0}));
    }
    const std::string second = json::dump(larger);
    json::write_atomically(file, first);
    std::mt19937 random(7);
    std::size_t seen_first = 0, seen_second = 0, left_behind = 0;
    for (int round = 0; round < 100; ++round) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            for (;;) {
                json::write_atomically(file, second);
                json::write_atomically(file, first);
            }
        }
        ::usleep(static_cast<useconds_t>(2000 + random() % 30'000));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        const std::string now = json::read_file(file);
        CHECK((now == first || now == second));
        ++(now == first ? seen_first : seen_second);
        left_behind += files_in(folder.path()) - 1;
    }
    CAPTURE(seen_first);
    // The kills really came at different moments, and some of them in the middle of a save.
    CHECK(seen_first > 0);
    CHECK(seen_second > 0);
    CHECK(left_behind > 0);
    json::write_atomically(file, first);
    CHECK(files_in(folder.path()) == 1);
    CHECK(json::dump(json::load(file)) == first);
}

TEST_CASE("two writers of one file leave what one of them wrote") {
    const tests::scratch_folder folder;
    const fs::path file = folder / "a.json";
    const std::string first(200'000, 'a'), second(300'000, 'b');
    std::vector<pid_t> children;
    for (const std::string* text : {&first, &second}) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            int failures = 0;
            for (int i = 0; i < 50; ++i) {
                try {
                    json::write_atomically(file, *text);
                } catch (const file_error&) {
                    ++failures;
                }
            }
            ::_exit(failures);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    const std::string now = json::read_file(file);
    CHECK((now == first || now == second));
    CHECK(files_in(folder.path()) == 1);
}
