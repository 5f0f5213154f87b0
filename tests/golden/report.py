#!/usr/bin/env python3
"""Checks `levin eval` against known values and prints a Markdown table.

  report.py            every model x legal TP x chunking x single/batch x quantisation, float32; bfloat16 below
  report.py --sample   the part that fits into continuous integration
  report.py --model X  only folders of this name

Runs every model folder in tests/golden/network, and those of $LEVIN_GOLDEN_DIR/network. Exit code 1
if a bound of the golden README is missed. Bounds: max |difference of logits| 1e-4, all safe greedy
tokens, states and traces 1e-4 of the tensor's largest value.
"""
import argparse
import array
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LEVIN_BIN", ROOT / "build/release/bin"))
BOUND = 1e-4
ARGMAX_NOISE = 3  # rows
TRACES = ("after_attention", "after_mlp", "router_logits", "experts", "final_norm")
CODES = {"F32": "f", "I64": "q", "I32": "i"}
# The golden README's columns of MiniMax's own run in bfloat16: median row rms, argmax equal where
# the margin is above 0.2 (N = 2, 7, 64).
BF16 = {"tiny": (0.16, 50, 53), "odd-heads": (0.054, 57, 57), "deep": (0.60, 37, 55)}


class Tensors:
    """A safetensors file, read as asked."""

    def __init__(self, path):
        self.file = open(path, "rb")
        size = struct.unpack("<Q", self.file.read(8))[0]
        self.header = json.loads(self.file.read(size))
        self.header.pop("__metadata__", None)
        self.base = 8 + size

    def __contains__(self, name):
        return name in self.header

    def names(self):
        return list(self.header)

    def shape(self, name):
        return self.header[name]["shape"]

    def read(self, name):
        entry = self.header[name]
        first, last = entry["data_offsets"]
        self.file.seek(self.base + first)
        values = array.array(CODES[entry["dtype"]])
        values.frombytes(self.file.read(last - first))
        return values


def difference(wanted, got):
    if len(wanted) != len(got):
        return math.inf
    worst = 0.0
    for a, b in zip(wanted, got):
        d = abs(a - b)
        if not d <= worst:  # a NaN is the worst of all
            worst = math.inf if d != d else d
    return worst


def relative(wanted, got):
    scale = max((abs(v) for v in wanted), default=0) or 1
    return difference(wanted, got) / scale


def chunks_of(sample):
    return (1, 64, None) if sample else (1, 7, 64, None)


def run(folder, ids, ranks, chunk, batch, dtype, quantization, scratch):
    (scratch / "ids.json").write_text(json.dumps(ids))
    command = [str(BIN / "levin"), "eval", str(folder), "--ids", str(scratch / "ids.json"),
               "--out", str(scratch / "out.safetensors"), "--tensor-parallel-size", str(ranks),
               "--dtype", dtype, "--quantization", quantization, "--greedy", "32", "--states", "--trace"]
    command += ["--chunk-tokens", str(chunk)] if chunk else []
    command += ["--batch"] if batch else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}\n{done.stderr}")
    return Tensors(scratch / "out.safetensors")


def legal(folder, scratch):
    """The degrees that this model allows, and that the others are refused with the numbers."""
    ranks = []
    for count in (1, 2, 4, 8):
        (scratch / "ids.json").write_text('{"a": [1]}')
        done = subprocess.run([str(BIN / "levin"), "eval", str(folder), "--ids", str(scratch / "ids.json"), "--out",
                               str(scratch / "x"), "--tensor-parallel-size", str(count)], capture_output=True, text=True)
        if done.returncode == 0:
            ranks.append(count)
        elif done.returncode != 2 or str(count) not in done.stderr:
            raise SystemExit(f"{folder} at TP {count}: exit {done.returncode}, {done.stderr}")
        else:
            print(f"{folder.name}, TP {count}: refused: {done.stderr.strip()}")
    return ranks


def compare(golden, cases, out):
    """[max |dlogit|, relative state error, relative trace error, safe tokens equal, safe tokens]"""
    logits = states = traces = 0.0
    equal = safe_total = 0
    for case in cases:
        name = case["case"]
        wanted = golden.read(f"{name}.logits")
        got = out.read(f"{name}.logits")
        logits = max(logits, difference(wanted, got[len(got) - len(wanted):]))
        greedy = list(out.read(f"{name}.greedy"))
        safe = case["safe"]
        same = next((i for i in range(safe) if greedy[i] != case["greedy"][i]), safe)
        equal, safe_total = equal + same, safe_total + safe
        for key in golden.names():
            if key.startswith(f"{name}.state."):
                states = max(states, relative(golden.read(key), out.read(key)))
        for what in TRACES:
            key = f"{name}.trace.{what}"
            if key in golden:
                traces = max(traces, relative(golden.read(key), out.read(key)))
    return logits, states, traces, equal, safe_total


