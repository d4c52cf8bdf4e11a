"""Send SIGINT and SIGTERM at random moments: how long until the process has ended, with its checkpoint and its exit code?

    python soak/signals.py --times 20

Each time a process starts a run and is sent a signal at a random moment of it. Checked: the exit code is the usual one; once a
first checkpoint was there, there is a whole one that was written after the signal; no other file is left. Printed: how long
it took from the signal to the end of the process, every thread included. A case that takes longer than ``--limit`` seconds
fails.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import dapsgd as ds


class Case(NamedTuple):
    rows: int
    columns: int
    span: float  # seconds after the start within which the signal comes
    loss: Any = ds.Squared()
    regularizer: Any = ds.L1(0.01)
    options: Mapping[str, Any] = MappingProxyType({})


STOCHASTIC = {"algorithm": "dap-svrg", "max_iter": 10**9, "record_every": 10**8}
CASES = {
    "threads": Case(20_000, 200, 4.0, options=STOCHASTIC | {"workers": 4}),
    "serial": Case(20_000, 200, 4.0, options=STOCHASTIC | {"runtime": "serial"}),
    "simulated": Case(20_000, 200, 4.0, options=STOCHASTIC | {"runtime": ds.Simulated(1e-4, 1e-5), "workers": 8}),
    "dave-rpg": Case(20_000, 200, 4.0, options=STOCHASTIC | {"algorithm": "dave-rpg", "workers": 2}),
    "fista": Case(20_000, 400, 4.0, regularizer=ds.FusedLasso(0.01), options={"algorithm": "fista", "max_iter": 10**6}),
    "gram": Case(60_000, 1500, 8.0, options={"algorithm": "gram"}),
    "auto": Case(3000, 20_000, 8.0, loss=ds.Logistic(), regularizer=ds.L1(1e-4), options={}),
    "fit": Case(2000, 5000, 8.0),
    "fit-folds": Case(2000, 5000, 8.0),
    "compile": Case(500, 20, 8.0, options=STOCHASTIC | {"workers": 2}),
}


def data(case: Case) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((case.rows, case.columns))
    X += rng.standard_normal((case.rows, 1))  # columns that depend on each other, so that it takes a while
    y = X[:, :20].sum(axis=1) + rng.standard_normal(case.rows)
    return X, np.sign(y) if isinstance(case.loss, ds.Logistic) else y


def be_the_child(name: str, path: str, checkpoint: bool) -> None:
    case = CASES[name]
    X, y = data(case)
    problem = ds.Problem(X, y, loss=case.loss, regularizer=case.regularizer)
    print("ready", flush=True)
    ds.solve(problem, tol=0, seed=0, checkpoint=path if checkpoint else None, **case.options)
    print("over", flush=True)


def command(name: str, path: Path, checkpoint: bool, file: Path) -> list[str]:
    if not name.startswith("fit"):
        return [sys.executable, __file__, "--child", name, str(path), str(int(checkpoint))]
    call = "import os; os.write(1, b'ready\\n'); from dapsgd.cli import main; main()"
    kept = ["--checkpoint", str(path)] if checkpoint else []
    fixed = ["--alpha", "1e-3", "--tol", "0", "--max-passes", "1e9", *kept]
    folds = ["--penalty", "fused_lasso", "--cv", "5"]  # which keep no checkpoint
    options = fixed if name == "fit" else folds
    return [sys.executable, "-c", call, "fit", str(file), "--out", str(path.with_name("model.npz")), *options]


def cpu_seconds(process: int) -> float:
    """Return what a process has used so far: on a machine with other work the clock alone says little."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one(name: str, number: int, checkpoint: bool, wait: float, folder: Path, file: Path) -> tuple[float, float] | None:
    """Return the seconds from the signal to the end, by the clock and of the processors; None if the run was over before."""
    path, environment = folder / "run.ckpt", dict(os.environ)
    if name == "compile":
        (folder / "cache").mkdir()
        environment["NUMBA_CACHE_DIR"] = str(folder / "cache")
    words = command(name, path, checkpoint, file)
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "env": environment}
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(words, stderr=errors, **options) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready", "a process did not start"
        time.sleep(wait)
        if process.poll() is not None:
            return None
        there, sent = path.exists(), time.time()
        before = cpu_seconds(process.pid)
        process.send_signal(number)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.time() - sent, used.ru_utime + used.ru_stime - before
        if "over" in process.stdout.read():  # the signal came between the end of the run and that of its process
            return None
        errors.seek(0)
        said = errors.read()[-3000:]
    usual = {-number, 130} if name.startswith("fit") and number == signal.SIGINT else {-number}
    assert process.returncode in usual, f"{name}: exit code {process.returncode} after signal {number}: {said}"
    if there:
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None, f"{name}: the checkpoint is not whole"
        assert path.stat().st_mtime > sent - 0.02, f"{name}: the checkpoint is of before the signal"
    left = [f.name for f in folder.iterdir() if f.name not in ("run.ckpt", "cache")]
    assert there or number == signal.SIGTERM or not left, f"{name}: files are left: {left}"
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--limit", type=float, default=1.0, help="seconds from a signal to the end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--child", nargs=3, metavar=("CASE", "PATH", "CHECKPOINT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, path, checkpoint = options.child
        be_the_child(name, path, bool(int(checkpoint)))
        return
    rng, slow = random.Random(options.seed), []
    with tempfile.TemporaryDirectory() as shared:
        file = Path(shared) / "data.npz"
        X, y = data(CASES["fit"])
        np.savez(file, X=X, y=y)
        for name in options.cases:
            took = []
            for k in range(options.times):
                number = (signal.SIGINT, signal.SIGTERM)[k % 2]
                with tempfile.TemporaryDirectory() as folder:
                    wait = rng.uniform(0.0, CASES[name].span)
                    seconds = one(name, number, k % 4 < 2, wait, Path(folder), file)
                took += [] if seconds is None else [seconds]
            if not took:
                raise SystemExit(f"{name}: over before any signal")
            clock, used = np.array(took).T
            numbers = f"median {np.median(clock):.2f} s, longest {clock.max():.2f} s; of the processors {used.max():.2f} s"
            print(f"{name}: {len(took)} of {options.times} while it ran; {numbers} at the most", flush=True)
            slow += [name] if clock.max() > options.limit else []
    if slow:
        raise SystemExit(f"longer than {options.limit:g} s: {', '.join(slow)}")


if __name__ == "__main__":
    main()
