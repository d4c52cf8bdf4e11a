"""How many updates per second: speedup with workers, cost of recording, start-up, and another program beside it.

    python benchmarks/throughput.py                         all cells, median of 5
    python benchmarks/throughput.py --yardstick ./program   the same cells by another program, interleaved
    python benchmarks/throughput.py --quick                 shorter runs, for a look

The other program is called as ``program l1|group|fused|nuclear tap|dap WORKERS ITERATIONS M`` and prints
``seconds updates_per_second ...``. A ratio is the median of the ratios of runs side by side: those that are compared follow
each other at once, in this one process, in the other order every other time, so that a machine whose speed drifts favours
neither. Compilation is never inside a clock and is reported apart.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import dapsgd as ds

CELLS = [  # kind, m, iterations
    ("l1", 5_000, 100_000),
    ("group", 5_000, 100_000),
    ("fused", 5_000, 40_000),
    ("nuclear", 50, 6_000),
    ("l1", 50_000, 10_000),
    ("group", 50_000, 10_000),
]
YARDSTICK_ITERATIONS = {"fused": 10_000, "nuclear": 2_500}
SPEEDUP_AIMS = {("fused", 5_000): 1.8, ("nuclear", 50): 1.8, ("group", 50_000): 1.6}
LABELS = {"l1": "L1", "group": "group lasso", "fused": "fused lasso", "nuclear": "nuclear norm"}
FEW, MANY = 2, 8
WORKERS = {"tap-sgd": (1, FEW), "dap-sgd": (1, FEW, MANY)}


def make_problem(kind, m):
    """Make the paper's objective with random data."""
    rng = np.random.default_rng(1)
    if kind == "nuclear":
        X = rng.standard_normal((4000, m))
        Y = X @ rng.standard_normal((m, 40))
        return ds.Problem(X, Y, regularizer=ds.NuclearNorm(0.1), l2=0.1), ds.InverseTime(2e4, 1.0)
    X = rng.standard_normal((1000, m))
    y = X @ (100.0 * rng.standard_normal(m) * (rng.integers(0, 10, m) == 0))
    regularizer = {"l1": ds.L1(200.0), "group": ds.GroupLasso(200.0, 50), "fused": ds.FusedLasso(200.0)}[kind]
    return ds.Problem(X, y, regularizer=regularizer, l2=200.0), ds.InverseTime(2e5, 200.0)


def updates_per_second(problem, step, algorithm, workers, iterations, points=1, seed=0):
    """Run once."""
    every = max(1, iterations // points)
    result = ds.solve(
        problem, algorithm, workers=workers, step=step, max_iter=iterations, record_every=every, tol=0.0, seed=seed
    )
    if result.iterations != iterations or result.delays.sum() != iterations:
        raise AssertionError(f"{result.iterations} of {iterations} updates were applied")
    return iterations / result.seconds


def independent_runs(problem, step, iterations, count, seed=0):
    """Run so many single workers at once that share nothing: no speedup on this machine can be larger than theirs."""
    with ThreadPoolExecutor(count) as pool:
        run = partial(updates_per_second, problem, step, "dap-sgd", 1, iterations)
        runs = [pool.submit(run, seed=count * seed + who) for who in range(count)]
        return sum(run.result() for run in runs)


def yardstick(program, kind, algorithm, workers, iterations, m, seed=0):
    """Run the other program once; it draws its own numbers."""
    command = [program, kind, algorithm.partition("-")[0], str(workers), str(iterations), str(m)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1])


def measure_cells(repeats, share, program):
    """Measure TAP and DAP with 1, 2 and many workers, and the other program beside them."""
    rows = []
    for kind, m, iterations in CELLS:
        began = time.perf_counter()
        problem, step = make_problem(kind, m)
        iterations = int(iterations * share)
        for algorithm in WORKERS:
            updates_per_second(problem, step, algorithm, 1, 10)
        prepared = time.perf_counter() - began
        length = int(min(iterations, YARDSTICK_ITERATIONS.get(kind, iterations) * share))
        runs = {}
        for algorithm, counts in WORKERS.items():
            if program:
                runs |= {("theirs", algorithm, k): partial(yardstick, program, kind, algorithm, k, length, m) for k in (1, FEW)}
            runs |= {(algorithm, k): partial(updates_per_second, problem, step, algorithm, k, iterations) for k in counts}
        runs["apart"] = partial(independent_runs, problem, step, iterations, FEW)
        speeds = side_by_side(runs, repeats)
        one, few, many = (speeds["dap-sgd", workers] for workers in (1, FEW, MANY))
        for run in ((algorithm, k) for algorithm, counts in WORKERS.items() for k in counts):
            row = {"kind": kind, "m": m, "algorithm": run[0], "workers": run[1], "updates_per_second": median(speeds[run])}
            if ("theirs", *run) in speeds:
                row["yardstick"] = median(speeds["theirs", *run])
                row["ratio"] = ratio(speeds[run], speeds["theirs", *run])
            if run == ("dap-sgd", FEW):
                tap = ratio(speeds["tap-sgd", FEW], speeds["tap-sgd", 1])
                row["speedup"] = {"dap": ratio(few, one), "ceiling": ratio(speeds["apart"], one), "tap": tap}
                row["speedup"]["many_over_few"] = ratio(many, few)
            rows.append(row)
            print(line_of(row), flush=True)
        print(f"  (data and compilation: {prepared:.1f} s)", flush=True)
    return rows


