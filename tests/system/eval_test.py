"""levin eval and levin bench as their users run them."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from levin_server import BIN, DEMO, ROOT

sys.path.insert(0, str(ROOT / "tests/golden"))
from report import Tensors, difference  # noqa: E402

NETWORK = ROOT / "tests/golden/network"


def levin(*arguments, timeout=120):
    done = subprocess.run([str(BIN / "levin"), *map(str, arguments)], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


class Eval(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out.safetensors"

    def run_eval(self, ids, *flags, model=NETWORK / "tiny", out=None):
        path = self.folder / "ids.json"
        path.write_text(ids if isinstance(ids, str) else json.dumps(ids))
        return levin("eval", model, "--ids", path, "--out", out or self.out, "--dtype", "float32", *flags)

    def logits(self, ids, *flags, **kwargs):
        code, _, error = self.run_eval(ids, *flags, **kwargs)
        self.assertEqual(code, 0, error)
        return Tensors(self.out).read("a.logits")

    def test_a_damaged_rank_shows_in_the_logits(self):
        ids = {"a": [5, 6, 7, 8]}
        sound = self.logits(ids, "--tensor-parallel-size", 2)
        again = self.logits(ids, "--tensor-parallel-size", 2)
        self.assertEqual(difference(sound, again), 0)
        for rank in (0, 1):
            damaged = self.logits(ids, "--tensor-parallel-size", 2, "--test-corrupt-rank", rank)
            self.assertGreater(difference(sound, damaged), 0.01, f"rank {rank}")

    def test_names_shapes_and_what_was_asked_for(self):
        code, _, error = self.run_eval({"a": [1, 2, 3], "b/c d": [4]}, "--greedy", 5, "--states", "--trace", "--batch")
        self.assertEqual(code, 0, error)
        out = Tensors(self.out)
        config = json.loads((NETWORK / "tiny/config.json").read_text())
        vocab, layers, hidden = config["vocab_size"], config["num_hidden_layers"], config["hidden_size"]
        self.assertEqual(out.shape("a.logits"), [3, vocab])
        self.assertEqual(out.shape("b/c d.logits"), [1, vocab])
        self.assertEqual(out.shape("a.greedy"), [5])
        self.assertEqual(out.shape("a.trace.after_mlp"), [3, layers, hidden])
        self.assertEqual(out.shape("a.trace.final_norm"), [3, hidden])
        lightning = [l for l, kind in enumerate(config["attn_type_list"]) if kind == 0]
        self.assertEqual(sorted(n for n in out.names() if n.startswith("a.state.")),
                         sorted(f"a.state.{l}" for l in lightning))
        self.run_eval({"a": [1]})
        self.assertEqual(Tensors(self.out).names(), ["a.logits"])

    def test_a_folder_without_tokenizer_masks_nothing_and_the_demo_gives_raw_logits(self):
        config = json.loads((DEMO / "config.json").read_text())
        code, _, error = self.run_eval({"a": [1, 2]}, model=DEMO)
        self.assertEqual(code, 0, error)
        self.assertTrue(all(v == v and abs(v) < 1e30 for v in Tensors(self.out).read("a.logits")))
        self.assertEqual(Tensors(self.out).shape("a.logits"), [2, config["vocab_size"]])

    def test_bad_input_exits_2_and_says_what(self):
        for ids, words in (("{", "JSON"), ({}, "no prompt"), ({"a": []}, "'a'"), ({"a": [1, 320]}, "320"),
                           ({"a": [-1]}, "-1"), ({"a": ["1"]}, "'a'"), ({"a": 1}, "'a'")):
            code, _, error = self.run_eval(ids)
            self.assertEqual(code, 2, error)
            self.assertIn(words, error)
        self.assertEqual(self.run_eval({"a": [1]}, "--chunk-tokens", 0)[0], 2)
        self.assertEqual(self.run_eval({"a": [1]}, "--tensor-parallel-size", 3)[0], 2)

    def test_a_place_that_cannot_be_written_is_named(self):
        code, _, error = self.run_eval({"a": [1]}, out="/nowhere/out.safetensors")
        self.assertEqual(code, 2)
        self.assertIn("/nowhere/out.safetensors", error)
        code, _, error = self.run_eval({"a": [1]}, out=self.folder)  # a folder; a device is the same
        self.assertEqual(code, 2)
        self.assertIn("no regular file", error)

    def test_a_folder_instead_of_an_ids_file_is_an_error(self):
        code, _, error = levin("eval", NETWORK / "tiny", "--ids", self.folder, "--out", self.out)
        self.assertEqual(code, 2, error)
        self.assertIn(str(self.folder), error)

    def test_none_is_refused_for_a_quantised_checkpoint(self):
        code, _, error = self.run_eval({"a": [1]}, "--quantization", "none", model=NETWORK / "tiny-int8")
        self.assertEqual(code, 2, error)
        self.assertIn("int8", error)
        self.assertEqual(self.run_eval({"a": [1]}, model=NETWORK / "tiny-int8")[0], 0)


class Bench(unittest.TestCase):
    def test_the_last_line_is_a_json_object_with_tokens_per_second(self):
        for flags in (("--prompt", 64), ("--gen", 8), ("--prompt", 32, "--gen", 8, "--batch", 4, "--depth", 16)):
            code, out, error = levin("bench", "--engine", DEMO, *flags, "--tensor-parallel-size", 2, "--rounds", 1)
            self.assertEqual(code, 0, error)
            self.assertGreater(json.loads(out.splitlines()[-1])["tokens_per_s"], 0)

    def test_kernels_stand_beside_the_roof_of_the_same_process(self):
        code, out, error = levin("bench", "--kernel", "norms", "--rounds", 1)
        self.assertEqual(code, 0, error)
        result = json.loads(out.splitlines()[-1])
        self.assertTrue(all(roof["per_s"] > 0 for roof in result["roofs"]))
        self.assertEqual({k["kernel"] for k in result["kernels"]}, {"RmsNorm", "GateNorm"})
        for kernel in result["kernels"]:
            self.assertAlmostEqual(kernel["share"], kernel["per_s"] / kernel["roof_per_s"])
            self.assertIn(f"| {kernel['kernel']} |", out)  # the table above

    def test_nothing_to_time_exits_2(self):
        self.assertEqual(levin("bench", "--engine", DEMO)[0], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
