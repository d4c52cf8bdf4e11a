"""Kill workers, shards, nodes and drivers while they run on Ray, again and again, and see that the answer is the same.

    python soak/ray_faults.py [--repeat 10] [--only worker shard both stall node join driver]

Each run must reach the optimum, and account for every message: pushed = applied + fenced. A second kind of run adds
the same number at every update, so that one that is applied twice, or not at all, shows in the last bit. No delay may be above
the bound, and no process may be left. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import numpy as np

import dapsgd as ds

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # or Ray would listen on other interfaces than loopback's
os.environ.setdefault("DAPSGD_SOAK", str(os.getpid()))
MARK = f"DAPSGD_SOAK={os.environ['DAPSGD_SOAK']}"

STEP = 2.0**-10


class Counting(NamedTuple):
    """A loss whose slope is 1 everywhere: every update subtracts the step, exactly."""

    unused: float = 0.0

    def value(self, pred, y):
        return pred

    def derivative(self, pred, y):
        return 1.0


def sums_problem():
    return ds.Problem(np.ones((64, 8)), np.zeros(64), loss=Counting())


def fused_problem(n=3000, p=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X @ np.repeat(rng.standard_normal(6), p // 6) + 0.1 * rng.standard_normal(n)
    return ds.Problem(X, y, regularizer=ds.FusedLasso(0.1), l2=0.01)


class Saboteur:
    """Calls ``act`` in a thread some time after a recorded point, while workers are at it."""

    def __init__(self, act, at, seconds=0.2):
        self._act, self._at, self._seconds, self._thread = act, at, seconds, None

    def __call__(self, checkup):
        if self._thread is None and checkup.iteration >= self._at:
            self._thread = threading.Thread(target=self._run)
            self._thread.start()

    def _run(self):
        time.sleep(self._seconds)
        self._act()

    def join(self):
        assert self._thread is not None, "the run was over before anything was done to it"
        self._thread.join()


def _found(kind):
    import ray

    found = [a for a in ray.util.list_named_actors(all_namespaces=True) if a["name"].startswith(kind)]
    return sorted(found, key=lambda a: a["name"])


def names(kind):
    """Return the names of the actors of the run under way."""
    return [a["name"] for a in _found(kind)]


def actors(kind):
    """Return the actors of the run under way, by their names."""
    import ray

    return [ray.get_actor(a["name"], a["namespace"]) for a in _found(kind)]


def kill(kind, index):
    import ray

    os.kill(ray.get(actors(kind)[index].pid.remote()), signal.SIGKILL)


def stall(index, seconds=10.0):
    import ray

    pid = ray.get(actors("worker")[index].pid.remote())
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):  # the run may have ended without it
        os.kill(pid, signal.SIGCONT)


def check(result, counted=False, best=None):
    """Return what is wrong with a run, in words; nothing if all is well."""
    wrong, s = [], result.statistics
    if s.pushed != s.applied + s.fenced:
        wrong.append(f"pushed {s.pushed} != applied {s.applied} + fenced {s.fenced}")
    if not result.iterations == s.applied == result.delays.sum():
        wrong.append(f"{result.iterations} iterations, but {s.applied} applied, and {result.delays.sum()} delays")
    if best is not None and not result.objective <= best * (1 + 1e-6):
        wrong.append(f"objective {result.objective} instead of {best}")
    if counted and (result.iterate != -STEP * s.applied).any():  # every update takes one step
        wrong.append(f"x is {result.iterate / -STEP} steps; {s.applied} were applied")
    return wrong


def run(act, algorithm, runtime, length, at, **options):
    """Solve one of the two problems while something happens to it."""
    saboteur = Saboteur(act, at)
    common = {"runtime": runtime, "tol": 0.0, "seed": 0, "callbacks": [saboteur], "max_iter": length}
    if algorithm == "dap-sgd":
        result = ds.solve(sums_problem(), "dap-sgd", step=ds.Constant(STEP), record_every=length // 20, **common, **options)
        wrong = check(result, counted=True)
    else:
        problem = fused_problem()
        result = ds.solve(problem, algorithm, record_every=length // 20, **common, **options)
        wrong = check(result, best=ds.solve(problem, "gram", tol=1e-12).objective)
    saboteur.join()
    return result, wrong


def fault_worker(k, short=False):
    return run(lambda: kill("worker", k % 2), *_kind(k, short))


def fault_shard(k, short=False):
    return run(lambda: kill("shard", k % (1 + k % 2)), *_kind(k, short))


def fault_both(k, short=False):
    """Kill a worker and a shard at once: if nobody has what the shard lost, the run goes back to a checkpoint."""

    def act():
        kill("worker", k % 2)
        kill("shard", k % (1 + k % 2))

    return run(act, *_kind(k, short))


def fault_stall(k, short=False):
    return run(lambda: stall(k % 2, 4.0 if short else 10.0), *_kind(k, short, lease_seconds=1.0))


def _kind(k, short, **options):
    """Return an algorithm, a runtime and a length: both algorithms, one shard and two, by turns."""
    algorithm = ("dave-rpg", "dap-sgd")[k // 2 % 2]
    runtime = ds.Ray(workers=2, shards=1 + k % 2, blocks=4, checkpoint_every=0.5, **{"lease_seconds": 2.0, **options})
    length = 400 if short else 2000
    return algorithm, runtime, length, length // 4


def fault_node(k, short=False):
    """Remove a node with a worker or a shard on it, and add another."""
    import ray
    from ray._private import utils
    from ray.cluster_utils import Cluster

    utils.set_sigterm_handler = lambda handler: None  # it can be set in the main thread only, and the run is there
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 100_000_000})
        try:
            doomed = cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
            cluster.wait_for_nodes()

            def act():
                cluster.remove_node(doomed, allow_graceful=False)
                cluster.add_node(num_cpus=2, object_store_memory=100_000_000)

            runtime = ds.Ray(
                cluster.address, workers=3, shards=2, checkpoint_dir=os.path.join(folder, "run"), checkpoint_every=0.5
            )
            length = 400 if short else 2000
            return run(act, ("dave-rpg", "dap-sgd")[k % 2], runtime, length, length // 4)
        finally:
            if ray.is_initialized():
                ray.shutdown()
            cluster.shutdown()


class JoinAndLeave:
    """Adds a node when a run is under way, removes it once workers have moved there, and ends the run when all is well again.

    Processes of workers are numbered: three at first, one for each that moves, one for each that has to go back.
    """

    def __init__(self, cluster):
        self._cluster, self._node, self._gone, self._left = cluster, None, False, 20

    def __call__(self, checkup):
        last = [int(name.partition(".")[2]) for name in names("worker")]
        if self._node is None and checkup.iteration >= 100:
            self._node = self._cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
        elif not self._gone and sorted(last)[1:] == [3, 4]:
            self._cluster.remove_node(self._node, allow_graceful=False)
            self._gone = True
        elif self._gone and sorted(last)[1:] == [5, 6]:
            self._left -= 1
        return self._left == 0


def fault_join(k, short=False):
    """Begin with CPUs for one worker of three, add a node for the others, and remove it for good."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100_000_000})
    try:
        runtime = ds.Ray(cluster.address, workers=3, shards=1 + k % 2, checkpoint_every=0.5, lease_seconds=2.0)
        options = {"runtime": runtime, "tol": 0.0, "seed": 0, "record_every": 20, "callbacks": [JoinAndLeave(cluster)]}
        if k // 2 % 2:
            result = ds.solve(sums_problem(), "dap-sgd", step=ds.Constant(STEP), max_iter=10**6, **options)
            wrong = check(result, counted=True)
        else:
            problem = fused_problem()
            result = ds.solve(problem, "dave-rpg", max_iter=10**6, **options)
            wrong = check(result, best=ds.solve(problem, "gram", tol=1e-12).objective)
        if result.statistics.worker_moves != 2:
            wrong.append(f"{result.statistics.worker_moves} workers moved")
        return result, wrong
    finally:
        if ray.is_initialized():
            ray.shutdown()
        cluster.shutdown()


