// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <doctest/doctest.h>

#include "fake_machine.hpp"
#include "plumbline/environment/diff.hpp"

using namespace plumbline_tests;
using plumbline::result::reading_status;

namespace {

std::string recorded(const std::string& name, const std::string& value) {
    const auto entry = env::recorded_variable(name, value);
    return entry ? env::describe(entry->read) : "not recorded";
}

} // namespace

TEST_CASE("the allow-lists are sorted, as their search needs it, and no name is in two of them") {
    using namespace env::detail;
    std::vector<std::string_view> all;
    const auto add = [&](const auto& list) {
        CHECK(std::is_sorted(list.begin(), list.end()));
        all.insert(all.end(), list.begin(), list.end());
    };
    add(variables_of_link_1);
    add(variables_of_link_2);
    add(variables_of_link_3);
    add(variables_of_link_4);
    add(variables_of_link_6);
    std::sort(all.begin(), all.end());
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    CHECK(all.size() > 250);
}

TEST_CASE("listed names keep their values, names known by prefix only their hash, others nothing") {
    CHECK(recorded("NVIDIA_TF32_OVERRIDE", "0") == "0");
    CHECK(env::recorded_variable("NVIDIA_TF32_OVERRIDE", "0")->link == 2);
    CHECK(recorded("CUDA_VISIBLE_DEVICES", "0,1") == "0,1");
    CHECK(recorded("CUDA_VISIBLE_DEVICES", "") == "");
    CHECK(recorded("OMP_NUM_THREADS", "8") == "8");
    CHECK(env::recorded_variable("OMP_NUM_THREADS", "8")->link == 4);
    CHECK(recorded("LD_LIBRARY_PATH", "/usr/local/cuda-13.0/lib64:/opt/x") == "/usr/local/cuda-13.0/lib64:/opt/x");
    CHECK(recorded("NCCL_SOMETHING_NEW", "17") == "hash " + env::hashed_id("17"));
    CHECK(recorded("CUDNN_SOMETHING_NEW", "") == "");
    CHECK(recorded("HOME", "/root") == "not recorded");
    CHECK(recorded("AWS_SECRET_ACCESS_KEY", "x") == "not recorded");
    CHECK(recorded("CUDA_VISIBLE_DEVICES", "GPU-11111111-2222-3333-4444-555555555555,1").rfind("GPU-#", 0) == 0);
}

TEST_CASE("planted secrets never appear, under any name that is recorded") {
    const std::vector<std::string> secrets{
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123",
        "sk-proj-abcdefghijklmnop",
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMIK7MDENG9bPxRfiCY3EXAMPLEKEY",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0In0",
        "https://user:hunter2@registry.example.com/path",
        "-----BEGIN PRIVATE KEY-----",
        "nvapi-0a1B2c3D4e5F6g7H8i9J",
        "d41d8cd98f00b204e9800998ecf8427e",
    };
    fake_machine m;
    make_server(m);
    int number = 0;
    for (const std::string& secret : secrets) {
        const std::string suffix = std::to_string(number++);
        m.set("CUDA_PLANTED_" + suffix, secret).set("XLA_FLAGS", "--xla_x=1 --token=" + secret);
        m.set("NVIDIA_API_KEY", secret)
            .set("TF_AUTH_TOKEN", "short")
            .set("NCCL_NET", secret)
            .set("LD_PRELOAD", "/x/" + secret);
        m.set("MY_SECRET_" + suffix, secret).set("PLUMBLINE_IMAGE", "registry/image@sha256:1");
        std::string everything;
        for (const auto& [name, entry] : m.fingerprint().attributes) {
            everything += name + "=" + plumbline::to_string(entry.read.value) + entry.read.reason + "\n";
        }
        CAPTURE(secret);
        CHECK(everything.find(secret) == std::string::npos);
        CHECK(everything.find("short") == std::string::npos);
    }
    const auto f = m.fingerprint();
    CHECK(f.find("env.NVIDIA_API_KEY")->read.status == reading_status::denied);
    CHECK(f.find("env.NCCL_NET")->read.status == reading_status::denied);
    // Not even the hash of a short password: it could be guessed.
    CHECK(f.find("env.TF_AUTH_TOKEN")->read.status == reading_status::denied);
}

TEST_CASE("ordinary values are no secrets") {
    for (const char* value :
         {"0", "1", "expandable_segments:True,max_split_size_mb:512", ":4096:8",
          "/usr/local/cuda-13.0/targets/x86_64-linux/lib", "--xla_gpu_enable_latency_hiding_scheduler=true",
          "granularity=fine,compact,1,0", "libtcmalloc_minimal.so.4.5.9",
          "cuda>=13.0 brand=unknown,driver>=535,driver<536", "mlx5_0:1,mlx5_1:1", "8.0 8.6 8.9 9.0+PTX", "NVIDIA_CUDA",
          "glibc.malloc.arena_max=2:glibc.malloc.tcache_count=0", "tune=1", "2.28.3-1+cuda13.0", "{0:4},{4:4}"}) {
        CAPTURE(value);
        CHECK_FALSE(env::detail::holds_a_secret(value));
    }
}

