"""Real worker processes behind a router of the smallest kind: exact tokens, ends, losses."""
import http.client
import json
import signal
import socket
import sys
import tempfile
import time
import unittest

try:
    from engine_session import Session
except ImportError as missing:
    print(f"skipped: {missing} (python3-grpcio)")
    sys.exit(77)
from worker_group import DEMO, Group, Rank, segments

EXAMPLES = json.loads((DEMO / "examples.json").read_text())["cases"]


def page(address, path):
    connection = http.client.HTTPConnection(address, timeout=5)
    connection.request("GET", path)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


class Exactness(unittest.TestCase):
    def test_the_examples_come_out_of_every_group_token_for_token(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks), Group(ranks, "--dtype", "float32") as group:
                session = Session(group.engine)
                self.assertEqual(session.info.geometry.ranks, ranks)
                for case in EXAMPLES[ranks::8]:  # all of them: main_job_test.py, through HTTP
                    wanted = case["output_ids"]
                    ids, finished = session.run(case["prompt_ids"], len(wanted))
                    self.assertEqual(ids, wanted)
                    self.assertEqual(finished.usage.output_tokens, len(wanted))
                session.close()
                group.signal(signal.SIGTERM)
                self.assertEqual(group.wait(10), [0] * ranks)

    def test_a_damaged_rank_changes_what_comes_out(self):
        logprobs = []
        for damaged in (-1, 1):
            with Group(2, "--dtype", "float32", "--test-corrupt-rank", damaged) as group:
                session = Session(group.engine)
                session.run(EXAMPLES[0]["prompt_ids"], 4, logprobs=0)
                self.assertEqual(len(session.logprobs), 4)
                logprobs.append(session.logprobs)
                session.close()
        self.assertGreater(abs(logprobs[0][0] - logprobs[1][0]), 1e-4)


class Ends(unittest.TestCase):
    def start(self, ranks=2, *flags, **named):
        group = Group(ranks, *flags, **named)
        self.addCleanup(group.kill)
        return group

    def running(self, group, max_new_tokens=4000):
        session = Session(group.engine)
        session.submit([1, 2, 3], max_new_tokens)
        session.await_frame("tokens")
        return session

    def test_a_cancel_and_a_half_close_give_all_memory_back(self):
        group = self.start()
        session = self.running(group)
        total = session.await_frame("capacity", wanted=lambda capacity: capacity.running == 1).total_blocks
        session.cancel(1)
        session.await_frame("finished", within=2)
        session.finished_set()
        session.await_frame("freed_ack", within=2, wanted=lambda ack: ack.watermark == 1 and not ack.live_delta)
        session.await_frame("capacity", within=2, wanted=lambda capacity: capacity.free_blocks == total)
        session.submit([1], 4000)
        session.await_frame("tokens")
        session.close()
        later = Session(group.engine)
        later.await_frame("capacity", within=2, wanted=lambda capacity: capacity.free_blocks == total)
        later.close()

    def test_a_killed_rank_is_named_and_the_whole_group_leaves(self):
        before = segments()
        for killed in (1, 2):
            group = self.start(4)
            session = self.running(group)
            began = time.monotonic()
            group.ranks[killed].process.kill()
            end = session.await_frame("epoch_end", within=3)
            self.assertEqual((end.reason, end.rank), ("rank_lost", killed))
            self.assertIsNone(session.next(3))
            codes = group.wait(5)
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual([code for rank, code in enumerate(codes) if rank != killed], [6, 6, 6])
            self.assertIn(f"rank {killed}", group.ranks[0].stderr())
        self.assertEqual(segments(), before)

    def test_a_killed_rank_is_noticed_by_an_idle_group_too(self):
        group = self.start()
        group.ranks[1].process.kill()
        self.assertEqual(group.ranks[0].wait(5), 6)

    def test_a_killed_leader_takes_its_ranks_along(self):
        group = self.start(4)
        session = self.running(group)
        group.ranks[0].process.kill()
        while session.next(3) is not None:  # what was on its way, then the end of the stream
            pass
        self.assertEqual(group.wait(5)[1:], [6, 6, 6])

    def test_a_stopped_rank_stalls_every_stream_and_goes_on_when_it_may(self):
        group = self.start()
        session = self.running(group)
        group.ranks[1].signal(signal.SIGSTOP)
        time.sleep(0.5)  # what is under way arrives
        while not session.frames.empty():
            session.next(1)
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            try:
                self.assertNotEqual(session.next(0.5).WhichOneof("frame"), "tokens")
            except TimeoutError:
                pass
        self.assertEqual(page(group.addresses[0]["metrics"], "/readyz")[0], 503)
        self.assertEqual(page(group.addresses[0]["metrics"], "/livez")[0], 200)
        group.ranks[1].signal(signal.SIGCONT)
        session.await_frame("tokens", within=5)
        self.assertEqual(page(group.addresses[0]["metrics"], "/readyz")[0], 200)
        session.close()

    def test_a_rank_that_stays_stopped_ends_the_epoch(self):
        group = self.start()
        session = self.running(group)
        group.ranks[1].signal(signal.SIGSTOP)
        deadline = time.monotonic() + 25
        frame = None
        while time.monotonic() < deadline:
            try:
                frame = session.next(1)
            except TimeoutError:
                continue
            if frame is None or frame.HasField("epoch_end"):
                break
        self.assertEqual((frame.epoch_end.reason, frame.epoch_end.rank), ("rank_lost", 1), frame.epoch_end.message)
        self.assertEqual(group.ranks[0].wait(10), 6)

    def test_a_drain_lets_the_living_finish_and_refuses_the_new(self):
        group = self.start()
        session = Session(group.engine)
        session.submit([1, 2, 3], 400)
        session.await_frame("tokens")
        group.signal(signal.SIGTERM)
        session.await_frame("capacity", within=3, wanted=lambda capacity: capacity.draining)
        session.submit([1], 5)
        self.assertEqual(session.await_frame("error").reason, "DRAINING")
        self.assertEqual(session.await_frame("finished").ordinal, 1)
        self.assertEqual(session.await_frame("epoch_end").reason, "drain")
        self.assertEqual(group.wait(10), [0, 0])

    def test_a_second_signal_cancels_what_still_runs(self):
        group = self.start()
        session = self.running(group, 7000)
        group.signal(signal.SIGTERM)
        session.await_frame("capacity", within=3, wanted=lambda capacity: capacity.draining)
        group.ranks[0].signal(signal.SIGTERM)
        session.await_frame("finished", within=3)
        self.assertEqual(group.wait(10), [0, 0])

    def test_a_silent_router_loses_its_lease(self):
        group = self.start(1)
        session = Session(group.engine, heartbeats=False)
        began = time.monotonic()
        session.submit([1, 2, 3], 20)
        session.await_frame("finished")
        while session.next(15) is not None:
            pass
        self.assertIn("lease ran out", session.status.details())
        self.assertGreater(time.monotonic() - began, 8)
        self.assertLess(time.monotonic() - began, 14)


