"""A worker group without a router, for the system tests: N real levin-worker processes."""
import os
import pathlib
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "models/levin-demo"
BIN = pathlib.Path(os.environ.get("LEVIN_BIN", ROOT / "build/release/bin"))
READY = re.compile(r"^levin-worker: rank (\d+) ready(.*)$")


class Rank:
    def __init__(self, *flags):
        self.process = subprocess.Popen([str(BIN / "levin-worker"), *map(str, flags)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = queue.Queue()
        self.errors = []
        self.threads = [threading.Thread(target=self._read, args=(stream, take), daemon=True)
                        for stream, take in ((self.process.stdout, self.lines.put), (self.process.stderr, self.errors.append))]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _read(stream, take):
        for line in stream:
            take(line.rstrip("\n"))

    def ready(self, within=60):
        """The addresses of the ready line: {"engine": ..., "metrics": ...}."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                match = READY.match(self.lines.get(timeout=0.2))
            except queue.Empty:
                continue
            if match:
                return dict(word.split("=", 1) for word in match.group(2).split())
        raise AssertionError(f"not ready (exit {self.process.poll()}):\n" + self.stderr())

    def wait(self, within=30):
        code = self.process.wait(within)
        for thread, stream in zip(self.threads, (self.process.stdout, self.process.stderr)):
            thread.join(5)
            stream.close()
        return code

    def stderr(self):
        return "\n".join(self.errors)

    def signal(self, which):
        self.process.send_signal(which)


class Group:
    """with Group(2, "--dtype", "float32") as group: group.engine is the leader's address."""

    def __init__(self, ranks, *flags, model=DEMO, rank_flags=None, await_ready=True, metrics_ports=None):
        self.folder = tempfile.TemporaryDirectory(prefix="levin-group-")
        engine, group = f"unix:{self.folder.name}/engine", f"unix:{self.folder.name}/group"
        self.ranks = []
        for rank in range(ranks):
            self.ranks.append(Rank("--model", model, "--rank", rank, "--world-size", ranks, "--leader", group,
                                   "--engine-listen", engine, "--group-listen", group, "--metrics-port", (metrics_ports or {}).get(rank, 0),
                                   "--cache-bytes", "64MiB", *flags, *(rank_flags or {}).get(rank, ())))
        self.engine = engine
        if await_ready:
            try:
                self.addresses = [rank.ready() for rank in self.ranks]
            except BaseException:
                self.kill()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def signal(self, which):
        for rank in self.ranks:
            rank.signal(which)

    def wait(self, within=30):
        deadline = time.monotonic() + within
        return [rank.wait(max(0.1, deadline - time.monotonic())) for rank in self.ranks]

    def kill(self):
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.kill()
            rank.wait()
        self.folder.cleanup()


def segments():
    return sorted(path.name for path in pathlib.Path("/dev/shm").glob("levin-*"))
