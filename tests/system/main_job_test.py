"""The main job: a prompt through router, Session and a tensor-parallel group, exact to the token."""
import concurrent.futures
import json
import os
import pathlib
import signal
import threading
import time
import unittest

from levin_server import DEMO, Server

EXAMPLES = json.loads((DEMO / "examples.json").read_text())["cases"]


def request_of(case, **fields):
    body = {"messages": case["messages"], "temperature": 0, "return_token_ids": True,
            "max_tokens": len(case["output_ids"]) + 8, **fields}
    if case.get("tools"):
        body["tools"] = case["tools"]
    return body


class Exactness(unittest.TestCase):
    def test_the_demo_examples_are_answered_token_for_token_at_every_degree(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks), Server("--tensor-parallel-size", ranks, "--dtype", "float32") as server:
                equal = 0
                for case in EXAMPLES:
                    reply = server.post("/v1/chat/completions", request_of(case))
                    self.assertEqual(reply["prompt_token_ids"], case["prompt_ids"])
                    self.assertEqual(reply["choices"][0]["token_ids"], case["output_ids"])
                    equal += 1
                print(f"TP {ranks}: {equal} of {len(EXAMPLES)} examples equal", flush=True)

    def test_most_examples_are_equal_in_bfloat16(self):
        with Server("--tensor-parallel-size", 2) as server:
            equal = sum(server.post("/v1/chat/completions", request_of(case))["choices"][0]["token_ids"]
                        == case["output_ids"] for case in EXAMPLES)
            print(f"bfloat16, TP 2: {equal} of {len(EXAMPLES)} examples equal", flush=True)
            self.assertGreaterEqual(equal, len(EXAMPLES) * 3 // 4)


class Together(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--tensor-parallel-size", 2, "--dtype", "float32", "--max-num-seqs", 8,
                            "--cache-bytes", "64MiB")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def setUp(self):
        self.server.wait_idle(5)

    def body(self, index):
        words = " ".join(f"The code of N{n} is {1000 + n}." for n in range(index * 7 % 60))
        return {"messages": [{"role": "user", "content": f"{words} What is {index} + {index * 3}?"}],
                "max_tokens": 12 + index * 5 % 40, "seed": index, "temperature": (index % 3) * 0.7,
                "top_p": 0.95, "return_token_ids": True, "ignore_eos": index % 4 == 0}

    def test_sixteen_clients_each_get_what_they_get_alone(self):
        bodies = [self.body(index) for index in range(16)]
        ask = lambda body: self.server.post("/v1/chat/completions", body)["choices"][0]["token_ids"]
        alone = [ask(body) for body in bodies]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            together = list(pool.map(ask, bodies))
        self.assertEqual(together, alone)

    def test_a_stream_is_the_whole_reply_in_pieces(self):
        body = {"messages": [{"role": "user", "content": "What is lightning attention?"}], "temperature": 0}
        whole = self.server.post("/v1/chat/completions", body)
        text, finishes, roles = "", [], 0
        stream = self.server.open_stream("/v1/chat/completions", body)
        events = list(stream.events())
        stream.close()
        self.assertEqual(events[-1], "[DONE]")
        for event in events[:-1]:
            self.assertEqual(event["object"], "chat.completion.chunk")
            self.assertEqual(event["id"], events[0]["id"])
            for choice in event["choices"]:
                self.assertEqual(choice["index"], 0)
                roles += "role" in choice["delta"]
                text += choice["delta"].get("content") or ""
                finishes.append(choice["finish_reason"])
        self.assertEqual(text, whole["choices"][0]["message"]["content"])
        self.assertEqual(roles, 1)
        self.assertEqual([f for f in finishes if f], ["stop"])
        self.assertNotIn("end_of_sentence", text)

    def test_a_client_that_leaves_mid_stream_gives_its_memory_back_within_a_second(self):
        stream = self.server.open_stream("/v1/completions", {
            "prompt": "The code of Anna is", "max_tokens": 4000, "ignore_eos": True})
        events = stream.events()
        for _ in range(3):
            next(events)
        self.assertGreater(self.server.used()[0], 0)
        stream.close()
        took = self.server.wait_idle(1.0)
        print(f"memory back after {took * 1000:.0f} ms", flush=True)

    def test_a_client_that_leaves_during_a_whole_reply_is_noticed(self):
        connection = self.server.connect()
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": "a", "max_tokens": 4000, "ignore_eos": True}), {"Content-Type": "application/json"})
        self.server.wait_for("it runs", lambda: self.server.used()[1] == 1, 5)
        connection.close()
        self.server.wait_idle(1.0)

    def test_ten_rounds_of_all_slots_started_and_cancelled_leave_none_in_use(self):
        for _ in range(10):
            streams = [self.server.open_stream("/v1/completions", {
                "prompt": f"round {n}", "max_tokens": 500, "ignore_eos": True}) for n in range(8)]
            for stream in streams:
                next(stream.events())
            for stream in streams:
                stream.close()
            self.server.wait_idle(2.0)
        self.assertTrue(self.server.chat("hello")["choices"][0]["message"]["content"])

    def test_four_times_as_many_as_there_are_slots_all_finish(self):
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            replies = list(pool.map(lambda n: self.server.post("/v1/completions", {
                "prompt": f"request {n}", "max_tokens": 5, "ignore_eos": True}), range(32)))
        self.assertEqual([r["usage"]["completion_tokens"] for r in replies], [5] * 32)


class ArrivalTimes:
    """A stream read by a thread that notes when each event came."""

    def __init__(self, server, prompt):
        self.times, self.changed = [], threading.Condition()
        self.stream = server.open_stream("/v1/completions", {"prompt": prompt, "max_tokens": 7000, "ignore_eos": True})
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        try:
            for _ in self.stream.events():
                with self.changed:
                    self.times.append(time.monotonic())
                    self.changed.notify()
        except (OSError, ValueError, AttributeError):
            pass  # closed by close()

    def wait_for_more(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.times) >= count, 10), f"{len(self.times)} of {count} events"

    def silent_for(self):
        with self.changed:
            return time.monotonic() - self.times[-1]

    def close(self):
        self.stream.shutdown()
        self.thread.join(10)
        self.stream.close()


