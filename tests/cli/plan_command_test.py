#!/usr/bin/env python3
"""`levin plan` as a command: exit codes, streams, and the published index of the released model
(looked for in LEVIN_GOLDEN_DIR, then beside the checkout; skipped loudly where there is none)."""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from levin_server import Server  # noqa: E402

LEVIN = os.path.join(os.environ.get("LEVIN_BIN", ROOT / "build/dev/bin"), "levin")


def vendor(name):
    roots = [os.environ.get("LEVIN_GOLDEN_DIR"), ROOT / "../shared/golden"]
    found = [pathlib.Path(root) / name for root in roots if root and (pathlib.Path(root) / name).exists()]
    return found[0] if found else None


def plan(*arguments):
    done = subprocess.run([LEVIN, "plan", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Command(unittest.TestCase):
    demo = ROOT / "models/levin-demo"

    def test_a_model_that_fits(self):
        code, out, err = plan(self.demo, "--device-memory", "8GB", "--overhead-bytes", "1GB")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("all headers checked", out)
        self.assertIn("levin serve", out)

    def test_a_model_that_does_not_fit_is_exit_4_with_the_numbers(self):
        code, out, err = plan(self.demo, "--device-memory", "5GB", "--json")
        self.assertEqual(code, 4)
        self.assertFalse(json.loads(out)["fits"])
        self.assertIn("does not fit: each of 1 ranks needs 5.22 GB", err)
        self.assertIn("would fit: ", err)

    def test_wrong_flags_are_exit_2_and_wrong_folders_exit_3(self):
        for flags in ([], ["--device-memory", "0"], ["--device-memory", "much"],
                      ["--device-memory", "8GB", "--gpu-memory-utilization", "1.5"],
                      ["--device-memory", "8GB", "--gpu-memory-utilization", "0"],
                      ["--device-memory", "8GB", "--tensor-parallel-size", "3"],
                      ["--device-memory", "8GB", "--max-model-len", "1G"],
                      ["--device-memory", "8GB", "--quantization", "fp5"],
                      ["--device-memory", "8GB", "--nonsense"]):
            code, out, err = plan(self.demo, *flags)
            self.assertEqual((code, out), (2, ""), flags)
            self.assertTrue(err.startswith("levin plan: "), err)
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(plan(empty, "--device-memory", "8GB")[0], 3)


class Group(unittest.TestCase):
    """A group started with the proposed flags takes what was promised."""

    def test_a_running_group_has_the_slots_the_bytes_and_the_length_of_its_plan(self):
        demo = ROOT / "models/levin-demo"
        for ranks, more in ((1, []), (2, ["--quantization", "experts_int8"]), (4, ["--max-model-len", "2000"])):
            code, out, err = plan(demo, "--tensor-parallel-size", ranks, "--device-memory", "40MB", "--overhead-bytes", "1MB", "--json", *more)
            self.assertEqual((code, err), (0, ""))
            promised = json.loads(out)
            with Server(*promised["flags"], model=demo) as server:
                window = server.post("/tokenize", {"prompt": "x"})["max_model_len"]
                self.assertEqual(window, promised["max_model_len"])
                rank = promised["per_rank"]
                slots = sum(server.metric("levin_group_state_slots", state=state) for state in ("used", "free"))
                self.assertEqual(slots, rank["slots"])
                taken = rank["slots"] * rank["state_bytes_per_sequence"] + rank["blocks"] * rank["kv_bytes_per_block"]
                held = sum(server.metric("levin_group_cache_bytes", kind=kind) for kind in ("reserved", "cached", "free"))
                self.assertEqual(held, ranks * taken)


class ReleasedModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config, index = vendor("m1/config.json"), vendor("m1/model.safetensors.index.json.gz")
        if config is None or index is None:
            print("SKIPPED: no m1/config.json and m1/model.safetensors.index.json.gz", file=sys.stderr)
            raise unittest.SkipTest("the vendor's index is not on this machine")
        cls.folder = tempfile.TemporaryDirectory()
        shutil.copy(config, cls.folder.name + "/config.json")
        cls.index = json.loads(gzip.decompress(index.read_bytes()))
        cls.write(cls.index)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def write(cls, index):
        with open(cls.folder.name + "/model.safetensors.index.json", "w") as file:
            json.dump(index, file)

    def plan(self, device, *more):
        code, out, err = plan(self.folder.name, "--tensor-parallel-size", 8, "--quantization", "experts_int8",
                              "--device-memory", device, "--gpu-memory-utilization", 0.95, "--json", *more)
        return code, json.loads(out) if out else None, err

    def test_the_published_figures(self):
        for device, tokens in (("80GB", 2138560), ("96GB", 5107328)):
            code, found, err = self.plan(device)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(found["checkpoint"], {
                "source": "index", "tensors": 8243, "files": 413, "bytes": 912210767872,
                "index_bytes": 912210767872, "index_agrees": True})
            self.assertEqual(found["per_rank"]["weights_bytes"]["total"], 59813576704)
            self.assertEqual(found["longest_sequence_tokens"], tokens)

    def test_bf16_experts_do_not_fit(self):
        code, found, err = self.plan("80GB", "--quantization", "none")
        self.assertEqual(code, 2, "given twice")
        code, out, err = plan(self.folder.name, "-tp", 8, "--device-memory", "80GB",
                              "--gpu-memory-utilization", 0.95)
        self.assertEqual(code, 4)
        self.assertIn("119.32 GB", err)
        self.assertIn("--quantization experts_int8 (65.05 GB)", err)

    def test_an_index_that_lacks_a_tensor_is_exit_3(self):
        index = {"metadata": self.index["metadata"], "weight_map": dict(self.index["weight_map"])}
        del index["weight_map"]["model.layers.63.self_attn.o_proj.weight"]
        self.write(index)
        try:
            code, out, err = self.plan("80GB")
            self.assertEqual((code, out), (3, None))
            self.assertIn("model.layers.63.self_attn.o_proj.weight", err)
        finally:
            self.write(self.index)


if __name__ == "__main__":
    unittest.main()
