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


class EvalCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out.safetensors"

    def run_eval(self, ids, *flags, model=NETWORK / "tiny", out=None):
        path = self.folder / "ids.json"
        path.write_text(ids if isinstance(ids, str) else json.dumps(ids))
        dtype = () if "--dtype" in flags else ("--dtype", "float32")
        return levin("eval", model, "--ids", path, "--out", out or self.out, *dtype, *flags)

    def logits(self, ids, *flags, **kwargs):
        code, _, error = self.run_eval(ids, *flags, **kwargs)
        self.assertEqual(code, 0, error)
        return Tensors(self.out).read("a.logits")


class Eval(EvalCase):
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

    def test_last_keeps_the_last_positions_and_their_bits(self):
        ids = {"a": [(7 * i) % 320 for i in range(150)], "b": [9]}
        self.assertEqual(self.run_eval(ids, "--trace")[0], 0)
        whole = {name: Tensors(self.out).read(name) for name in ("a.logits", "a.trace.after_mlp", "b.logits")}
        self.assertEqual(self.run_eval(ids, "--trace", "--last", 4, "--max-num-batched-tokens", 64)[0], 0)
        out = Tensors(self.out)
        self.assertEqual(out.shape("a.logits"), [4, 320])
        self.assertEqual(out.shape("a.trace.after_mlp")[0], 4)
        self.assertEqual(out.shape("b.logits"), [1, 320])
        for name, values in whole.items():
            kept = out.read(name)
            self.assertEqual(kept, values[len(values) - len(kept):], name)

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


class Compare(EvalCase):
    """--compare: layer by layer beside known values."""

    def setUp(self):
        super().setUp()
        cases = json.loads((NETWORK / "tiny/golden.json").read_text())
        self.ids = {case["case"]: case["prompt"] for case in cases if case["case"] in ("bf16.len7", "bf16.len64")}
        self.golden = NETWORK / "tiny/golden.safetensors"

    def test_known_values_are_met_in_every_layer(self):
        code, said, error = self.run_eval(self.ids, "--compare", self.golden, "--tensor-parallel-size", 2)
        self.assertEqual(code, 0, said + error)
        for words in ("bf16.len7 layer 0: after_attention", "bf16.len7 layer 7: ", "experts 0 differ", "bf16.len64 end: logits",
                      "bf16.len64 layer 6: state", "all within 0.0001", "have no counterpart"):
            self.assertIn(words, said)

    def test_the_first_layer_that_differs_is_named(self):
        code, said, _ = self.run_eval(self.ids, "--compare", self.golden, "--test-corrupt-rank", 0)
        self.assertEqual(code, 1, said)
        self.assertIn("first outside 0.0001: prompt 'bf16.len7', layer 0, after_attention, row 0", said)
        code, said, _ = self.run_eval(self.ids, "--compare", self.golden, "--tolerance", 1e-12)
        self.assertEqual(code, 1, said)
        self.assertIn("first outside", said)

    def test_what_cannot_be_compared_is_an_error(self):
        code, _, error = self.run_eval({"unknown": [1]}, "--compare", self.golden)
        self.assertEqual(code, 2, error)
        self.assertIn("unknown.logits", error)
        code, _, error = self.run_eval({"bf16.len7": [1, 2]}, "--compare", self.golden)
        self.assertEqual(code, 2, error)
        self.assertIn("shape", error)
        code, _, error = self.run_eval(self.ids, "--compare", self.folder / "nothing")
        self.assertEqual(code, 2, error)
        self.assertIn("nothing", error)
        self.assertEqual(self.run_eval(self.ids, "--tolerance", "-1")[0], 2)


class BatchInvariance(EvalCase):
    """64 prompts through real processes: the same bits alone, together, and cut on the grid of 64."""

    def test_company_and_cut_change_no_bit(self):
        ids = {f"p{i}": [(i * 131 + t * t * 7 + t * 29) % 320 for t in range(1 + i * 37 % 150)] for i in range(64)}
        for dtype in ("float32", "bfloat16"):
            alone = self.folder / f"{dtype}.safetensors"
            code, _, error = self.run_eval(ids, "--greedy", 4, "--batch-invariant", "--dtype", dtype, out=alone)
            self.assertEqual(code, 0, error)
            for flags in (("--batch",), ("--batch", "--max-num-batched-tokens", 200), ("--chunk-tokens", 128)):
                code, said, error = self.run_eval(ids, "--greedy", 4, "--batch-invariant", "--dtype", dtype, *flags,
                                                  "--compare", alone, "--tolerance", 0)
                self.assertEqual(code, 0, f"{dtype} {flags}: {said[-300:]}{error}")

    def test_float32_cannot_be_without_it(self):
        code, _, error = self.run_eval({"a": [1]}, "--no-batch-invariant")
        self.assertEqual(code, 2, error)
        self.assertIn("--no-batch-invariant", error)


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
