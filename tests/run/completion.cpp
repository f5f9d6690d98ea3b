// SPDX-License-Identifier: Apache-2.0
// Completion scripts, made of the option table and tried in the shells themselves.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "fake_program.hpp"

TEST_CASE("the completion scripts offer every option that --help shows, and the values that are words") {
    const fake_place at;
    const std::string help = at.bench({"--help"}).out;
    const std::string bash = at.bench({"--completion=bash"}).out;
    const std::string zsh = at.bench({"--completion=zsh"}).out;
    std::size_t seen = 0;
    for (std::size_t i = help.find("\n  --"); i != std::string::npos; i = help.find("\n  --", i + 1)) {
        const std::string flag = help.substr(i + 3, help.find_first_of(" =[\n", i + 5) - i - 3);
        CAPTURE(flag);
        CHECK(contains(bash, flag));
        CHECK(contains(zsh, "'*" + flag));
        ++seen;
    }
    CHECK(seen > 20);
    CHECK_FALSE(contains(bash, "--session-plan"));
    CHECK_FALSE(contains(zsh, "--session-plan"));
    CHECK(at.bench({"--completion=fish"}).code == 2);
    std::ofstream(at.folder / "bench.bash") << bash;
    // What a person gets who types the words up to here.
    const auto offered = [&](const std::string& words, int current) {
        const std::string command = "cd '" + at.folder.text() + "' && bash -c 'source ./bench.bash; COMP_WORDS=(" +
                                    words + "); COMP_CWORD=" + std::to_string(current) +
                                    "; _bench; echo \"${COMPREPLY[*]}\"' >offered 2>&1";
        CHECK(std::system(command.c_str()) == 0);
        return contents(at.folder / "offered");
    };
    CHECK(offered("bench --suite = s", 3) == "standard\n");
    CHECK(offered("bench --suite =", 2).rfind("quick standard full ", 0) == 0); // and the files that are there
    CHECK(offered("bench --format = j", 3) == "json junit\n");
    CHECK(offered("bench --self", 1) == "--self-test\n");
    CHECK(offered("bench --sess", 1) == "--sessions=\n");
    CHECK(offered("bench --policy = bench.b", 3) == "bench.bash\n");
    if (std::system("command -v zsh >/dev/null") != 0) {
        MESSAGE("zsh's script was not read by zsh: it is not installed");
        return;
    }
    std::ofstream(at.folder / "_bench") << zsh;
    CHECK(std::system(("zsh -n '" + (at.folder / "_bench") + "'").c_str()) == 0);
}
