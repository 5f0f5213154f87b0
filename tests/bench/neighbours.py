#!/usr/bin/env python3
"""Tokens per second of `levin bench` alone and beside busy neighbours, in turns.

  neighbours.py MODEL [--jobs 3] [--rounds 3] [-- MORE FLAGS OF levin bench]

The neighbours only count, one process each, on the same cores. With c cores, t threads of Levin and j
neighbours the scheduler's fair share is t / (t + j) of all cores; of the speed alone, which has
min(t, c) cores, that is the share printed as fair. An engine that waits by spinning, or whose threads
wait for each other at every step, falls far below it.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LEVIN_BIN", ROOT / "build/release/bin"))
BUSY = "while True: pass"


def bench(model, more):
    command = [str(BIN / "levin"), "bench", "--model", model, "--rounds", "1", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["tokens_per_s"]


def beside(jobs, model, more):
    neighbours = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(jobs)]
    try:
        return bench(model, more)
    finally:
        for process in neighbours:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("more", nargs="*", help="flags of levin bench, behind --; default: --prompt 16 --gen 64")
    options = parser.parse_args()
    more = options.more or ["--prompt", "16", "--gen", "64"]
    cores = len(os.sched_getaffinity(0))
    threads = int(more[more.index("--threads") + 1]) if "--threads" in more else cores
    alone, busy = [], []
    for _ in range(options.rounds):
        alone.append(bench(options.model, more))
        busy.append(beside(options.jobs, options.model, more))
    share = statistics.median(busy) / statistics.median(alone)
    fair = min(1.0, cores * threads / (threads + options.jobs) / min(threads, cores))
    print(f"| {' '.join(more)} | alone | beside {options.jobs} | share | fair share | of fair |")
    print("|---|---|---|---|---|---|")
    print(f"| {pathlib.Path(options.model).name} | {statistics.median(alone):.1f} | {statistics.median(busy):.1f} "
          f"| {share:.0%} | {fair:.0%} | {share / fair:.0%} |")


if __name__ == "__main__":
    main()
