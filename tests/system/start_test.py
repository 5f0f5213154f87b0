"""What `levin serve` and `levin eval` say and return when they cannot start."""
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from levin_server import BIN, DEMO, ROOT, Server

NETWORK = ROOT / "tests/golden/network"


def levin(*arguments, timeout=60):
    done = subprocess.run([str(BIN / "levin"), *map(str, arguments)], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


class Start(unittest.TestCase):
    def copy_of_demo(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "model"
        shutil.copytree(DEMO, folder)
        return folder

    def enterContext(self, context):  # unittest has it from Python 3.11 on
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def test_an_unknown_flag_names_the_nearest_one(self):
        code, _, error = levin("serve", DEMO, "--tensor-paralel-size", 2)
        self.assertEqual(code, 2)
        self.assertIn("--tensor-parallel-size", error)

    def test_an_unknown_command_is_refused(self):
        code, _, error = levin("serv")
        self.assertEqual(code, 2)
        self.assertIn("serv", error)

    def test_a_missing_model_folder_exits_3_and_names_it(self):
        code, _, error = levin("serve", "/nowhere/model")
        self.assertEqual(code, 3)
        self.assertIn("/nowhere/model", error)

    def test_an_illegal_degree_exits_2_with_both_numbers(self):
        code, _, error = levin("serve", NETWORK / "odd-heads", "--tensor-parallel-size", 8)
        self.assertEqual(code, 2)
        self.assertIn("12", error)
        self.assertIn("8", error)

    def test_a_missing_shard_exits_3_and_names_it(self):
        folder = self.copy_of_demo()
        (folder / "model-00001-of-00003.safetensors").unlink()
        code, _, error = levin("serve", folder, "--port", 0, "--grpc-port", 0, "--tensor-parallel-size", 2)
        self.assertEqual(code, 3, error)
        self.assertIn("model-00001-of-00003.safetensors", error)

    def test_a_truncated_shard_exits_3_and_names_it(self):
        folder = self.copy_of_demo()
        shard = folder / "model-00002-of-00003.safetensors"
        with open(shard, "r+b") as file:
            file.truncate(shard.stat().st_size - 1000)
        code, _, error = levin("serve", folder, "--port", 0, "--grpc-port", 0, "--tensor-parallel-size", 2)
        self.assertEqual(code, 3, error)
        self.assertIn("model-00002-of-00003.safetensors", error)

    def test_a_config_without_a_needed_key_exits_3_and_names_it(self):
        folder = self.copy_of_demo()
        config = json.loads((folder / "config.json").read_text())
        del config["rotary_dim"]
        (folder / "config.json").write_text(json.dumps(config))
        code, _, error = levin("serve", folder)
        self.assertEqual(code, 3)
        self.assertIn("rotary_dim", error)

    def test_a_taken_port_exits_5_and_names_it(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, _, error = levin("serve", DEMO, "--port", port, "--grpc-port", 0)
            self.assertEqual(code, 5, error)
            self.assertIn(str(port), error)
            code, _, error = levin("serve", DEMO, "--port", 0, "--grpc-port", port)
            self.assertEqual(code, 5, error)
            self.assertIn(str(port), error)

    def test_too_little_cache_exits_4_with_the_numbers(self):
        code, _, error = levin("serve", DEMO, "--port", 0, "--grpc-port", 0, "--cache-bytes", 1000)
        self.assertEqual(code, 4, error)
        self.assertIn("1000", error)

    def test_two_servers_run_side_by_side_and_a_broken_start_leaves_nothing(self):
        with Server() as first, Server() as second:
            self.assertNotEqual(first.port, second.port)
            self.assertTrue(first.chat("hello")["choices"] and second.chat("hello")["choices"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
