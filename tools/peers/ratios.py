#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Medians over rounds and their ratio, per benchmark: ratios.py OURS... -- PEER...

OURS are plumbline baselines, PEER files of pytorch_gemm.py; each file is one round. A round's value of a baseline is
the median of its samples. A best plan (ID/best, from bench --search) is set beside the peer's ID. Ends with the
geometric mean of the ratios and with how many are below 0.98, and with 4 when an id of the peer's is missing in ours or
the other way round.
"""
import json
import math
import statistics
import sys


def medians_of_baseline(document):
    """ns by id: the median over sessions of the median of the clean samples."""
    found = {}
    for result in document["results"]:
        if result["metric"] != "time" or result["status"] != "ok":
            continue
        sessions = []
        for session in result["sessions"]:
            clean = session.get("clean") or [True] * len(session["samples"])
            kept = [value for value, good in zip(session["samples"], clean) if good] or session["samples"]
            if kept:
                sessions.append(statistics.median(kept))
        if sessions:
            found[result["id"]] = statistics.median(sessions)
    return found


def medians_of_peer(document):
    return {result["id"]: statistics.median(result["rounds"]) for result in document["results"]}


def read(paths, medians):
    rounds = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for name, value in medians(json.load(file)).items():
                rounds.setdefault(name, []).append(value)
    return rounds


def table(ours, peer):
    """Lines for people and whether both sides have every id."""
    width = max([len(name) for name in ours | peer] + [len("benchmark")])
    lines = [f"{'benchmark':{width}}  {'plumbline':>11}  {'peer':>11}  {'peer/ours':>9}  rounds  spread ours, peer"]
    complete = True
    ratios = {"own choice": [], "best of a search": []}
    for name in peer | ours:
        searched = name.endswith("/best") and name not in peer
        of_peer = name.removesuffix("/best") if searched else name
        if name not in ours or of_peer not in peer:
            lines.append(f"{name:{width}}  missing {'here' if name not in ours else 'at the peer'}")
            complete = False
            continue
        mine, other = statistics.median(ours[name]), statistics.median(peer[of_peer])
        ratios["best of a search" if searched else "own choice"].append(other / mine)
        spread = [100 * (max(values) - min(values)) / statistics.median(values)
                  for values in (ours[name], peer[of_peer])]
        lines.append(f"{name:{width}}  {mine / 1e3:8.2f} us  {other / 1e3:8.2f} us  {other / mine:9.4f}  "
                     f"{len(ours[name])}, {len(peer[of_peer])}    {spread[0]:.2f} %, {spread[1]:.2f} %")
    for what, values in ratios.items():
        if values:
            mean = math.exp(statistics.fmean(math.log(value) for value in values))
            lines.append(f"{what}: geometric mean {mean:.4f} of {len(values)}, below 0.98: "
                         f"{sum(value < 0.98 for value in values)}")
    return lines, complete


def main(arguments):
    if "--" not in arguments or arguments[0] == "--" or arguments[-1] == "--":
        print("usage: ratios.py OURS... -- PEER...", file=sys.stderr)
        return 2
    at = arguments.index("--")
    lines, complete = table(read(arguments[:at], medians_of_baseline), read(arguments[at + 1:], medians_of_peer))
    print("\n".join(lines))
    return 0 if complete else 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
