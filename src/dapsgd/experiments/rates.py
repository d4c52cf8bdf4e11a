"""The theorems' rates, measured: how the error falls with T under delays, beside the bounds that are proved for it.

The problem is small, so that millions of iterations are run in seconds, and perfectly conditioned, because the theorems'
steps are short: they start at 1/u with u some 4 C1 tau / mu, and nothing can be seen before T is about u/mu. Delays are the
worst that are allowed: every update is max_delay iterations late.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import theory
from ..plots import COLOURS, pyplot
from ..problem import Problem
from ..regularizers import FusedLasso
from ..runtimes import Fixed, Simulated
from ..solve import solve
from ._tasks import Claim, Numbers, Part, Settings, Task

__all__ = ["RATES", "small_problem"]

Get = Callable[[str], Numbers]

DECADES = 2.0
POINTS = 100
MARKERS = {1: "o", 4: "s", 16: "^"}


def taus(settings: Settings) -> tuple[int, ...]:
    """Return the delays that are looked at."""
    return (1, 4) if settings.quick else (1, 4, 16)


def seeds(settings: Settings) -> int:
    """Return how many runs are averaged."""
    return max(settings.seeds, 5)


@functools.cache
def small_problem() -> tuple[Problem, Any]:
    """Make a fused lasso with 20 coefficients in four steps, orthogonal columns, and its optimum."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((1000, 20)))[0] * np.sqrt(1000.0)
    y = X @ np.repeat([1.0, 0.0, 2.0, 0.0], 5) + rng.standard_normal(1000)
    problem = Problem(X, y, regularizer=FusedLasso(0.2), l2=1.0)
    return problem, solve(problem, "fista", tol=1e-13).x


def _run(problem: Problem, tau: int, seed: int, best: Any, **options: Any) -> Any:
    runtime = Simulated(work=1e-6, apply=1e-7, delays=Fixed(tau))
    return solve(
        problem, "dap-sgd", runtime=runtime, workers=tau + 1, max_delay=tau, tol=0.0, seed=seed, x_star=best, **options
    )


def _theorem1(tau: int, settings: Settings) -> Numbers:
    problem, best = small_problem()
    constants = theory.constants(problem, max_delay=tau, x_star=best)
    step = constants.theorem1()
    first = int(step.u / step.mu)
    length = int(first * 10.0**DECADES)
    squares = []
    for seed in range(seeds(settings)):
        result = _run(problem, tau, seed, best, step=step, max_iter=length, record_every=first)
        squares.append(result.trace.distance**2)
        T = result.trace.iteration
    kept = _spaced(T[1:], POINTS) + 1
    bound = constants.bound1(T[kept], float(np.linalg.norm(best)))
    return {"T": T[kept], "squared": np.asarray(squares)[:, kept], "bound": bound, "u": step.u, "mu": step.mu}


def _theorem2(tau: int, settings: Settings) -> Numbers:
    problem, best = small_problem()
    constants = theory.constants(problem, max_delay=tau, x_star=best)
    first = int(4.0 * constants.C4 * tau / constants.mu**2)  # mu * eta * T is 1 there
    lengths = np.unique((first * 10.0 ** np.linspace(0.0, DECADES, 7)).astype(int))
    v = constants.smallest_v(first)
    squares = [
        [
            float(
                _run(
                    problem,
                    tau,
                    seed,
                    best,
                    step=constants.theorem2(int(length), v),
                    max_iter=int(length),
                    average=True,
                    record_every=int(length),
                ).trace.distance[-1]
                ** 2
            )
            for length in lengths
        ]
        for seed in range(settings.seeds)
    ]
    return {"T": lengths, "squared": squares, "bound": constants.bound2(lengths, float(np.linalg.norm(best)), v), "v": v}


