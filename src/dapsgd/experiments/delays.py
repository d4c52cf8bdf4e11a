"""Beyond the paper: how large a delay may be, what delay-adaptive steps do about it, and real data instead of drawn."""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DapsgdError, DivergenceError
from ..plots import COLOURS, pyplot
from ..problem import Problem
from ..regularizers import NuclearNorm
from ..runtimes import Exponential, Fixed, Simulated, Straggler
from ..solve import solve
from ..steps import Constant, DelayAdaptive, InverseTime
from ._tasks import Claim, Numbers, Part, Settings, Task
from .figure1 import seconds_to
from .rates import small_problem

__all__ = ["DELAYS", "REAL", "load_data"]

Get = Callable[[str], Numbers]

TAUS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
ITERATIONS = 20_000
BROKEN = 1e3  # times the distance at the start
RULES = {"fixed": "fixed step", "adaptive": "delay-adaptive step"}
ALGORITHMS = ("tap-sgd", "dap-sgd")


def _rule(kind: str, eta: float) -> Any:
    return Constant(eta) if kind == "fixed" else DelayAdaptive(Constant(eta))


def _sweep(settings: Settings) -> Numbers:
    """Run a fixed and a delay-adaptive step under longer and longer delays."""
    problem, best = small_problem()
    eta = 0.02 / problem.lipschitz()
    numbers: Numbers = {"tau": list(TAUS), "eta": eta, "start": float(np.linalg.norm(best))}
    for kind in RULES:
        finals = []
        for tau in TAUS:
            runs = []
            for seed in range(settings.seeds):
                try:
                    result = solve(
                        problem,
                        "dap-sgd",
                        runtime=Simulated(work=1e-6, apply=1e-7, delays=Fixed(tau)),
                        workers=8,
                        max_delay=tau,
                        step=_rule(kind, eta),
                        max_iter=ITERATIONS,
                        tol=0.0,
                        seed=seed,
                        x_star=best,
                        record_every=ITERATIONS // 20,
                    )
                    runs.append(float(result.trace.distance[-5:].mean()))
                except DivergenceError:
                    runs.append(BROKEN * numbers["start"])
            finals.append(min(float(np.median(runs)), BROKEN * numbers["start"]))
        numbers[kind] = finals
    return numbers


def _straggler(settings: Settings) -> Numbers:
    """Run eight workers, one of which is a hundred times slower: a fixed step must be short enough for its delays."""
    problem, best = small_problem()
    long, longest = 0.02 / problem.lipschitz(), 0
    numbers: Numbers = {}
    for kind in ("adaptive", "fixed"):  # the first tells which delays the second has to expect
        eta = long if kind == "adaptive" else min(long, 0.5 / (problem.lipschitz() * (1 + longest)))
        result = solve(
            problem,
            "dap-sgd",
            runtime=Simulated(work=Straggler(Exponential(20e-6), 100.0), apply=0.5e-6),
            workers=8,
            max_delay=5000,
            batch_size=256,  # little noise, so that the step decides
            step=_rule(kind, eta),
            max_iter=ITERATIONS,
            tol=0.0,
            seed=0,
            x_star=best,
            record_every=ITERATIONS // 1000,
        )
        longest = int(np.flatnonzero(result.delays)[-1])
        numbers[kind] = {"seconds": result.trace.seconds, "distance": result.trace.distance, "eta": eta}
        numbers["longest"] = longest
    return numbers


def tasks(settings: Settings) -> list[Task]:
    """Return the two tasks."""
    return [
        Task("delays sweep", functools.partial(_sweep, settings), 3.0),
        Task("delays straggler", functools.partial(_straggler, settings), 1.0),
    ]


def breaking_point(numbers: Numbers, kind: str) -> int | None:
    """Return the smallest delay at which a run ends further away than it began, None if there is none."""
    bad = [tau for tau, final in zip(numbers["tau"], numbers[kind], strict=True) if not final < numbers["start"]]
    return min(bad) if bad else None


