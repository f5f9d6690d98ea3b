#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's DataLoader where bench has timed plumbline's, on the same files, and writes the same format.

    bench --suite=full --filter='^dataloader/jpeg' --save=native.json
    pytorch_dataloader.py --like=native.json --output=torch.json
    bench-compare torch.json native.json

Every result `dataloader/jpeg/...` of the file given by --like is run again with torch and torchvision: same number of
workers (or, with --workers=8,12,16, the best of those), prefetch factor, batch, dtype, layout, pinning, order, cache
state and consumer. Fingerprint, device and workload are taken over, since machine and work are the same; what is
particular to torch is in the labels. Needs torch and torchvision; SampleRandom and crop_box need nothing, and draw
what plumbline draws for the same (seed, epoch, position): --same-boxes uses them in place of torchvision's own.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import re
import statistics
import sys
import time

MASK = (1 << 64) - 1
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


class SampleRandom:
    """loader::sample_random: SplitMix64, seeded by seed, epoch and position in the epoch's order."""

    def __init__(self, seed, epoch, position):
        self.state = self._mix(self._mix(self._mix(seed) ^ epoch) ^ position)

    @staticmethod
    def _mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        return self._mix(self.state)

    def uniform(self, low=0.0, high=1.0):
        return low + (high - low) * ((self.next() >> 11) * 2.0**-53)

    def below(self, n):
        return int(self.uniform() * n)


def crop_box(width, height, random, area=(0.08, 1.0), aspect=(3 / 4, 4 / 3)):
    """loader::random_resized_crop: (x, y, width, height), as torchvision's RandomResizedCrop chooses it."""
    for _ in range(10):
        target = width * height * random.uniform(*area)
        ratio = math.exp(random.uniform(math.log(aspect[0]), math.log(aspect[1])))
        w = round(math.sqrt(target * ratio))
        h = round(math.sqrt(target / ratio))
        if 0 < w <= width and 0 < h <= height:
            y = random.below(height - h + 1)
            x = random.below(width - w + 1)
            return x, y, w, h
    w, h = width, height
    if width / height < aspect[0]:
        h = round(width / aspect[0])
    elif width / height > aspect[1]:
        w = round(height * aspect[1])
    return (width - w) // 2, (height - h) // 2, w, h


def image_files(folder):
    files = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"{folder}: holds no .jpg files; give the folder that bench used with --data")
    return files


def drop_from_page_cache(files):
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


class Images:
    """A map-style data set: file i % n, so that an epoch can be as long as wanted."""

    def __init__(self, files, length, params, same_boxes, seed):
        from torchvision import transforms

        self.files = [str(f) for f in files]
        self.length = length
        self.seed = seed
        self.size = params["size"]
        self.half = params["type"] == "fp16"
        self.hwc = params["layout"] == "hwc"
        self.same_boxes = same_boxes
        self.crop = transforms.Compose([transforms.RandomResizedCrop(self.size), transforms.RandomHorizontalFlip()])
        self.normalise = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        from PIL import Image
        from torchvision.transforms import functional

        with open(self.files[index % len(self.files)], "rb") as file:
            image = Image.open(file).convert("RGB")
        if self.same_boxes:
            random = SampleRandom(self.seed, 0, index)
            x, y, w, h = crop_box(*image.size, random)
            image = functional.resized_crop(image, y, x, h, w, [self.size, self.size])
            if random.uniform() < 0.5:
                image = functional.hflip(image)
        else:
            image = self.crop(image)
        tensor = self.normalise(image)
        if self.half:
            tensor = tensor.half()
        if self.hwc:
            tensor = tensor.permute(1, 2, 0).contiguous()
        return tensor, index % len(self.files)


def make_loader(files, params, workers, args):
    import torch

    batch = params["batch"]
    length = max(len(files), batch) if params["cold"] else 64 * batch * max(workers, 1)
    options = dict(batch_size=batch, shuffle=True, drop_last=True, num_workers=workers,
                   pin_memory=params["pinned"] and torch.cuda.is_available())
    if workers:
        options.update(prefetch_factor=params["prefetch"], persistent_workers=True)
    if not params["ordered"]:
        options["in_order"] = False  # torch 2.6 and newer
    return torch.utils.data.DataLoader(Images(files, length, params, args.same_boxes, args.seed), **options)