def _spaced(T: Any, count: int) -> Any:
    """Pick about so many places, evenly spaced in the logarithm of T."""
    wanted = np.geomspace(T[0], T[-1], count)
    return np.unique(np.abs(np.log(T[:, None] / wanted[None])).argmin(axis=0))


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each theorem and delay."""
    result = []
    for tau in taus(settings):
        cost = 0.3 + {1: 0.3, 4: 2.0, 16: 30.0}[tau]
        result.append(Task(f"rates theorem1 tau={tau}", functools.partial(_theorem1, tau, settings), cost))
        result.append(Task(f"rates theorem2 tau={tau}", functools.partial(_theorem2, tau, settings), cost))
    return result


def slope(numbers: Numbers) -> float:
    """Fit the slope of the logarithm of the mean squared error against that of T, each stretch of T counting alike."""
    mean = np.asarray(numbers["squared"]).mean(axis=0)
    return float(np.polyfit(np.log(numbers["T"]), np.log(mean), 1)[0])


def claims(settings: Settings, get: Get) -> list[Claim]:
    """Check slopes and bounds."""
    result = []
    for theorem, rate, most in ((1, "O(log T / T)", -0.9), (2, "O(1 / sqrt T), for the average", -0.45)):
        for tau in taus(settings):
            numbers = get(f"rates theorem{theorem} tau={tau}")
            fitted = slope(numbers)
            ratio = np.asarray(numbers["bound"]) / np.asarray(numbers["squared"]).mean(axis=0)
            result.append(
                Claim(
                    f"Theorem {theorem}, tau = {tau}",
                    f"the squared error is {rate}",
                    f"slope {fitted:.2f} over T = {numbers['T'][0]:,} to {numbers['T'][-1]:,} (at most {most:g} is asked for); "
                    f"the bound lies {ratio.min():.3g} to {ratio.max():.3g} times above the curve",
                    fitted <= most and bool((ratio >= 1.0).all()),
                )
            )
    return result


def draw(settings: Settings, get: Get) -> dict[str, tuple[Any, str]]:
    """Draw the errors and their bounds."""
    figure = pyplot().figure(figsize=(10.5, 4.8), layout="constrained")
    colours = dict(zip((1, 4, 16), (COLOURS["dap"], COLOURS["tap"], COLOURS["other"]), strict=True))
    for ax, theorem in zip(figure.subplots(1, 2), (1, 2), strict=True):
        for tau in taus(settings):
            numbers = get(f"rates theorem{theorem} tau={tau}")
            mean = np.asarray(numbers["squared"]).mean(axis=0)
            style = {"color": colours[tau], "marker": MARKERS[tau], "markersize": 4, "markevery": max(1, len(mean) // 8)}
            ax.plot(numbers["T"], mean, label=rf"$\tau = {tau}$, measured", **style)
            ax.plot(numbers["T"], numbers["bound"], linestyle="--", label=rf"$\tau = {tau}$, bound", **style)
        first, last = numbers["T"][0], numbers["T"][-1]
        guide = np.array([first, last], dtype=np.float64)
        power, name = (-1.0, "1/T") if theorem == 1 else (-0.5, r"1/\sqrt{T}")
        ax.plot(guide, 2.0 * mean[0] * (guide / first) ** power, color="#999999", linestyle=":", label=rf"slope of ${name}$")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("T, iterations")
        ax.set_title(f"Theorem {theorem}", fontsize=11)
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_ylabel(r"$E\|x_T - x^\star\|^2$" if theorem == 1 else r"$E\|\bar{x}_T - x^\star\|^2$")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    others, more = figure.axes[1].get_legend_handles_labels()
    figure.legend([*handles, others[-1]], [*labels, more[-1]], loc="outside lower center", ncols=4, frameon=False)
    caption = (
        "The rates. Left: the last iterate with Theorem 1's step. Right: the average with Theorem 2's, one run for each T. "
        f"Means over {seeds(settings)} and {settings.seeds} runs of a fused lasso with 20 coefficients, every update exactly "
        r"max_delay = tau iterations late; dashed: what the theorems promise."
    )
    return {"rates": (figure, caption)}


RATES = Part("rates", "The rates of both theorems", tasks, claims, draw)
