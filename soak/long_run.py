"""One long run with four workers a core: throughput and memory must stay as they are.

    python soak/long_run.py --minutes 60

Ends with exit code 1 if the throughput of the last sixth differs by more than a tenth from that of the first, or if memory
grew by more than a hundredth after the first sixth. Throughput says something on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dapsgd as ds
from dapsgd.runtimes._plan import available_cores


def memory() -> int:
    """Return the bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 200))
    problem = ds.Problem(X, X @ rng.standard_normal(200), regularizer=ds.GroupLasso(0.01, 10), l2=0.01)
    workers, seconds = 4 * available_cores(), 60.0 * options.minutes
    seen: list[tuple[float, int, int]] = []

    def look(checkup: ds.Checkup) -> bool:
        now = time.perf_counter() - began
        if not seen or now - seen[-1][0] >= seconds / 60.0 or now >= seconds:
            seen.append((now, checkup.iteration, memory()))
            print(f"{now:8.1f} s  {checkup.iteration:12d} updates  {seen[-1][2] / 2**20:8.1f} MiB", flush=True)
        return now >= seconds

    step = ds.Constant(1e-5)
    ds.solve(problem, "dap-sgd", workers=workers, step=step, max_iter=10_000, tol=0)  # compile
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "run.ckpt"
        run = ds.solve(
            problem,
            "dap-sgd",
            workers=workers,
            step=step,
            max_iter=1 << 60,
            record_every=500_000,
            tol=0,
            callbacks=[look],
            checkpoint=checkpoint,
        )
    assert run.delays.sum() == run.iterations, "an update is lost or counted twice"
    at, updates, held = (np.array(column, float) for column in zip(*seen, strict=True))
    sixth = at[-1] / 6.0
    first, last = at <= sixth, at >= at[-1] - sixth
    rates = [float(np.ptp(updates[part]) / np.ptp(at[part])) for part in (first, last)]
    growth = float(held[-1] / held[first][-1] - 1.0)
    print(
        f"{workers} workers, {run.iterations} updates in {at[-1] / 60.0:.1f} min: {rates[0]:.0f} updates/s in the first sixth, "
        f"{rates[1]:.0f} in the last ({rates[1] / rates[0] - 1.0:+.1%}); memory {growth:+.2%} since the first sixth"
    )
    if abs(rates[1] / rates[0] - 1.0) > 0.1 or growth > 0.01:
        sys.exit(1)


if __name__ == "__main__":
    main()
