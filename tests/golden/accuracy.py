#!/usr/bin/env python3
"""What int8 experts cost: the demo model's tasks through `levin serve`, bfloat16 beside experts_int8.

  accuracy.py                  every task of the model card, some thousand questions each way
  accuracy.py --count 50       so many a task
  accuracy.py --tasks a,b

The questions are those of models/recipe/cases.py, so none that training has seen, written by a generator with a
fixed seed. Each is asked over HTTP at temperature 0; an answer counts if it is right to the letter and ended by
itself. Prints a Markdown table; exit code 1 if the loss over all questions is above 0.6 points.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models/recipe"), str(ROOT / "tests/system")]

import chat  # noqa: E402
from cases import TASKS, final_answer, make  # noqa: E402
from levin_server import DEMO, Server  # noqa: E402

LOSS_MAX = 0.6  # points
LONG = {"recall_1k": 0.5, "recall_2k": 0.25, "recall_4k": 0.125}  # the part of --count: they take longest
RUNS = {"bfloat16": "none", "experts_int8": "experts_int8"}  # name: --quantization

Case = collections.namedtuple("Case", "task messages tools answer")


def cases_of(tasks, count, seed):
    cases = []
    for task in tasks:
        rng = random.Random(f"{seed} {task}")
        for _ in range(math.ceil(count * LONG.get(task, 1))):
            messages, tools, answer = make(task, rng)
            # The weight of a message in training is none of the server's business.
            cases.append(Case(task, [{k: v for k, v in m.items() if k != "weight"} for m in messages], tools, answer))
    return cases


def ask(server, case):
    """Is the answer right?"""
    body = {"messages": case.messages, "temperature": 0, "max_tokens": len(case.answer.encode()) + 24}
    if case.tools:
        body["tools"] = case.tools
    choice = server.post("/v1/chat/completions", body, timeout=600)["choices"][0]
    return choice["finish_reason"] in ("stop", "tool_calls") and written(choice["message"]) == final_answer(case.answer).strip("\n")


def written(message):
    """The answer as the model spelt it, calls included; None where a call's arguments are no JSON."""
    try:
        return final_answer(chat.assistant_text({"content": message.get("content"), "tool_calls": message.get("tool_calls")})).strip("\n")
    except ValueError:
        return None


def answers(cases, quantization, args):
    with Server("--dtype", "bfloat16", "--quantization", quantization, "--tensor-parallel-size", args.ranks, model=args.model) as server, \
            concurrent.futures.ThreadPoolExecutor(args.clients) as pool:
        return list(pool.map(lambda case: ask(server, case), cases))


def row(name, before, after):
    """before, after: right or wrong, question by question."""
    count = len(before)
    lost = sum(a and not b for a, b in zip(before, after))
    won = sum(b and not a for a, b in zip(before, after))
    loss = 100 * (lost - won) / count
    noise = 100 * math.sqrt(lost + won) / count
    print(f"| {name} | {count} | {100 * sum(before) / count:.1f} | {100 * sum(after) / count:.1f} | {loss:+.2f} ± {noise:.2f} | {lost} | {won} |")
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=DEMO)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--out", help="a JSON file for what was right")
    args = parser.parse_args()
    tasks = args.tasks.split(",")
    cases = cases_of(tasks, args.count, args.seed)
    right = {}
    for name, quantization in RUNS.items():
        started = time.monotonic()
        right[name] = answers(cases, quantization, args)
        print(f"{name}: {sum(right[name])} of {len(cases)} right, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps([{"task": c.task, **{n: right[n][i] for n in RUNS}} for i, c in enumerate(cases)]))
    print(f"\nseed {args.seed}, tensor parallel {args.ranks}; loss in points, ± one standard deviation of the paired difference\n")
    print("| task | questions | bfloat16 % | experts_int8 % | loss | only bfloat16 right | only int8 right |\n|---|---|---|---|---|---|---|")
    for task in tasks:
        row(task, *([r for r, c in zip(right[name], cases) if c.task == task] for name in RUNS))
    loss = row("**all**", *right.values())
    print(f"\nloss {loss:+.2f} points, allowed {LOSS_MAX}: {'passed' if loss <= LOSS_MAX else 'FAILED'}")
    sys.exit(0 if loss <= LOSS_MAX else 1)


if __name__ == "__main__":
    main()