def run(files, params, workers, args):
    """One session: (samples in the metric's unit, images per second of each window)."""
    import torch

    device = torch.device("cuda") if params["pinned"] and torch.cuda.is_available() else None
    loader = make_loader(files, params, workers, args)
    round_batches = max(workers, 1)
    warm_up = 1 if params["cold"] else round_batches * (params["prefetch"] if workers else 1)
    rates, steps = [], []
    end = time.perf_counter() + args.seconds
    while not rates or time.perf_counter() < end:
        if params["cold"]:
            drop_from_page_cache(files)
        taken = images = 0
        began = step_began = None
        for batch, _ in loader:
            if device:
                batch = batch.to(device, non_blocking=True)
                torch.cuda.synchronize()
            if params["step_ms"]:
                time.sleep(params["step_ms"] * 1e-3)
            now = time.perf_counter()
            taken += 1
            if taken <= warm_up:
                began, images = now, 0
            else:
                steps.append((now - step_began) * 1e9)
                images += len(batch)
                full = (taken - warm_up) % round_batches == 0 and now - began >= 0.05
                if full and not params["cold"]:
                    rates.append(images / (now - began))
                    began, images = now, 0
                if now >= end and rates and not params["cold"]:
                    break
            step_began = now
        if params["cold"] and images:
            rates.append(images / (time.perf_counter() - began))
    return (steps if params["step_ms"] else rates), rates


def session_of(like, index, order):
    now = datetime.datetime.now(datetime.timezone.utc)
    epoch = dict(like["sessions"][0]["epoch"]) if like["sessions"] else {"boot": "", "board": ""}
    epoch["day"] = now.strftime("%Y-%m-%d")
    return {"started": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "seconds": 0.0, "seed": index, "epoch": epoch,
            "failed": False, "reason": "", "control": "", "state": {}, "order": order}


def measure(result, files, like_workers, args, index):
    params = {k: v for k, v in result["workload"]["params"].items()}
    tried = {}
    for workers in args.workers or [like_workers]:
        samples, rates = run(files, params, workers, args)
        tried[workers] = (samples, statistics.median(rates))
        print(f"{result['id']}: {workers} workers {tried[workers][1]:.0f} images/s", file=sys.stderr)
    best = max(tried, key=lambda w: tried[w][1])
    state = {"workers": best, "images_per_s": tried[best][1],
             "curve": " ".join(f"{w}:{rate:.0f}" for w, (_, rate) in sorted(tried.items()))}
    return {"session": index, "samples": tried[best][0], "cycles": [], "clean": [], "flags": [],
            "evidence": {"implementation": args.versions, "parts": {}, "kernels": []}, "state": state}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--like", required=True, help="baseline written by bench on this machine")
    parser.add_argument("--output", required=True)
    parser.add_argument("--data", help="folder of images; default: the one that bench read")
    parser.add_argument("--filter", default="", help="regular expression on ids")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10, help="for each id, number of workers and session")
    parser.add_argument("--workers", type=lambda text: [int(w) for w in text.split(",")],
                        help="numbers of workers to choose the best from; default: what bench used")
    parser.add_argument("--same-boxes", action="store_true", help="draw plumbline's crop boxes")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    import torch
    import torchvision
    from PIL import __version__ as pillow

    args.versions = f"torch {torch.__version__}/torchvision {torchvision.__version__}/Pillow {pillow}"
    with open(args.like, encoding="utf-8") as file:
        like = json.load(file)
    chosen = [r for r in like["results"] if r["status"] == "ok" and r["workload"]["params"].get("source") == "jpeg"
              and not r["workload"]["params"].get("train") and re.search(args.filter, r["id"])]
    if not chosen:
        sys.exit(f"{args.like}: no result dataloader/jpeg/... that matches; run bench with --filter='^dataloader/jpeg'")
    files = image_files(args.data or chosen[0]["sessions"][0]["state"]["data_path"])
    order = [r["id"] for r in chosen]
    out = {**like, "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
           "tool": {"name": "pytorch_dataloader.py", "version": torch.__version__},
           "labels": {**like["labels"], "framework": args.versions}, "noise": {}, "history": [], "sessions": [],
           "results": [{**r, "verified": False, "sessions": []} for r in chosen]}
    for index in range(args.sessions):
        out["sessions"].append(session_of(like, index, order))
        began = time.perf_counter()
        for native, result in zip(chosen, out["results"]):
            workers = native["sessions"][0]["state"]["workers"]
            result["sessions"].append(measure(native, files, workers, args, index))
        out["sessions"][-1]["seconds"] = time.perf_counter() - began
    temporary = args.output + ".tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(out, file, indent=1)
    os.replace(temporary, args.output)


if __name__ == "__main__":
    main()
