#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's training step beside plumbline's: the same model, weights, batch, optimizer, clipping and loss scaling.

    pytorch_training_step.py [--losses] [--compile] [--rounds N] [--output FILE] [--like FILE] [ID...]

ID is plumbline's: training_step/transformer/bf16, training_step/bottleneck/tf32, .../l2d64h4f256v512b4t32. Weights and
batches are drawn by plumbline's generator (workload/random.hpp), bit for bit; products run under autocast, attention is
scaled_dot_product_attention, images are channels_last. A round is the median of ten steps after idling. Writes JSON as
pytorch_gemm.py does, with `losses` of the first 50 steps and `peak_bytes`. --losses trains only, also on a CPU. --like
names a file written by bench --save: its losses (evidence loss_1, loss_10, loss_25, loss_50) are held to PyTorch's, and
the script ends with 4 when one is off by more than 2 %.
"""
import argparse
import json
import math
import re
import statistics
import sys
import time

DEFAULT_IDS = ["training_step/transformer/" + leg for leg in ("tf32", "fp16", "bf16")] + [
    "training_step/bottleneck/" + leg for leg in ("tf32", "bf16")]
ID = re.compile(r"training_step/(transformer|bottleneck)/(fp32|tf32|fp16|bf16)(?:/([a-z]\d[a-z0-9]*))?"
                r"(?:/accumulate(\d+))?(?:/stream|/sustained)*")
SIZES = {"transformer": ("ldhfvbt", (6, 1024, 16, 4096, 32000, 8, 1024)), "bottleneck": ("nchk", (64, 256, 56, 1000))}
CLIP_NORM = 1.0
STEPS = 50
WARM_UP = 5
FIRST_SEED, SEED_TOKENS, SEED_IMAGES, SEED_LABELS = 0x70617261, 0x746F6B65, 0x696D6167, 0x6C61626C
MASK = 0xFFFFFFFF


def parse(text):
    match = ID.fullmatch(text)
    if match is None:
        print(f"pytorch_training_step.py: {text} is not of the form {DEFAULT_IDS[0]}", file=sys.stderr)
        raise SystemExit(2)
    network, leg, size, accumulate = match.groups()
    letters, values = SIZES[network]
    if size:
        values = [int(v) for v in re.fullmatch("".join(letter + r"(\d+)" for letter in letters), size).groups()]
    return network, leg, dict(zip(letters, values)), int(accumulate or 1)


class Random:
    """workload/random.hpp on tensors of int64."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device

    def philox(self, seed, count, first=0):
        torch = self.torch
        counter = torch.arange(first, first + count, dtype=torch.int64, device=self.device)
        c = [counter & MASK, counter >> 32, torch.zeros_like(counter), torch.zeros_like(counter)]
        k0, k1 = seed & MASK, seed >> 32
        for _ in range(10):
            h0, l0 = self.multiply(0xD2511F53, c[0])
            h1, l1 = self.multiply(0xCD9E8D57, c[2])
            c = [h1 ^ c[1] ^ k0, l1, h0 ^ c[3] ^ k1, l0]
            k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
        return c

    @staticmethod
    def multiply(constant, value):
        """High and low 32 bits of a product of 32-bit numbers, without leaving 63 bits."""
        low, high = constant * (value & 0xFFFF), constant * (value >> 16)
        return (high + (low >> 16)) >> 16, (((high & 0xFFFF) << 16) + low) & MASK

    def normal(self, seed, count, deviation=1.0, mean=0.0):
        torch = self.torch
        made = torch.empty(count, dtype=torch.float32, device=self.device)
        block = 1 << 22
        for first in range(0, count, block):
            words = self.philox(seed, min(block, count - first), first)
            total = sum((w & 0xFFFF) + (w >> 16) for w in words) - 262140
            scale = torch.tensor(1 / 53509.91992145008, dtype=torch.float32, device=self.device)
            spread = torch.tensor(deviation, dtype=torch.float32, device=self.device)
            made[first:first + len(total)] = total.float() * scale * spread + mean
        return made

    def below(self, seed, count, n, first=0):
        return (self.philox(seed, count, first)[0] * n) >> 32

    def tokens(self, first, count, vocabulary):
        words = self.philox(SEED_TOKENS, count, first)
        width = (words[0] * max(1, (vocabulary - 1).bit_length())) >> 32
        low = self.torch.ones_like(width) << width
        return (low - 1 + ((words[1] * low) >> 32)) % vocabulary


