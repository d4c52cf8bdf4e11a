"""The paper's Figure 1: the squared distance to x* against time and against iterations, TAP-SGD and DAP-SGD."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..plots import COLOURS, pyplot
from ..solve import solve
from ._tasks import Claim, Numbers, Part, Settings, Task, median
from .cases import CASES, Case

__all__ = ["FIGURE1"]

ALGORITHMS = ("tap-sgd", "dap-sgd")
POINTS = 60
SECONDS = {"l1": 4.0, "group-lasso": 5.0, "fused-lasso": 5.0, "nuclear-norm": 16.0}
QUICK = {"l1": 1, "group-lasso": 10, "fused-lasso": 2, "nuclear-norm": 10}  # by this a quick run is shorter

Get = Callable[[str], Numbers]


@functools.lru_cache(maxsize=1)
def _case(name: str, seed: int) -> tuple[Case, Any]:
    """Make a case and its optimum, to a residual that does not limit the plot; the last one is kept."""
    case = CASES[name](seed)
    return case, solve(case.problem, "fista", tol=1e-12, max_iter=5000)


def _run(name: str, seed: int, settings: Settings) -> Numbers:
    case, best = _case(name, seed)
    length = case.iterations // (QUICK[name] if settings.quick else 1)
    numbers: Numbers = {"title": case.title, "data": case.data, "optimum residual": best.residual, "length": length}
    for algorithm in ALGORITHMS:
        result = solve(
            case.problem,
            algorithm,
            workers=settings.workers,
            step=case.step,
            max_iter=length,
            x_star=best.x,
            record_every=max(1, length // POINTS),
            tol=0.0,
            seed=seed,
        )
        trace = result.trace
        numbers[algorithm] = {"seconds": trace.seconds, "iteration": trace.iteration, "distance": trace.distance}
    return numbers


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each objective and seed."""
    share = 0.5 if settings.quick else 1.0
    return [
        Task(f"figure1 {name} seed={seed}", functools.partial(_run, name, seed, settings), share * SECONDS[name])
        for seed in range(settings.seeds)
        for name in CASES
    ]


def seconds_to(curve: Numbers, distance: float, clock: str = "seconds") -> float:
    """Return when a curve first comes as close as ``distance``, between two points in proportion to the logarithm."""
    gaps, times = np.log(np.maximum(curve["distance"], 1e-300)), np.asarray(curve[clock], dtype=np.float64)
    below = np.flatnonzero(gaps <= np.log(distance))
    if below.size == 0:
        return float("inf")
    k = int(below[0])
    if k == 0:
        return float(times[0])
    share = (gaps[k - 1] - np.log(distance)) / (gaps[k - 1] - gaps[k])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


def common_distance(numbers: Numbers) -> float:
    """Return a distance that both algorithms reach: nine tenths of the way, in the logarithm, to where both have been.

    At the very end of the way noise decides who is first.
    """
    start = numbers[ALGORITHMS[0]]["distance"][0]
    reached = max(min(numbers[algorithm]["distance"]) for algorithm in ALGORITHMS)
    return float(start * (reached / start) ** 0.9)


def gains(settings: Settings, get: Get, name: str) -> list[float]:
    """Return TAP's time to the same distance over DAP's, for each seed."""
    result = []
    for seed in range(settings.seeds):
        numbers = get(f"figure1 {name} seed={seed}")
        target = common_distance(numbers)
        tap, dap = (seconds_to(numbers[algorithm], target) for algorithm in ALGORITHMS)
        result.append(tap / dap)
    return result


def spread(settings: Settings, get: Get, name: str) -> tuple[float, float]:
    """Return how far the two algorithms' curves are apart per iteration, and how far one algorithm's are over seeds.

    Both are root mean squares of differences in the logarithm of the distance relative to that at the start.
    """
    curves = {
        algorithm: np.log(
            [
                np.asarray(get(f"figure1 {name} seed={seed}")[algorithm]["distance"])
                / get(f"figure1 {name} seed={seed}")[algorithm]["distance"][0]
                for seed in range(settings.seeds)
            ]
        )
        for algorithm in ALGORITHMS
    }
    between = curves["dap-sgd"].mean(axis=0) - curves["tap-sgd"].mean(axis=0)
    within = np.concatenate([curve - curve.mean(axis=0) for curve in curves.values()])
    within = within * np.sqrt(settings.seeds / max(settings.seeds - 1, 1))
    return float(np.sqrt((between**2).mean())), float(np.sqrt((within**2).mean()))


