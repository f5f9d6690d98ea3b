#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation test of stats/ and compare/: does some test notice when one operator or constant is wrong?

Copies include/ aside, changes one token at a time, runs the tests (all but the resampling and the speed) against it until
one fails, and reports who survived. A random sample is drawn, seeded, so that a run can be repeated. Mutants that do not compile are drawn anew. Mutants that cannot be noticed because they mean the
same are listed with the reason in equivalent.txt and do not count.

  mutate.py [--count 200] [--seed 1] [--jobs 1] [--only REGEX] [--list] [--minimum 95]

Ends with 1 when less than --minimum per cent of the counted mutants were killed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("stats", "compare")
LINKER = ["-fuse-ld=lld"] if shutil.which("ld.lld") else []  # several times as fast
SLOW = {"resampling.cpp", "recorded.cpp", "speed.cpp"}  # figures of merit, not tests of single rules
# The tests most likely to notice come first; the others follow.
FIRST = {
    "stats/descriptive.hpp": ["stats/descriptive.cpp"],
    "stats/distributions.hpp": ["stats/distributions.cpp"],
    "stats/ranks.hpp": ["stats/ranks.cpp"],
    "stats/shift_test.hpp": ["stats/shift_test.cpp"],
    "stats/multiplicity.hpp": ["stats/more.cpp"],
    "stats/bimodality.hpp": ["stats/more.cpp"],
    "stats/hierarchy.hpp": ["stats/more.cpp"],
    "stats/paired.hpp": ["stats/more.cpp"],
    "compare/policy.hpp": ["compare/policy.cpp"],
    "compare/glob.hpp": ["compare/policy.cpp"],
    "compare/noise.hpp": ["compare/noise.cpp", "compare/policy.cpp"],
    "compare/gate.hpp": ["compare/gate.cpp"],
    "compare/observation.hpp": ["compare/decide.cpp", "compare/gate.cpp"],
    "compare/board.hpp": ["compare/interleaved.cpp"],
    "compare/estimate.hpp": ["compare/decide.cpp", "compare/interleaved.cpp"],
    "compare/decide.hpp": ["compare/decide.cpp"],
    "compare/outcome.hpp": ["compare/outcome.cpp"],
    "compare/comparison.hpp": ["compare/outcome.cpp", "compare/decide.cpp"],
    "compare/compare.hpp": ["compare/interleaved.cpp", "compare/decide.cpp", "compare/outcome.cpp"],
    "compare/merge.hpp": ["compare/files.cpp"],
    "compare/accept.hpp": ["compare/files.cpp"],
    "compare/siblings.hpp": ["compare/files.cpp"],
    "compare/graft.hpp": ["compare/files.cpp"],
    "compare/explain.hpp": ["compare/explain.cpp", "compare/reported.cpp"],
    "compare/symptom.hpp": ["compare/explain.cpp", "compare/reported.cpp"],
    "compare/suspect.hpp": ["compare/suspect.cpp", "compare/explain.cpp", "compare/reported.cpp"],
    "compare/conclusion.hpp": ["compare/trial.cpp", "compare/explain.cpp"],
    "compare/trial.hpp": ["compare/trial.cpp"],
    "compare/prediction.hpp": ["compare/prediction.cpp"],
}
DATA = {"knowledge.hpp"}  # a table of what is known: its figures are no rules
# Token -> what it may become. Templates, references and the like are told apart by the blanks clang-format sets.
SWAPS = [
    (r" <= ", [" < ", " > "]), (r" >= ", [" > ", " < "]), (r" < ", [" <= ", " >= "]), (r" > ", [" >= ", " < "]),
    (r" == ", [" != "]), (r" != ", [" == "]), (r" && ", [" || "]), (r" \|\| ", [" && "]),
    (r" \+ ", [" - "]), (r" - ", [" + "]), (r" \* ", [" / "]), (r" / ", [" * "]),
    (r" \+= ", [" -= "]), (r" -= ", [" += "]),
    (r"\btrue\b", ["false"]), (r"\bfalse\b", ["true"]),
    (r"(?<=[(&|=] )!(?=[a-z(])|(?<=\()!(?=[a-z(])", [""]),
    (r"(?<=[(= ])-(?=[a-z(0-9])", [""]),
    (r"\bstd::min\b", ["std::max"]), (r"\bstd::max\b", ["std::min"]),
    (r"\bany_of\b", ["all_of"]), (r"\ball_of\b", ["any_of"]), (r"\bnone_of\b", ["any_of"]),
    (r"\bcontinue;", ["break;"]),
    (r"(?<![\w.])\d+\.\d+(e-?\d+)?(?![\w.])|(?<![\w.])\d+e-?\d+(?![\w.])", ["SCALE"]),
    (r"(?<![\w.])\d+(?![\w.])", ["NEXT", "PREVIOUS"]),
]
SKIP_LINE = re.compile(r"^\s*(//|#|/\*|\*|PLUMBLINE_|namespace|template|using |inline constexpr const char)|case |operator|throw ")


