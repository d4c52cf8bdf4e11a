"""The demo: the paper's fused-lasso and nuclear-norm objectives, TAP-SGD against DAP-SGD, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._team import available_cores
from .experiments.cases import fused_lasso, nuclear_norm
from .result import Result
from .solve import solve

__all__ = ["Row", "picture", "run", "table"]

Array = np.ndarray[Any, Any]

ALGORITHMS = ("tap-sgd", "dap-sgd")


class Row(NamedTuple):
    """One line of the table: the medians over the repetitions, and the run behind the picture."""

    case: str
    algorithm: str
    workers: int
    seconds: float
    speed: float  # iterations per second
    distance: float  # to x*, relative to its norm
    result: Result


def run(
    *,
    workers: int | None = None,
    seed: int = 0,
    repeats: int = 1,
    share: float = 1.0,
    say: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """Run both algorithms on both objectives.

    Parameters
    ----------
    workers : int, optional
        All cores by default.
    seed : int
        Of the data; the repetitions' streams are seeded from it.
    repeats : int
        Runs of each, interleaved.
    share : float
        The share of the paper's iterations to run.
    say : callable
        Gets a line now and then about what is going on.
    """
    workers = available_cores() if workers is None else workers
    rows = []
    for make, most in ((fused_lasso, 10_000), (nuclear_norm, 10_000)):
        case = make(seed)
        say(f"{case.title}: computing x* with fista, and compiling if this is the first time")
        best = solve(case.problem, "fista", tol=1e-11)
        length = max(100, int(min(case.iterations, most) * share))
        runs: dict[str, list[Result]] = {name: [] for name in ALGORITHMS}
        for repeat in range(repeats):
            for name in ALGORITHMS:
                say(f"{case.title}: {name} with {workers} workers, run {repeat + 1} of {repeats}")
                options: dict[str, Any] = {"workers": workers, "step": case.step, "tol": 0.0, "seed": seed + repeat}
                runs[name].append(
                    solve(case.problem, name, max_iter=length, x_star=best.x, record_every=length // 50, **options)
                )
        size = float(np.linalg.norm(best.x))
        for name in ALGORITHMS:
            ordered = sorted(runs[name], key=lambda result: result.seconds)
            middle = ordered[len(ordered) // 2]
            distance = float(np.median([result.trace.distance[-1] for result in ordered])) / size
            rows.append(Row(case.title, name, workers, middle.seconds, length / middle.seconds, distance, middle))
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as text, with DAP's gain over TAP."""
    lines = [f"{'objective':<24} {'algorithm':<10} {'workers':>7} {'seconds':>8} {'iterations/s':>13} {'|x - x*| / |x*|':>16}"]
    for row in rows:
        lines.append(
            f"{row.case:<24} {row.algorithm:<10} {row.workers:>7} {row.seconds:>8.3f} {row.speed:>13,.0f} {row.distance:>16.2e}"
        )
    for tap, dap in zip(rows[::2], rows[1::2], strict=True):
        lines.append(f"{dap.case}: DAP-SGD makes {dap.speed / tap.speed:.2f} times as many iterations per second as TAP-SGD")
    return "\n".join(lines)


def picture(rows: list[Row]) -> Any:
    """Draw the distance to x* against time and against iterations: the paper's Figure 1 for these two objectives."""
    from .plots import COLOURS, pyplot

    figure = pyplot().figure(figsize=(9.0, 6.0), layout="constrained")
    axes = figure.subplots(2, 2, sharey="col")
    for row in rows:
        column = [other.case for other in rows[::2]].index(row.case)
        short = row.algorithm.partition("-")[0]
        style = {"color": COLOURS[short], "linestyle": "--" if short == "tap" else "-", "linewidth": 1.8}
        trace = row.result.trace
        for line, clock in enumerate((trace.seconds, trace.iteration)):
            axes[line, column].plot(clock, trace.distance**2, label=row.algorithm.upper(), **style)
    for line, label in enumerate(("seconds", "iterations")):
        for column, row in enumerate(rows[::2]):
            ax = axes[line, column]
            ax.set_yscale("log")
            ax.set_xlabel(label)
            ax.grid(True, color="#dddddd", linewidth=0.6)
            ax.spines[["top", "right"]].set_visible(False)
            if line == 0:
                ax.set_title(row.case, fontsize=11)
                ax.legend(frameon=False)
            if column == 0:
                ax.set_ylabel(r"$\|x - x^\star\|^2$")
    workers = rows[0].workers
    figure.suptitle(f"TAP-SGD and DAP-SGD with {workers} worker{'s' * (workers != 1)}", fontsize=12)
    return figure
