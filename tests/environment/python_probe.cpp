// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <csignal>

#include <doctest/doctest.h>

#include "fake_machine.hpp"
#include "plumbline/environment/diff.hpp"
#include "plumbline/json/python_probe.hpp"

using namespace plumbline_tests;
using namespace std::chrono_literals;
using plumbline::result::reading_status;

namespace {

/// Site-packages of made-up Python packages, so that the probe meets frameworks that are not installed here.
struct packages {
    temporary_folder folder;
    env::host host;

    packages() {
        host.variables = env::read_environment_block(host);
        host.variables["PYTHONPATH"] = folder.path().string();
    }
    void install(const std::string& name, const std::string& version, const std::string& module,
                 const std::string& code) {
        const fs::path info = folder.path() / (name + "-" + version + ".dist-info");
        fs::create_directories(info);
        std::ofstream(info / "METADATA") << "Metadata-Version: 2.1\nName: " << name << "\nVersion: " << version << "\n";
        fs::create_directories(folder.path() / module);
        std::ofstream(folder.path() / module / "__init__.py") << code;
    }
    plumbline::result::fingerprint ask(std::chrono::milliseconds limit = 20s) {
        plumbline::result::fingerprint f;
        plumbline::json::add_python_probe(f, env::run_python_probe(host, limit));
        return f;
    }
};

bool have_python() {
    return env::run_child({"python3", "-c", ""}, {}, 20s).status == 0;
}

std::string text(const plumbline::result::fingerprint& of, const std::string& name) {
    const auto* entry = of.find(name);
    return entry == nullptr ? "missing" : env::describe(entry->read);
}

} // namespace

TEST_CASE("a framework is asked for its settings, and what it cannot answer has its reason") {
    if (!have_python()) return;
    packages p;
    p.install("torch", "2.11.0", "torch",
              "print('hello from an import')\n"
              "print('{\"name\": \"backend\", \"value\": \"evil\", \"link\": 1}')\n"
              "class _B: pass\n"
              "__version__ = '2.11.0+cu130'\n"
              "version = _B(); version.cuda = None; version.git_version = 'a' * 10 + '0123456789' * 3\n"
              "backends = _B(); backends.cudnn = _B(); backends.cudnn.allow_tf32 = True\n"
              "backends.cudnn.version = lambda: 91900\n"
              "backends.cuda = _B(); backends.cuda.matmul = _B(); backends.cuda.matmul.allow_tf32 = False\n"
              "def get_float32_matmul_precision(): return 'highest'\n"
              "def get_num_threads(): return 4\n"
              "def get_num_interop_threads(): return 2\n");
    const auto f = p.ask();
    CHECK(text(f, "python.probe") == "true");
    CHECK(text(f, "python.torch") == "2.11.0+cu130");
    CHECK(text(f, "python.torch_cuda") == "none");
    CHECK(text(f, "python.torch_cudnn") == "91900");
    CHECK(text(f, "python.torch_allow_tf32_matmul") == "false");
    CHECK(text(f, "python.torch_allow_tf32_cudnn") == "true");
    CHECK(text(f, "python.torch_matmul_precision") == "highest");
    CHECK(f.find("python.torch_threads")->link == 4);
    CHECK(f.find("python.torch_git")->read.known());
    CHECK(f.find("python.torch_architectures")->read.status == reading_status::unsupported);
    CHECK(f.find("backend") == nullptr); // only names of its own
}