TEST_CASE("the environment is that of the start of the process") {
    fake_machine m;
    m.file("/proc/self/environ", std::string("A=1\0CUDA_HOME=/cuda\0EMPTY=\0B=x=y\0=odd\0", 38));
    const auto block = env::read_environment_block(m.host);
    CHECK(block.at("A") == "1");
    CHECK(block.at("CUDA_HOME") == "/cuda");
    CHECK(block.at("EMPTY").empty());
    CHECK(block.at("B") == "x=y");
    CHECK(block.size() == 4);
    // Set later inside this process, it is not seen, as it is not by libraries that have started.
    ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    CHECK(env::this_machine("cpu").variables.count("CUDA_LAUNCH_BLOCKING") == 0);
    ::unsetenv("CUDA_LAUNCH_BLOCKING");
}

TEST_CASE("setting, unsetting and changing a variable are changes with both sides named") {
    fake_machine m;
    make_server(m);
    const auto without = m.fingerprint();
    m.set("NVIDIA_TF32_OVERRIDE", "0");
    const auto with = m.fingerprint();
    const auto set = env::diff(without, with);
    REQUIRE(set.size() == 1);
    CHECK(set[0].name == "env.NVIDIA_TF32_OVERRIDE");
    CHECK(set[0].changed());
    CHECK(set[0].link == 2);
    CHECK(env::describe(set[0].from) == "not set");
    CHECK(env::describe(set[0].to) == "0");
    const auto unset = env::diff(with, without);
    REQUIRE(unset.size() == 1);
    CHECK(unset[0].changed());
    CHECK(env::describe(unset[0].to) == "not set");
    // Against a fingerprint that never looked at variables, nothing is known about the change.
    auto old = without;
    old.attributes.erase("process.variables_captured");
    for (const auto& d : env::diff(old, with)) CHECK_FALSE(d.changed());
}

TEST_CASE("PATH is kept as a hash and as the nvcc it leads to") {
    fake_machine m;
    m.file("/usr/local/cuda-13.0/bin/nvcc", "").dir("/usr/bin");
    fs::create_directory_symlink("cuda-13.0", m.folder.path() / "usr/local/cuda");
    m.set("PATH", "/usr/bin:/usr/local/cuda/bin");
    const auto f = m.fingerprint();
    CHECK(env::describe(f.find("env.PATH")->read) == "hash " + env::hashed_id("/usr/bin:/usr/local/cuda/bin"));
    CHECK(env::describe(f.find("process.nvcc")->read) == "/usr/local/cuda-13.0/bin/nvcc");
    m.set("PATH", "/usr/bin");
    CHECK_FALSE(m.fingerprint().find("process.nvcc")->read.known());
}

TEST_CASE("differences come by class, then real changes, then link and name") {
    using plumbline::result::attribute;
    using plumbline::result::attribute_class;
    using plumbline::result::reading;
    plumbline::result::fingerprint a, b;
    const auto put = [&](const char* name, attribute_class kind, int link, reading from, reading to) {
        a.attributes[name] = {kind, link, "t", std::move(from)};
        b.attributes[name] = {kind, link, "t", std::move(to)};
    };
    put("z.state", attribute_class::state, 1, reading::of(1.0), reading::of(2.0));
    put("a.config4", attribute_class::config, 4, reading::of(true), reading::of(false));
    put("c.config2", attribute_class::config, 2, reading::of(std::string("x")), reading::of(std::string("y")));
    put("b.config2", attribute_class::config, 2, reading::of(std::string("x")), reading::of(std::string("y")));
    put("a.known", attribute_class::config, 1, reading::denied("EACCES"), reading::of(true));
    put("a.unknown", attribute_class::config, 1, reading::of(true), reading::absent("gone"));
    put("m.identity", attribute_class::identity, 6, reading::of(std::string("x")), reading::of(std::string("y")));
    put("a.same", attribute_class::config, 1, reading::of(true), reading::of(true));
    put("a.both_unknown", attribute_class::config, 1, reading::denied("EACCES"), reading::absent("ENOENT"));
    put("a.type", attribute_class::state, 2, reading::of(std::int64_t{1}), reading::of(1.0));
    std::vector<std::string> names;
    for (const auto& d : env::diff(a, b)) names.push_back(d.name);
    CHECK(names == std::vector<std::string>{"m.identity", "b.config2", "c.config2", "a.config4", "a.known", "a.unknown",
                                            "z.state", "a.type"});
    CHECK(env::diff(a, a).empty());
}

TEST_CASE("bytes that are no UTF-8 are spelt out: a file must hold what a machine says") {
    fake_machine m;
    m.file("/sys/class/dmi/id/sys_vendor", "caf\xe9\n");
    m.set("LD_LIBRARY_PATH", "/opt/caf\xe9");
    m.set("NCCL_\xff", "1");
    const auto f = m.fingerprint();
    CHECK(env::describe(f.find("machine.vendor")->read) == "caf\\xE9");
    CHECK(env::describe(f.find("env.LD_LIBRARY_PATH")->read) == "/opt/caf\\xE9");
    CHECK(f.find("env.NCCL_\\xFF") != nullptr);
    for (const auto& [name, entry] : f.attributes) {
        CHECK(plumbline::valid_utf8(name) == name);
        CHECK(plumbline::valid_utf8(env::describe(entry.read)) == env::describe(entry.read));
    }
}