class Start(unittest.TestCase):
    def fails(self, code, words, *flags):
        rank = Rank(*flags)
        self.assertEqual(rank.wait(30), code, rank.stderr())
        self.assertIn(words, rank.stderr())
        self.assertIn("levin-worker: rank 0: error: ", rank.stderr())

    def test_a_taken_port_exits_5_and_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.fails(5, address, "--model", DEMO, "--engine-listen", address)

    def test_a_missing_folder_exits_3(self):
        self.fails(3, "/nowhere", "--model", "/nowhere", "--engine-listen", "127.0.0.1:0")

    def test_an_illegal_number_of_ranks_exits_2(self):
        self.fails(2, "3", "--model", DEMO, "--world-size", 3, "--engine-listen", "127.0.0.1:0", "--group-listen", "127.0.0.1:0")

    def test_a_cache_that_holds_nothing_exits_4_with_the_plan(self):
        self.fails(4, "4096", "--model", DEMO, "--engine-listen", "127.0.0.1:0", "--cache-bytes", 4096)

    def test_a_rank_of_another_configuration_is_refused_before_it_reads_weights(self):
        for flags in (("--dtype", "float32"), ("--batch-invariant",)):
            with self.subTest(flags=flags), Group(2, rank_flags={1: flags}, await_ready=False) as group:
                self.assertEqual(group.ranks[1].wait(10), 2)
                self.assertIn("configuration differs", group.ranks[1].stderr())
                self.assertNotIn("loading", group.ranks[1].stderr())
                group.ranks[0].signal(signal.SIGTERM)
                self.assertEqual(group.ranks[0].wait(5), 0)

    def test_the_epoch_rises_with_every_start(self):
        with tempfile.TemporaryDirectory() as folder:
            epochs = []
            for _ in range(2):
                with Group(1, "--epoch-file", folder + "/epoch") as group:
                    session = Session(group.engine)
                    epochs.append(session.info.epoch)
                    session.close()
            self.assertLess(epochs[0], epochs[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