def side_by_side(runs, repeats):
    """Run everything in turns, so many times, in the other order every other time."""
    speeds = {name: [] for name in runs}
    for repeat in range(repeats):
        for name, run in list(runs.items())[:: 1 if repeat % 2 == 0 else -1]:
            speeds[name].append(run(seed=repeat))
    return speeds


def line_of(row):
    """Show one cell."""
    name = f"{LABELS[row['kind']]}, m={row['m'] if row['kind'] != 'nuclear' else '50 x 40'}"
    text = f"{name:<24} {row['algorithm']:<8} {row['workers']} workers {row['updates_per_second']:>10,.0f}/s"
    return text + (f"   yardstick {row['yardstick']:>10,.0f}/s   ratio {row['ratio']:.2f}" if "ratio" in row else "")


def median(values):
    """Return the median as a float."""
    return float(np.median(values))


def ratio(ours, others):
    """Return the median of the ratios of runs side by side."""
    return median(np.divide(ours, others))


def speedups(rows):
    """Compare 2 workers with 1, and many with 2, for DAP-SGD."""
    return [{"kind": row["kind"], "m": row["m"], **row["speedup"]} for row in rows if "speedup" in row]


def recording_cost(repeats, share):
    """Compare a run with 100 recorded points with one that records only its end."""
    rows = []
    for kind, m, iterations in (("l1", 5_000, 100_000), ("fused", 5_000, 40_000), ("nuclear", 50, 10_000)):
        problem, step = make_problem(kind, m)
        iterations = int(iterations * share)
        updates_per_second(problem, step, "dap-sgd", FEW, 10)
        plain = partial(updates_per_second, problem, step, "dap-sgd", FEW, iterations)
        speeds = side_by_side({"plain": plain, "recorded": partial(plain, points=100)}, 2 * repeats)
        rows.append({"kind": kind, "m": m, "kept": ratio(speeds["recorded"], speeds["plain"])})
    return rows


STARTUP = """
import time; began = time.perf_counter()
import dapsgd as ds; imported = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 50))
problem = ds.Problem(X, X[:, 0], regularizer=ds.FusedLasso(0.1), l2=0.1)
ds.solve(problem, "dap-sgd", step=ds.Constant(1e-3), max_iter=1000, tol=0.0, seed=0)
print(imported - began, time.perf_counter() - began)
"""


def startup(repeats):
    """Time ``import dapsgd``, and import plus first solve, in processes that find compiled code on disk."""
    subprocess.run([sys.executable, "-c", STARTUP], check=True, capture_output=True)
    times = np.array(
        [
            [float(v) for v in subprocess.run([sys.executable, "-c", STARTUP], check=True, capture_output=True).stdout.split()]
            for _ in range(repeats)
        ]
    )
    return {"import_seconds": median(times[:, 0]), "import_and_solve_seconds": median(times[:, 1])}


def main():
    """Measure everything, print tables, keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--yardstick", help="the other program")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a fifth of the iterations, 3 repeats")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    options = parser.parse_args()
    repeats, share = (3, 0.2) if options.quick else (options.repeats, 1.0)
    report = {
        "machine": {
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "processor": platform.processor() or platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            "dapsgd": ds.__version__,
            "numpy": np.__version__,
            "numba": __import__("numba").__version__,
        },
        "repeats": repeats,
    }
    report["startup"] = startup(repeats)
    report["cells"] = measure_cells(repeats, share, options.yardstick)
    report["speedups"] = speedups(report["cells"])
    report["recording"] = recording_cost(repeats, share)
    print("\nspeedup with 2 workers       DAP    aim   two runs that share nothing   TAP   8 workers over 2 (DAP, aim 0.80)")
    for row in report["speedups"]:
        aim = SPEEDUP_AIMS.get((row["kind"], row["m"]))
        name = f"{LABELS[row['kind']]}, m={row['m']}"
        print(f"{name:<24} {row['dap']:>8.2f} {aim or '':>6} {row['ceiling']:>18.2f}", end="")
        print(f"{row['tap']:>17.2f} {row['many_over_few']:>10.2f}")
    print("\nupdates per second kept while recording 100 points (aim 0.95)")
    for row in report["recording"]:
        print(f"{LABELS[row['kind']]:<32} {row['kept']:>8.3f}")
    print(f"\nimport {report['startup']['import_seconds']:.2f} s (aim 0.6), ", end="")
    print(f"import and first solve {report['startup']['import_and_solve_seconds']:.2f} s (aim 1.5)")
    temporary = options.out.with_suffix(".part")
    temporary.write_text(json.dumps(report, indent=1) + "\n")
    os.replace(temporary, options.out)


if __name__ == "__main__":
    main()
