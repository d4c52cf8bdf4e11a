"""What ``print`` and a notebook show of problems, results and fitted models: a title, a table, a picture."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .problem import Problem
    from .result import Result, Trace

__all__ = [
    "ON_SCALED",
    "SCALED",
    "about_accuracy",
    "about_batch",
    "about_groups",
    "about_problem",
    "about_result",
    "about_scores",
    "as_html",
    "as_text",
    "by_workers",
    "coefficients",
    "counted",
    "group_labels",
    "penalty_of",
    "picture",
    "plain",
    "work",
]

Array = np.ndarray[Any, Any]
Lines = dict[str, str]

SCALED = "each column by its standard deviation, while fitting; coefficients are in the original units"
ON_SCALED = ", on the scaled columns"


def about_problem(problem: Problem) -> Lines:
    """Return what there is to say of a problem, by title."""
    lines = {
        "data": f"{problem.n:,} rows, {problem.p:,} columns, {problem.storage}, {problem.dtype}",
        "loss": repr(problem.loss),
        "regulariser": _short(repr(problem.regularizer)),
        "l2": f"{problem.l2:g}",
        "intercept": "fitted" if problem.fit_intercept else "none",
    }
    if len(problem.shape) == 2:
        lines["targets"] = f"{problem.shape[1]:,}"
    return lines


def about_result(result: Result) -> Lines:
    """Return what there is to say of a result, by title."""
    lines = {"converged": "yes" if result.converged else "no"}
    if "not converged" in result.message and not result.message.startswith("auto"):
        lines["converged"] += ": it takes more passes, columns that are centred and of one size, or algorithm='auto'"
    lines |= about_accuracy(result.objective, result.gap, result.residual)
    lines["coefficients"] = coefficients(result.x, result.penalty.partition(" ")[0] == "FusedLasso")
    lines["work"] = work([result])
    if result.delays.sum() > 0 and len(result.delays) > 1:
        mean = float(np.arange(len(result.delays)) @ result.delays / result.delays.sum())
        lines["delays"] = f"{mean:.2g} updates on average, {int(np.flatnonzero(result.delays).max())} at most"
    lines["message"] = result.message
    return lines


def about_batch(result: Result, rows: int) -> Lines:
    """Return what there is to say of a model that has seen a batch of so many rows as its last."""
    lines, last = about_result(result), f"the last batch, of {counted(rows, 'row')}"
    told = {"objective": f"{lines['objective']} on {last}", "coefficients": lines["coefficients"]}
    return told | {"work": f"{lines['work']}, for {last}"}


def about_accuracy(objective: float, gap: float, residual: float) -> Lines:
    """Return the objective and how far it may be from the best, by title."""
    lines = {"objective": f"{objective:.6g}"}
    if math.isfinite(gap):
        return lines | {"duality gap": f"{gap:.3g}, {gap / max(abs(objective), 1e-300):.1e} of the objective"}
    return lines | {"residual": f"{residual:.3g}"}


def about_scores(scores: Sequence[tuple[str, float, float | None]]) -> str:
    """Return scores on rows held out, by name, with their standard errors over the folds where there are several."""
    texts = [f"{name} {mean:.4g}" + ("" if error is None else f" ± {error:.2g}") for name, mean, error in scores]
    return ", ".join(texts) + ("" if scores[0][2] is None else ", over the folds")


def group_labels(groups: Any, p: int) -> Array:
    """Return which group each of p columns is in, however groups are given: none, a size, labels, or lists of columns."""
    if groups is None:
        return np.arange(p)
    if isinstance(groups, (int, np.integer)):
        return np.arange(p) // groups
    if len(groups) == p and all(np.ndim(one) == 0 for one in groups):
        return np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    labels = np.empty(p, np.int64)
    for k, columns in enumerate(groups):
        labels[np.asarray(columns)] = k
    return labels


def about_groups(W: Array, groups: Any) -> str:
    """Return how many groups of the columns of W are not zero."""
    labels = group_labels(groups, W.shape[1])
    alive = len(np.unique(labels[(W != 0.0).any(axis=0)]))
    alone = ", each of one column" if groups is None else ""
    return f"{alive:,} of {len(np.unique(labels)):,} are not zero{alone}"


def coefficients(x: Array, fused: bool) -> str:
    """Return how many coefficients are not zero, and where the penalty fuses them how many jumps there are."""
    alive, jumps = int(np.count_nonzero(x)), int(np.count_nonzero(np.diff(x, axis=0)))
    fused = fused and len(x) > 1 and alive > 0
    return f"{alive:,} of {x.size:,} are not zero" + f", with {counted(jumps, 'jump')}" * fused


def work(results: Sequence[Result]) -> str:
    """Return what was done for one answer."""
    iterations, passes = sum(one.iterations for one in results), sum(one.passes for one in results)
    seconds, workers = sum(one.seconds for one in results), max(one.workers for one in results)
    done = f"{counted(iterations, 'iteration')}, {counted(passes, 'pass', 'passes')}"
    return f"{done}, {seconds:.3g} s, {by_workers(workers, results[-1].algorithm)}"


def by_workers(workers: int, algorithm: str) -> str:
    """Return how many workers there were, and why just one if the algorithm has no more on any machine."""
    from .algorithms import ALGORITHMS

    alone = algorithm in ALGORITHMS and ALGORITHMS[algorithm].serial
    return counted(workers, "worker") + (f", as {algorithm} always has" if alone else "")


def penalty_of(regularizer: Any) -> str:
    """Return which regulariser it is, and how strong where it has one strength; with an L1 part or share, if it has one.

    Examples
    --------
    >>> import dapsgd as ds
    >>> penalty_of(ds.L1(0.1)), penalty_of(ds.FusedLasso(0.1, l1=0.02))
    ('L1 of strength 0.1', 'FusedLasso of strength 0.1, l1=0.02')
    >>> penalty_of(ds.ElasticNet(0.1, 0.3))
    'ElasticNet of strength 0.1, ratio=0.3'
    """
    lam, l1, ratio = (getattr(regularizer, name, None) for name in ("lam", "l1", "ratio"))
    strength = f" of strength {lam:.4g}" if isinstance(lam, (int, float)) else ""
    share = f", ratio={ratio:.4g}" if isinstance(ratio, (int, float)) else ""
    return type(regularizer).__name__ + strength + (f", l1={l1:.4g}" if l1 else "") + share


def counted(count: float, one: str, more: str = "") -> str:
    """Return a number with its noun, in the plural unless it is written as one.

    Examples
    --------
    >>> counted(1, "row"), counted(1.00001, "pass", "passes"), counted(2.5, "pass", "passes")
    ('1 row', '1 pass', '2.5 passes')
    """
    number = f"{count:,}" if isinstance(count, int) else f"{count:,.0f}" if count >= 1000.0 else f"{count:.4g}"
    return f"{number} {one if number == '1' else more or one + 's'}"


def plain(value: Any) -> str:
    """Return a value as text, a whole number without a point.

    Examples
    --------
    >>> plain(-1.0), plain(0.5), plain("up")
    ('-1', '0.5', 'up')
    """
    number = float(value) if isinstance(value, (float, np.floating)) else math.nan
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else str(value)


def as_text(title: str, lines: Lines) -> str:
    """Return a title and a table as plain text."""
    width = max(map(len, lines))
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in lines.items())])


def as_html(title: str, lines: Lines, image: str = "") -> str:
    """Return a title, a table and a picture as HTML. All that is text is escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left;white-space:normal">{html.escape(text)}</td></tr>'
        for name, text in lines.items()
    )
    return f"<div><strong>{html.escape(title)}</strong><table>{rows}</table>{image}</div>"


def picture(trace: Trace, objective: float, gap: float) -> str:
    """Return the convergence to an answer as an HTML image; nothing without matplotlib, or with too little to draw."""
    if len(trace) < 2:
        return ""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    from .plots import plot_progress

    columns = ["objective"] + [name for name in ("residual", "distance") if np.isfinite(getattr(trace, name)).sum() > 1]
    figure = Figure(figsize=(3.4 * len(columns), 2.4), layout="constrained")
    for ax, column in zip(figure.subplots(1, len(columns), squeeze=False).flat, columns, strict=True):
        plot_progress(trace, y=column, x="seconds", ax=ax, objective=objective, gap=gap)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=90)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    what = html.escape(f"{', '.join(columns)} against seconds", quote=True)
    return f'<img alt="{what}" style="max-width:100%" src="data:image/png;base64,{data}">'


def _short(text: str, most: int = 200) -> str:
    """Return a long text, such as one with an array in it, on one line and cut."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."