def blank(text):
    """The code with comments and the contents of literals replaced by blanks, at the same places."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", "\x00", m.group(0)), text)


def replacements(found, options):
    for option in options:
        if option == "SCALE":
            yield repr(float(found) * 2 if float(found) else 1.0)
        elif option == "NEXT":
            yield str(int(found) + 1)
        elif option == "PREVIOUS":
            if int(found) > 0:
                yield str(int(found) - 1)
        else:
            yield option


def all_mutants():
    """(file, line number, line before, line after), in a fixed order."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / "include/plumbline" / folder).glob("*.hpp")):
            if path.name in DATA:
                continue
            text = path.read_text(encoding="utf-8")
            lines, codes = text.split("\n"), blank(text).split("\n")
            for number, (line, code) in enumerate(zip(lines, codes)):
                if SKIP_LINE.search(line):
                    continue
                for pattern, options in SWAPS:
                    for m in re.finditer(pattern, code):
                        for new in replacements(m.group(0), options):
                            after = line[:m.start()] + new + line[m.end():]
                            found.append((f"{folder}/{path.name}", number, line, after))
    return found


def equivalents():
    """Pairs of lines that mean the same, from equivalent.txt; `*` after a line stands for any change of it."""
    known = {}
    path = ROOT / "tests/mutation/equivalent.txt"
    for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            parts = [part.strip() for part in line.split(" ¦ ")]
            if len(parts) != 4 or not parts[3]:
                sys.exit(f"{path}: not 'file ¦ before ¦ after ¦ reason': {line}")
            known[tuple(parts[:3])] = parts[3]
    return known


def is_equivalent(mutant, known):
    file, _, before, after = mutant
    code = before.split(" //")[0].strip()
    changed = after.split(" //")[0].strip()
    return (file, code, changed) in known or (file, code, "*") in known


# Templates that only the tests instantiate, so that a changed body reaches them.
INSTANTIATED = {
    "stats": """
namespace plumbline { inline namespace v0 { namespace stats {
using quantile_function = double (&)(double, double);
template double detectable_shift<quantile_function>(double, double, double, std::size_t, quantile_function);
template std::optional<std::size_t> sessions_to_detect<quantile_function>(
    double, const session_precision&, double, std::size_t, quantile_function, std::size_t);
} } }
""",
    "compare": "",
}
# Defaults of plain structs are compiled into whoever makes one, so only recompiled tests see them change.
STRUCT_DEFAULTS = re.compile(r"^(    \w.* = [^;]+;|        \{\"\w+\", \{.*)\s*(///.*)?$")


