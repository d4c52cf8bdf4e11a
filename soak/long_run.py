"""One long run with four workers a core: throughput and memory must stay as they are.

    python soak/long_run.py --minutes 60

Machines change their speed within an hour, shared ones by a quarter. So in the first sixth and in the last a new process that
does the same, the control, takes turns with the long run, and what is compared is the ratio of the two.

Ends with exit code 1 if that ratio is more than a tenth off in the last sixth, or if memory grew by more than a hundredth
after the first sixth.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dapsgd as ds
from dapsgd._team import available_cores

TURN = 15.0  # seconds


def memory() -> int:
    """Return the bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def run(board: Path) -> None:
    """Run until somebody says stop; write updates and memory to a board that others read."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 200))
    problem = ds.Problem(X, X @ rng.standard_normal(200), regularizer=ds.GroupLasso(0.01, 10), l2=0.01)
    options: dict[str, Any] = {"workers": 4 * available_cores(), "step": ds.Constant(1e-5), "tol": 0}
    ds.solve(problem, "dap-sgd", max_iter=10_000, **options)  # compile
    seen = np.memmap(board, np.int64, "r+", shape=3)

    def look(checkup: ds.Checkup) -> bool:
        seen[:2] = checkup.iteration, memory()
        return bool(seen[2])

    result = ds.solve(
        problem,
        "dap-sgd",
        max_iter=1 << 60,
        record_every=200_000,
        callbacks=[look],
        checkpoint=board.with_suffix(".ckpt"),
        **options,
    )
    assert result.delays.sum() == result.iterations, "an update is lost or counted twice"


class Runner:
    """A process that runs, and stands still when it is not its turn."""

    def __init__(self, board: Path) -> None:
        np.zeros(3, np.int64).tofile(board)
        self.board = np.memmap(board, np.int64, "r+", shape=3)
        self._process = subprocess.Popen([sys.executable, __file__, "--run", str(board)])
        while self.board[0] == 0:  # it compiles
            self.check()
            time.sleep(0.1)
        self.pause()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def turn(self, seconds: float) -> float:
        """Let it run for some time; return its updates per second."""
        self.check()
        began, before = time.perf_counter(), int(self.board[0])
        self._process.send_signal(signal.SIGCONT)
        time.sleep(seconds)
        self.pause()
        return (int(self.board[0]) - before) / (time.perf_counter() - began)

    def check(self) -> None:
        if self._process.poll() is not None:
            sys.exit(f"the run ended by itself, with status {self._process.returncode}")

    def end(self) -> None:
        """Let it come to its own end, and say whether all went well."""
        self.board[2] = 1
        self._process.send_signal(signal.SIGCONT)
        if self._process.wait() != 0:
            sys.exit("a run failed")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def runner(board: Path) -> Iterator[Runner]:
    one = Runner(board)
    try:
        yield one
    finally:
        one.kill()


class Compared(NamedTuple):
    """Updates per second in a sixth."""

    long: float
    control: float

    @property
    def ratio(self) -> float:
        return self.long / self.control


def compare(long: Runner, board: Path, seconds: float) -> Compared:
    """Let the long run and a new process take turns; return the medians."""
    turns = max(1, round(seconds / (2.0 * TURN)))
    with runner(board) as control:
        rates = [[one.turn(seconds / (2 * turns)) for one in (long, control)] for _ in range(turns)]
        control.end()
    if min(min(pair) for pair in rates) == 0.0:
        sys.exit("too few updates to say anything about throughput: run it for longer, or on a machine that is free")
    ratio = float(np.median([a / b for a, b in rates]))
    speed = float(np.median([b for _, b in rates]))
    return Compared(ratio * speed, speed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        run(options.run)
        return
    sixth = 10.0 * options.minutes
    with tempfile.TemporaryDirectory() as folder, runner(Path(folder, "long")) as long:
        first = compare(long, Path(folder, "first"), sixth)
        held = int(long.board[1])
        print(f"first sixth: {first.long:.0f} updates/s, control {first.control:.0f}; {held / 2**20:.1f} MiB", flush=True)
        for part in range(4):
            rate = long.turn(sixth)
            print(f"sixth {part + 2}: {rate:.0f} updates/s; {long.board[1] / 2**20:.1f} MiB", flush=True)
        last = compare(long, Path(folder, "last"), sixth)
        change, growth = last.ratio / first.ratio - 1.0, int(long.board[1]) / held - 1.0
        updates = int(long.board[0])
        long.end()
    print(
        f"last sixth: {last.long:.0f} updates/s, control {last.control:.0f}\n"
        f"{4 * available_cores()} workers, {updates} updates in {options.minutes:g} min: "
        f"throughput {change:+.1%} beside the control, memory {growth:+.2%} since the first sixth"
    )
    if abs(change) > 0.1 or growth > 0.01:
        sys.exit(1)


if __name__ == "__main__":
    main()
