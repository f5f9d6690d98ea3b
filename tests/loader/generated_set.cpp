// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "plumbline/loader/jpeg/data.hpp"
#include "plumbline/loader/page_cache.hpp"
#include "support.hpp"

using namespace plumbline;
namespace fs = std::filesystem;

namespace {

loader::generated_set small() {
    loader::generated_set what;
    what.samples = 12;
    what.width = 100;
    what.height = 75;
    return what;
}

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::size_t entries(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

} // namespace

TEST_CASE("the generated set is made once, checked by size, and repaired when a file is gone or cut") {
    const test::temporary_folder cache;
    const fs::path set = loader::make_generated_set(small(), cache.path(), 2);
    const loader::source images = loader::image_folder(set);
    REQUIRE(images.samples == 12);
    CHECK(entries(cache.path()) == 1);
    const fs::path one = images.files[5];
    const std::string before = content(one);
    const auto written = fs::last_write_time(one);
    CHECK(loader::make_generated_set(small(), cache.path(), 2) == set);
    CHECK(fs::last_write_time(one) == written);
    fs::resize_file(one, 10);
    CHECK(loader::make_generated_set(small(), cache.path(), 1) == set);
    CHECK(content(one) == before); // the same bytes, whatever the number of threads
    fs::remove(one);
    (void)loader::make_generated_set(small(), cache.path(), 3);
    CHECK(content(one) == before);
    fs::remove(set / "manifest.txt");
    (void)loader::make_generated_set(small(), cache.path(), 3);
    CHECK(fs::exists(set / "manifest.txt"));
    CHECK(entries(cache.path()) == 1);
}

TEST_CASE("another size, count, quality or seed is another set") {
    const loader::generated_set base = small();
    for (int i = 0; i < 5; ++i) {
        loader::generated_set other = base;
        if (i == 0) other.samples = 13;
        if (i == 1) other.width = 101;
        if (i == 2) other.height = 76;
        if (i == 3) other.quality = 91;
        if (i == 4) other.seed = 2;
        CHECK(other.name() != base.name());
    }
}

TEST_CASE("processes that make the set at the same time all get a whole one") {
    const test::temporary_folder cache;
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            try {
                const fs::path set = loader::make_generated_set(small(), cache.path(), 2);
                _exit(loader::image_folder(set).samples == 12 ? 0 : 1);
            } catch (...) {
                _exit(2);
            }
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    CHECK(entries(cache.path()) == 1);
}

TEST_CASE("a disk that fills up, no room from the start, and a folder that cannot be made are errors with a remedy") {
    const test::temporary_folder cache;
    // A file size limit makes write fail in the middle, as a full disk does.
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small_files = before;
    small_files.rlim_cur = 2000;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small_files) == 0);
    std::string message;
    try {
        (void)loader::make_generated_set(small(), cache.path(), 2);
    } catch (const file_error& problem) {
        message = problem.what();
    }
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, handler);
    CHECK(message.find("cannot write") != std::string::npos);
    CHECK(message.find("PLUMBLINE_CACHE_DIR") != std::string::npos);
    CHECK(entries(cache.path()) == 0); // nothing is left behind

    CHECK_THROWS_WITH_AS((void)loader::ensure_generated(cache.path(), "x", {"a"}, std::uintmax_t{1} << 60, 1,
                                                        [](const fs::path&, std::size_t) { FAIL("made"); }),
                         doctest::Contains("MiB are free"), file_error);
    const fs::path file = cache.write("file", std::string("x"));
    CHECK_THROWS_WITH_AS((void)loader::make_generated_set(small(), file / "below", 2),
                         doctest::Contains("PLUMBLINE_CACHE_DIR"), file_error);
    CHECK_THROWS_WITH_AS(loader::write_file(cache.path(), "abc", 3), doctest::Contains("cannot write 3 bytes"),
                         file_error);
    CHECK(fs::is_directory(cache.path()));
}

TEST_CASE("the cache folder follows the environment") {
    const auto with = [](const char* own, const char* caches, const char* home) {
        const auto set = [](const char* name, const char* value) {
            if (value == nullptr)
                unsetenv(name);
            else
                setenv(name, value, 1);
        };
        const char* const names[] = {"PLUMBLINE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
        std::vector<std::pair<bool, std::string>> before;
        for (const char* name : names) {
            const char* const value = std::getenv(name);
            before.emplace_back(value != nullptr, value == nullptr ? "" : value);
        }
        set(names[0], own);
        set(names[1], caches);
        set(names[2], home);
        const fs::path found = loader::cache_folder();
        for (std::size_t i = 0; i < 3; ++i) set(names[i], before[i].first ? before[i].second.c_str() : nullptr);
        return found;
    };
    CHECK(with("/own", "/caches", "/home/x") == "/own");
    CHECK(with(nullptr, "/caches", "/home/x") == "/caches/plumbline");
    CHECK(with("", "", "/home/x") == "/home/x/.cache/plumbline");
    CHECK(with(nullptr, nullptr, nullptr).string().find("plumbline-" + std::to_string(getuid())) != std::string::npos);
}

TEST_CASE("files are dropped from the page cache and read into it, and mincore tells") {
    const test::temporary_folder folder;
    std::vector<fs::path> files;
    for (int i = 0; i < 3; ++i) files.push_back(folder.write(std::to_string(i), std::string(100000, 'x')));
    loader::read_into_page_cache(files);
    CHECK(loader::resident_share(files) == 1.0);
    loader::drop_from_page_cache(files);
    const double left = loader::resident_share(files);
    // A tmpfs has nothing behind its cache and keeps everything.
    CHECK((left == 0.0 || left == 1.0));
    if (left == 1.0) MESSAGE("this file system does not drop cached pages");
    loader::read_into_page_cache(files);
    CHECK(loader::resident_share(files) == 1.0);
    files.push_back(folder.path() / "none"); // what is not there is left out
    loader::drop_from_page_cache(files);
    loader::read_into_page_cache(files);
    CHECK(loader::resident_share({folder.path() / "none"}) == 1.0);
}
