"""Bad input to a run on Ray: a sentence that says what is wrong, within 30 seconds, and nothing is left running.

    python soak/ray_bad_input.py [--only silent full ...]

Every case runs in a process of its own, so that the start of a private Ray counts. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from ray_faults import STEP, actors, processes, sums_problem, wait_for_no_processes

import dapsgd as ds

MOST = 30.0  # seconds


def fused(n=240, p=12):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return ds.Problem(X, X @ np.repeat([1.0, 0.0, 2.0], p // 3), regularizer=ds.FusedLasso(0.1))


def files(folder, *widths):
    """Write a file with so many columns for each."""
    rng = np.random.default_rng(0)
    for k, width in enumerate(widths):
        names = ",".join([*(f"c{j}" for j in range(width)), "y"])
        np.savetxt(folder / f"part-{k}.csv", rng.standard_normal((20, width + 1)), delimiter=",", header=names, comments="")
    return sorted(str(file) for file in folder.glob("part-*.csv"))


def nobody(folder):
    with socket.socket() as taken:  # bound, but it does not listen
        taken.bind(("127.0.0.1", 0))
        ds.solve(fused(), runtime=ds.Ray(f"127.0.0.1:{taken.getsockname()[1]}"))


def silent(folder):
    with socket.create_server(("127.0.0.1", 0)) as somebody:  # who never says a word
        ds.solve(fused(), runtime=ds.Ray(f"127.0.0.1:{somebody.getsockname()[1]}"))


def web(folder):
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as somebody:
        threading.Thread(target=somebody.handle_request, daemon=True).start()
        ds.solve(fused(), runtime=ds.Ray(f"127.0.0.1:{somebody.server_port}"))


def elsewhere(folder):
    ds.solve(fused(), runtime=ds.Ray("127.9.9.9:6379"))  # another address of this machine, where nobody listens


def no_name(folder):
    ds.solve(fused(), runtime=ds.Ray("there-is-no-such-host.invalid:6379"))


def auto(folder):
    """On a machine without any Ray."""
    ds.solve(fused(), runtime=ds.Ray("auto"))


def missing(folder):
    names = [*files(folder, 3, 3), str(folder / "gone.csv")]
    ds.solve(ds.Problem(ds.Partitions(names, target="y")), runtime=ds.Ray(workers=2))


def nothing(folder):
    ds.solve(ds.Problem(ds.Partitions(str(folder / "none-*.csv"), target="y")), runtime=ds.Ray(workers=2))


def unlike(folder):
    ds.solve(ds.Problem(ds.Partitions(files(folder, 3, 4), target="y")), runtime=ds.Ray(workers=2))


def shards(folder):
    ds.solve(fused(), runtime=ds.Ray(shards=13))


def shards_of_files(folder):
    ds.solve(ds.Problem(ds.Partitions(files(folder, 3, 3), target="y")), runtime=ds.Ray(workers=2, shards=4))


def coupled(folder):
    ds.solve(fused(), "tap-sgd", runtime=ds.Ray(shards=2, workers=1))


def full(folder):
    """Let the shard write no file as large as its checkpoint, once the run is under way."""

    def fill(checkup):
        if checkup.iteration == 20:
            import ray

            pid = ray.get(actors("shard")[0].pid.remote())
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))

    runtime = ds.Ray(workers=1, checkpoint_dir=folder / "run", checkpoint_every=0.5)
    options = {"max_iter": 10**7, "tol": 0.0, "record_every": 20, "callbacks": [fill]}
    ds.solve(sums_problem(), "dap-sgd", runtime=runtime, step=ds.Constant(STEP), **options)


def unwritable(folder):
    (folder / "file").write_text("not a folder")
    ds.solve(fused(), runtime=ds.Ray(workers=1, checkpoint_dir=folder / "file" / "run"))


CASES = {
    "nobody": (nobody, "ClusterError", "address .* cannot be reached"),
    "silent": (silent, "ClusterError", "address .* cannot be reached"),
    "web": (web, "ClusterError", "address .* cannot be reached .*no Ray"),
    "elsewhere": (elsewhere, "ClusterError", "address .* cannot be reached"),
    "no_name": (no_name, "ClusterError", "address .* cannot be reached"),
    "auto": (auto, "ClusterError", "no cluster to join at address 'auto'"),
    "missing": (missing, "FileNotFoundError", "gone.csv"),
    "nothing": (nothing, "FileNotFoundError", "none-"),
    "unlike": (unlike, "ValueError", "must have the same columns; .* differ in 'c3'"),
    "shards": (shards, "ValueError", "shards must be at most the 12 rows of the parameter; got 13"),
    "shards_of_files": (shards_of_files, "ValueError", "shards must be at most the 3 rows of the parameter; got 4"),
    "coupled": (coupled, "ValueError", "shards must be 1 for algorithm 'tap-sgd' with FusedLasso"),
    "full": (full, "OSError", "checkpoint_dir .* cannot be written by shard 0 .*make room"),
    "unwritable": (unwritable, "OSError", "checkpoint_dir .* cannot be written"),
}


def be(name):
    """Give the bad input, and say what was said."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        try:
            CASES[name][0](Path(folder))
            said = {"kind": "nothing", "text": ""}
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            said = {"kind": kinds, "text": str(error)}
        print(json.dumps({**said, "seconds": time.monotonic() - began}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--be", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.be:
        be(given.be)
        return 0
    bad = 0
    for name in given.only:
        before, wrong = set(processes()), []
        program = [sys.executable, os.path.abspath(__file__), "--be", name]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        said = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"kind": [], "text": "", "seconds": 0.0}
        if done.returncode:
            wrong.append(f"it ended with {done.returncode}: {done.stderr[-500:]}")
        if CASES[name][1] not in said["kind"] or not re.search(CASES[name][2], said["text"], re.DOTALL):
            wrong.append(f"it said {said['text'][:300]!r}, which is {said['kind'][:1]}")
        if said["seconds"] > MOST:
            wrong.append("it took too long")
        left = set(wait_for_no_processes()) - before
        wrong += [f"left running: {line}" for line in left]
        bad += bool(wrong)
        print(f"{name}: {'; '.join(wrong) or 'ok'}, {said['seconds']:.1f} s: {said['text'][:160]}", flush=True)
    print("all is well" if not bad else f"{bad} cases went wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
