#!/usr/bin/env python3
"""Tokens per second of models on this machine, beside the read bandwidth of the same minutes.

  speed.py NAME=MODEL_FOLDER[:QUANTIZATION] ... [--threads 2] [--rounds 2] [--ranks 1,2]

Every figure of levin bench stands between two runs of the bandwidth loop; "of roof" is the bytes
that a token must read (weights of the experts it uses, states read and written, keys and values
left out) against that bandwidth. Shares mean something on a quiet machine only.
"""
import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LEVIN_BIN", ROOT / "build/release/bin"))
TESTS = (("prefill 512", 512, 0, 1), ("decode, 1 sequence", 32, 64, 1), ("decode, 8 sequences", 32, 64, 8))


def roof(threads):
    return float(subprocess.run([BIN / "roof", str(threads)], capture_output=True, text=True, check=True).stdout)


def bench(model, quantization, ranks, threads, prompt, gen, batch, rounds):
    done = subprocess.run([BIN / "levin", "bench", "--engine", model, "--quantization", quantization,
                           "--tensor-parallel-size", str(ranks), "--threads", str(threads), "--prompt", str(prompt),
                           "--gen", str(gen), "--batch", str(batch), "--rounds", str(rounds)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["tokens_per_s"]


def bytes_per_token(model, quantization):
    c = json.loads((pathlib.Path(model) / "config.json").read_text())
    hidden, heads, d, kv = c["hidden_size"], c["num_attention_heads"], c["head_dim"], c["num_key_value_heads"]
    expert = c["num_experts_per_tok"] * 3 * hidden * c["intermediate_size"] * (1 if quantization == "experts_int8" else 2)
    total = c["vocab_size"] * hidden * 2
    for kind in c["attn_type_list"]:
        matrices = 5 * heads * d * hidden if kind == 0 else (2 * heads + 2 * kv) * d * hidden
        states = 2 * heads * d * d * 4 if kind == 0 else 0
        total += matrices * 2 + states + expert + c["num_local_experts"] * hidden * 4
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ranks", default="1,2")
    args = parser.parse_args()
    print(f"| model | TP | test | tokens/s | MB a token | read GB/s before, after | of roof |\n|---|---|---|---|---|---|---|")
    for entry in args.models:
        name, folder = entry.split("=", 1)
        folder, _, quantization = folder.partition(":")
        quantization = quantization or "auto"
        size = bytes_per_token(folder, quantization)
        for ranks in map(int, args.ranks.split(",")):
            for title, prompt, gen, batch in TESTS:
                before = roof(args.threads)
                rate = bench(folder, quantization, ranks, args.threads, prompt, gen, batch, args.rounds)
                after = roof(args.threads)
                share = f"{rate * size / 1e9 / max(before, after):.0%}" if gen and batch == 1 else ""
                print(f"| {name} | {ranks} | {title} | {rate:,.1f} | {size / 1e6:.1f} | {before:.1f}, {after:.1f} | {share} |", flush=True)


if __name__ == "__main__":
    main()
