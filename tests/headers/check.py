#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the headers that no compiler checks: layers, third-party includes, macros, guards, language.

check.py ROOT [LIST]: ROOT holds include/plumbline; LIST, if given, is the file with the headers that the compile
checks cover, one a line; --write-umbrella instead of it writes plumbline.hpp anew. Prints one line for each fault and ends with 1 if there is any.
"""
import pathlib
import re
import sys

CORE = {"core"}
FACTS = CORE | {"stats", "workload", "result"}
MIDDLE = FACTS | {"measure", "environment", "loader", "training"}
COMPARE = FACTS | {"environment", "compare"}
# What each folder may include of plumbline's own folders, besides itself. Data flows one way (architecture).
LAYERS = {
    "core": set(),
    "stats": CORE,
    "workload": CORE,
    "result": CORE | {"workload"},
    "training": CORE | {"workload", "result"},
    "measure": FACTS,
    "environment": FACTS,
    "loader": FACTS | {"measure", "environment"},
    "cpu": MIDDLE,
    "cuda": MIDDLE,
    "compare": COMPARE,
    "json": MIDDLE | COMPARE,
    "report": MIDDLE | COMPARE | {"json"},
    "run": MIDDLE | COMPARE | {"json", "report"},
    "gbench": MIDDLE | COMPARE | {"json", "report", "run"},
    "entry": set(),
}
# Headers that may include other folders than the rest of theirs.
OWN_LAYERS = {
    "entry/cpu.hpp": MIDDLE | {"cpu", "run"},
    "entry/cuda.hpp": MIDDLE | {"cuda", "run"},
}
# What plumbline.hpp includes: what a kernel of one's own is written and measured with, cheap to compile. The shipped families,
# the readers of the machine and the comparator (compare/compare.hpp) are included by those who want them.
UMBRELLA = ("core", "stats", "workload", "result", "measure")
UMBRELLA_WORKLOAD = {"description", "digest", "dtype", "id", "modes", "number", "random", "suite", "verify"}
# Third-party headers by the folders that may see them.
THIRD_PARTY = [
    (re.compile(r"nlohmann/"), {"json"}),
    (re.compile(r"benchmark/"), {"gbench"}),
    (re.compile(r"CLI/"), {"run"}),
    (re.compile(r"(oneapi/|dnnl)"), {"cpu"}),
    (re.compile(r"(jpeglib|jerror)\.h"), {"loader"}),
    (re.compile(r"(cuda|cublas|cudnn|cupti|nvrtc|nccl|cooperative_groups|mma|cub/|thrust/)"), {"cuda"}),
]
# The headers with a program's main function in them: the only ones that print.
FRONT_DOORS = {"run/program.hpp", "gbench/main.hpp"}
# Has a macro that must see the flags of the file that uses it; no function body depends on them.
SEES_FLAGS = {"environment/binary.hpp"}
# The source of the frozen canaries, kept beside the machine code that was made of it once.
OTHER_FILES = {"cuda/canary/canary.cu", "cuda/canary/freeze.sh"}
STANDARD = re.compile(r"^[a-z_0-9]+$")
SYSTEM = re.compile(r"^(sys|linux|asm|netinet|arpa|gnu)/[a-z_0-9/-]+\.h$|^[a-z_0-9]+\.h$")
BANNED_STANDARD = {"format", "source_location", "ranges", "iostream", "bits/stdc++.h"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
UNDEFINE = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.M)


def without_comments(text):
    """The code alone: comments and the contents of literals go, line numbers stay."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
        re.S)

    def blank(match):
        keep = "" if match.group(0)[0] == "/" else '""'
        return keep + "\n" * match.group(0).count("\n")

    lines = text.split("\n")
    includes = {i: line for i, line in enumerate(lines) if INCLUDE.match(line)}
    code = token.sub(blank, text).split("\n")
    for i, line in includes.items():
        code[i] = line.split("//")[0]
    return "\n".join(code)


def check_includes(folder, name, code):
    for quote, path in INCLUDE.findall(code):
        if path.startswith("plumbline/"):
            if quote != '"':
                yield f"includes <{path}>: own headers are included with quotes"
            parts = path.split("/")
            other = parts[1] if len(parts) > 2 else ""
            allowed = set(UMBRELLA) if folder == "" else OWN_LAYERS.get(name, LAYERS[folder]) | {folder}
            if path == "plumbline/plumbline.hpp":
                yield "includes the umbrella header; name the headers it uses"
            elif other and other not in allowed:
                yield f"includes {path}: {folder or 'the umbrella'} may not see {other}"
            if path.endswith(".cuh") and name.endswith(".hpp"):
                yield f"includes {path}: a .hpp is host code for any compiler, a .cuh needs nvcc"
            continue
        if quote == '"':
            yield f'includes "{path}": own headers are named from plumbline/ on, others in angle brackets'
            continue
        owners = next((folders for pattern, folders in THIRD_PARTY if pattern.match(path)), None)
        if owners is not None:
            if folder not in owners:
                yield f"includes <{path}>: only {', '.join(sorted(owners))}/ may"
        elif path in BANNED_STANDARD and not (path == "iostream" and name in FRONT_DOORS):
            yield f"includes <{path}>: absent or broken in a supported compiler, or heavy without need"
        elif not STANDARD.match(path) and not SYSTEM.match(path):
            yield f"includes <{path}>: unknown to the layer rules; add it to THIRD_PARTY with the folder that owns it"