def claims(settings: Settings, get: Get) -> list[Claim]:
    """Check claims (a), (b) and (c)."""
    l1 = median(gains(settings, get, "l1"))
    result = [
        Claim(
            "(a) L1, time to the same distance",
            "DAP-SGD is slightly slower than TAP-SGD, whose prox is parallelised over coordinates",
            f"DAP takes {1.0 / l1:.2f} times TAP's time: {'faster' if l1 > 1.0 else 'slower'} (0.5 to 2 is asked for)",
            0.5 <= l1 <= 2.0,
        )
    ]
    for name, least in (("group-lasso", 1.05), ("fused-lasso", 1.5), ("nuclear-norm", 1.5)):
        gain = median(gains(settings, get, name))
        title = get(f"figure1 {name} seed=0")["title"]
        result.append(
            Claim(
                f"(b) {title}, time to the same distance",
                "DAP-SGD is much faster than TAP-SGD",
                f"{gain:.2f} times as fast with {settings.workers} workers; at least {least:g} is asked for",
                gain >= least,
            )
        )
    for name in CASES:
        between, within = spread(settings, get, name)
        title = get(f"figure1 {name} seed=0")["title"]
        result.append(
            Claim(
                f"(c) {title}, per iteration",
                "the two curves are alike",
                f"they differ by {100 * between:.2f}% of the distance, seeds by {100 * within:.2f}%",
                between < within,
            )
        )
    return result


def draw(settings: Settings, get: Get) -> dict[str, tuple[Any, str]]:
    """Draw the figure: a column an objective; time above, iterations below."""
    figure = pyplot().figure(figsize=(12.0, 5.6), layout="constrained")
    axes = figure.subplots(2, len(CASES), sharey="col")
    for column, name in enumerate(CASES):
        for line, (clock, label) in enumerate((("seconds", "seconds"), ("iteration", "iterations"))):
            ax = axes[line, column]
            for algorithm in ALGORITHMS:
                short = algorithm.partition("-")[0]
                for seed in range(settings.seeds):
                    curve = get(f"figure1 {name} seed={seed}")[algorithm]
                    ax.plot(
                        curve[clock],
                        np.asarray(curve["distance"]) ** 2,
                        color=COLOURS[short],
                        linestyle="--" if short == "tap" else "-",
                        linewidth=1.6 if seed == 0 else 0.7,
                        alpha=1.0 if seed == 0 else 0.5,
                        label=algorithm.upper() if seed == 0 else None,
                    )
            ax.set_yscale("log")
            ax.set_xlabel(label)
            ax.grid(True, color="#dddddd", linewidth=0.6)
            ax.spines[["top", "right"]].set_visible(False)
            ax.ticklabel_format(axis="x", style="sci", scilimits=(-2, 4))
            if line == 0:
                ax.set_title(get(f"figure1 {name} seed=0")["title"], fontsize=11)
            if column == 0:
                ax.set_ylabel(r"$\|x - x^\star\|^2$")
    axes[0, 0].legend(frameon=False)
    drawn = "; ".join(f"{get(f'figure1 {name} seed=0')['title']}: {get(f'figure1 {name} seed=0')['data']}" for name in CASES)
    caption = (
        f"Figure 1 of the paper, made anew with {settings.workers} workers: squared distance to the optimum against time and "
        f"against iterations. Thick: seed 0; thin: {settings.seeds - 1} other seeds (data and runs). The data: {drawn}."
    )
    return {"figure1": (figure, caption)}


FIGURE1 = Part("figure1", "Figure 1: convergence", tasks, claims, draw)