def build(torch, random, network, size):
    """The module, with plumbline's initial weights, and the function from a micro-batch to its loss."""
    nn, F = torch.nn, torch.nn.functional
    seeds = iter(range(FIRST_SEED, FIRST_SEED + 10000))

    def drawn(parameter, deviation, mean=0.0, shape=None, permute=None):
        values = random.normal(next(seeds), parameter.numel(), deviation, mean).reshape(shape or parameter.shape)
        with torch.no_grad():
            parameter.copy_(values if permute is None else values.permute(permute))

    class Layer(nn.Module):
        def __init__(self, d, h, f):
            super().__init__()
            self.h = h
            self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
            self.up, self.down = nn.Linear(d, f, bias=False), nn.Linear(f, d, bias=False)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Transformer(nn.Module):
        def __init__(self, l, d, h, f, v, **_):
            super().__init__()
            self.embedding = nn.Embedding(v, d)
            self.layers = nn.ModuleList(Layer(d, h, f) for _ in range(l))
            self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, v, bias=False)

        def forward(self, x):
            x = self.embedding(x)
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x))

    class Block(nn.Module):
        def __init__(self, c, inner, out, stride):
            super().__init__()
            self.units = nn.ModuleList()
            shapes = [(c, inner, 1, 1), (inner, inner, 3, stride), (inner, out, 1, 1)]
            if stride != 1 or c != out:
                shapes.append((c, out, 1, stride))
            for a, b, k, s in shapes:
                self.units.append(nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b)))

        def forward(self, x):
            y = self.units[2](F.relu(self.units[1](F.relu(self.units[0](x)))))
            return F.relu(y + (self.units[3](x) if len(self.units) == 4 else x))

    class Bottleneck(nn.Module):
        def __init__(self, c, k, **_):
            super().__init__()
            self.blocks = nn.Sequential(Block(c, c // 4, c, 1), Block(c, c // 2, 2 * c, 2),
                                        Block(2 * c, c // 2, 2 * c, 1))
            self.head = nn.Linear(2 * c, k, bias=False)

        def forward(self, x):
            return self.head(self.blocks(x).mean(dim=(2, 3)))

    def norm(module):
        drawn(module.weight, 0, 1.0)
        drawn(module.bias, 0)

    if network == "transformer":
        model = Transformer(**size).to(random.device)
        residual = 0.02 / math.sqrt(2.0 * size["l"])
        drawn(model.embedding.weight, 0.02)
        for layer in model.layers:
            norm(layer.norm1)
            drawn(layer.qkv.weight, 0.02)
            drawn(layer.out.weight, residual)
            norm(layer.norm2)
            drawn(layer.up.weight, 0.02)
            drawn(layer.down.weight, residual)
        norm(model.norm)
        drawn(model.head.weight, 0.02)
    else:
        model = Bottleneck(**size).to(random.device).to(memory_format=torch.channels_last)
        for block in model.blocks:
            for convolution, batch_norm in block.units:
                k, c, r, s = convolution.weight.shape
                drawn(convolution.weight, math.sqrt(2 / (k * r * s)), shape=(k, r, s, c), permute=(0, 3, 1, 2))
                norm(batch_norm)
        drawn(model.head.weight, math.sqrt(1 / model.head.in_features))
    return model


def batch(random, network, size, micro):
    """Inputs and targets of one micro-batch."""
    if network == "transformer":
        b, t, v = size["b"], size["t"], size["v"]
        rows = [random.tokens((micro * b + i) * (t + 1), t + 1, v) for i in range(b)]
        whole = random.torch.stack(rows)
        return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()
    n, c, h = size["n"], size["c"], size["h"]
    images = random.normal(SEED_IMAGES + micro, n * h * h * c).reshape(n, h, h, c).permute(0, 3, 1, 2)
    labels = random.below(SEED_LABELS, n, size["k"], micro * n)
    return images.contiguous(memory_format=random.torch.channels_last), labels


class Training:
    def __init__(self, torch, name, device, compile_it):
        self.torch, self.id = torch, name
        network, leg, size, self.accumulate = parse(name)
        random = Random(torch, device)
        torch.set_float32_matmul_precision("high" if leg == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = leg == "tf32"
        torch.backends.cudnn.benchmark = True
        self.device = device
        self.autocast = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(leg)
        self.model = build(torch, random, network, size)
        self.batches = [batch(random, network, size, micro) for micro in range(self.accumulate)]
        self.run = torch.compile(self.model) if compile_it else self.model
        parameters = list(self.model.parameters())
        if network == "transformer":
            rate = 0.02 if size["d"] > 512 else 0.04
            self.optimizer = torch.optim.AdamW(parameters, fused=device == "cuda",
                                               lr=min(5e-4, rate / size["d"]), weight_decay=0.01)
        else:
            self.optimizer = torch.optim.SGD(parameters, momentum=0.9, fused=device == "cuda",
                                             lr=0.003, weight_decay=1e-4)
        # On a CPU fp16 trains too, but torch has no scaler there in every version.
        self.scaler = torch.amp.GradScaler(device, enabled=leg == "fp16")

    def step(self):
        torch = self.torch
        total = 0
        self.optimizer.zero_grad(set_to_none=True)
        for inputs, targets in self.batches:
            with torch.autocast(self.device, dtype=self.autocast, enabled=self.autocast is not None):
                out = self.run(inputs)
                loss = torch.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), targets.reshape(-1))
            loss = loss / self.accumulate
            self.scaler.scale(loss).backward()
            total = total + loss.detach()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return total

    def losses(self):
        return [value.item() for value in [self.step().float() for _ in range(STEPS)]]

    def round(self):
        """Median of ten steps after idling, ns."""
        torch = self.torch
        for _ in range(WARM_UP):
            self.step()
        torch.cuda.synchronize()
        time.sleep(1)
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(11)]
        marks[0].record()
        for mark in marks[1:]:
            self.step()
            mark.record()
        torch.cuda.synchronize()
        return statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:])) * 1e6