class Death(unittest.TestCase):
    def test_a_killed_worker_ends_the_stream_with_an_error_and_the_group_comes_back(self):
        for rank in (0, 1):
            with self.subTest(rank=rank), Server("--tensor-parallel-size", 2) as server:
                before = server.children()["levin-worker"]
                stream = server.open_stream("/v1/completions", {
                    "prompt": "The code of", "max_tokens": 4000, "ignore_eos": True})
                events = stream.events()
                for _ in range(3):
                    next(events)
                os.kill(server.worker_of_rank(rank), signal.SIGKILL)
                killed = time.monotonic()
                rest = list(events)
                took = time.monotonic() - killed
                self.assertNotIn("[DONE]", rest)
                self.assertIn("error", rest[-1], rest[-3:])
                self.assertLess(took, 2.0)
                back = server.wait_for("the group answers again", lambda: server.request(
                    "GET", "/health")[0] == 200 and server.chat("hello")["choices"], 30)
                after = server.children()["levin-worker"]
                self.assertFalse(set(before) & set(after), "a worker of the old group is still there")
                stream.close()
                print(f"rank {rank} killed: error after {took * 1000:.0f} ms, answering again after {back:.1f} s", flush=True)

    def test_a_stopped_rank_stalls_every_stream_and_they_go_on_after_it(self):
        with Server("--tensor-parallel-size", 2) as server:
            for rank in (0, 1):
                readers = [ArrivalTimes(server, f"stream {n}") for n in range(2)]
                for reader in readers:
                    reader.wait_for_more(3)
                pid = server.worker_of_rank(rank)
                os.kill(pid, signal.SIGSTOP)
                server.wait_for("every stream is silent", lambda: all(r.silent_for() > 1.0 for r in readers), 10)
                counts = [len(reader.times) for reader in readers]
                os.kill(pid, signal.SIGCONT)
                for reader, count in zip(readers, counts):
                    reader.wait_for_more(count + 3)
                    reader.close()
                server.wait_idle(2.0)

    def test_a_stopped_rank_of_an_idle_group_shows_in_readyz_until_it_is_back(self):
        with Server("--tensor-parallel-size", 2) as server:
            ready = lambda: server.request("GET", "/readyz")[0]
            self.assertEqual(ready(), 200)
            pid = server.worker_of_rank(1)
            os.kill(pid, signal.SIGSTOP)
            try:
                gone = server.wait_for("/readyz is a 503", lambda: ready() == 503, 5)
                refused = server.post("/v1/chat/completions", expect=503, body={
                    "messages": [{"role": "user", "content": "hello"}]})
                self.assertIn("no worker group is ready", refused["error"]["message"])
            finally:
                os.kill(pid, signal.SIGCONT)
            back = server.wait_for("/readyz is a 200", lambda: ready() == 200, 5)
            self.assertTrue(server.chat("hello")["choices"])
            self.assertEqual(server.worker_of_rank(1), pid)
            print(f"a stopped rank: 503 after {gone:.1f} s, 200 again after {back:.1f} s", flush=True)

    def test_a_second_sigterm_ends_the_streams_with_an_error_event(self):
        server = Server("--tensor-parallel-size", 2)
        stream = server.open_stream("/v1/completions", {"prompt": "a", "max_tokens": 8000, "ignore_eos": True})
        events = stream.events()
        next(events)
        server.process.send_signal(signal.SIGTERM)
        for _ in range(3):
            self.assertIn("choices", next(events))  # the drain lets it go on
        server.process.send_signal(signal.SIGTERM)
        rest = list(events)
        stream.close()
        self.assertIn("error", rest[-1], rest[-1:])
        self.assertEqual(server.stop(), 0)

    def test_nothing_is_left_behind_after_stop_and_after_kill(self):
        leftovers = lambda: {p.name for d in ("/tmp", "/dev/shm", os.environ.get("XDG_RUNTIME_DIR", "/tmp"))
                             for p in pathlib.Path(d).glob("levin*")}
        before = leftovers()
        server = Server("--tensor-parallel-size", 2)
        pids = sum(server.children().values(), [])
        self.assertEqual(server.stop(), 0)
        self.assertEqual(leftovers() - before, set())
        self.assertFalse([pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()])
        server = Server("--tensor-parallel-size", 2)
        pids = sum(server.children().values(), [])
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        server.wait_for("no child outlives its supervisor", lambda: not [
            pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()], 5)
        server.drain.wait(5)
        with Server("--tensor-parallel-size", 1):
            pass
        self.assertEqual(leftovers() - before, set(), "the next start must remove what a killed one left")


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--tensor-parallel-size", 2, "--max-model-len", 512)
        cls.pids = cls.server.children()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.children() == cls.pids, "a process was restarted"
        assert cls.server.stop() == 0

    def refused(self, status, code, body, path="/v1/chat/completions", param=None, **kwargs):
        got, _, text = self.server.request("POST", path, body, **kwargs)
        self.assertEqual(got, status, text)
        error = json.loads(text)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["code"], code, text)
        if param:
            self.assertEqual(error["param"], param, text)
        self.assertTrue(self.server.chat("hello")["choices"], "the next request must be right")
        return error["message"]

    def test_broken_json_is_a_400(self):
        for body in ('{"messages": [', "", "[]", '{"messages": [{"role": "user", "content": "\\ud800"}]}',
                     "{\"a\": 1e999}", "[" * 200000):
            self.refused(400, "invalid_json", body)

    def test_wrong_types_and_ranges_name_the_field(self):
        user = [{"role": "user", "content": "hi"}]
        self.refused(400, "missing_required_parameter", {}, param="messages")
        self.refused(400, "invalid_type", {"messages": "hi"}, param="messages")
        for field, value in (("temperature", 2.5), ("temperature", -1), ("top_p", 0), ("min_p", 2),
                             ("frequency_penalty", 3), ("top_k", -2), ("max_tokens", -1), ("n", 0)):
            message = self.refused(400, "invalid_value", {"messages": user, field: value}, param=field)
            self.assertIn(str(value), message)
        for field, value in (("temperature", "1"), ("max_tokens", "5"), ("stream", 1), ("max_tokens", 10.5)):
            self.refused(400, "invalid_type", {"messages": user, field: value}, param=field)

    def test_a_prompt_that_is_too_long_says_so_in_the_words_that_clients_know(self):
        message = self.refused(400, "context_length_exceeded",
                               {"messages": [{"role": "user", "content": "word " * 2000}]})
        self.assertTrue(message.startswith("This model's maximum context length is 512 tokens"), message)
        self.refused(400, "context_length_exceeded", {"prompt": "a", "max_tokens": 600}, path="/v1/completions")

    def test_an_unknown_model_is_a_404(self):
        message = self.refused(404, "model_not_found", {"model": "gpt-4", "messages": [{"role": "user", "content": "hi"}]})
        self.assertIn("does not exist", message)

    def test_what_is_not_built_is_refused_and_never_ignored(self):
        user = [{"role": "user", "content": "hi"}]
        for field, value in (("response_format", {"type": "json_object"}), ("guided_regex", "a+"), ("chat_template", "x"),
                             ("structured_outputs", {"regex": "a"}), ("prompt_logprobs", 1), ("n", 2)):
            self.refused(400, "unsupported_parameter", {"messages": user, field: value}, param=field)

    def test_unknown_routes_and_methods(self):
        self.refused(404, "unknown_url", {}, path="/v1/nothing")
        status, headers, _ = self.server.request("GET", "/v1/chat/completions")
        self.assertEqual(status, 405)
        self.assertIn("POST", {k.lower(): v for k, v in headers.items()}["allow"])

    def test_a_wrong_content_type_is_a_415(self):
        self.refused(415, "unsupported_media_type", "{}", headers={"Content-Type": "text/plain"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
