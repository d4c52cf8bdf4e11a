"""How many copies of the parameter every process of a run on Ray has in memory, at most.

    python soak/ray_memory.py [--parameters 10000000] [--shards 4] [--workers 2] [--only dap-sgd/l1 ...]

What is counted is resident memory at its peak, as the kernel keeps it (VmHWM): private memory, and every page of shared memory
that the process has touched, as if it were its alone. From that the peak of a process of the same kind in the same run with
few parameters is taken off: the interpreter, libraries, compiled code. What is left is divided by the size of the parameter.
All processes are looked at: the driver, the workers, the shards, and Ray's own, whose object store may hold copies, too. Beside
it stand the largest private and shared parts, and the proportional set size (Pss), where those that have a page share it.

The rows are few and sparse, so that data does not count. Exits with 1 if any process has more than 3 copies.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict

import numpy as np
from scipy.sparse import csr_matrix

import dapsgd as ds

MOST = 3.0
FEW = 4000  # parameters of the run that tells what a process needs anyway
PENALTIES = {
    "l1": {"regularizer": ds.L1(0.01)},
    "l1_l2": {"regularizer": ds.L1(0.01), "l2": 0.01},
    "group_lasso": {"regularizer": ds.GroupLasso(0.01, 100)},
    "elastic_net": {"regularizer": ds.ElasticNet(0.01, 0.5)},
    "fused_lasso": {"regularizer": ds.FusedLasso(0.01)},
}
FITS = [
    *("dap-sgd/l1", "dap-sgd/l1_l2", "dap-sgd/group_lasso", "dap-sgd/elastic_net"),
    *("tap-sgd/l1", "dave-rpg/l1", "dave-rpg/l1_l2", "dave-rpg/group_lasso"),
]
KEYS = {"VmHWM": "peak", "RssAnon": "private", "RssShmem": "shared"}


def problem(p, penalty, n=64, entries=20):
    rng = np.random.default_rng(0)
    columns = np.sort(np.stack([rng.choice(p, entries, replace=False) for _ in range(n)]), axis=1)
    X = csr_matrix((rng.standard_normal(n * entries), columns.ravel(), np.arange(0, n * entries + 1, entries)), shape=(n, p))
    return ds.Problem(X, rng.standard_normal(n), **PENALTIES[penalty])


def drive(given):
    """Be the driver."""
    algorithm, penalty = given.drive.split("/")
    posed = problem(given.parameters, penalty)
    runtime = ds.Ray(shards=given.shards, workers=given.workers, checkpoint_every=1.0)
    batch = {} if algorithm == "dave-rpg" else {"batch_size": 4}
    result = ds.solve(posed, algorithm, runtime=runtime, max_iter=given.updates, record_every=10, seed=0, **batch)
    assert np.isfinite(result.objective)
    seen = result.statistics
    assert seen.pushed == seen.applied + seen.fenced
    print(json.dumps({"objective": result.objective, "at zero": float(result.trace.objective[0])}))


def family(pid):
    """Return the numbers of a process and of all that it started."""
    parents = {}
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{other}/stat") as file:
                parents[int(other)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found, before = {pid}, set()
    while found != before:
        before = set(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found


def kind_of(pid, driver):
    if pid == driver:
        return "driver"
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        line = file.read().replace(b"\0", b" ").decode(errors="replace")
    for kind in ("Worker", "Shard"):
        if line.startswith(f"ray::{kind}"):
            return kind.lower()
    return "raylet" if "/raylet/raylet" in line.split(" ", 1)[0] else "other"


def look(pid, seen, thoroughly):
    """Take down how much memory a process has."""
    with open(f"/proc/{pid}/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    for key, name in KEYS.items():
        seen[name] = max(seen[name], int(lines.get(key, "0 kB").split()[0]) << 10)
    if thoroughly:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            pss = next(line for line in file if line.startswith("Pss:"))
        seen["pss"] = max(seen["pss"], int(pss.split()[1]) << 10)


def measure(name, parameters, given):
    """Run once; return the peaks of the largest process of every kind, in bytes, and what the driver said."""
    options = ["--parameters", str(parameters), "--shards", str(given.shards), "--workers", str(given.workers)]
    program = [sys.executable, os.path.abspath(__file__), "--drive", name, "--updates", str(given.updates), *options]
    child = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    seen, kinds, round_ = defaultdict(lambda: defaultdict(int)), {}, 0
    while child.poll() is None:
        if round_ % 20 == 0:
            pids = family(child.pid)
        for pid in pids:
            try:
                kind = kind_of(pid, child.pid)
                if kind != "other" or pid not in kinds:  # it was one of ours, and may have no title any more
                    kinds[pid] = kind
                look(pid, seen[pid], round_ % 10 == 0)
            except (OSError, StopIteration):  # it has ended
                continue
        round_ += 1
        time.sleep(0.01)
    if child.returncode:
        raise RuntimeError(f"{name} with {parameters} parameters ended with {child.returncode}")
    peaks = {}
    for pid, kind in kinds.items():
        best = peaks.setdefault(kind, defaultdict(int))
        for key, value in seen[pid].items():
            best[key] = max(best[key], value)
    return peaks, json.loads(child.stdout.read().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--only", nargs="+", default=FITS, metavar="ALGORITHM/PENALTY")
    parser.add_argument("--drive", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drive:
        drive(given)
        return 0
    bad = 0
    for name in given.only:
        measure(name, FEW, given)  # compiled from here on
        plain, _ = measure(name, FEW, given)
        peaks, said = measure(name, given.parameters, given)
        size = 8.0 * given.parameters
        for kind in ("driver", "worker", "shard", "raylet", "other"):
            copies = {key: (peaks[kind][key] - plain[kind][key]) / size for key in ("peak", "private", "shared", "pss")}
            wrong = copies["peak"] > MOST
            bad += wrong
            parts = ", ".join(f"{key} {copies[key]:.2f}" for key in ("private", "shared", "pss"))
            rest = f"and {plain[kind]['peak'] / 1e6:.0f} MB"
            print(f"{name} {kind}: {copies['peak']:.2f} copies{' TOO MANY' if wrong else ''} ({parts}) {rest}", flush=True)
        print(f"{name}: objective {said['objective']:.6g}, {said['at zero']:.6g} at zero", flush=True)
    print("all is well" if not bad else f"{bad} kinds of processes have more than {MOST:g} copies")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
