#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plumbline's DataLoader and torch's in turns on the same files: both curves, the ratio of the bests, and the pixels.

    dataloader_side_by_side.py                                    # all CPUs of this machine, no device
    dataloader_side_by_side.py --backend=cuda                     # pinned, and copied to the GPU by both
    dataloader_side_by_side.py --check-pixels=build/.../loader_dump_samples

Each round measures plumbline with every number of --ours workers and then torch with every number of --torch
workers, same batch, size, dtype, layout and crop boxes; a point is the median over the rounds. Needs torch and
torchvision; under four minutes with the defaults on 16 CPUs. Ends with 1 when plumbline is less than --least times
torch, or pixels differ.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def numbers(text):
    return [int(part) for part in text.split(",")]


def measure_ours(args, folder, index):
    """Images per second by number of workers, and the file that was written."""
    suffix = "/pinned" if args.backend == "cuda" else ""
    ids = [f"dataloader/jpeg/w{workers}p2{suffix}" for workers in args.ours]
    suite = folder / "suite.json"
    suite.write_text(json.dumps({"name": "side_by_side", args.backend: ids}))
    saved = folder / f"ours-{index}.json"
    command = [args.bench, f"--backend={args.backend}", f"--suite={suite}", "--sessions=1", "--force",
               f"--save={saved}", f"--output={folder / f'ours-{index}.txt'}"]
    command += [f"--data={args.data}"] if args.data else []
    ended = subprocess.run(command, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {ended.returncode}")
    rates = {}
    for result in json.loads(saved.read_text())["results"]:
        session = result["sessions"][0]
        rates[session["state"]["workers"]] = session["state"]["images_per_s"]
        print(f"{result['id']}: {session['state']['images_per_s']:.0f} images/s, "
              f"{session['state']['cpu_us_per_image'] / 1e3:.2f} ms of CPU an image", file=sys.stderr)
    return rates, saved


def measure_torch(args, folder, like, index):
    output = folder / f"torch-{index}.json"
    only = f"/w{args.ours[-1]}p2(/|$)"
    subprocess.run([sys.executable, "-B", HERE / "pytorch_dataloader.py", f"--like={like}", f"--output={output}",
                    f"--filter={only}", f"--workers={','.join(map(str, args.torch))}", f"--seconds={args.seconds}",
                    "--same-boxes"], check=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    curve = json.loads(output.read_text())["results"][0]["sessions"][0]["state"]["curve"]
    return {int(point.split(":")[0]): float(point.split(":")[1]) for point in curve.split()}


def medians(rounds):
    return {workers: statistics.median(each[workers] for each in rounds) for workers in sorted(rounds[0])}


def table(ours, torch):
    """Lines for people, and the ratio of the best rates."""
    lines = ["workers  plumbline  of workers times one's      torch"]
    for workers in sorted({*ours, *torch}):
        mine = f"{ours[workers]:9.0f}" if workers in ours else "        -"
        share = f"{100 * ours[workers] / workers / ours[1]:21.1f} %" if workers in ours and 1 in ours else " " * 23
        other = f"{torch[workers]:9.0f}" if workers in torch else "        -"
        lines.append(f"{workers:7}  {mine}  {share}  {other}")
    best, peer = max(ours, key=ours.get), max(torch, key=torch.get)
    ratio = ours[best] / torch[peer]
    lines.append(f"best: plumbline {ours[best]:.0f} images/s with {best} workers, torch {torch[peer]:.0f} with {peer}: "
                 f"{ratio:.2f} times")
    return lines, ratio


def main():
    cpus = len(os.sched_getaffinity(0))
    curve = [w for w in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128) if w < cpus] + [cpus]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=HERE.parents[1] / "build/release/bench/bench")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--data", help="folder of images; default: the generated set")
    parser.add_argument("--ours", type=numbers, default=curve, help="numbers of workers; the last is what torch copies")
    parser.add_argument("--torch", type=numbers, default=sorted({max(1, cpus // 2), max(1, cpus * 3 // 4), cpus}))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8, help="for each number of torch's workers and each round")
    parser.add_argument("--check-pixels", metavar="PROGRAM", help="tests/loader/loader_dump_samples of a build folder")
    parser.add_argument("--least", type=float, default=2.5)
    parser.add_argument("--keep", help="folder for the files of every round; default: a temporary one")
    args = parser.parse_args()
    if not os.access(args.bench, os.X_OK):
        sys.exit(f"no program {args.bench}; run tools/bench.sh --list first, or give --bench=PROGRAM")
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(args.keep or temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        ours, torch = [], []
        for index in range(args.rounds):
            print(f"round {index + 1} of {args.rounds}", file=sys.stderr)
            rates, saved = measure_ours(args, folder, index)
            ours.append(rates)
            torch.append(measure_torch(args, folder, saved, index))
        lines, ratio = table(medians(ours), medians(torch))
        print("\n".join(lines))
        if ratio < args.least:
            print(f"less than {args.least} times")
            failed = True
    if args.check_pixels:
        pixels = subprocess.run([sys.executable, "-B", HERE.parents[1] / "tests/loader/check_with_pillow.py",
                                 args.check_pixels, HERE], check=False).returncode
        print("pixels: " + ("as Pillow's, within 2 levels in the mean" if pixels == 0 else f"ended with {pixels}"))
        failed = failed or pixels != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