def check_macros(guard, code):
    gone = set(UNDEFINE.findall(code))
    for macro in DEFINE.findall(code):
        if macro not in gone and not macro.startswith("PLUMBLINE_"):
            yield f"leaks the macro {macro}: name it PLUMBLINE_... or undefine it at the end"
    if not re.search(rf"^#ifndef {guard}\n#define {guard}$", code, re.M):
        yield f"needs the include guard {guard}"


def check_language(name, code):
    host = name.endswith(".hpp")
    if re.search(r"\bnamespace\s*\{", code):
        yield "has an unnamed namespace: each translation unit would get its own copy (one-definition rule)"
    if re.search(r"^using\s+namespace\b", code, re.M):
        yield "opens a namespace for everybody who includes it (using namespace)"
    if host and ("<<<" in code or "__global__" in code):
        yield "has device code: that belongs into a .cuh"
    if re.search(r"#\s*if.*\b(NDEBUG|__CUDACC__|__CUDA_ARCH__)\b", code) and host and name not in SEES_FLAGS:
        yield "depends on NDEBUG or on who compiles it: two bodies of one function in a program"
    if re.search(r"\b(std::)?(exit|abort|quick_exit|_Exit)\s*\(", code):
        yield "ends the process: library code throws"
    if re.search(r"\bstd::(cout|cerr|clog)\b|(?<![\w.>])f?printf\s*\(", code) and host and name not in FRONT_DOORS:
        yield "prints: library code returns or writes to a stream it is given"
    if name != "version.hpp":
        begin, end = code.count("PLUMBLINE_NAMESPACE_BEGIN"), code.count("PLUMBLINE_NAMESPACE_END")
        only_includes = not re.sub(r"^[ \t]*#.*$", "", code, flags=re.M).strip()
        if not only_includes and (begin, end) != (1, 1):
            yield f"opens the versioned namespace {begin} times and closes it {end} times, expected once each"


def check_header(root, path):
    relative = path.relative_to(root)
    folder = str(relative.parent).split("/")[0] if relative.parent != pathlib.Path(".") else ""
    text = path.read_text(encoding="utf-8")
    if folder and folder not in LAYERS:
        yield f"folder {folder}/ has no layer: add it to LAYERS"
        return
    if not text.startswith("// SPDX-License-Identifier: Apache-2.0\n"):
        yield "first line is not the SPDX line"
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > 120:
            yield f"line {number} has {len(line)} characters, at most 120"
    code = without_comments(text)
    guard = "PLUMBLINE_" + re.sub(r"[/.]", "_", str(relative)).upper()
    if str(relative) == "plumbline.hpp":
        guard = "PLUMBLINE_HPP"
    if str(relative) == "version.hpp":
        guard = "PLUMBLINE_VERSION_HPP"
    yield from check_includes(folder, str(relative), code)
    yield from check_macros(guard, code)
    yield from check_language(str(relative), code)


def umbrella_text(root):
    lines = ["// SPDX-License-Identifier: Apache-2.0", "#ifndef PLUMBLINE_HPP", "#define PLUMBLINE_HPP", "",
             "// What a kernel of one's own is written and measured with: the engine and what it works on. Cheap to compile: the",
             "// backends, shipped families, readers of the machine, comparator (compare/compare.hpp), files and programs are",
             "// included by name. Written by tests/headers/check.py --write-umbrella.", ""]
    lines.append('#include "plumbline/version.hpp"')
    for folder in UMBRELLA:
        lines.append("")
        lines += [f'#include "plumbline/{path.relative_to(root)}"' for path in sorted((root / folder).rglob("*.hpp"))
                  if folder != "workload" or path.stem in UMBRELLA_WORKLOAD]
    return "\n".join(lines + ["", "#endif", ""])


def check_umbrella(root):
    umbrella = root / "plumbline.hpp"
    if umbrella.exists() and umbrella.read_text(encoding="utf-8") != umbrella_text(root):
        yield "plumbline.hpp: does not name what it should; run tests/headers/check.py . --write-umbrella"


def check_tree(top, covered=None):
    root = pathlib.Path(top) / "include" / "plumbline"
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_dir():
            if path.parent == root and list(path.rglob("*.?*")) and not (path / "README.md").exists():
                yield f"{relative}/: has no README.md"
        elif path.suffix in (".hpp", ".cuh"):
            for fault in check_header(root, path):
                yield f"{relative}: {fault}"
            if covered is not None and str(relative) not in covered:
                yield f"{relative}: is not covered by the compile checks"
        elif path.name != "README.md" and str(relative) not in OTHER_FILES:
            yield f"{relative}: neither a .hpp, a .cuh nor a README.md"
    yield from check_umbrella(root)


def main(arguments):
    if arguments[1:] == ["--write-umbrella"]:
        root = pathlib.Path(arguments[0]) / "include" / "plumbline"
        (root / "plumbline.hpp").write_text(umbrella_text(root), encoding="utf-8")
        return 0
    covered = None
    if len(arguments) > 1:
        covered = set(pathlib.Path(arguments[1]).read_text(encoding="utf-8").split())
    faults = list(check_tree(arguments[0], covered))
    print("\n".join(faults) if faults else "headers follow the rules")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