TEST_CASE("a framework that hangs, crashes or fails costs its own answers and nothing else") {
    if (!have_python()) return;
    SUBCASE("hangs, with a grandchild, deaf to SIGTERM") {
        packages p;
        p.install("torch", "1.0", "torch",
                  "import signal, subprocess, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                  "subprocess.Popen(['sleep', '300'])\ntime.sleep(300)\n");
        const auto start = std::chrono::steady_clock::now();
        const auto f = p.ask(5s); // long enough for Python to start on a busy machine
        CHECK(std::chrono::steady_clock::now() - start < 60s);
        CHECK(text(f, "python.probe").find("took longer than 5000 ms") != std::string::npos);
        CHECK(text(f, "python.torch") == "1.0"); // from the metadata, before the import
    }
    SUBCASE("ends the interpreter") {
        packages p;
        p.install("torch", "1.0", "torch", "import os\nos._exit(3)\n");
        const auto f = p.ask();
        CHECK(text(f, "python.probe").find("status 3") != std::string::npos);
        CHECK(text(f, "python.torch") == "1.0");
    }
    SUBCASE("is killed by a signal") {
        packages p;
        p.install("torch", "1.0", "torch", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n");
        CHECK(text(p.ask(), "python.probe").find("status 139") != std::string::npos);
    }
    SUBCASE("does not import") {
        packages p;
        p.install("torch", "1.0", "torch", "import nothing_of_that_name\n");
        p.install("vllm", "0.9.1", "vllm", "");
        const auto f = p.ask();
        CHECK(text(f, "python.probe") == "true");
        CHECK(text(f, "python.torch").find("ModuleNotFoundError") != std::string::npos);
        CHECK(text(f, "python.vllm") == "0.9.1");
        CHECK(f.find("python.vllm")->link == 6);
    }
    SUBCASE("floods the output") {
        packages p;
        p.install("torch", "1.0", "torch", "while True: print('x' * 1000000)\n");
        const auto start = std::chrono::steady_clock::now();
        const auto f = p.ask();
        CHECK(std::chrono::steady_clock::now() - start < 60s);
        CHECK(text(f, "python.torch") == "1.0");
        CHECK(text(f, "python.probe") != "true");
    }
}

TEST_CASE("no Python is absent, not an error") {
    env::host host;
    plumbline::result::fingerprint f;
    plumbline::json::add_python_probe(f, env::run_python_probe(host, 5s, "no-such-python"));
    CHECK(f.find("python.version")->read.status == reading_status::absent);
    CHECK(text(f, "python.version").find("no-such-python") != std::string::npos);
}

TEST_CASE("the child sees no GPU and no variable that was not given to it") {
    if (!have_python()) return;
    packages p;
    p.host.variables["CUDA_VISIBLE_DEVICES"] = "0";
    p.install("torch", "1.0", "torch",
              "import os\n__version__ = 'devices:' + repr(os.environ.get('CUDA_VISIBLE_DEVICES'))\n");
    CHECK(text(p.ask(), "python.torch") == "devices:''");
}

TEST_CASE("whatever a child writes, the reader takes its own lines and nothing else") {
    env::python_answer answer;
    answer.ended = plumbline::result::reading::of(true);
    answer.lines =
        "{\"name\": \"python.good\", \"value\": 1, \"link\": 3}\n"
        "{\"name\": \"python.cut\", \"val\n"
        "{\"name\": \"gpu.name\", \"value\": 1, \"link\": 3}\n"
        "{\"name\": \"python.link\", \"value\": 1, \"link\": 9}\n"
        "{\"name\": \"python.nested\", \"value\": {\"a\": 1}, \"link\": 3}\n"
        "{\"name\": \"python.secret\", \"value\": \"ghp_16C7e42F292c6912E7710c838347Ae178B4a\", \"link\": 3}\n"
        "{\"name\": \"python.null\", \"value\": null, \"link\": 3}\n"
        "{\"name\": 5}\n{}\n[]\n{\"name\": \"python.nan\", \"value\": NaN, \"link\": 3}\n" +
        std::string(100000, '{') + "\n" + std::string("{\"\xff\xfe\": 1}\n") +
        "{\"name\": \"python.last\", \"value\": true, \"link\": 6}";
    plumbline::result::fingerprint f;
    plumbline::json::add_python_probe(f, answer);
    CHECK(text(f, "python.good") == "1");
    CHECK(text(f, "python.last") == "true");
    CHECK(f.find("python.secret")->read.status == reading_status::denied);
    CHECK(f.find("python.null")->read.status == reading_status::absent);
    CHECK(f.attributes.size() == 6); // these four, python.probe and python.version
}

TEST_CASE("a child's exit code, output and limits") {
    const auto run = [](const char* script, std::chrono::milliseconds limit = 20s, std::size_t bytes = 1u << 20) {
        return env::run_child({"/bin/sh", "-c", script}, {"GREETING=hi"}, limit, bytes);
    };
    auto outcome = run("echo $GREETING; echo lost >&2; exit 7");
    CHECK(outcome.started);
    CHECK(outcome.status == 7);
    CHECK(outcome.output == "hi\n");
    CHECK_FALSE(outcome.timed_out);
    outcome = run("kill -9 $$");
    CHECK(outcome.status == 128 + SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    outcome = run("sleep 60 & sleep 60", 200ms);
    CHECK(outcome.timed_out);
    CHECK(std::chrono::steady_clock::now() - start < 30s);
    // A child that closes its output and stays is ended too.
    outcome = run("exec >&-; sleep 60", 200ms);
    CHECK(outcome.timed_out);
    outcome = run("yes", 20s, 1000);
    CHECK(outcome.output.size() == 1000);
    CHECK_FALSE(env::run_child({"/no/such/program"}, {}, 1s).started);
    CHECK_FALSE(env::run_child({}, {}, 1s).started);
}
