#!/usr/bin/env python3
"""Each rule of tidy.py finds what it is for, and lets the rest pass."""

import os
import tempfile
import unittest

import tidy

CLEAN = {
    "common/base/status.h": "#include <string>\n",
    "common/http/http_server.cc": "#include <boost/asio/io_context.hpp>\n",
    "common/http/CMakeLists.txt": "levin_library(common_http SOURCES http_server.cc)\n",
    "router/text/bpe.h": '#include "common/base/status.h"\n#include "router/text/merge.h"\n',
    "router/text/merge.h": "",
    "router/api/chat.h": '#include "router/text/bpe.h"\n',
    "router/rpc/service.cc": '#include <grpcpp/server.h>\n#include "common/rpc/grpc_status.h"\n',
    "router/rpc/CMakeLists.txt": "levin_library(router_rpc SOURCES service.cc)  # gone.cc\n",
    "worker/group/rank_board.h": '#include "common/rpc/limits.h"\n',
    "worker/process/leader.h": '#include "worker/backend/cpu/cpu_backend.h"\n',
}


class TidyTest(unittest.TestCase):
    def violations(self, **changes):
        files = dict(CLEAN)
        files.update({name: text for name, text in changes.pop("files", {}).items()})
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(text if isinstance(text, bytes) else text.encode())
            return tidy.check(root)

    def expect_one(self, files, place, words):
        found = self.violations(files=files)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(place + ": "), found)
        self.assertIn(words, found[0])

    def test_lets_a_clean_tree_pass(self):
        self.assertEqual(self.violations(), [])

    def test_finds_an_include_that_runs_uphill(self):
        self.expect_one({"router/text/up.h": '\n#include "router/api/chat.h"\n'},
                        "router/text/up.h:2", "may not include")
        self.expect_one({"common/config/x.h": '#include "common/http/http_server.h"\n'},
                        "common/config/x.h:1", "may not include")
        self.expect_one({"worker/model/x.h": '#include "worker/backend/cpu/cpu_backend.h"\n'},
                        "worker/model/x.h:1", "may not include")

    def test_keeps_router_and_worker_apart(self):
        self.expect_one({"router/api/x.h": '#include "worker/plan/batch_plan.h"\n'},
                        "router/api/x.h:1", "may not include")
        self.expect_one({"tests/worker/plan/x.h": '#include "router/text/bpe.h"\n'},
                        "tests/worker/plan/x.h:1", "a test of worker")

    def test_keeps_tests_out_of_the_product(self):
        self.expect_one({"router/text/x.h": '#include "tests/support/golden.h"\n'},
                        "router/text/x.h:1", "may not include")

    def test_wants_a_line_for_each_folder_and_paths_from_the_root(self):
        self.expect_one({"router/new/x.h": '#include "common/base/status.h"\n'},
                        "router/new/x.h:1", "no line in the table")
        self.expect_one({"router/text/x.h": '#include "bpe.h"\n'}, "router/text/x.h:1", "by its path")

    def test_finds_foreign_headers_that_left_their_door(self):
        for text, name in (("#include <grpcpp/channel.h>", "gRPC"),
                           ("#include <boost/beast/http.hpp>", "Beast"),
                           ("#include <boost/asio.hpp>", "Asio"),
                           ("#include <CLI/CLI.hpp>", "CLI11"),
                           ("#include <prometheus/counter.h>", "prometheus"),
                           ("#include <spdlog/spdlog.h>", "spdlog")):
            self.expect_one({"router/text/x.h": text + "\n"}, "router/text/x.h:1", name)

    def test_finds_a_cycle(self):
        self.expect_one({"router/text/merge.h": '#include "router/text/bpe.h"\n'},
                        "router/text/merge.h:1", "router/text/bpe.h -> router/text/merge.h")

    def test_finds_a_source_that_nothing_builds(self):
        self.expect_one({"router/rpc/gone.cc": ""}, "router/rpc/gone.cc:1", "no CMakeLists.txt")

    def test_finds_a_folder_named_util(self):
        self.expect_one({"tests/util/x.txt": ""}, "tests/util:1", "named for what it holds")

    def test_finds_traces_of_a_machine_but_not_in_binary_files(self):
        trace = "see /wor" + "k/main"
        self.expect_one({"README.md": "\n" + trace}, "README.md:2", "one machine")
        self.expect_one({"x.py": "open('.libr" + "ary/x')"}, "x.py:1", "one machine")
        self.assertEqual(self.violations(files={"x.bin": b"\0" + trace.encode()}), [])
        self.assertEqual(self.violations(files={"x.txt": "a network/path, the std.library"}), [])

    def test_its_own_table_has_no_cycle(self):
        done = set()

        def visit(folder, way):
            self.assertNotIn(folder, way)
            if folder in done:
                return
            for target in tidy.ALLOWED.get(folder, []):
                if not target.endswith("/*"):
                    visit(target, way + [folder])
            done.add(folder)

        for folder in tidy.ALLOWED:
            visit(folder, [])


if __name__ == "__main__":
    unittest.main()
