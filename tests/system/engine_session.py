"""A router of the smallest kind: Handshake and Session with a worker group, from Python.

    python3 tests/system/engine_session.py unix:/tmp/engine 1 2 3 --max-new-tokens 8
"""
import argparse
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]


def generated():
    """engine_pb2 and engine_pb2_grpc, generated anew for this process."""
    folder = tempfile.TemporaryDirectory(prefix="levin-proto-")
    # The compiler that builds Levin: the one inside python3-grpc-tools knows no `optional`.
    subprocess.run(["protoc", f"--proto_path={ROOT}/proto", f"--python_out={folder.name}", f"--grpc_out={folder.name}",
                    f"--plugin=protoc-gen-grpc={shutil.which('grpc_python_plugin')}",
                    f"{ROOT}/proto/levin/v1/engine.proto"], check=True)
    sys.path.insert(0, folder.name)
    try:
        from levin.v1 import engine_pb2, engine_pb2_grpc
    finally:
        sys.path.remove(folder.name)
        folder.cleanup()
    return engine_pb2, engine_pb2_grpc


engine_pb2, engine_pb2_grpc = generated()


class Session:
    """Frames out are numbered here; frames in wait in a queue, None when the stream has ended."""

    def __init__(self, address, incarnation=None, within=30, heartbeats=True):
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        stub = engine_pb2_grpc.EngineStub(self.channel)
        hello = engine_pb2.HandshakeRequest(protocol_major=1, router_id=f"python-{os.getpid()}",
                                            router_incarnation=incarnation or time.time_ns())
        self.info = stub.Handshake(hello, timeout=within)
        self.out = queue.Queue()
        self.frames = queue.Queue()
        self.lock = threading.Lock()
        self.seq = 0
        self.received = 0
        self.ordinal = 0
        self.status = None
        self.stream = stub.Session(iter(self.out.get, None), metadata=[("levin-session", self.info.session_token)])
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.closed = threading.Event()
        if heartbeats:
            threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self):
        while not self.closed.wait(1):
            self.heartbeat()

    def _read(self):
        try:
            for frame in self.stream:
                assert frame.seq == self.received + 1, (frame.seq, self.received)
                self.received = frame.seq
                self.frames.put(frame)
        except grpc.RpcError as error:
            self.status = error
        self.frames.put(None)

    def send(self, **frame):
        with self.lock:
            self.seq += 1
            self.out.put(engine_pb2.SessionRequest(seq=self.seq, ack=self.received, **frame))

    def submit(self, prompt, max_new_tokens, stop_ids=(), **sampling):
        self.ordinal += 1
        fields = {"temperature": 0.0, "top_p": 1.0, "repetition_penalty": 1.0, "stop_ids": stop_ids, **sampling}
        self.send(submit=engine_pb2.Submit(
            ordinal=self.ordinal, request_id=os.urandom(16), attempt=1, prompt_ids=prompt, n=1,
            max_new_tokens=max_new_tokens, sampling=engine_pb2.Sampling(**fields)))
        return self.ordinal

    def cancel(self, ordinal):
        self.send(cancel=engine_pb2.Cancel(ordinal=ordinal, attempt=1))

    def finished_set(self, live=()):
        deltas = [b - a for a, b in zip([0, *live], live)]
        self.send(finished_set=engine_pb2.FinishedSet(watermark=self.ordinal, live_delta=deltas))

    def heartbeat(self):
        self.send(heartbeat=engine_pb2.RouterHeartbeat(unix_ms=int(time.time() * 1000)))

    def next(self, within):
        """The next frame; None: the stream has ended. TimeoutError when nothing comes."""
        try:
            return self.frames.get(timeout=within)
        except queue.Empty:
            raise TimeoutError(f"no frame within {within} s") from None

    def await_frame(self, kind, within=30, wanted=lambda frame: True):
        deadline = time.monotonic() + within
        while True:
            frame = self.next(max(0.0, deadline - time.monotonic()))
            if frame is None:
                raise AssertionError(f"the stream ended before {kind}: {self.status}")
            if frame.WhichOneof("frame") == kind and wanted(getattr(frame, kind)):
                return getattr(frame, kind)

    def run(self, prompt, max_new_tokens, within=60, **sampling):
        """(ids, Finished) of one generation; self.logprobs holds the chosen tokens' where asked for."""
        ordinal = self.submit(prompt, max_new_tokens, **sampling)
        ids = []
        self.logprobs = []
        deadline = time.monotonic() + within
        while True:
            frame = self.next(max(0.0, deadline - time.monotonic()))
            if frame is None:
                raise AssertionError(f"the stream ended: {self.status}")
            for run in frame.tokens.runs:
                if run.ordinal == ordinal:
                    assert run.first_index == len(ids), (run.first_index, len(ids))
                    ids.extend(run.ids)
                    self.logprobs.extend(entry.logprob for entry in run.logprobs)
            if frame.HasField("error") and frame.error.ordinal == ordinal:
                raise AssertionError(f"{frame.error.reason}: {frame.error.message}")
            if frame.HasField("finished") and frame.finished.ordinal == ordinal:
                return ids, frame.finished

    def close(self):
        self.closed.set()
        self.out.put(None)  # half-close
        self.reader.join(10)
        self.channel.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("prompt", type=int, nargs="+")
    parser.add_argument("--max-new-tokens", type=int, default=16)
    arguments = parser.parse_args()
    session = Session(arguments.address)
    ids, finished = session.run(arguments.prompt, arguments.max_new_tokens)
    print(*ids)
    print(finished, file=sys.stderr)
    session.close()


if __name__ == "__main__":
    main()
