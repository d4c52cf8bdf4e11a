"""Pictures. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ._files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .estimators.cv import CrossValidated
    from .path import Path
    from .result import Result, Trace

__all__ = ["COLOURS", "plot_coef", "plot_cv", "plot_path", "plot_result", "plot_trace", "save"]

# Okabe and Ito's colours, told apart also by people who do not see red and green as different.
COLOURS = {"dap": "#0072B2", "tap": "#D55E00", "other": "#009E73", "ink": "#333333"}

_LABELS = {
    "seconds": "seconds",
    "iteration": "iterations",
    "passes": "passes over the data",
    "objective": "objective",
    "residual": "residual",
    "distance": r"distance to $x^\star$",
}
_LOGARITHMIC = ("residual", "distance")
_FEW_POINTS = 10  # of a trace, which are drawn as such
_FEW_COLUMNS = 40  # whose names can be read below an axis


def pyplot() -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'dapsgd[plot]'") from None
    return plt


def plot_trace(trace: Trace, *, y: str = "objective", x: str = "seconds", ax: Any = None, **kwargs: Any) -> Any:
    """Draw one column of a trace against another and return the axes."""
    from ._checks import known_name

    known_name("y", y, trace.columns())
    known_name("x", x, trace.columns())
    if ax is None:
        ax = pyplot().figure(figsize=(5.0, 3.4), layout="constrained").add_subplot()
    kwargs.setdefault("color", COLOURS["dap"])
    kwargs.setdefault("marker", "o" if len(trace) <= _FEW_POINTS else None)
    ax.plot(getattr(trace, x), getattr(trace, y), **kwargs)
    values = getattr(trace, y)
    if y in _LOGARITHMIC and (values[np.isfinite(values)] > 0.0).any():
        ax.set_yscale("log")
    ax.set_xlabel(_LABELS[x])
    ax.set_ylabel(_LABELS[y])
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_result(result: Result, path: Any = None) -> Figure:
    """Draw what was recorded of a run: a column a clock, a row a quantity, and the delays."""
    plt = pyplot()
    rows = ["objective"] + [name for name in ("residual", "distance") if np.isfinite(getattr(result.trace, name)).any()]
    delays = result.delays.sum() > 0 and len(result.delays) > 1
    clocks = ["seconds", "iteration", "passes"]
    figure = plt.figure(figsize=(11.0, 2.6 * (len(rows) + delays) + 0.4), layout="constrained")
    axes = figure.subplots(len(rows) + delays, len(clocks), squeeze=False)
    for line, quantity in zip(axes, rows, strict=False):
        for ax, clock in zip(line, clocks, strict=True):
            plot_trace(result.trace, y=quantity, x=clock, ax=ax)
    if delays:
        for ax in axes[-1, 1:]:
            ax.remove()
        ax = axes[-1, 0]
        ax.bar(np.arange(len(result.delays)), result.delays / result.delays.sum(), color=COLOURS["dap"])
        ax.set_xlabel("delay, in updates")
        ax.set_ylabel("share of updates")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(textwrap.fill(result.message, 130), fontsize=10, color=COLOURS["ink"])
    if path is not None:
        save(figure, path)
    return figure


def plot_path(found: Path, path: Any = None, chosen: float | None = None) -> Figure:
    """Draw every coefficient against the strength, a panel a target; mark the chosen strength, if there is one."""
    coefs = found.coefs if found.coefs.ndim == 3 else found.coefs[:, None]
    targets = coefs.shape[1]
    columns = min(targets, 3)
    lines = -(-targets // columns)
    figure = pyplot().figure(figsize=(5.0 * columns, 3.4 * lines), layout="constrained")
    for k, ax in enumerate(figure.subplots(lines, columns, squeeze=False).flat):
        if k >= targets:
            ax.remove()
            continue
        ever = coefs[:, k].any(axis=1)
        ax.plot(found.lams, coefs[ever, k].T, linewidth=1.0)
        if targets > 1:
            ax.set_title(f"target {k}", fontsize=10)
        ax.set_ylabel("coefficient")
        _dress_strengths(ax, found.lams, chosen)
        if chosen is not None:
            ax.legend(frameon=False, fontsize=8)
    if path is not None:
        save(figure, path)
    return figure


def plot_coef(coef: Any, path: Any = None, *, names: Any = None, titles: Any = None, steps: bool = False) -> Figure:
    """Draw coefficients in the order of the columns, a panel a target: steps where neighbours belong together, else bars."""
    coefs = np.atleast_2d(np.asarray(coef))
    targets, p = coefs.shape
    columns = 1 if targets == 1 else 2
    lines = -(-targets // columns)
    named = names is not None and p <= _FEW_COLUMNS
    height = 2.6 if targets > 1 else 3.4
    figure = pyplot().figure(figsize=(7.0 * columns, (height + 0.8 * named) * lines), layout="constrained")
    for k, ax in enumerate(figure.subplots(lines, columns, squeeze=False, sharey=True).flat):
        if k >= targets:
            ax.remove()
            continue
        ax.axhline(0.0, color="#999999", linewidth=0.8)
        if steps:
            ax.step(np.arange(p), coefs[k], where="mid", color=COLOURS["dap"])
        else:
            alive = np.flatnonzero(coefs[k])
            ax.vlines(alive, 0.0, coefs[k, alive], color=COLOURS["dap"], linewidth=max(1.0, min(6.0, 300.0 / p)))
        ax.set_xlim(-0.5, p - 0.5)
        if named:
            ax.set_xticks(np.arange(p), names, rotation=90, fontsize=8)
        elif names is not None:  # the names of a few columns tell where one is
            at = np.arange(0, p, _round_step(p))
            ax.set_xticks(at, [names[j] for j in at], fontsize=8)
        if not named:
            ax.set_xlabel("column")
        if titles is not None and targets > 1:
            ax.set_title(str(titles[k]), fontsize=10)
        ax.set_ylabel("coefficient")
        ax.grid(True, axis="y", color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    if path is not None:
        save(figure, path)
    return figure


def _round_step(count: int, most: int = 8) -> int:
    """Return how far apart places on an axis are so that there are not too many: 1, 2 or 5 times a power of ten."""
    steps = (factor * 10**power for power in range(20) for factor in (1, 2, 5))
    return next(step for step in steps if count <= most * step)


def plot_cv(model: CrossValidated, path: Any = None) -> Figure:
    """Draw the score of every fold and their mean against the strength, and mark the chosen one."""
    from .estimators.cv import errors_of

    figure = pyplot().figure(figsize=(5.0, 3.4), layout="constrained")
    ax = figure.add_subplot()
    alphas, scores = model.best_curve()
    name, scores = errors_of(model.score_name_, scores)
    mean, folds = scores.mean(axis=1), scores.shape[1]
    error = scores.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros_like(mean)
    ax.plot(alphas, scores, color="#bbbbbb", linewidth=0.8, label=["one fold"] + ["_"] * (scores.shape[1] - 1))
    ax.plot(alphas, mean, color=COLOURS["dap"], label="mean over the folds")
    ax.fill_between(
        alphas, mean - error, mean + error, color=COLOURS["dap"], alpha=0.2, linewidth=0.0, label="one standard error"
    )
    ax.set_ylabel(name)
    if name != model.score_name_ and (scores > 0.0).all():  # small differences at the bottom are what is chosen by
        ax.set_yscale("log")
    _dress_strengths(ax, alphas, model.alpha_)
    ax.legend(frameon=False, fontsize=8)
    if path is not None:
        save(figure, path)
    return figure


def _dress_strengths(ax: Any, lams: Any, chosen: float | None) -> None:
    """Put decreasing strengths on the horizontal axis."""
    if (np.asarray(lams) > 0.0).all():
        ax.set_xscale("log")
    ax.invert_xaxis()
    if chosen is not None:
        ax.axvline(chosen, color=COLOURS["tap"], linewidth=1.0, linestyle="--", label="chosen")
    ax.set_xlabel("strength")
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Any) -> None:
    """Save a picture, whole or not at all."""
    with replacing(path, ending=".png") as temporary:
        figure.savefig(temporary, dpi=150)
