"""Messages per second on Ray, next to a bare actor that adds and answers; and seconds to an accuracy, next to threads.

    python benchmarks/ray_throughput.py [--accuracy]

The bare actor and the runtime take turns in one Ray, with the same number of workers, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

import dapsgd as ds
from dapsgd.runtimes.ray.cluster import import_ray, on_loopback

SECONDS = 3.0


class Bare:
    """The least that a parameter server can do."""

    def __init__(self, m):
        self.x = np.zeros(m)

    def push_pull(self, delta):
        self.x += delta
        return self.x


class Pusher:
    def run(self, bare, m, seconds):
        ray, delta, done = import_ray(), np.zeros(m), 0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            ray.get(bare.push_pull.remote(delta))
            done += 1
        return done


def bare_rate(ray, m, workers):
    bare = ray.remote(Bare).options(num_cpus=0).remote(m)
    pushers = [ray.remote(Pusher).options(num_cpus=1).remote() for _ in range(workers)]
    ray.get([pusher.run.remote(bare, m, 0.3) for pusher in pushers])
    done = sum(ray.get([pusher.run.remote(bare, m, SECONDS) for pusher in pushers]))
    for actor in (bare, *pushers):
        ray.kill(actor)
    return done / SECONDS


def our_rate(m, workers, rate):
    """Return updates per second of DAP-SGD on almost empty rows: all that is left is the messages."""
    from scipy.sparse import csr_matrix

    rows = csr_matrix((np.ones(64), (np.arange(64), np.arange(64))), shape=(64, m))
    problem = ds.Problem(rows, np.ones(64), regularizer=ds.Zero())
    length = max(20, int(rate * SECONDS))
    runtime = ds.Ray(workers=workers, checkpoint_every=1e6)
    run = ds.solve(
        problem, "dap-sgd", runtime=runtime, step=ds.Constant(0.1), max_iter=length, record_every=length, tol=0.0, seed=0
    )
    return run.iterations / run.seconds


def throughput(ray, workers):
    print(f"{workers} workers, one shard: updates per second")
    print("| m | bare actor | runtime | ratio |\n| --- | --- | --- | --- |")
    for m in (5_000, 100_000, 1_000_000):
        pairs = []
        for _ in range(3):
            bare = bare_rate(ray, m, workers)
            pairs.append((bare, our_rate(m, workers, bare)))
        bare, ours = np.median(np.array(pairs), axis=0)
        ratio = float(np.median([b / a for a, b in pairs]))
        print(f"| {m:.0e} | {bare:.0f} | {ours:.0f} | {ratio:.2f} |", flush=True)


def accuracy(workers, n, p, tol):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = X @ np.repeat(rng.standard_normal(p // 50), 50) + rng.standard_normal(n)
    problem = ds.Problem(X, y, regularizer=ds.FusedLasso(0.02), l2=0.001)
    for name, algorithm, runtime in (
        ("threads", "dap-svrg", "threads"),
        ("threads", "dave-rpg", "threads"),
        ("ray", "dave-rpg", ds.Ray(workers=workers)),
        ("ray", "dap-svrg", ds.Ray(workers=workers)),
    ):
        run = ds.solve(problem, algorithm, runtime=runtime, workers=workers, tol=tol, max_passes=300, seed=0)
        print(
            f"{name} {algorithm}: {run.seconds:.2f} s, {run.passes:.3g} passes, gap {run.gap / run.objective:.1e}", flush=True
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--accuracy", action="store_true", help="seconds to 1e-4 on 200,000 x 1,000 dense rows")
    parser.add_argument("--rows", type=int, default=200_000)
    given = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if given.accuracy:
        accuracy(given.workers, given.rows, 1_000, 1e-4)
        return
    ray = import_ray()
    with on_loopback(ray):
        ray.init(
            address="local",
            num_cpus=2 * given.workers,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            object_store_memory=500_000_000,
            log_to_driver=False,
        )
    throughput(ray, given.workers)
    ray.shutdown()


if __name__ == "__main__":
    main()
