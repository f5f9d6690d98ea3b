#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one fault of each kind into a tree of headers and expects check.py to name it, and nothing in a good tree."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check  # noqa: E402


def header(folder, name, body="", guard=None, before=""):
    guard = guard or f"PLUMBLINE_{folder}_{name}".replace(".", "_").replace("/", "_").upper()
    return (f"// SPDX-License-Identifier: Apache-2.0\n#ifndef {guard}\n#define {guard}\n{before}\n"
            f"PLUMBLINE_NAMESPACE_BEGIN\n{body}\nPLUMBLINE_NAMESPACE_END\n#endif\n")


class rules(unittest.TestCase):
    def faults(self, folder, name, body="", **more):
        """Faults of a good tree with this one header added."""
        with tempfile.TemporaryDirectory() as top:
            root = pathlib.Path(top) / "include" / "plumbline"
            for other in {"core", folder}:
                (root / other).mkdir(parents=True, exist_ok=True)
                (root / other / "README.md").write_text("what lives here\n")
            (root / "core" / "good.hpp").write_text(header("core", "good.hpp", "inline int f() { return 'a'; }"))
            covered = more.pop("covered", None)
            (root / folder / name).write_text(more.pop("text", None) or header(folder, name, body, **more))
            return list(check.check_tree(top, covered))

    def expect(self, words, *args, **more):
        found = self.faults(*args, **more)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_a_good_tree_has_no_fault(self):
        self.assertEqual(self.faults("stats", "a.hpp", before='#include <vector>\n#include <sys/stat.h>\n'
                                     '#include "plumbline/core/good.hpp"'), [])

    def test_words_in_comments_and_literals_are_no_fault(self):
        self.assertEqual(self.faults("stats", "a.hpp", 'inline const char* s = "exit(1) std::cout"; // abort()\n'
                                     '/* using namespace std; */'), [])

    def test_layers(self):
        self.expect("core may not see stats", "core", "a.hpp", before='#include "plumbline/stats/b.hpp"')
        self.expect("cpu may not see cuda", "cpu", "a.hpp", before='#include "plumbline/cuda/backend.hpp"')
        self.expect("cuda may not see cpu", "cuda", "a.hpp", before='#include "plumbline/cpu/backend.hpp"')
        self.expect("compare may not see json", "compare", "a.hpp", before='#include "plumbline/json/store.hpp"')
        self.expect("run may not see cpu", "run", "a.hpp", before='#include "plumbline/cpu/backend.hpp"')
        self.expect("entry may not see cuda", "entry", "cpu.hpp", before='#include "plumbline/cuda/backend.hpp"')
        self.expect("entry may not see cpu", "entry", "own.hpp", before='#include "plumbline/cpu/backend.hpp"')
        self.assertEqual(self.faults("entry", "cpu.hpp", before='#include "plumbline/cpu/backend.hpp"'), [])
        self.expect("umbrella header", "run", "a.hpp", before='#include "plumbline/plumbline.hpp"')
        self.expect("a .hpp is host code", "cuda", "a.hpp", before='#include "plumbline/cuda/kernels/b.cuh"')
        self.expect("has no layer", "misc", "a.hpp")

    def test_third_party(self):
        self.expect("only json/ may", "report", "a.hpp", before="#include <nlohmann/json.hpp>")
        self.expect("only gbench/ may", "run", "a.hpp", before="#include <benchmark/benchmark.h>")
        self.expect("only run/ may", "json", "a.hpp", before="#include <CLI/CLI.hpp>")
        self.expect("only cpu/ may", "cuda", "a.hpp", before="#include <oneapi/dnnl/dnnl.hpp>")
        self.expect("only loader/ may", "cpu", "a.hpp", before="#include <jpeglib.h>")
        self.expect("only cuda/ may", "environment", "a.hpp", before="#include <cuda_runtime_api.h>")
        self.expect("unknown to the layer rules", "stats", "a.hpp", before="#include <boost/math/tools.hpp>")
        self.expect("absent or broken", "stats", "a.hpp", before="#include <format>")
        self.expect("with quotes", "stats", "a.hpp", before="#include <plumbline/core/good.hpp>")
        self.expect("named from plumbline/ on", "stats", "a.hpp", before='#include "b.hpp"')

    def test_macros_and_guards(self):
        self.expect("leaks the macro FOO", "stats", "a.hpp", before="#define FOO 1")
        self.assertEqual(self.faults("stats", "a.hpp", before="#define FOO 1\n#undef FOO"), [])
        self.expect("needs the include guard", "stats", "a.hpp", guard="PLUMBLINE_STATS_B_HPP")

    def test_language(self):
        self.expect("unnamed namespace", "stats", "a.hpp", "namespace { int x; }")
        self.expect("using namespace", "stats", "a.hpp", "using namespace std;")
        self.expect("device code", "cuda", "a.hpp", "inline void f() { k<<<1, 1>>>(); }")
        self.expect("NDEBUG", "stats", "a.hpp", before="#ifdef NDEBUG\n#endif")
        self.expect("ends the process", "stats", "a.hpp", "inline void f() { std::exit(1); }")
        self.expect("prints", "stats", "a.hpp", "inline void f() { std::printf(\"x\"); }")
        self.expect("versioned namespace", "stats", "a.hpp", "PLUMBLINE_NAMESPACE_BEGIN")

    def test_only_front_doors_print(self):
        self.assertEqual(self.faults("run", "program.hpp", "inline void f() { std::cerr << 1; }",
                                     before="#include <iostream>"), [])
        self.expect("absent or broken", "run", "a.hpp", before="#include <iostream>")

    def test_text(self):
        self.expect("SPDX", "stats", "a.hpp", text=header("stats", "a.hpp").split("\n", 1)[1])
        self.expect("characters, at most 120", "stats", "a.hpp", "// " + "x" * 120)

    def test_files(self):
        self.expect("neither a .hpp", "stats", "a.h")
        self.expect("not covered", "stats", "a.hpp", covered={"core/good.hpp"})
        with tempfile.TemporaryDirectory() as top:
            folder = pathlib.Path(top) / "include" / "plumbline" / "stats"
            folder.mkdir(parents=True)
            (folder / "a.hpp").write_text(header("stats", "a.hpp"))
            self.assertEqual(list(check.check_tree(top)), ["stats/: has no README.md"])

    def test_the_umbrella_names_every_header_of_its_folders(self):
        with tempfile.TemporaryDirectory() as top:
            root = pathlib.Path(top) / "include" / "plumbline"
            (root / "core").mkdir(parents=True)
            (root / "core" / "README.md").write_text("what lives here\n")
            (root / "core" / "good.hpp").write_text(header("core", "good.hpp"))
            check.main([top, "--write-umbrella"])
            self.assertEqual(list(check.check_tree(top)), [])
            (root / "core" / "more.hpp").write_text(header("core", "more.hpp"))
            self.assertIn("does not name what it should", "".join(check.check_tree(top)))


if __name__ == "__main__":
    unittest.main()
