"""A running `levin serve` for the system tests: real processes, loopback, free ports."""
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "models/levin-demo"
BIN = pathlib.Path(os.environ.get("LEVIN_BIN", ROOT / "build/release/bin"))
READY = re.compile(r"^levin: ready http://([^ ]+):(\d+)(?: grpc ([^ ]+))?")


def read_line_until(stream, deadline):
    """One line of a pipe, or None when the time is up or the pipe ends."""
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            return None
        byte = os.read(stream.fileno(), 1)
        if not byte:
            return None
        line += byte
    return line.decode()


class Server:
    """with Server("--tensor-parallel-size", "2") as server: ..."""

    def __init__(self, *flags, model=DEMO, ready_within=60, env=None):
        self.log = open(os.environ.get("LEVIN_SYSTEM_LOG", "/dev/null"), "ab")
        self.process = subprocess.Popen(
            [str(BIN / "levin"), "serve", str(model), "--port", "0", "--grpc-port", "0", *map(str, flags)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
        deadline = time.monotonic() + ready_within
        line = read_line_until(self.process.stdout, deadline)
        match = READY.match(line or "")
        if not match:
            self.process.kill()
            raise AssertionError(f"no ready line within {ready_within} s, got {line!r}:\n"
                                 + self.process.stderr.read().decode(errors="replace"))
        self.host, self.port, self.grpc = match.group(1), int(match.group(2)), match.group(3)
        # What comes later on stderr must not fill the pipe.
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=self.log)
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, within=30):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the server did not stop within {within} s")
        finally:
            self.drain.wait(5)
            self.process.stdout.close()
            self.log.close()
        return code

    # ---- processes

    def children(self):
        """{"levin-worker": [pids], "levin-router": [pid]} of this server."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                stat = (entry / "stat").read_text()
                name = stat[stat.index("(") + 1:stat.rindex(")")]
                state, parent = stat[stat.rindex(")") + 2:].split()[:2]
            except OSError:
                continue
            if int(parent) == self.process.pid and state != "Z":
                found.setdefault(name, []).append(int(entry.name))
        return {name: sorted(pids) for name, pids in found.items()}

    def worker_of_rank(self, rank):
        for pid in self.children().get("levin-worker", []):
            argv = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if any(a.startswith("--options-file=") and a.endswith(f"worker-{rank}") for a in argv):
                return pid
        raise AssertionError(f"no worker of rank {rank}: {self.children()}")

    # ---- requests

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, text)"""
        connection = self.connect(timeout)
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            sent = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, body, {**sent, **(headers or {})})
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read().decode()
        finally:
            connection.close()

    def post(self, path, body, expect=200, **kwargs):
        status, _, text = self.request("POST", path, body, **kwargs)
        assert status == expect, f"{path}: {status} {text[:500]}"
        return json.loads(text)

    def chat(self, content, **fields):
        messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
        return self.post("/v1/chat/completions", {"messages": messages, "temperature": 0, **fields})

    def open_stream(self, path, body, timeout=60):
        """An open event stream: .events() yields parsed chunks and "[DONE]"."""
        return Stream(self, path, {**body, "stream": True}, timeout)

    def metrics(self):
        """{"name{labels}": value}"""
        status, _, text = self.request("GET", "/metrics")
        assert status == 200, text
        values = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def metric(self, family, **labels):
        """The sum of a family's series that have all these labels."""
        total, found = 0.0, False
        for name, value in self.metrics().items():
            if name.split("{")[0] != family:
                continue
            if all(f'{key}="{wanted}"' in name for key, wanted in labels.items()):
                total, found = total + value, True
        assert found, f"no series {family} {labels}"
        return total

    def wait_for(self, what, condition, within):
        """Polls an observable until it holds: the server under test is another process."""
        deadline = time.monotonic() + within
        while True:
            try:
                if condition():
                    return within - (deadline - time.monotonic())
            except (OSError, http.client.HTTPException):
                pass
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {within} s")
            select.select([], [], [], 0.02)

    def used(self):
        """(reserved cache bytes, running sequences) as the router's port shows them."""
        return (self.metric("levin_group_cache_bytes", kind="reserved"),
                self.metric("levin_group_sequences", state="running"),
                self.metric("levin_group_state_slots", state="used"))

    def wait_idle(self, within=1.0):
        return self.wait_for("all memory back", lambda: self.used() == (0, 0, 0), within)


class Stream:
    def __init__(self, server, path, body, timeout):
        self.connection = server.connect(timeout)
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        self.reply = self.connection.getresponse()

    def events(self):
        assert self.reply.status == 200, self.reply.read()
        while True:
            line = self.reply.readline()
            if not line:
                return
            line = line.decode().rstrip("\n")
            if not line or line.startswith(":"):
                continue
            assert line.startswith("data: "), line
            data = line[len("data: "):]
            yield data if data == "[DONE]" else json.loads(data)

    def shutdown(self):
        """Ends the connection under a thread that reads it."""
        self.reply.fp.raw._sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        """The client goes away in the middle: FIN at once."""
        self.reply.close()
        self.connection.close()