def claims(settings: Settings, get: Get) -> list[Claim]:
    """Report where delays break a fixed step, and check that adaptive steps survive."""
    numbers, late = get("delays sweep"), get("delays straggler")
    fixed, adaptive = breaking_point(numbers, "fixed"), breaking_point(numbers, "adaptive")
    times = {kind: 1e3 * seconds_to(late[kind], 0.5 * numbers["start"]) for kind in RULES}
    return [
        Claim(
            "delays, a fixed step",
            "the delay must be bounded, and the step short for it",
            f"with a step of 0.02/L it breaks at a delay of {fixed}" if fixed else f"no delay up to {TAUS[-1]} breaks it",
            None,
        ),
        Claim(
            "delays, a delay-adaptive step",
            "(not in the paper)",
            f"it breaks at a delay of {adaptive}" if adaptive else f"it survives every delay up to {TAUS[-1]}",
            adaptive is None,
        ),
        Claim(
            "one straggler among 8 workers",
            "(not in the paper)",
            f"delays up to {late['longest']}; half way to the optimum after {times['fixed']:.3g} ms with a fixed step that is "
            f"safe for them, {times['adaptive']:.3g} ms with the delay-adaptive one (one seed; the short step ends closer)",
            times["adaptive"] < times["fixed"],
        ),
    ]