class Workshop:
    """A copy of the headers, the tests compiled once, and a way to run them against a changed header.

    At -O0 nothing is inlined, and every inline function is a weak symbol of which the linker takes the first it meets.
    So the tests are compiled only once, and a mutant is one object with all functions of the headers
    (-fkeep-inline-functions, GCC) that is linked before them. What survives that way is judged again by compiling the
    tests anew.
    """

    def __init__(self, compiler, shared=None):
        self.compiler = compiler
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="plumbline-mutation-"))
        shutil.copytree(ROOT / "include", self.dir / "include")
        self.flags = ["-std=c++20", "-O0", "-w", "-D_GLIBCXX_ASSERTIONS", f'-DPLUMBLINE_TEST_DATA="{ROOT}/tests/data"',
                      f"-I{self.dir}/include", f"-I{ROOT}/tests/compare"]
        standard = "algorithm array cmath cstddef cstdint cstdio fstream functional limits map numeric optional set " \
                   "stdexcept string tuple utility variant vector"
        text = "".join(f"#include <{name}>\n" for name in standard.split())
        (self.dir / "standard.hpp").write_text(text)
        (self.dir / "first.hpp").write_text(text + "#include <doctest/doctest.h>\n#include <nlohmann/json.hpp>\n")
        for name in ("standard.hpp", "first.hpp"):
            self.compile(["-x", "c++-header", name, "-o", name + ".gch"])
        for folder in FOLDERS:
            headers = sorted((self.dir / "include/plumbline" / folder).glob("*.hpp"))
            text = "".join(f'#include "plumbline/{folder}/{path.name}"\n' for path in headers)
            (self.dir / f"{folder}.cpp").write_text(text + INSTANTIATED[folder])
        self.tests = sorted(f"{folder}/{path.name}" for folder in FOLDERS
                            for path in (ROOT / "tests" / folder).glob("*.cpp") if path.name not in SLOW)
        if shared is not None:
            self.objects = shared.objects
            return
        # The main program defines doctest's implementation, so it must not see doctest before.
        self.objects = [str(self.dir / "main.o")]
        self.compile(["-c", str(ROOT / "tests/main.cpp"), "-o", self.objects[0]])
        for source in self.tests:
            made = str(self.dir / (source.replace("/", "-") + ".o"))
            self.compile(["-include", "first.hpp", "-c", str(ROOT / "tests" / source), "-o", made])
            self.objects.append(made)

    def compile(self, arguments):
        subprocess.run([self.compiler, *self.flags, *arguments], cwd=self.dir, check=True, stderr=subprocess.DEVNULL,
                       timeout=900)

    def fails(self):
        """Whether the program `test` fails."""
        try:
            done = subprocess.run([self.dir / "test", "--abort-after=1", "--no-version"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=120)
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0

    def fails_linked(self, folder):
        """Whether a test fails when the functions of a folder's headers are those of now; None: do not compile."""
        try:
            self.compile(["-include", "standard.hpp", "-fkeep-inline-functions", "-c", f"{folder}.cpp", "-o", "mutant.o"])
        except subprocess.CalledProcessError:
            return None
        self.compile(["mutant.o", *self.objects, *LINKER, "-o", "test"])
        return self.fails()

    def fails_compiled(self, tests):
        """Whether one of the test files fails when compiled with the headers as they are; None: do not compile."""
        for test in tests:
            try:
                self.compile(["-include", "first.hpp", str(ROOT / "tests" / test), self.objects[0], "-o", "test"])
            except subprocess.CalledProcessError:
                return None
            if self.fails():
                return True
        return False

    def includes(self, test):
        """The headers of ours that a test file sees."""
        out = subprocess.run([self.compiler, *self.flags, "-MM", str(ROOT / "tests" / test)], cwd=self.dir, check=True,
                             capture_output=True, text=True).stdout
        return set(re.findall(r"include/plumbline/((?:stats|compare)/\w+\.hpp)", out))

    def judge(self, mutant, tests):
        """'killed', 'survived' or 'invalid' (does not compile)."""
        file, number, before, after = mutant
        path = self.dir / "include/plumbline" / file
        good = path.read_text(encoding="utf-8")
        lines = good.split("\n")
        assert lines[number] == before
        lines[number] = after
        path.write_text("\n".join(lines), encoding="utf-8")
        try:
            failed = False
            if not (file in ("compare/policy.hpp", "compare/comparison.hpp") and STRUCT_DEFAULTS.search(before)):
                failed = self.fails_linked(file.split("/")[0])
            if failed is False:
                failed = self.fails_compiled(tests)
            return "invalid" if failed is None else "killed" if failed else "survived"
        finally:
            path.write_text(good, encoding="utf-8")


def order_tests(workshop):
    """For each header the test files that see it, the likeliest first."""
    sees = {name: workshop.includes(name) for name in workshop.tests}
    ordered = {}
    for header in {header for seen in sees.values() for header in seen}:
        first = [name for name in FIRST.get(header, []) if header in sees.get(name, ())]
        ordered[header] = first + [name for name in workshop.tests if header in sees[name] and name not in first]
    return ordered


def describe(mutant):
    file, number, before, after = mutant
    return f"{file}:{number + 1}\n    - {before.strip()}\n    + {after.strip()}"


def run(options):
    mutants = [m for m in all_mutants() if re.search(options.only, m[0] + ":" + m[2])]
    known = equivalents()
    counted = [m for m in mutants if not is_equivalent(m, known)]
    print(f"{len(mutants)} possible mutants, {len(mutants) - len(counted)} of them known to be equivalent", flush=True)
    if options.list:
        print("\n".join(describe(m) for m in counted))
        return 0
    random.Random(options.seed).shuffle(counted)
    first = Workshop(options.compiler)
    workshops = [first] + [Workshop(options.compiler, first) for _ in range(options.jobs - 1)]
    tests = order_tests(first)
    for folder in FOLDERS:
        if first.fails_linked(folder) is not False:
            sys.exit("a test fails without any mutation")
    print("the tests pass without a mutation", flush=True)
    outcome = {"killed": 0, "survived": 0, "invalid": 0}
    survivors = []

    def work(job):
        workshop = workshops[job]
        while counted and outcome["killed"] + outcome["survived"] < options.count:
            mutant = counted.pop()
            if mutant[0] not in tests:
                verdict = "survived"  # a header that no test includes
            else:
                verdict = workshop.judge(mutant, tests[mutant[0]])
            outcome[verdict] += 1
            if verdict == "survived":
                survivors.append(mutant)
                print("survived", describe(mutant), flush=True)
            done = outcome["killed"] + outcome["survived"]
            if done % 25 == 0 and verdict != "invalid":
                print(f"{done} judged, {outcome['killed']} killed", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, range(options.jobs)))
    for workshop in workshops:
        shutil.rmtree(workshop.dir)
    total = outcome["killed"] + outcome["survived"]
    share = 100 * outcome["killed"] / max(total, 1)
    print(f"seed {options.seed}: {outcome['killed']} of {total} killed ({share:.1f} %), {len(survivors)} survived, "
          f"{outcome['invalid']} did not compile")
    return 0 if share >= options.minimum else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="mutants to judge")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="regular expression over 'file:line text'")
    parser.add_argument("--minimum", type=float, default=95, help="per cent that must be killed")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--list", action="store_true", help="print all mutants and stop")
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
