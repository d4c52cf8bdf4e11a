"""Real data instead of drawn: the digits that come with scikit-learn, or a file of one's own."""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DapsgdError
from ..plots import COLOURS, pyplot
from ..problem import Problem
from ..regularizers import FusedLasso, NuclearNorm
from ..solve import solve
from ..steps import InverseTime
from ._tasks import Claim, Numbers, Part, Settings, Task
from .figure1 import ALGORITHMS

__all__ = ["REAL", "load_data"]

Get = Callable[[str], Numbers]


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


def tasks(settings: Settings) -> list[Task]:
    return [Task("real", functools.partial(_real, settings), 4.0 if settings.quick else 12.0)]


def claims(settings: Settings, get: Get) -> list[Claim]:
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


def draw(settings: Settings, get: Get) -> dict[str, tuple[Any, str]]:
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


REAL = Part("real", "Real data", tasks, claims, draw)
