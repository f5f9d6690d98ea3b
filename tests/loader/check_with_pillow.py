#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the loader's output with Pillow's, image by image, at the same crop box.

check_with_pillow.py DUMP_SAMPLES PEERS: runs the program dump_samples in a new folder, then decodes, crops and
resizes (bilinear) the same files with Pillow, which is what torchvision does to PIL images. Fails when an image is
off by more than 2 levels of 255 in the mean, or when box and flip are not those that tools/peers (the folder PEERS)
draws in Python. Ends with 77 (skipped) without Pillow.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    from PIL import Image, ImageChops, ImageOps, ImageStat
except ImportError:
    print("skipped: no Pillow for this Python")
    sys.exit(77)

MOST = 2.0


def main():
    program, peers = sys.argv[1:3]
    sys.path.insert(0, peers)
    sys.dont_write_bytecode = True
    from pytorch_dataloader import SampleRandom, crop_box

    worst = {}
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run([program, temporary], check=True)
        lines = (folder / "samples.txt").read_text().splitlines()
        for index, line in enumerate(lines):
            name, *numbers = line.split()
            x, y, width, height, flipped, reduction = map(int, numbers)
            image = Image.open(folder / "images" / name).convert("RGB")
            random = SampleRandom(1, 0, index)
            drawn = (*crop_box(*image.size, random), int(random.uniform() < 0.5))
            if drawn != (x, y, width, height, flipped):
                failed.append(f"{name}: box and flip {(x, y, width, height, flipped)}, Python draws {drawn}")
            expected = image.crop((x, y, x + width, y + height)).resize((224, 224), Image.BILINEAR)
            if flipped:
                expected = ImageOps.mirror(expected)
            got = Image.frombytes("RGB", (224, 224), (folder / (name + ".rgb")).read_bytes())
            statistics = ImageStat.Stat(ImageChops.difference(got, expected))
            mean = sum(statistics.mean) / 3
            most = max(high for _, high in statistics.extrema)
            kind = "reduced" if reduction > 1 else "full"
            old_mean, old_most, count = worst.get(kind, (0, 0, 0))
            worst[kind] = (max(old_mean, mean), max(old_most, most), count + 1)
            if not mean <= MOST:
                failed.append(f"{name}: off by {mean:.3f} levels in the mean, {MOST} are allowed")
    for kind, (mean, most, count) in worst.items():
        print(f"{count} images decoded at {kind} size: at most {mean:.4f} levels in the mean, {most} in one pixel")
    if len(lines) < 30 or set(worst) != {"full", "reduced"}:
        failed.append(f"expected 30 images and more, some of them decoded at reduced size, got {len(lines)}: {worst}")
    print("\n".join(failed))
    return 1 if failed else 0


sys.exit(main())
