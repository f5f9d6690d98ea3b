# SPDX-License-Identifier: Apache-2.0
"""How the PyTorch side of a comparison is timed: the way plumbline times its own kernels.

A sample is a CUDA graph of enough launches to last 200 us, rotating over buffers of at least three times the L2 cache;
all samples of a burst are queued behind a spinning kernel before the first of their events can fire; a burst lasts at
most 4 ms and follows 0.4 s of idling, as plumbline's own. The value of a round is the median of its samples.
"""
import argparse
import json
import os
import statistics
import sys
import time

SAMPLE_S = 200e-6
BURST_S = 4e-3  # dense matrix work; one launch may be longer
MAX_BURST_SAMPLES = 40
IDLE_S = 0.4
# Idling behind which everything is queued: 40 graph launches and 80 events take well below 2 ms of host time.
HOLD_CYCLES = 8_000_000


def say(text):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)


def slots_for(bytes_per_slot, l2_bytes):
    """Buffer sets to rotate over."""
    return max(2, -(-3 * l2_bytes // bytes_per_slot))


class timed:
    """One operator with its rotating buffers, `self.slots`, and the captured sample. A subclass has `launch(slot)`,
    `check()`, which ends the program when the result is wrong, and `use_precision()`."""

    def __init__(self, torch, name):
        self.torch = torch
        self.id = name
        self.next_slot = 0

    def prepare(self):
        """Runs every slot once, checks, and captures samples."""
        self.use_precision()
        for slot in range(len(self.slots)):
            self.launch(slot)
        self.torch.cuda.synchronize()
        self.check()
        # How many launches last a sample, from a first graph of eight.
        graph = self.capture(8)
        per_launch = min(self.time([graph] * 5)) / 8
        self.launches = max(1, min(1024, round(SAMPLE_S / per_launch + 0.5)))
        # A few graphs that go on through the slots, so that samples do not all begin on the same one.
        self.graphs = [self.capture(self.launches) for _ in range(4)]
        self.samples = max(1, min(MAX_BURST_SAMPLES, int(BURST_S / (per_launch * self.launches))))

    def wrong(self, text):
        say(f"{self.id}: wrong result, {text}")
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
            say(f"{self.id}: queueing took {queued * 1e3:.1f} ms, longer than the hold; the samples may contain gaps")
        return [begin.elapsed_time(end) * 1e-3 for begin, end in events]

    def burst(self):
        """Median of one burst after idling, ns for one launch."""
        self.torch.cuda.synchronize()
        time.sleep(IDLE_S)
        samples = self.time([self.graphs[i % len(self.graphs)] for i in range(self.samples)])
        return statistics.median(samples) / self.launches * 1e9


def run(torch, make, ids, rounds):
    properties = torch.cuda.get_device_properties(0)
    l2_bytes = getattr(properties, "L2_cache_size", 64 << 20)
    results = []
    with torch.inference_mode():
        for name in ids:
            one = make(torch, name, l2_bytes)
            results.append({"id": name, "unit": "ns", "rounds": [one.burst() for _ in range(rounds)],
                            "launches": one.launches, "slots": len(one.slots), "samples": one.samples})
            del one
            torch.cuda.empty_cache()
    return {"schema": {"name": "plumbline/peer", "version": 1}, "tool": "pytorch",
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda,
                         "cudnn": str(torch.backends.cudnn.version())},
            "device": properties.name, "results": results}


def main(arguments, description, default_ids, parse, make):
    """The program: `parse(id)` ends it for an id that PyTorch cannot do, `make(torch, id, l2_bytes)` is a `timed`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", default="-", help="file to write; default: standard output")
    parser.add_argument("ids", nargs="*", metavar="ID", help="default: those of the standard suite")
    how = parser.parse_args(arguments)
    ids = how.ids or default_ids
    for name in ids:
        parse(name)
    import torch  # late: a wrong argument is said without it
    if not torch.cuda.is_available():
        say("PyTorch sees no CUDA device")
        return 6
    text = json.dumps(run(torch, make, ids, how.rounds), indent=1) + "\n"
    if how.output == "-":
        sys.stdout.write(text)
    else:
        with open(how.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0
