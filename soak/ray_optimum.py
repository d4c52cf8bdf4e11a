"""Every way to run on Ray leads to the optimum that threads find.

    python soak/ray_optimum.py

Four regularisers, dense and sparse rows, one to three shards, one to four workers: the objective must be the same to 1e-6,
every message must be accounted for, and no delay may be above the bound. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import itertools
import os
import sys
import time

import numpy as np
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd.runtimes.ray.cluster import import_ray, on_loopback


def problem(regularizer, sparse, n=300, p=24):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    targets = 4 if isinstance(regularizer, ds.NuclearNorm) else 1
    y = X @ np.repeat(rng.standard_normal((4, targets)), p // 4, axis=0) + 0.1 * rng.standard_normal((n, targets))
    y = y if targets > 1 else y[:, 0]
    return ds.Problem(csr_matrix(X) if sparse else X, y, regularizer=regularizer, l2=0.05, fit_intercept=True)


def main():
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = import_ray()
    with on_loopback(ray):
        ray.init(address="local", num_cpus=4, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    terms = [ds.L1(0.1), ds.GroupLasso(0.1, 6), ds.FusedLasso(0.1), ds.NuclearNorm(0.1)]
    worst, bad, began = 0.0, 0, time.monotonic()
    for term, sparse in itertools.product(terms, (False, True)):
        posed = problem(term, sparse)
        threads = ds.solve(posed, "dave-rpg", workers=2, tol=1e-10, max_passes=5000, seed=0).objective
        for shards, workers in itertools.product((1, 2, 3), (1, 2, 3, 4)):
            run = ds.solve(posed, runtime=ds.Ray(shards=shards, workers=workers), tol=1e-8, max_passes=3000, seed=0)
            seen, off = run.statistics, abs(run.objective - threads) / threads
            accounted = seen.pushed == seen.applied + seen.fenced and run.iterations == seen.applied
            fine = off <= 1e-6 and accounted and len(run.delays) <= workers + 1
            worst, bad = max(worst, off), bad + (not fine)
            kind = "CSR" if sparse else "dense"
            name = type(term).__name__
            print(f"{name} {kind}, {shards} shards, {workers} workers: {'ok' if fine else 'WRONG'}, {off:.1e}", flush=True)
    ray.shutdown()
    print(f"largest difference {worst:.1e}, {bad} runs went wrong, {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
