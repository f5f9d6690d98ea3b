#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's matmul timed the way plumbline times its own GEMM, so that the two can be put side by side.

    pytorch_gemm.py [--rounds N] [--output FILE] [ID...]

ID is plumbline's: gemm/bf16/tn/m4096n4096k4096. Inputs are random and rotate through at least three times the L2 cache;
a sample is a CUDA graph of enough launches to last 200 us; all samples of a burst are queued behind a spinning kernel
before the first of their events can fire; a burst lasts at most 4 ms and follows 0.4 s of idling, as plumbline's own.
The value of a round is the median of its samples. Every output is checked against float64 before it is timed. fp8 goes
through torch._scaled_mm with fast accumulation and scales of 1, int8 through torch._int_mm, everything else through
torch.matmul. Writes JSON: for each id the medians of the rounds in ns. Needs PyTorch with CUDA.
"""
import argparse
import json
import re
import statistics
import sys
import time

# The products of the standard suite.
DEFAULT_IDS = [f"gemm/{dtype}/tn/m{m}n{n}k{k}" for dtype, m, n, k in [
    ("bf16", 8192, 8192, 8192), ("bf16", 4096, 4096, 4096), ("bf16", 1024, 1024, 1024), ("fp16", 4096, 4096, 4096),
    ("tf32", 4096, 4096, 4096), ("fp32", 4096, 4096, 4096), ("int8", 4096, 4096, 4096), ("fp8", 8192, 8192, 8192),
    ("bf16", 6144, 8192, 4096), ("bf16", 14336, 16, 4096), ("bf16", 128256, 512, 4096), ("bf16", 4095, 4095, 4095)]]
ID = re.compile(r"gemm/(fp32|tf32|fp16|bf16|fp8|int8)/([nt])([nt])/m(\d+)n(\d+)k(\d+)")
SAMPLE_S = 200e-6
BURST_S = 4e-3  # dense matrix work; one launch may be longer
MAX_BURST_SAMPLES = 40
IDLE_S = 0.4
# Idling behind which everything is queued: 40 graph launches and 80 events take well below 2 ms of host time.
HOLD_CYCLES = 8_000_000


def parse(text):
    """(dtype, whether op(A), op(B) are transposed, m, n, k) of an id; column-major, as BLAS has it."""
    match = ID.fullmatch(text)
    if match is None:
        print(f"pytorch_gemm.py: {text} is not of the form gemm/bf16/tn/m4096n4096k4096 "
              "(fp32, tf32, fp16, bf16, fp8, int8; one product, no epilogue)", file=sys.stderr)
        raise SystemExit(2)
    dtype, a, b, m, n, k = match.groups()
    # torch._scaled_mm and torch._int_mm take the second factor column by column and sizes in whole vectors.
    vector = {"fp8": 16, "int8": 8}.get(dtype)
    if vector and (a + b != "tn" or int(m) % vector or int(k) % vector or int(n) <= 16):
        print(f"pytorch_gemm.py: {text}: PyTorch multiplies {dtype} only as tn, with n above 16 and m and k multiples "
              f"of {vector}", file=sys.stderr)
        raise SystemExit(2)
    return dtype, a == "t", b == "t", int(m), int(n), int(k)


class gemm:
    """One GEMM with its rotating buffers and the captured sample."""

    def __init__(self, torch, name, l2_bytes):
        self.torch = torch
        self.id = name
        dtype, self.a_transposed, self.b_transposed, self.m, self.n, self.k = parse(name)
        self.dtype = dtype
        self.type = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn,
                     "int8": torch.int8}.get(dtype, torch.float32)
        self.output_type = {"fp8": torch.bfloat16, "int8": torch.int32}.get(dtype, self.type)
        self.tf32 = dtype == "tf32"
        self.one = torch.ones((), device="cuda", dtype=torch.float32)
        bytes_per_slot = (self.type.itemsize * (self.m * self.k + self.k * self.n)
                          + self.output_type.itemsize * self.m * self.n)
        self.slots = [self.buffers(slot) for slot in range(max(2, -(-3 * l2_bytes // bytes_per_slot)))]
        self.next_slot = 0
        self.use_precision()
        for slot in range(len(self.slots)):
            self.launch(slot)
        torch.cuda.synchronize()
        self.check({"fp32": 1e-5, "tf32": 2e-3, "int8": 0}.get(dtype, 1e-2))
        # How many launches last a sample, from a first graph of eight.
        graph = self.capture(8)
        per_launch = min(self.time([graph] * 5)) / 8
        self.launches = max(1, min(1024, round(SAMPLE_S / per_launch + 0.5)))
        # A few graphs that go on through the slots, so that samples do not all begin on the same one.
        self.graphs = [self.capture(self.launches) for _ in range(4)]
        self.samples = max(1, min(MAX_BURST_SAMPLES, int(BURST_S / (per_launch * self.launches))))

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

    def check(self, tolerance):
        """A hundred rows of the last slot against float64, relative to the largest element, at least 1."""
        left, right, d = self.factors(len(self.slots) - 1)
        rows = self.torch.linspace(0, self.n - 1, steps=min(100, self.n), device="cuda").long()
        expected = left.double()[rows] @ right.double()  # 8-bit types cannot be indexed everywhere
        worst = (d[rows].double() - expected).abs().max().item() / max(1.0, expected.abs().max().item())
        if not worst <= tolerance:
            print(f"pytorch_gemm.py: {self.id}: wrong result, off by {worst:.3g} of the largest element",
                  file=sys.stderr)
            raise SystemExit(4)

    def capture(self, launches):
        torch = self.torch
        self.use_precision()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(launches):
                self.launch(self.next_slot)
                self.next_slot = (self.next_slot + 1) % len(self.slots)
        graph.replay()
        torch.cuda.synchronize()
        return graph

    def time(self, graphs):
        """Seconds of each graph, all queued behind one spinning kernel."""
        torch = self.torch
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in graphs]
        torch.cuda._sleep(HOLD_CYCLES)
        queued = time.perf_counter()
        for graph, (begin, end) in zip(graphs, events):
            begin.record()
            graph.replay()
            end.record()
        queued = time.perf_counter() - queued
        torch.cuda.synchronize()
        if queued > 0.9 * HOLD_CYCLES / 2e9:
            print(f"pytorch_gemm.py: {self.id}: queueing took {queued * 1e3:.1f} ms, longer than the hold; "
                  "the samples may contain gaps", file=sys.stderr)
        return [begin.elapsed_time(end) * 1e-3 for begin, end in events]

    def burst(self):
        """Median of one burst after idling, ns for one launch."""
        self.torch.cuda.synchronize()
        time.sleep(IDLE_S)
        samples = self.time([self.graphs[i % len(self.graphs)] for i in range(self.samples)])
        return statistics.median(samples) / self.launches * 1e9


def run(torch, ids, rounds):
    properties = torch.cuda.get_device_properties(0)
    l2_bytes = getattr(properties, "L2_cache_size", 64 << 20)
    results = []
    with torch.inference_mode():
        for name in ids:
            one = gemm(torch, name, l2_bytes)
            results.append({"id": name, "unit": "ns", "rounds": [one.burst() for _ in range(rounds)],
                            "launches": one.launches, "slots": len(one.slots), "samples": one.samples})
            del one
            torch.cuda.empty_cache()
    return {"schema": {"name": "plumbline/peer", "version": 1}, "tool": "pytorch",
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda,
                         "cudnn": str(torch.backends.cudnn.version())},
            "device": properties.name, "results": results}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", default="-", help="file to write; default: standard output")
    parser.add_argument("ids", nargs="*", default=DEFAULT_IDS, metavar="ID")
    how = parser.parse_args(arguments)
    ids = how.ids or DEFAULT_IDS
    for name in ids:
        parse(name)
    import torch  # late: a wrong argument is said without it
    if not torch.cuda.is_available():
        print("pytorch_gemm.py: PyTorch sees no CUDA device", file=sys.stderr)
        return 6
    text = json.dumps(run(torch, ids, how.rounds), indent=1) + "\n"
    if how.output == "-":
        sys.stdout.write(text)
    else:
        with open(how.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
