"""Weights on their way from the files: progress to see, a digest at the end, files that break meanwhile.

The models are files of holes: their shapes take seconds to load, their data no disk."""
import json
import os
import pathlib
import pty
import re
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from levin_server import BIN, ROOT
from worker_group import Group

GOLDEN = ROOT / "tests/golden/network"
STORED = {"F32": 4, "BF16": 2}


def write_holes(path, tensors):
    """tensors: [(name, dtype, shape)]"""
    header, end = {}, 0
    for name, dtype, shape in tensors:
        size = STORED[dtype]
        for dim in shape:
            size *= dim
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def write_model(folder, experts=8, hidden=1024, width=8192):
    """About 800 MB in two shards, experts in the second; returns the second."""
    config = json.loads((GOLDEN / "tiny/config.json").read_text())
    config.update(num_hidden_layers=2, attn_type_list=[0, 1], hidden_size=hidden, intermediate_size=width,
                  num_local_experts=experts)
    (folder / "config.json").write_text(json.dumps(config))
    heads, kv = (config[key] * config["head_dim"] for key in ("num_attention_heads", "num_key_value_heads"))
    table = [config["vocab_size"], hidden]
    small = [("model.embed_tokens.weight", "BF16", table), ("lm_head.weight", "BF16", table), ("model.norm.weight", "BF16", [hidden])]
    large = []
    for layer in (0, 1):
        start = f"model.layers.{layer}."
        attention = {"qkv_proj": [3 * heads, hidden], "output_gate": [heads, hidden], "norm": [heads], "out_proj": [hidden, heads]}
        if layer == 1:
            attention = {"q_proj": [heads, hidden], "k_proj": [kv, hidden], "v_proj": [kv, hidden], "o_proj": [hidden, heads]}
        small += [(f"{start}self_attn.{name}.weight", "BF16", shape) for name, shape in attention.items()]
        small += [(f"{start}{name}.weight", "BF16", [hidden]) for name in ("input_layernorm", "post_attention_layernorm")]
        small.append((f"{start}block_sparse_moe.gate.weight", "F32", [experts, hidden]))
        for expert in range(experts):
            name = f"{start}block_sparse_moe.experts.{expert}."
            large += [(f"{name}w1.weight", "BF16", [width, hidden]), (f"{name}w3.weight", "BF16", [width, hidden]),
                      (f"{name}w2.weight", "BF16", [hidden, width])]
    shards = {"model-00000-of-00002.safetensors": small, "model-00001-of-00002.safetensors": large}
    for name, tensors in shards.items():
        write_holes(folder / name, tensors)
    names = {tensor[0]: shard for shard, tensors in shards.items() for tensor in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    return folder / "model-00001-of-00002.safetensors"


def free_port():
    """The addresses of a group are told when it is ready, too late to watch it load."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def page(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
            return reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


def ratio(port):
    found = re.search(r"^levin_startup_progress_ratio\S* (\S+)$", page(port, "/metrics"), re.M)
    return float(found.group(1)) if found else 0.0


class Loading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="levin-load-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.shard = write_model(self.folder)

    def group(self, ranks):
        """A group that loads, and each rank's port for health and metrics."""
        ports = {rank: free_port() for rank in range(ranks)}
        group = Group(ranks, model=self.folder, metrics_ports=ports, await_ready=False)
        self.addCleanup(group.kill)
        return group, ports

    def test_progress_grows_in_the_metrics_on_startupz_and_in_the_log(self):
        group, ports = self.group(2)
        seen, startup = [], set()
        deadline = time.monotonic() + 120
        while (not seen or seen[-1] < 1) and time.monotonic() < deadline:
            seen.append(ratio(ports[0]))
            startup.update(re.findall(r"loaded (\d+)%", page(ports[0], "/startupz")))
        self.assertEqual(seen[-1], 1)
        self.assertEqual(seen, sorted(seen))
        self.assertTrue(any(0 < value < 1 for value in seen), seen)
        self.assertTrue({str(percent) for percent in range(1, 100)} & startup, startup)
        for rank in group.ranks:
            rank.ready(120)
        for index, rank in enumerate(group.ranks):
            shown = [int(p) for p in re.findall(rf"levin-worker: rank {index} loading (\d+)% \(\d+ of \d+ MB\)", rank.stderr())]
            self.assertEqual(shown, sorted(shown))
            self.assertGreater(len(shown), 5, "each 5 %")
            self.assertEqual(shown[-1], 100)

    def test_a_shard_cut_meanwhile_is_named_with_its_offset_and_ends_all_ranks(self):
        group, ports = self.group(2)
        size = self.shard.stat().st_size
        deadline = time.monotonic() + 120
        # Both read the shard that will be cut.
        while min(map(ratio, ports.values())) < 0.1 and time.monotonic() < deadline:
            pass
        os.truncate(self.shard, size - 4096)
        codes = group.wait(120)
        errors = [rank.stderr() for rank in group.ranks]
        self.assertNotIn(0, codes, errors)
        self.assertIn(3, codes, "the model folder is to blame")
        named = re.search(r"model-00001-of-00002\.safetensors' at byte (\d+)", "\n".join(errors))
        self.assertTrue(named, errors)
        self.assertEqual(int(named.group(1)), size - 4096)


class Terminal(unittest.TestCase):
    def test_a_terminal_gets_one_line_that_is_redrawn_and_a_pipe_gets_lines(self):
        with tempfile.TemporaryDirectory(prefix="levin-load-") as name:
            write_model(pathlib.Path(name))
            command = [str(BIN / "levin"), "eval", name, "--ids", f"{name}/ids.json", "--out", f"{name}/out"]
            (pathlib.Path(name) / "ids.json").write_text('{"a": [1]}')
            piped = subprocess.run(command, capture_output=True, text=True, timeout=300)
            self.assertEqual(piped.returncode, 0, piped.stderr)
            self.assertIn("levin: loading weights 100%\n", piped.stderr)
            self.assertNotIn("\r", piped.stderr)

            terminal, end = pty.openpty()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=end)
            os.close(end)
            text = b""
            while True:
                try:
                    more = os.read(terminal, 4096)
                except OSError:  # the other end is closed
                    break
                if not more:
                    break
                text += more
            os.close(terminal)
            self.assertEqual(process.wait(60), 0, text)
            self.assertIn(b"\rlevin: loading weights 100%\r\n", text)


class Digest(unittest.TestCase):
    @staticmethod
    def digest(model, *flags, ranks):
        with Group(ranks, *flags, model=model) as group:
            metrics = page(group.addresses[0]["metrics"].rsplit(":", 1)[1], "/metrics")
            digest = re.search(r'^levin_model_info{.*digest="(\d+)"', metrics, re.M).group(1)
        assert f"digest={digest}" in group.ranks[0].stderr(), group.ranks[0].stderr()
        return digest

    def test_every_spelling_of_the_same_weights_has_the_same_digest(self):
        for ranks in (1, 2):
            plain = self.digest(GOLDEN / "tiny", ranks=ranks)
            self.assertEqual(self.digest(GOLDEN / "tiny-native", ranks=ranks), plain)
            self.assertEqual(self.digest(GOLDEN / "tiny-native-stacked", ranks=ranks), plain)
            made = self.digest(GOLDEN / "tiny", "--quantization", "experts_int8", ranks=ranks)
            self.assertNotEqual(made, plain)
            self.assertEqual(self.digest(GOLDEN / "tiny-int8", ranks=ranks), made)


if __name__ == "__main__":
    unittest.main(verbosity=2)