def losses_of(path):
    """Losses by id and step, as bench has recorded them."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    found = {}
    for result in document["results"]:
        for session in result["sessions"]:
            parts = session.get("evidence", {}).get("parts", {})
            steps = {int(key[5:]): value for key, value in parts.items() if re.fullmatch(r"loss_\d+", key)}
            if steps:
                found.setdefault(result["id"], steps)
    return found


def compare(results, path):
    """Prints how far the losses are apart; True when all are within 2 % and fell by 30 %."""
    ours, good = losses_of(path), True
    for result in results:
        mine, theirs = ours.get(result["id"], {}), result["losses"]
        if not mine:
            print(f"{result['id']}: no losses in {path}", file=sys.stderr)
            good = False
            continue
        worst = max(abs(value / theirs[step - 1] - 1) for step, value in mine.items())
        fell = 1 - theirs[-1] / theirs[0]
        good = good and worst <= 0.02 and fell >= 0.3
        print(f"{result['id']}: loss {theirs[0]:.4f} -> {theirs[-1]:.4f} (-{100 * fell:.0f} %), "
              f"plumbline {mine[min(mine)]:.4f} -> {mine[max(mine)]:.4f}, at most {100 * worst:.2f} % apart",
              file=sys.stderr)
    return good


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--losses", action="store_true", help="train 50 steps, time nothing; also on a CPU")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--like", help="a file of bench --save whose losses must agree")
    parser.add_argument("--output", default="-", help="file to write; default: standard output")
    parser.add_argument("ids", nargs="*", default=DEFAULT_IDS, metavar="ID")
    how = parser.parse_args(arguments)
    ids = how.ids or DEFAULT_IDS
    for name in ids:
        parse(name)
    import torch  # late: a wrong argument is said without it
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not how.losses:
        print("pytorch_training_step.py: PyTorch sees no CUDA device; only --losses works", file=sys.stderr)
        return 6
    results = []
    for name in ids:
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        one = Training(torch, name, device, how.compile)
        result = {"id": name, "unit": "ns", "losses": one.losses(), "rounds": []}
        if not how.losses:
            result["rounds"] = [one.round() for _ in range(how.rounds)]
        if device == "cuda":
            result["peak_bytes"] = torch.cuda.max_memory_allocated()
        results.append(result)
        del one
        if device == "cuda":
            torch.cuda.empty_cache()
    document = {"schema": {"name": "plumbline/peer", "version": 1}, "tool": "pytorch",
                "mode": "compile" if how.compile else "eager",
                "versions": {"torch": torch.__version__, "cuda": torch.version.cuda,
                             "cudnn": str(torch.backends.cudnn.version())},
                "device": torch.cuda.get_device_name(0) if device == "cuda" else "cpu", "results": results}
    text = json.dumps(document, indent=1) + "\n"
    if how.output == "-":
        sys.stdout.write(text)
    else:
        with open(how.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0 if not how.like or compare(results, how.like) else 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
