#!/usr/bin/env python3
"""Checks the house rules that a compiler does not: who may include whom, no cycles, no source
without a target, foreign headers only behind their doors, no traces of one machine.

    tidy.py ROOT        prints file:line: what is wrong; exit 1 if anything is
"""

import os
import re
import sys

# Folder -> the folders that its files may include besides itself. common/base is open to all.
# A new folder gets its line here, in the same commit.
COMMON = ["common/config", "common/http", "common/inference", "common/log", "common/metrics"]
ALLOWED = {
    "common/base": [],
    "common/config": [],
    "common/http": [],
    "common/inference": [],
    "common/log": [],
    "common/metrics": [],
    "common/rpc": ["common/inference", "levin/v1"],
    "router/text": COMMON,
    "router/http": COMMON,
    "router/dispatch": COMMON,
    "router/inference": COMMON + ["router/text", "router/dispatch"],
    "router/api": COMMON + ["router/inference", "router/text", "router/http", "router/dispatch"],
    "router/rpc": COMMON + ["router/inference", "router/text", "router/dispatch", "common/rpc",
                            "levin/v1"],
    "router": COMMON + ["router/*", "common/rpc", "levin/v1"],
    "worker/tensor": COMMON,
    "worker/plan": COMMON,
    "worker/cache": COMMON + ["worker/plan"],
    "worker/schedule": COMMON + ["worker/cache", "worker/plan"],
    "worker/backend": COMMON + ["worker/tensor"],
    "worker/backend/cpu": COMMON + ["worker/backend", "worker/tensor"],
    "worker/backend/cuda": COMMON + ["worker/backend", "worker/tensor"],
    "worker/bench": COMMON + ["worker/backend/cpu", "worker/backend", "worker/tensor"],
    "worker/comm": COMMON + ["worker/backend", "worker/tensor"],
    "worker/weights": COMMON + ["worker/backend", "worker/tensor"],
    "worker/model": COMMON + ["worker/weights", "worker/comm", "worker/backend", "worker/tensor",
                              "worker/plan"],
    "worker/sample": COMMON + ["worker/plan", "worker/tensor"],
    "worker/engine": COMMON + ["worker/schedule", "worker/model", "worker/sample", "worker/cache",
                               "worker/plan"],
    "worker/eval": COMMON + ["worker/engine", "worker/model", "worker/comm", "worker/weights",
                             "worker/tensor", "worker/plan"],
    "worker/group": COMMON + ["worker/engine", "worker/plan"],
    "worker/session": COMMON + ["worker/engine"],
    "worker/rpc": COMMON + ["worker/engine", "worker/group", "worker/session", "worker/plan",
                            "common/rpc", "levin/v1"],
    "worker/process": COMMON + ["worker/*", "common/rpc"],
    "worker": COMMON + ["worker/*", "common/rpc"],
    "cli": COMMON + ["router/*", "worker/*", "common/rpc", "levin/v1"],
}
# Single files that are open to all: numbers that both ends of a wire must share.
OPEN_FILES = {"common/rpc/limits.h"}
# Tests of one side never reach into the other.
TEST_SIDES = {"tests/router": "worker", "tests/worker": "router"}

# Foreign header -> the only places that may include it.
DOORS = [
    (r"grpc(pp)?/|.*\.grpc\.pb\.h$", "gRPC",
     r"(tests/)?(common|router|worker)/rpc/|(tests/)?cli/|(router|worker)/main\.cc$|"
     r"worker/process/|tests/(system|contract|fuzz)/"),
    (r"boost/(asio|beast)", "Asio and Beast",
     r"common/http/(http_server\.cc|connection\.h|connection(_read)?\.cc)$"),
    (r"CLI/", "CLI11", r"common/config/flag_set\.cc$"),
    (r"prometheus/", "prometheus-cpp", r"common/metrics/"),
    (r"spdlog/", "spdlog", r"common/log/"),
]

# Written in two parts, so that this file does not name what it looks for.
TRACES = [re.compile(r"/wor" + r"k/"), re.compile(r"/tmp/hel" + r"per"),
          re.compile(r"(^|[\s/\"'`(=])\.libr" + r"ary\b")]