def draw(settings: Settings, get: Get) -> dict[str, tuple[Any, str]]:
    """Draw the final distance against the delay, and the straggler's runs against time."""
    numbers, late = get("delays sweep"), get("delays straggler")
    figure = pyplot().figure(figsize=(10.5, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for kind, colour, line, marker in (("fixed", "tap", "--", "s"), ("adaptive", "dap", "-", "o")):
        style = {"color": COLOURS[colour], "linestyle": line, "label": RULES[kind]}
        left.plot(numbers["tau"], numbers[kind], marker=marker, markersize=5, **style)
        right.plot(np.asarray(late[kind]["seconds"]) * 1e3, late[kind]["distance"], **style)
    left.axhline(numbers["start"], color="#999999", linewidth=0.8)
    left.annotate(
        "where it starts", (numbers["tau"][0], numbers["start"]), xytext=(2, 4), textcoords="offset points", fontsize=8
    )
    left.set_xscale("symlog", base=2, linthresh=1)
    left.set_xlim(0, TAUS[-1] * 1.1)
    left.set_xlabel("delay of every update")
    left.set_ylabel(r"$\|x - x^\star\|$ after 20,000 iterations")
    right.set_xlabel("simulated milliseconds")
    right.set_ylabel(r"$\|x - x^\star\|$")
    for ax in (left, right):
        ax.set_yscale("log")
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    caption = (
        "Delays. Left: how far DAP-SGD gets if every update is late by as much, with a fixed step of 0.02/L and with one that "
        "is cut so that the steps in flight stay within 1/L; a run that diverges is drawn at 1,000 times the start. Right: "
        f"eight workers, one of them a hundred times slower (delays up to {late['longest']}), simulated; the fixed "
        "step is half of 1/L divided by the longest delay."
    )
    return {"delays": (figure, caption)}


def load_data(path: str) -> tuple[Any, Any]:
    """Read X and y from a .npz file."""
    if not Path(path).is_file():
        raise DapsgdError(f"there is no file {path}")
    try:
        with np.load(path, allow_pickle=False) as stored:
            X, y = np.asarray(stored["X"], dtype=np.float64), np.asarray(stored["y"], dtype=np.float64)
    except (OSError, KeyError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):
        raise DapsgdError(f"cannot read X and y from {path}: it must be a .npz file with arrays of these names") from None
    if X.ndim != 2 or y.ndim not in (1, 2) or len(X) != len(y) or X.size == 0:
        raise DapsgdError(f"X and y in {path} must be rows x columns and as many targets; got {X.shape} and {y.shape}")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise DapsgdError(f"X and y in {path} must not contain NaN or infinity")
    return X, y


def _real_case(path: str) -> tuple[str, Problem]:
    """Load data from a file, or the digits that come with scikit-learn."""
    if not path:
        from sklearn.datasets import load_digits

        digits = load_digits()
        X, Y = digits.data / 16.0, np.eye(10)[digits.target]
        return "digits: 1,797 pictures, 64 x 10, nuclear norm", Problem(X, Y, regularizer=NuclearNorm(0.01), l2=0.001)
    from ..regularizers import FusedLasso

    X, y = load_data(path)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    y = (y - y.mean(axis=0)) / np.maximum(y.std(axis=0), 1e-12)
    regularizer: Any = FusedLasso if y.ndim == 1 else NuclearNorm
    strength = 0.05 * Problem(X, y, regularizer=regularizer(1.0)).lam_max()
    kind = "fused lasso" if y.ndim == 1 else "nuclear norm"
    return f"{Path(path).stem}: {X.shape[0]:,} x {X.shape[1]}, {kind}", Problem(
        X, y, regularizer=regularizer(strength), l2=1e-3
    )


def _real(settings: Settings) -> Numbers:
    title, problem = _real_case(settings.data)
    best = solve(problem, "fista", tol=1e-12, max_iter=20_000)
    length = 40_000 // (4 if settings.quick else 1)
    u = problem.lipschitz() + problem.row_lipschitz
    step = InverseTime(u, 9.0 * u / length)
    numbers: Numbers = {"title": title, "optimum residual": best.residual, "start": float(np.linalg.norm(best.x))}
    for algorithm in ALGORITHMS:
        result = solve(
            problem,
            algorithm,
            workers=settings.workers,
            step=step,
            max_iter=length,
            x_star=best.x,
            tol=0.0,
            seed=0,
            record_every=length // 50,
        )
        trace = result.trace
        numbers[algorithm] = {
            "seconds": trace.seconds,
            "iteration": trace.iteration,
            "gap": np.maximum(trace.objective - best.objective, 0.0) / best.objective,
        }
    return numbers


def _real_tasks(settings: Settings) -> list[Task]:
    return [Task("real", functools.partial(_real, settings), 4.0 if settings.quick else 12.0)]


def _real_claims(settings: Settings, get: Get) -> list[Claim]:
    numbers = get("real")
    speeds = [numbers[algorithm]["iteration"][-1] / numbers[algorithm]["seconds"][-1] for algorithm in ALGORITHMS]
    gaps = [numbers[algorithm]["gap"][-1] for algorithm in ALGORITHMS]
    return [
        Claim(
            f"real data, {numbers['title']}",
            "(random data in the paper)",
            f"DAP-SGD makes {speeds[1] / speeds[0]:.2f} times as many updates per second as TAP-SGD; the objective ends "
            f"{gaps[1]:.2e} above the optimum, relatively, TAP-SGD {gaps[0]:.2e}",
            speeds[1] > speeds[0],
        )
    ]


def _real_draw(settings: Settings, get: Get) -> dict[str, tuple[Any, str]]:
    numbers = get("real")
    figure = pyplot().figure(figsize=(10.5, 3.8), layout="constrained")
    for ax, (clock, label) in zip(
        figure.subplots(1, 2, sharey=True), (("seconds", "seconds"), ("iteration", "iterations")), strict=True
    ):
        for algorithm in ALGORITHMS:
            short = algorithm.partition("-")[0]
            curve = numbers[algorithm]
            line = "--" if short == "tap" else "-"
            ax.plot(curve[clock], curve["gap"], color=COLOURS[short], linestyle=line, label=algorithm.upper())
        ax.set_yscale("log")
        ax.set_xlabel(label)
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("objective above the optimum, relative")
    figure.axes[0].legend(frameon=False)
    caption = f"Real data: {numbers['title']}; {settings.workers} workers, the same step for both."
    return {"real": (figure, caption)}


DELAYS = Part("delays", "Delays", tasks, claims, draw)
REAL = Part("real", "Real data", _real_tasks, _real_claims, _real_draw)
