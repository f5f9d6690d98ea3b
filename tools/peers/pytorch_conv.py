#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's convolution timed the way plumbline times its own, so that the two can be put side by side.

    pytorch_conv.py [--rounds N] [--output FILE] [ID...]

ID is plumbline's: conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3u1p1; two dimensions, no variants of cuDNN's plan. PyTorch
searches for its plan (torch.backends.cudnn.benchmark) before anything is timed. Every output is checked against float64
before it is timed. Timing: pytorch_timing.py. Writes JSON: for each id the medians of the rounds in ns. Needs PyTorch
with CUDA.
"""
import re
import sys

import pytorch_timing

# The convolutions of the standard suite, and one of the full suite.
DEFAULT_IDS = [f"conv/{variant}/bf16/nhwc/{size}"
               for size in ["n256c64h56w56k64r3s3u1p1", "n256c128h56w56k128r3s3u2p1", "n256c256h14w14k1024r1s1u1p0",
                            "n256c512h7w7k512r3s3u1p1"]
               for variant in ["fprop", "dgrad", "wgrad"]]
DEFAULT_IDS += ["conv/fprop/bf16/nhwc/n256c3h224w224k64r7s7u2p3", "conv/fprop/tf32/nchw/n256c64h56w56k64r3s3u1p1",
                "conv/fprop/fp16/nhwc/n64c256h56w56k256r3s3u1p1"]
ID = re.compile(r"conv/(fprop|dgrad|wgrad)/(fp32|tf32|fp16|bf16)/(nhwc|nchw)/"
                r"n(\d+)c(\d+)h(\d+)w(\d+)k(\d+)r(\d+)s(\d+)u(\d+)p(\d+)(?:g(\d+))?(?:l(\d+))?")
# Norm of the difference over norm of the reference.
TOLERANCE = {"fp32": 1e-4, "tf32": 2e-3, "fp16": 2e-3, "bf16": 1e-2}


def parse(text):
    """(variant, dtype, layout, the twelve sizes by letter) of an id."""
    match = ID.fullmatch(text)
    if match is None:
        pytorch_timing.say(f"{text} is not of the form conv/fprop/bf16/nhwc/n256c64h56w56k64r3s3u1p1 "
                           "(fprop, dgrad, wgrad; fp32, tf32, fp16, bf16; two dimensions, no variants)")
        raise SystemExit(2)
    variant, dtype, layout, *sizes = match.groups()
    return variant, dtype, layout, dict(zip("nchwkrsupgl", [int(size or 1) for size in sizes]))


class conv(pytorch_timing.timed):
    """One convolution with its rotating buffers and the captured sample."""

    def __init__(self, torch, name, l2_bytes, device="cuda"):
        super().__init__(torch, name)
        self.variant, self.dtype, layout, self.size = parse(name)
        self.type = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(self.dtype, torch.float32)
        self.format = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        self.device = device
        size = self.size

        def out(image, taps):
            return (image + 2 * size["p"] - size["l"] * (taps - 1) - 1) // size["u"] + 1
        self.shapes = {"x": (size["n"], size["c"], size["h"], size["w"]),
                       "w": (size["k"], size["c"] // size["g"], size["r"], size["s"]),
                       "y": (size["n"], size["k"], out(size["h"], size["r"]), out(size["w"], size["s"]))}
        elements = sum(a * b * c * d for a, b, c, d in self.shapes.values())
        count = pytorch_timing.slots_for(self.type.itemsize * elements, l2_bytes)
        self.written = {"fprop": "y", "dgrad": "x", "wgrad": "w"}[self.variant]
        self.blank = torch.empty(self.shapes[self.written], device=device, dtype=self.type, memory_format=self.format)
        self.slots = [self.buffers(slot) for slot in range(count)]
        # PyTorch has no convolution that writes where it is told: the outputs are kept until their slot is written
        # again, so that they rotate too.
        self.outputs = [None] * count
        if device == "cuda":
            self.prepare()

    def buffers(self, slot):
        torch = self.torch
        made = torch.Generator(device=self.device).manual_seed(1000 + slot)

        def normal(name):
            full = torch.randn(self.shapes[name], generator=made, device=self.device, dtype=torch.float32)
            return full.to(self.type).contiguous(memory_format=self.format)
        return {name: self.blank if name == self.written else normal(name) for name in self.shapes}

    def use_precision(self):
        cudnn = self.torch.backends.cudnn
        cudnn.benchmark = True
        cudnn.allow_tf32 = self.dtype == "tf32"

    def compute(self, of):
        """The output from the inputs `of`."""
        size = self.size
        steps = dict(stride=[size["u"]] * 2, padding=[size["p"]] * 2, dilation=[size["l"]] * 2)
        if self.variant == "fprop":
            return self.torch.nn.functional.conv2d(of["x"], of["w"], groups=size["g"], **steps)
        # The tensor whose gradient it is is not read: it gives shape and layout.
        return self.torch.ops.aten.convolution_backward(
            of["y"], of["x"], of["w"], None, *steps.values(), False, [0, 0], size["g"],
            [self.variant == "dgrad", self.variant == "wgrad", False])[0 if self.variant == "dgrad" else 1]

    def launch(self, slot):
        self.outputs[slot] = self.compute(self.slots[slot])

    def check(self):
        """The last slot against float64: four images, or the gradient of the weights, which sums over all."""
        of, out = self.slots[-1], self.outputs[-1]
        if self.variant != "wgrad":
            of = {name: tensor[:4] if name != "w" else tensor for name, tensor in of.items()}
            out = out[:4]
        self.torch.backends.cudnn.benchmark = False  # no search for an engine that runs once
        expected = self.compute({name: tensor.double() for name, tensor in of.items()})
        self.use_precision()
        off = ((out.double() - expected).norm() / expected.norm()).item()
        if not off <= TOLERANCE[self.dtype]:
            self.wrong(f"off by {off:.3g} of its norm")


if __name__ == "__main__":
    sys.exit(pytorch_timing.main(sys.argv[1:], __doc__.split("\n")[0], DEFAULT_IDS, parse, conv))
