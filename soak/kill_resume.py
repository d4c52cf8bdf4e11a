"""Kill a run at a random moment, resume it, over and over: the answer must be that of a run which was never interrupted.

    python soak/kill_resume.py --times 100 --seconds 20

Each time a process starts a run of about so many seconds that keeps itself in a checkpoint, and is killed (SIGKILL) at a random
moment; then another goes on, and may be killed as well, with fewer and fewer chances, until one reaches the end. Checked:
after each kill the checkpoint, if there is one, is whole; at the end the count of iterations is exact and the
objective is that of the optimum to 1e-8; with one worker the answer has the very bits of the uninterrupted run. A run that ends
before its moment is checked, but not counted. Every third time, the disk is full now and then: files cannot grow beyond a few
hundred bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np

import dapsgd as ds


def make_problem() -> ds.Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 40))
    y = X @ np.repeat([1.0, 0.0, -1.0, 0.5], 10) + rng.standard_normal(4000)
    return ds.Problem(X, y, regularizer=ds.FusedLasso(0.05), l2=0.01)


def run(workers: int, max_iter: int, path: Path | None) -> ds.Result:
    checkpoint = None if path is None else ds.Checkpoint(path, every=0.1)
    options = {"workers": workers, "max_iter": max_iter, "record_every": max(1, max_iter // 20), "tol": 0, "seed": 1}
    return ds.solve(make_problem(), "dap-svrg", checkpoint=checkpoint, resume=path is not None, **options)


def fill_the_disk_now_and_then(seed: int, path: Path) -> None:
    """Let files grow to a few hundred bytes at most, for a tenth of a second out of three."""
    import resource

    rng = random.Random(seed)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def work() -> None:
        began = time.time()
        while not path.exists() or path.stat().st_mtime < began:  # what cannot be written at the start is an error
            time.sleep(0.01)
        while True:
            resource.setrlimit(resource.RLIMIT_FSIZE, (rng.randint(1, 900), before[1]))
            time.sleep(0.1)
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            time.sleep(0.2)

    threading.Thread(target=work, daemon=True).start()


def be_the_child(path: Path, workers: int, max_iter: int, full: int) -> None:
    print("ready", flush=True)
    if full:
        fill_the_disk_now_and_then(full, path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = run(workers, max_iter, path)
    if full:
        import resource

        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits[1], limits[1]))
    answer = {"iterations": result.iterations, "counted": int(result.delays.sum()), "x": result.x.tolist()}
    print(json.dumps({**answer, "warnings": len(said)}), flush=True)


def is_whole(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return archive.testzip() is None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=4, metavar=("PATH", "WORKERS", "MAX_ITER", "FULL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        path, *numbers = options.child
        be_the_child(Path(path), *map(int, numbers))
        return
    problem = make_problem()
    best = ds.solve(problem, "fista", tol=1e-13)
    run(1, 1000, None)
    lengths, answers = {}, {}
    for workers in (1, 2):
        took = min(run(workers, 50_000, None).seconds for _ in range(2))
        lengths[workers] = max(20_000, int(50_000 * options.seconds / took))
        answers[workers] = run(workers, lengths[workers], None)
        print(f"{workers} workers: {lengths[workers]} iterations, {answers[workers].seconds:.1f} s of work", flush=True)
    rng, kills, warned, began = random.Random(options.seed), 0, 0, time.perf_counter()
    number = attempts = 0
    while number < options.times:
        attempts += 1
        assert attempts < 3 * options.times, "most runs end before they are killed"
        workers, full = 1 + number % 2, (options.seed + attempts) * (number % 3 == 2)
        with tempfile.TemporaryDirectory() as folder:
            path, mine = Path(folder) / "run.ckpt", 0
            command = [sys.executable, __file__, "--child", str(path), str(workers), str(lengths[workers]), str(full)]
            while True:
                with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                    assert process.stdout is not None
                    assert process.stdout.readline().strip() == "ready", "a process did not start"
                    try:
                        wait = rng.uniform(0.0, options.seconds) if rng.random() < 0.9**mine else None
                        said, _ = process.communicate(timeout=wait)
                        assert process.returncode == 0, f"a run ended with exit code {process.returncode}"
                        break
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.communicate()
                        mine += 1
                assert not path.exists() or is_whole(path), "a checkpoint is not whole"
            left = [file.name for file in Path(folder).iterdir() if file.name != "run.ckpt"]
            assert not left, f"files are left: {left}"
        answer = json.loads(said)
        kills, warned, x = kills + mine, warned + answer["warnings"], np.array(answer["x"])
        assert answer["iterations"] == answer["counted"] == lengths[workers], f"iterations are not exact: {answer}"
        gap = problem.objective(x) - best.objective
        assert gap <= 1e-8 * best.objective, f"the objective is {gap} above the optimum"
        assert workers > 1 or np.array_equal(x, answers[1].x), "the bits differ"
        number += mine > 0
        print(f"{number} of {options.times}: killed {mine} times, {gap:.1e} above the optimum", flush=True)
    print(f"{options.times} runs, killed {kills} times, all right; {warned} writes failed; {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
