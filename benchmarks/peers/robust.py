"""Never worse by luck: 20 seeds of one problem; and hostile data, on which nothing may diverge.

python benchmarks/peers/robust.py [--quick]
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median

import numpy as np

import dapsgd as ds

import problems
from run import RESULTS, machine, write
from solvers.dapsgd_ import make

ALGORITHMS = ("auto", "dap-svrg")
PENALTIES = ("l1", "group", "fused")


def solve(problem, algorithm, tol, seed):
    """Solve once; returns seconds and the result."""
    began = time.perf_counter()
    limit = {"max_passes": 5_000} if algorithm != "auto" else {}
    result = ds.solve(make(problem), algorithm, tol=tol, seed=seed, **limit)
    return time.perf_counter() - began, result


def luck(spec, seeds):
    """Time seeds of the algorithm on one problem, and the slowest over the median."""
    problem = problems.draw(spec)
    report = {}
    for algorithm in ALGORITHMS:
        solve(problem, algorithm, 1e-6, 0)
        runs = [solve(problem, algorithm, 1e-6, seed) for seed in range(seeds)]
        times = [seconds for seconds, _ in runs]
        report[algorithm] = {
            "seconds": times,
            "slowest_over_median": max(times) / median(times),
            "passes": [float(result.passes) for _, result in runs],
            "converged": sum(bool(result.converged) for _, result in runs),
        }
        print(f"{seeds} seeds, {algorithm}: slowest / median {report[algorithm]['slowest_over_median']:.2f}", flush=True)
    return report


def hostile(spec):
    """Solve badly scaled problems; a run fails if it raises, is not finite, or ends above the objective at zero."""
    rows = []
    for loss in ("squared", "logistic"):
        for penalty in PENALTIES:
            problem = problems.draw(spec._replace(penalty=penalty, loss=loss))
            start = problem.objective(np.zeros(problem.spec.shape))
            for algorithm in ALGORITHMS:
                row = {"loss": loss, "penalty": penalty, "algorithm": algorithm, "at_zero": start}
                try:
                    seconds, result = solve(problem, algorithm, 1e-4, 0)
                    end = float(problem.objective(result.x))
                    row |= {"seconds": seconds, "objective": end, "converged": bool(result.converged)}
                    row["ok"] = bool(np.isfinite(end) and end <= start)
                except (ds.DapsgdError, ArithmeticError) as error:
                    row |= {"ok": False, "error": str(error)}
                rows.append(row)
                print(f"hostile {loss}, {penalty}, {algorithm}: {'ok' if row['ok'] else 'FAILED'}", flush=True)
    return rows


def main():
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small problems, 5 seeds")
    parser.add_argument("--out", type=Path, default=RESULTS / "robust.json")
    options = parser.parse_args()
    lucky = next(spec for spec in problems.HARD if spec.name == "fused-hard")
    bad = problems.Spec("hostile", "l1", 5_000, 200, rho=0.99, active=5, hostile=True)
    seeds = 20
    if options.quick:
        lucky, bad, seeds = problems.smaller(lucky), bad._replace(n=500, p=50, active=2), 5
    report = {"machine": machine(), "luck": {"problem": lucky.name} | luck(lucky, seeds), "hostile": hostile(bad)}
    write(options.out, json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
