#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's layer_norm and rms_norm timed the way plumbline times its own, so that the two can be put side by side.

    pytorch_norm.py [--rounds N] [--output FILE] [ID...]

ID is plumbline's: layernorm/fwd/bf16/r16384h4096/native (fwd, bwd, rms_fwd, rms_bwd). Each is timed eager and through
torch.compile, one burst after the other; the value of a round is the faster of the two, and both are told on standard
error. gamma and beta have the type of x. The forward pass leaves what the backward pass needs, as in training. Every
output is checked against float64 before it is timed. Timing: pytorch_timing.py. Writes JSON: for each id the values of
the rounds in ns. Needs PyTorch with CUDA.
"""
import re
import statistics
import sys

import pytorch_timing

DEFAULT_IDS = [f"layernorm/{what}/{dtype}/{size}/native"
               for dtype in ["bf16", "fp32"]
               for size in ["r16384h4096", "r8192h8192", "r4096h16384", "r1024h12288", "r65536h768", "r8192h4095"]
               for what in ["fwd", "bwd"]]
DEFAULT_IDS += ["layernorm/rms_fwd/bf16/r16384h4096/native", "layernorm/rms_bwd/bf16/r16384h4096/native"]
ID = re.compile(r"layernorm/(fwd|bwd|rms_fwd|rms_bwd)/(fp32|fp16|bf16)/r(\d+)h(\d+)/(?:native|cudnn)")
EPSILON = 1e-5
# Norm of the difference over norm of the reference.
TOLERANCE = {"fp32": 1e-4, "fp16": 3e-3, "bf16": 2e-2}


def parse(text):
    """(pass, dtype, rows, hidden) of an id."""
    match = ID.fullmatch(text)
    if match is None:
        pytorch_timing.say(f"{text} is not of the form layernorm/fwd/bf16/r16384h4096/native "
                           "(fwd, bwd, rms_fwd, rms_bwd; fp32, fp16, bf16)")
        raise SystemExit(2)
    what, dtype, rows, hidden = match.groups()
    return what, dtype, int(rows), int(hidden)


def rms_statistics(x):
    return (x.float().square().mean(-1, keepdim=True) + EPSILON).rsqrt()


def rms_forward(x, gamma):
    inverse = rms_statistics(x)
    return (x.float() * inverse * gamma.float()).to(x.dtype), inverse


def rms_backward(dy, x, inverse, gamma):
    h = x.float() * inverse
    g = dy.float() * gamma.float()
    dx = inverse * (g - h * (g * h).mean(-1, keepdim=True))
    return dx.to(x.dtype), (dy.float() * h).sum(0).to(gamma.dtype)


class norm(pytorch_timing.timed):
    """One norm with its rotating buffers and the captured samples of its variants."""

    def __init__(self, torch, name, l2_bytes, device="cuda"):
        super().__init__(torch, name)
        self.what, self.dtype, self.rows, self.hidden = parse(name)
        self.rms = self.what.startswith("rms")
        self.backward = self.what.endswith("bwd")
        self.type = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(self.dtype, torch.float32)
        self.device = device
        moved = (3 if self.backward else 2) * self.rows * self.hidden * self.type.itemsize
        made = torch.Generator(device=device).manual_seed(999)
        self.gamma, self.beta = (self.normal(made, self.hidden) for _ in range(2))
        self.slots = [self.buffers(slot) for slot in range(pytorch_timing.slots_for(moved, l2_bytes))]
        self.outputs = [None] * len(self.slots)  # kept until their slot is written again, so that they rotate too
        # The compiler gives up on code that it has compiled eight times, and runs it eagerly; each id is new to it.
        torch.compiler.reset()
        self.calls = {"eager": self.eager(), "compiled": torch.compile(self.by_formula, dynamic=False)}
        self.calls = {label: call for label, call in self.calls.items() if call is not None}
        self.told = {label: [] for label in self.calls}
        self.recorded = {}
        if device == "cuda":
            for label in self.calls:
                self.variant = label
                self.prepare()
                self.recorded[label] = (self.graphs, self.launches, self.samples)

    def normal(self, made, *shape):
        full = self.torch.randn(shape, generator=made, device=self.device, dtype=self.torch.float32)
        return full.to(self.type)

    def buffers(self, slot):
        torch = self.torch
        made = torch.Generator(device=self.device).manual_seed(1000 + slot)
        of = {"x": self.normal(made, self.rows, self.hidden)}
        if not self.backward:
            return of
        of["dy"] = self.normal(made, self.rows, self.hidden)
        if self.rms:
            of["inverse"] = rms_statistics(of["x"])
        else:
            _, of["mean"], of["inverse"] = torch.ops.aten.native_layer_norm(of["x"], [self.hidden], None, None, EPSILON)
        return of

    def eager(self):
        """What PyTorch runs without compiling, None where it has no such operator."""
        aten = self.torch.ops.aten
        if not self.rms:
            return self.layer_norm
        if not self.backward:
            return lambda of: (self.torch.nn.functional.rms_norm(of["x"], (self.hidden,), self.gamma, EPSILON),)
        if not hasattr(aten, "_fused_rms_norm_backward"):
            return None
        return lambda of: aten._fused_rms_norm_backward(of["dy"], of["x"], [self.hidden], of["inverse"], self.gamma,
                                                        [True, True])

    def layer_norm(self, of):
        aten = self.torch.ops.aten
        if not self.backward:
            return aten.native_layer_norm(of["x"], [self.hidden], self.gamma, self.beta, EPSILON)
        return aten.native_layer_norm_backward(of["dy"], of["x"], [self.hidden], of["mean"], of["inverse"], self.gamma,
                                               self.beta, [True, True, True])

    def by_formula(self, of):
        """What the compiler is given."""
        if not self.rms:
            return self.layer_norm(of)
        if not self.backward:
            return rms_forward(of["x"], self.gamma)
        return rms_backward(of["dy"], of["x"], of["inverse"], self.gamma)

    def use_precision(self):
        pass

    def launch(self, slot):
        self.outputs[slot] = self.calls[self.variant](self.slots[slot])

    def expected(self, of):
        """The outputs of a launch in float64, those that are compared."""
        of = {name: tensor.double() for name, tensor in of.items()}
        gamma, beta = self.gamma.double(), self.beta.double()
        mean = 0 if self.rms else of["x"].mean(-1, keepdim=True)
        inverse = ((of["x"] - mean).square().mean(-1, keepdim=True) + EPSILON).rsqrt()
        h = (of["x"] - mean) * inverse
        if not self.backward:
            return [h * gamma + (0 if self.rms else beta)]
        g = of["dy"] * gamma
        dx = g - h * (g * h).mean(-1, keepdim=True) - (0 if self.rms else g.mean(-1, keepdim=True))
        return [inverse * dx, (of["dy"] * h).sum(0)] + ([] if self.rms else [of["dy"].sum(0)])

    def check(self):
        for out, right in zip(self.outputs[-1], self.expected(self.slots[-1])):
            off = ((out.double() - right).norm() / right.norm()).item()
            if not off <= TOLERANCE[self.dtype]:
                self.wrong(f"{self.variant}: off by {off:.3g} of its norm")

    def burst(self):
        for label, (graphs, launches, samples) in self.recorded.items():
            self.graphs, self.launches, self.samples = graphs, launches, samples
            self.told[label].append(super().burst())
        pytorch_timing.say(self.id + ": " + ", ".join(f"{label} {statistics.median(times) / 1e3:.2f} us"
                                                      for label, times in self.told.items()))
        return min(times[-1] for times in self.told.values())


if __name__ == "__main__":
    sys.exit(pytorch_timing.main(sys.argv[1:], __doc__.split("\n")[0], DEFAULT_IDS, parse, norm))
