#!/usr/bin/env python3
"""Hugging Face tokenizers on the golden benchmark texts: the peer of router_text_tokenizer_bench.

usage: bench_tokenizers.py TOKENIZER_JSON GOLDEN_TOKENIZER_DIR     (pip install tokenizers)
"""
import os
import sys
import time

os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer, __version__  # noqa: E402

tokenizer = Tokenizer.from_file(sys.argv[1])
print("tokenizers", __version__)
for name in ("prose", "code", "zh"):
    with open(os.path.join(sys.argv[2], f"bench_{name}.txt"), encoding="utf-8", newline="") as file:
        text = file.read()
    size = len(text.encode()) / 1e6
    calls = {
        "encode": lambda: tokenizer.encode(text, add_special_tokens=False),
        "encode_batch_fast": lambda: tokenizer.encode_batch_fast([text], add_special_tokens=False),
    }
    for call, run in calls.items():
        best = float("inf")
        for _ in range(4):
            begin = time.process_time()
            run()
            best = min(best, time.process_time() - begin)
        print(f"{name:6} {call}: {size / best:.2f} MB/s")
