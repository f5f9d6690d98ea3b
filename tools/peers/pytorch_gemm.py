#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's matmul timed the way plumbline times its own GEMM, so that the two can be put side by side.

    pytorch_gemm.py [--rounds N] [--output FILE] [ID...]

ID is plumbline's: gemm/bf16/tn/m4096n4096k4096. Every output is checked against float64 before it is timed. fp8 goes
through torch._scaled_mm with fast accumulation and scales of 1, int8 through torch._int_mm, everything else through
torch.matmul. Timing: pytorch_timing.py. Writes JSON: for each id the medians of the rounds in ns. Needs PyTorch with
CUDA.
"""
import re
import sys

import pytorch_timing

# The products of the standard suite.
DEFAULT_IDS = [f"gemm/{dtype}/tn/m{m}n{n}k{k}" for dtype, m, n, k in [
    ("bf16", 8192, 8192, 8192), ("bf16", 4096, 4096, 4096), ("bf16", 1024, 1024, 1024), ("fp16", 4096, 4096, 4096),
    ("tf32", 4096, 4096, 4096), ("fp32", 4096, 4096, 4096), ("int8", 4096, 4096, 4096), ("fp8", 8192, 8192, 8192),
    ("bf16", 6144, 8192, 4096), ("bf16", 14336, 16, 4096), ("bf16", 128256, 512, 4096), ("bf16", 4095, 4095, 4095)]]
ID = re.compile(r"gemm/(fp32|tf32|fp16|bf16|fp8|int8)/([nt])([nt])/m(\d+)n(\d+)k(\d+)")


def parse(text):
    """(dtype, whether op(A), op(B) are transposed, m, n, k) of an id; column-major, as BLAS has it."""
    match = ID.fullmatch(text)
    if match is None:
        pytorch_timing.say(f"{text} is not of the form gemm/bf16/tn/m4096n4096k4096 "
                           "(fp32, tf32, fp16, bf16, fp8, int8; one product, no epilogue)")
        raise SystemExit(2)
    dtype, a, b, m, n, k = match.groups()
    # torch._scaled_mm and torch._int_mm take the second factor column by column and sizes in whole vectors.
    vector = {"fp8": 16, "int8": 8}.get(dtype)
    if vector and (a + b != "tn" or int(m) % vector or int(k) % vector or int(n) <= 16):
        pytorch_timing.say(f"{text}: PyTorch multiplies {dtype} only as tn, with n above 16 and m and k multiples "
                           f"of {vector}")
        raise SystemExit(2)
    return dtype, a == "t", b == "t", int(m), int(n), int(k)


class gemm(pytorch_timing.timed):
    """One GEMM with its rotating buffers and the captured sample."""

    def __init__(self, torch, name, l2_bytes):
        super().__init__(torch, name)
        dtype, self.a_transposed, self.b_transposed, self.m, self.n, self.k = parse(name)
        self.dtype = dtype
        self.type = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn,
                     "int8": torch.int8}.get(dtype, torch.float32)
        self.output_type = {"fp8": torch.bfloat16, "int8": torch.int32}.get(dtype, self.type)
        self.tf32 = dtype == "tf32"
        self.one = torch.ones((), device="cuda", dtype=torch.float32)
        bytes_per_slot = (self.type.itemsize * (self.m * self.k + self.k * self.n)
                          + self.output_type.itemsize * self.m * self.n)
        count = pytorch_timing.slots_for(bytes_per_slot, l2_bytes)
        self.slots = [self.buffers(slot) for slot in range(count)]
        self.prepare()

    def buffers(self, slot):
        torch = self.torch
        made = torch.Generator(device="cuda").manual_seed(1000 + slot)

        def normal(rows, columns, scale):
            full = torch.randn(rows, columns, generator=made, device="cuda", dtype=torch.float32)
            # 8 bits hold no small numbers: what plumbline has there too, deviation 1 and 32.
            if self.dtype == "int8":
                return (full * 32).round().clamp(-127, 127).to(self.type)
            return (full * (1 if self.dtype == "fp8" else scale)).to(self.type)
        # A column-major matrix is the transpose of a row-major one: D = op(A) op(B) is D' = op(B)' op(A)' here.
        a = normal(self.m, self.k, 1.0) if self.a_transposed else normal(self.k, self.m, 1.0)
        b = normal(self.k, self.n, self.k ** -0.5) if self.b_transposed else normal(self.n, self.k, self.k ** -0.5)
        return a, b, torch.empty(self.n, self.m, device="cuda", dtype=self.output_type)

    def factors(self, slot):
        a, b, d = self.slots[slot]
        return (b.t() if self.b_transposed else b), (a.t() if self.a_transposed else a), d

    def use_precision(self):
        self.torch.set_float32_matmul_precision("high" if self.tf32 else "highest")

    def launch(self, slot):
        left, right, d = self.factors(slot)
        if self.dtype == "fp8":
            self.torch._scaled_mm(left, right, scale_a=self.one, scale_b=self.one, out_dtype=self.output_type,
                                  use_fast_accum=True, out=d)
        elif self.dtype == "int8":
            self.torch._int_mm(left, right, out=d)
        else:
            self.torch.matmul(left, right, out=d)

    def check(self):
        """A hundred rows of the last slot against float64, relative to the largest element, at least 1."""
        tolerance = {"fp32": 1e-5, "tf32": 2e-3, "int8": 0}.get(self.dtype, 1e-2)
        left, right, d = self.factors(len(self.slots) - 1)
        rows = self.torch.linspace(0, self.n - 1, steps=min(100, self.n), device="cuda").long()
        expected = left.double()[rows] @ right.double()  # 8-bit types cannot be indexed everywhere
        worst = (d[rows].double() - expected).abs().max().item() / max(1.0, expected.abs().max().item())
        if not worst <= tolerance:
            self.wrong(f"off by {worst:.3g} of the largest element")


if __name__ == "__main__":
    sys.exit(pytorch_timing.main(sys.argv[1:], __doc__.split("\n")[0], DEFAULT_IDS, parse, gemm))