def fault_driver(k, short=False):
    """Kill the driver and all that it started, and run the same program again."""
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, os.path.abspath(__file__), "--driver", os.path.join(folder, "run"), "--kind", str(k)]
        first = subprocess.Popen([*program, "--slow"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        files = []
        while len(files) < 2 * (1 + k % 2) and first.poll() is None:  # until there are two checkpoints of every shard
            time.sleep(0.2)
            files = [f for f in os.listdir(folder + "/run") if f.endswith(".npz")] if os.path.isdir(folder + "/run") else []
        assert first.poll() is None, "the run was over before it was killed"
        first.kill()
        first.wait()
        time.sleep(1.0)
        second = subprocess.run(program, capture_output=True, text=True, check=False)
        if second.returncode:
            return None, [second.stderr[-2000:]]
        said = json.loads(second.stdout.splitlines()[-1])
        wrong = said["wrong"] + ([] if said["began"] > 0 else ["it did not go on from a checkpoint"])
        return said, wrong


def drive(folder, k, slow):
    """Be a driver that may be killed."""
    began = []
    algorithm, runtime, length, _ = _kind(k, short=False)
    runtime = ds.Ray(workers=2, shards=runtime.shards, blocks=4, checkpoint_dir=folder, checkpoint_every=0.5)
    length *= 10 if slow else 2
    options = {"runtime": runtime, "tol": 0.0, "seed": 0, "record_every": 100}
    options["callbacks"] = [lambda c: began.append(c.iteration)]
    if algorithm == "dap-sgd":
        result = ds.solve(sums_problem(), "dap-sgd", step=ds.Constant(STEP), max_iter=length, **options)
        wrong = check(result, counted=True)
    else:
        problem = fused_problem()
        result = ds.solve(problem, algorithm, max_iter=length, **options)
        wrong = check(result, best=ds.solve(problem, "gram", tol=1e-12).objective)
    print(json.dumps({"wrong": wrong, "began": began[0], "restarts": 0}))


def processes():
    """Return the processes that this one, or one that it started, has started: they inherit a mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = MARK.encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if ours and line and int(pid) != os.getpid():
            found.append(f"{pid} {line[:80]}")
    return found


def wait_for_no_processes(seconds=30.0):
    """Wait until all of Ray has ended; return what is left."""
    end = time.monotonic() + seconds
    while (left := processes()) and time.monotonic() < end:
        time.sleep(0.2)
    return left


FAULTS = {"worker": fault_worker, "shard": fault_shard, "both": fault_both, "stall": fault_stall, "node": fault_node}
FAULTS |= {"join": fault_join, "driver": fault_driver}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--only", nargs="+", choices=sorted(FAULTS), default=list(FAULTS))
    parser.add_argument("--driver", help=argparse.SUPPRESS)
    parser.add_argument("--kind", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--slow", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.driver:
        drive(given.driver, given.kind, given.slow)
        return 0
    bad = 0
    for name in given.only:
        for k in range(given.repeat):
            before, began = set(processes()), time.monotonic()
            try:
                result, wrong = FAULTS[name](k)
            except Exception as error:  # the others are worth a try all the same
                result, wrong = None, [f"{type(error).__name__}: {str(error)[:300]}"]
            # Of a Ray whose driver was killed two helpers wait a minute for somebody to tell what happened, and end.
            left = set(wait_for_no_processes(90.0 if name == "driver" else 30.0)) - before
            wrong += [f"left running: {line}" for line in left]
            bad += bool(wrong)
            seen = result.statistics if hasattr(result, "statistics") else result
            print(f"{name} {k}: {'; '.join(wrong) or 'ok'} ({time.monotonic() - began:.0f} s; {seen})", flush=True)
    print("all is well" if not bad else f"{bad} runs went wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