SKIPPED = {".git", ".cache", "build", "__pycache__"}
PRODUCT = ("common", "router", "worker", "cli")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')


def walk(root):
    """All files below root, as sorted paths relative to it."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files if f not in SKIPPED]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def includes(root, paths):
    """(file, line, is foreign, included path) of each include."""
    for path in paths:
        for number, line in enumerate(read(root, path).splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                yield path, number, match[1] == "<", match[2]


def may_include(folder, target_folder, target):
    if target_folder in (folder, "common/base") or target in OPEN_FILES:
        return True
    for allowed in ALLOWED[folder]:
        if target_folder == allowed:
            return True
        if allowed.endswith("/*") and target_folder.startswith(allowed[:-1]):
            return True
    return False


def check_directions(all_includes):
    for path, line, foreign, target in all_includes:
        folder, target_folder = os.path.dirname(path), os.path.dirname(target)
        if foreign:
            continue
        if path.startswith("tests/"):
            for side, other in TEST_SIDES.items():
                if path.startswith(side + "/") and target.startswith(other + "/"):
                    yield f"{path}:{line}: a test of {side[6:]} includes {target}"
        elif path.startswith(tuple(p + "/" for p in PRODUCT)):
            if folder not in ALLOWED:
                yield f"{path}:{line}: folder {folder} has no line in the table of tests/tidy/tidy.py"
            elif "/" not in target:
                yield f"{path}:{line}: include {target} by its path from the root"
            elif not may_include(folder, target_folder, target):
                yield f"{path}:{line}: {folder} may not include {target}"


def check_doors(all_includes):
    for path, line, _, target in all_includes:
        for header, name, places in DOORS:
            if re.match(header, target) and not re.match(places, path):
                yield f"{path}:{line}: {name} ({target}) may not be included here"


def check_cycles(all_includes):
    edges = {}
    for path, line, foreign, target in all_includes:
        if not foreign:
            edges.setdefault(path, []).append((line, target))
    state = {}  # 1: on the way, 2: done

    def visit(path, way):
        state[path] = 1
        for line, target in edges.get(path, []):
            if state.get(target) == 1:
                cycle = way[way.index(target):] if target in way else [target]
                yield f"{path}:{line}: includes in a circle: {' -> '.join(cycle + [target])}"
            elif target not in state:
                yield from visit(target, way + [target])
        state[path] = 2

    for path in sorted(edges):
        if path not in state:
            yield from visit(path, [path])


def check_targets(root, paths):
    listed = set()
    for path in paths:
        if os.path.basename(path) != "CMakeLists.txt":
            continue
        for name in re.findall(r"[\w./${}-]+\.(?:cc|cu)\b", re.sub(r"#.*", "", read(root, path))):
            name = re.sub(r"^\$\{(CMAKE_CURRENT_SOURCE_DIR)\}/", "", name)
            if name.startswith("${PROJECT_SOURCE_DIR}/"):
                listed.add(name.split("/", 1)[1])
            else:
                listed.add(os.path.normpath(os.path.join(os.path.dirname(path), name)))
    for path in paths:
        if path.endswith((".cc", ".cu")) and path not in listed:
            yield f"{path}:1: no CMakeLists.txt builds this file"


def check_folders(paths):
    for folder in sorted({os.path.dirname(p) for p in paths}):
        if any(part in ("util", "utils") for part in folder.split("/")):
            yield f"{folder}:1: a folder is named for what it holds, not '{os.path.basename(folder)}'"


def check_traces(root, paths):
    for path in paths:
        with open(os.path.join(root, path), "rb") as file:
            content = file.read()
        if b"\0" in content[:8192]:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            if any(trace.search(line) for trace in TRACES):
                yield f"{path}:{number}: names a path of one machine"


def check(root):
    paths = walk(root)
    sources = [p for p in paths if p.endswith((".h", ".cc", ".cu"))
               and p.startswith(tuple(f + "/" for f in PRODUCT + ("tests",)))]
    all_includes = list(includes(root, sources))
    return [*check_directions(all_includes), *check_doors(all_includes), *check_cycles(all_includes),
            *check_targets(root, paths), *check_folders(paths), *check_traces(root, paths)]


def main():
    violations = check(sys.argv[1])
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