def bf16_columns(golden, cases, out):
    """(median row rms, argmax equal, rows) over N = 2, 7, 64 where the margin is above 0.2."""
    rms, equal, rows = [], 0, 0
    for case in cases:
        name = case["case"]
        if name.split(".len")[1] not in ("2", "7", "64"):
            continue
        wanted, got = golden.read(f"{name}.logits"), out.read(f"{name}.logits")
        vocab = golden.shape(f"{name}.logits")[1]
        for first in range(0, len(wanted), vocab):
            a, b = wanted[first:first + vocab], got[first:first + vocab]
            rms.append(math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / vocab))
            best = sorted(a)[-2:]
            if best[1] - best[0] > 0.2:
                rows += 1
                equal += a.index(max(a)) == b.index(max(b))
    rms.sort()
    return rms[len(rms) // 2], equal, rows


def variants(golden, cases):
    """{"none"|"auto"|"experts_int8": cases}: int8 values of a bf16 checkpoint need quantising."""
    kinds = {}
    for case in cases:
        kinds.setdefault(case["case"].split(".")[0], []).append(case)
    return kinds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--model")
    args = parser.parse_args()
    roots = [ROOT / "tests/golden"] + ([pathlib.Path(os.environ["LEVIN_GOLDEN_DIR"])] if os.environ.get("LEVIN_GOLDEN_DIR") else [])
    folders = [f for root in roots for f in sorted((root / "network").glob("*/")) if (f / "golden.json").exists()]
    folders = [f for f in folders if args.model in (None, f.name)]
    started, runs, bad = time.monotonic(), 0, 0
    table, lines, seen = {}, [], {}  # seen: does the golden file hold states, traces
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        for folder in folders:
            golden, cases = Tensors(folder / "golden.safetensors"), json.loads((folder / "golden.json").read_text())
            seen[folder.name] = [any(what in key for key in golden.names()) for what in (".state.", ".trace.")]
            ranks = legal(folder, scratch)
            for variant, chosen in variants(golden, cases).items():
                ids = {case["case"]: case["prompt"] for case in chosen}
                quantization = "experts_int8" if variant == "int8" else "none"
                degrees = [r for r in ranks if r in (1, 2, max(ranks))] if args.sample else ranks
                for count in degrees:
                    for chunk in chunks_of(args.sample):
                        for batch in ((False,) if args.sample and chunk != 64 else (False, True)):
                            out = run(folder, ids, count, chunk, batch, "float32", quantization, scratch)
                            result = compare(golden, chosen, out)
                            ok = max(result[:3]) <= BOUND and result[3] == result[4]
                            runs, bad = runs + 1, bad + (not ok)
                            row = table.setdefault((folder.name, variant, count), {})
                            row[(chunk, batch)] = result
                            if not ok:
                                print(f"MISSED {folder.name} {variant} TP {count} chunk {chunk} batch {batch}: {result}", flush=True)
                if folder.name in BF16 and variant == "bf16":
                    # Rounding flips routing decisions: builds that differ in nothing else move the count
                    # by several rows. The rms is held to the published column strictly, the count
                    # within ARGMAX_NOISE rows; the table says whether it reaches the column itself.
                    columns = [bf16_columns(golden, chosen, run(folder, ids, count, None, False, "bfloat16", quantization, scratch))
                               for count in degrees]
                    want = BF16[folder.name]
                    rms = sum(c[0] for c in columns) / len(columns)
                    equal = sum(c[1] for c in columns) / len(columns)
                    ok = rms <= want[0] and equal >= want[1] - ARGMAX_NOISE
                    reached = rms <= want[0] and equal >= want[1]
                    runs, bad = runs + len(columns), bad + (not ok)
                    lines += [f"| {folder.name} | {count} | {c[0]:.3f} | {want[0]} | {c[1]} of {c[2]} | {want[1]} of {want[2]} | |"
                              for count, c in zip(degrees, columns)]
                    lines.append(f"| {folder.name} | mean | {rms:.3f} | {want[0]} | {equal:.1f} of {columns[0][2]} | {want[1]} of {want[2]} | {'yes' if reached else '**no**'} |")
    print("\nfloat32, worst over chunks and over single and batched; logits absolute, states and traces relative:\n")
    print("| model | weights | TP | runs | max abs dlogit by chunk " + "/".join(str(c or "whole") for c in chunks_of(args.sample)) + " | states | traces | safe greedy tokens |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, variant, count), results in table.items():
        by_chunk = " / ".join(f"{max(r[0] for (c, _), r in results.items() if c == chunk):.1e}" for chunk in chunks_of(args.sample))
        worst = [f"{max(r[i] for r in results.values()):.1e}" if seen[name][i - 1] else "–" for i in (1, 2)]
        safe = f"{sum(r[3] for r in results.values())} of {sum(r[4] for r in results.values())}"
        print(f"| {name} | {variant} | {count} | {len(results)} | {by_chunk} | {worst[0]} | {worst[1]} | {safe} |")
    if lines:
        print("\nbfloat16, beside MiniMax's own run (median row rms; argmax equal in rows with margin above 0.2):\n")
        print("| model | TP | rms | theirs | argmax | theirs | at least as close |\n|---|---|---|---|---|---|---|")
        print("\n".join(lines))
    print(f"\n{runs} runs of levin eval, {bad} outside the bounds, {time.monotonic() - started:.0f} s")
    print(f"{runs - bad} passed, {bad} failed")
    sys.exit(1 if bad or not runs else 0)


if __name__ == "__main__":
    main()
