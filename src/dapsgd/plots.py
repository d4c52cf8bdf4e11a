"""Pictures. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import itertools
import os
import pathlib
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._files import check_place, replacing
from ._lines import Line, colour_numbers, named_branches, named_lines, spread
from ._summaries import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .estimators._search import CrossValidated
    from .path import Path
    from .result import Result, Trace

__all__ = [
    "COLOURS",
    "check_picture",
    "plot_coef",
    "plot_cv",
    "plot_path",
    "plot_progress",
    "plot_result",
    "plot_trace",
    "save",
]

Array = np.ndarray[Any, Any]

# Okabe and Ito's colours, told apart also by people who do not see red and green as different.
_GREYISH = 0.1  # how little red, green and blue differ in a colour that could be that of the other lines
_DARKEST = 0.55  # share of its brightness that a colour keeps where they are many
_PALE = 0.45  # share of itself that a colour keeps beside white
COLOURS = {"dap": "#0072B2", "tap": "#D55E00", "other": "#009E73", "ink": "#333333"}
_SHADES = (COLOURS["dap"], "#56B4E9")  # of neighbouring groups

_LABELS = {
    "seconds": "seconds",
    "iteration": "iterations",
    "passes": "passes over the data",
    "objective": "objective",
    "residual": "residual",
    "distance": r"distance to $x^\star$",
}
_LOGARITHMIC = ("residual", "distance")
_FALLS = 100.0  # times smaller: of an objective that does, nothing could be seen after the beginning
_FEW_POINTS = 10  # of a trace, which are drawn as such
_FEW_TICKS = 5  # below a small picture
_FEW_COLUMNS = 40  # whose names can be read below an axis
_MOST_NAMED = 8  # bars of many columns
_MOST_LOOKED_AT = 200  # bars, for those that there is room to name
_THINNEST = 1.5  # points of a bar, which can be seen alone among thousands that are zero
_FEW_GROUPS = 40  # between which lines can be drawn
_PATH_WIDTHS = {1: 6.0, 2: 5.0, 3: 4.4}  # inches of a panel, by how many are beside each other
_AROUND = 2.0  # times an only strength: how far the axis goes
_ACROSS = 80  # small characters, along an axis
_LONGEST = 24  # characters of a name


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
    values = getattr(trace, y)
    ax.plot(getattr(trace, x), values, **kwargs)
    seen = values[np.isfinite(values)]
    falls = y == "objective" and seen.size > 0 and seen.max() > _FALLS * seen.min() > 0.0
    _dress_trace(ax, x, _LABELS[y], falls or (y in _LOGARITHMIC and bool((seen > 0.0).any())))
    return ax


def plot_progress(trace: Trace, *, y: str = "objective", x: str = "seconds", ax: Any, objective: float, gap: float) -> None:
    """Draw one column of a run's trace against another: its objective, as :func:`objective_above` has it.

    As it is, nothing could be seen of it but the beginning: it comes down from far above to where differences are small.
    """
    above, what = objective_above(trace, objective, gap) if y == "objective" else (None, "")
    if above is None:
        plot_trace(trace, y=y, x=x, ax=ax)
    else:
        ax.plot(getattr(trace, x), above, color=COLOURS["dap"], marker="o" if len(trace) <= _FEW_POINTS else None)
        _dress_trace(ax, x, what, True)


def objective_above(trace: Trace, objective: float, gap: float) -> tuple[Array | None, str]:
    """Return how far the recorded objectives are above the lowest value that is known, and what to call that.

    It is the answer's objective less its duality gap, below which no point is; where there is no gap, or one that says less
    than the recorded points, the lowest of these and of the answer's. NaN where that is itself: on a logarithmic axis it has
    no place. None if there would be less than two points.

    Examples
    --------
    >>> import dapsgd as ds
    >>> trace = ds.Trace.from_points([(0, 0, 0, 9.0, 0, 0), (1, 1, 1, 3.0, 0, 0), (2, 2, 2, 1.0, 0, 0)])
    >>> objective_above(trace, 1.0, 0.25)
    (array([8.25, 2.25, 0.25]), 'objective above a bound')
    >>> objective_above(trace, 1.0, float("nan"))
    (array([ 8.,  2., nan]), 'objective above its lowest')
    """
    values = np.where(np.isfinite(trace.objective), trace.objective, np.nan)
    seen = values[~np.isnan(values)]
    if seen.size < 2:
        return None, ""
    lowest = float(np.fmin(seen.min(), objective))
    bounded = objective - gap <= lowest and gap < seen.max() - lowest  # not if a gap is NaN or infinite
    # The bound is exact to the last digits, which a gap of zero does not have.
    rounding = float(np.finfo(np.float64).eps) * max(abs(objective), abs(lowest)) if bounded else 0.0
    above = values - (min(objective - gap, lowest - rounding) if bounded else lowest)
    above[~(above > 0.0)] = np.nan
    if np.count_nonzero(~np.isnan(above)) < 2:
        return None, ""
    return above, "objective above a bound" if bounded else "objective above its lowest"


def _dress_trace(ax: Any, x: str, label: str, logarithmic: bool) -> None:
    if logarithmic:
        ax.set_yscale("log")
    _few_ticks(ax.xaxis, whole=x == "iteration")
    ax.set_xlabel(_LABELS[x])
    ax.set_ylabel(label)
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


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
            plot_progress(result.trace, y=quantity, x=clock, ax=ax, objective=result.objective, gap=result.gap)
    if delays:
        for ax in axes[-1, 1:]:
            ax.remove()
        ax = axes[-1, 0]
        ax.bar(np.arange(len(result.delays)), result.delays / result.delays.sum(), color=COLOURS["dap"])
        ax.set_xlabel("delay, in updates")
        ax.set_ylabel("share of updates")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
    what = f"Convergence, {result.penalty}: {result.message}" if result.penalty else f"Convergence: {result.message}"
    _title(figure, what + "; only the end was recorded" * (len(result.trace) == 1))
    if path is not None:
        save(figure, path)
    return figure


def plot_path(
    found: Path,
    path: Any = None,
    chosen: float | None = None,
    *,
    names: Any = None,
    first: int = 0,
    titles: Any = None,
    groups: Any = None,
    steps: bool = False,
    penalty: str | None = None,
    label: str = "coefficient",
    target: str = "",
) -> Figure:
    """Draw every coefficient against the strength, a panel a target; name the largest, and mark the chosen strength if any.

    Columns without names are counted from ``first``. ``groups`` has a label for each column: those of a group have one colour
    and one name. So have neighbours that go together if ``steps``.
    """
    coefs = found.coefs if found.coefs.ndim == 3 else found.coefs[:, None]
    p, targets = coefs.shape[:2]
    if names is not None and len(names) != p:
        raise ValueError(f"names must be {p}, one for each column; got {len(names)}")
    names = [f"column {first + j}" for j in range(p)] if names is None else short_names(names)
    columns = min(targets, 3)
    lines = -(-targets // columns)
    width = _PATH_WIDTHS[columns]
    figure = pyplot().figure(figsize=(width * columns, 3.8 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for ax in axes[targets:]:
        ax.remove()
    at = -1 if chosen is None else int(np.argmin(np.abs(found.lams - chosen)))
    named = [
        named_lines(part[:, at] if part[:, at].any() else part[:, -1], part[:, -1], names, groups, steps)
        for part in coefs.transpose(1, 0, 2)
    ]
    colours = _colours(colour_numbers(named))
    for k, ax in enumerate(axes[:targets]):
        _draw_lines(ax, found.lams, coefs[:, k], named[k], colours[k], steps)
        if targets > 1:
            _panel_title(ax, f"target {k}" if titles is None else short_names(titles, 8 * int(width))[k])
        if k % columns == 0:  # they share the axis
            ax.set_ylabel(short_names([label])[0], parse_math=False)
        _dress_strengths(ax, found.lams, chosen)
    for k, ax in enumerate(axes[:targets]):  # now that the axis is as high as it will be
        _name_lines(ax, found.lams[-1], coefs[:, k, -1], named[k], colours[k], steps)
    _legend(figure)
    kind = found.results[0].penalty.partition(" of strength ")[0] if penalty is None and found.results else penalty
    _title(figure, "Coefficients" + _for_target(target) + " along the strength" + (f" of {kind}" if kind else ""))
    if path is not None:
        save(figure, path)
    return figure


def _draw_lines(ax: Any, lams: Any, coefs: Any, lines: list[Line], colours: list[Any], steps: bool) -> None:
    """Draw coefficients, a row each: those of the lines that will be named in colour, the others grey.

    Of a band that has parted at the end, what its name does not point at is thin and pale.
    """
    marker = "o" if len(lams) == 1 else None  # where a line would have no length
    rest = np.setdiff1d(np.flatnonzero(coefs.any(axis=1)), [place for line in lines for place in line.places])
    if rest.size:
        label = ["other columns"] + ["_"] * (rest.size - 1)
        ax.plot(lams, coefs[rest].T, color="#bbbbbb", linewidth=0.8, marker=marker, label=label)
    branches = named_branches(lines, coefs[:, -1], steps)
    drawn = list(zip(lines, branches, colours, strict=True))
    for line, branch, colour in reversed(drawn):  # where lines coincide the first is seen
        pale = np.setdiff1d(line.places, branch.places)
        ax.plot(lams, coefs[pale].T, color=_pale(colour), linewidth=0.8, marker=marker)
        ax.plot(lams, coefs[branch.places].T, color=colour, linewidth=1.2, marker=marker, zorder=2.1)


def _name_lines(ax: Any, last: float, ends: Array, lines: list[Line], colours: list[Any], steps: bool) -> None:
    """Write the names of lines beside their ends, which are at the last strength."""
    at = [branch.end for branch in named_branches(lines, ends, steps)]
    texts = short_names([line.name for line in lines])
    order = np.argsort(at)
    low, high = ax.get_ylim()
    heights = spread([(at[k] - low) / (high - low) for k in order])
    for k, height in zip(order, heights, strict=True):
        style: dict[str, Any] = {"color": colours[k], "fontsize": 8, "va": "center", "parse_math": False}
        lead = {"arrowstyle": "-", "color": colours[k], "linewidth": 0.6, "relpos": (0.0, 0.5), "shrinkB": 0.0}
        place: dict[str, Any] = {"xytext": (1.05, height), "textcoords": "axes fraction", "annotation_clip": False}
        ax.annotate(texts[k], (last, at[k]), arrowprops=lead, **place, **style)


def _colours(numbers: list[list[int]]) -> list[list[Any]]:
    """Return a colour for each number, all different and none grey: where they are many, the further ones are darker."""
    bright = [colour for colour in pyplot().get_cmap("tab10").colors if max(colour) - min(colour) > _GREYISH]
    most = max(itertools.chain(*numbers), default=0)
    shades = np.linspace(1.0, _DARKEST, most // len(bright) + 1).tolist()
    found = [tuple(shade * part for part in colour) for shade in shades for colour in bright]
    return [[found[number] for number in panel] for panel in numbers]


def _pale(colour: Any) -> Any:
    return tuple(1.0 - _PALE * (1.0 - part) for part in colour)


def short_names(names: Any, longest: int = _LONGEST) -> list[str]:
    """Return names on one line each, of which long ones lose some of what all have in common, then their middle.

    Examples
    --------
    >>> short_names(["weight of the left foot in kilograms", "weight of the right hand in kilograms"])
    ['weight o…left foot in…', 'weight o…right hand in…']
    """
    texts = [" ".join(str(name).split()) for name in names]
    if max(map(len, texts), default=0) <= longest:
        return texts
    if len(texts) > 1:
        start = _shared(texts).rstrip("0123456789")  # of a number all digits are needed
        end = _shared([text[len(start) :][::-1] for text in texts])[::-1].lstrip("0123456789")
        middles = [text[len(start) : len(text) - len(end)] for text in texts]
        room = max(longest - 2 - max(map(len, middles)), 0)
        head = start if len(start) <= room else f"{start[: 2 * room // 3].rstrip()}…"
        room -= min(len(head), room)
        tail = end if len(end) <= room else f"{end[:room].rstrip()}…"
        texts = [f"{head}{middle}{tail}" for middle in middles]
    half = (longest - 1) // 2
    shortened = [text if len(text) <= longest else f"{text[:half]}…{text[-half:]}" for text in texts]
    times = Counter(shortened)
    return [text if times[text] == 1 else f"{j}: {text}" for j, text in enumerate(shortened)]


def _shared(texts: list[str]) -> str:
    """Return what all texts start with."""
    low, high = min(texts), max(texts)
    return low[: next((k for k, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))]


def _title(figure: Figure, text: str) -> None:
    """Put a title above a picture, broken into lines that fit it, of about one length."""
    most = int(12.0 * figure.get_size_inches()[0])
    count = len(textwrap.wrap(text, most))
    width = next(width for width in range(len(text) // count, most + 1) if len(textwrap.wrap(text, width)) <= count)
    figure.suptitle(textwrap.fill(text, width), fontsize=10, color=COLOURS["ink"], parse_math=False)


def _panel_title(ax: Any, text: str, pad: float | None = None) -> None:
    ax.set_title(text, fontsize=10, parse_math=False, pad=pad)


def _for_target(name: str) -> str:
    return f" for {short_names([name], _ACROSS)[0]}" if name else ""


def plot_coef(
    coef: Any,
    path: Any = None,
    *,
    names: Any = None,
    first: int = 0,
    titles: Any = None,
    steps: bool = False,
    groups: Any = None,
    penalty: str = "",
    label: str = "coefficient",
    target: str = "",
) -> Figure:
    """Draw coefficients in the order of the columns, a panel a target: steps where neighbours belong together, else bars.

    Columns without names are counted from ``first``. ``groups`` has a label for each column, text if groups have names; groups
    of neighbours are told apart.
    """
    coefs = np.atleast_2d(np.asarray(coef))
    targets, p = coefs.shape
    columns = 1 if targets in (1, 3) else 2  # beside each other three would leave a hole
    lines = -(-targets // columns)
    labels = None if names is None else short_names(names)
    first = first if labels is None else 0
    runs = [] if groups is None else _runs(groups)
    colours = np.repeat(np.resize(_SHADES, max(len(runs), 1)), [end - start for start, end in runs] or [p])
    longest = 0 if labels is None else max(map(len, labels))
    below = labels is not None and p <= _FEW_COLUMNS
    height = (2.6 if targets > 1 else 3.4) + (0.075 * longest if below or longest > 8 else 0.0)
    figure = pyplot().figure(figsize=(7.0 * columns, height * lines), layout="constrained")
    for k, ax in enumerate(figure.subplots(lines, columns, squeeze=False, sharey=True).flat):
        if k >= targets:
            ax.remove()
            continue
        ax.axhline(0.0, color="#999999", linewidth=0.8)
        if steps:
            edges = first + np.arange(p + 1) - 0.5  # so that every column is as wide as the others, also the only one
            ax.step(edges, np.append(coefs[k], coefs[k, -1]), where="post", color=COLOURS["dap"])
        else:
            alive = np.flatnonzero(coefs[k])
            ax.vlines(first + alive, 0.0, coefs[k, alive], color=colours[alive], linewidth=max(_THINNEST, min(6.0, 300.0 / p)))
        margin = max(0.5, 0.01 * p)  # so that the first and the last are seen
        ax.set_xlim(first - margin, first + p - 1 + margin)
        if not coefs.any():
            ax.set_ylim(-1.0, 1.0)
            ax.text(0.5, 0.55, "all are zero", transform=ax.transAxes, ha="center", color="#666666")
        if 0 < len(runs) <= _FEW_GROUPS:
            _mark_groups(ax, groups, runs, first)
        if labels is None:
            ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
            ticks = ax.get_xticks()
            ax.set_xticks(ticks[(ticks >= first) & (ticks < first + p)])  # not of columns that are not there
        else:  # of many columns the names of a few tell where one is
            at = np.arange(p) if below else _few_places(p)
            turned = {"rotation": 90} if below else {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
            options: dict[str, Any] = turned if below or longest > 8 else {}
            ax.set_xticks(at, [labels[j] for j in at], fontsize=8, parse_math=False, **options)
            if not below and not steps:
                _name_largest(ax, coefs[k], labels)
        if not below:
            ax.set_xlabel("column")
        if titles is not None and targets > 1:
            _panel_title(ax, short_names(titles, _ACROSS)[k], pad=14 if runs and isinstance(groups[0], str) else None)
        if k % columns == 0:  # they share the axis
            ax.set_ylabel(short_names([label])[0], parse_math=False)
        ax.grid(True, axis="y", color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    _title(figure, "Coefficients" + _for_target(target) + (f": {penalty}" if penalty else ""))
    if path is not None:
        save(figure, path)
    return figure


def _runs(groups: Any) -> list[tuple[int, int]]:
    """Return where groups of neighbours start and end; nothing if columns of a group are apart, or every one is alone.

    Examples
    --------
    >>> _runs(["a", "a", "b"]), _runs(["a", "b", "a"]), _runs(["a", "b"])
    ([(0, 2), (2, 3)], [], [])
    """
    labels = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    edges = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    count = len(edges) - 1
    return list(itertools.pairwise(edges)) if count == labels.max() + 1 < len(labels) else []


def _mark_groups(ax: Any, groups: Any, runs: list[tuple[int, int]], first: int) -> None:
    """Draw thin lines between groups, and write the names that they have above them where there is room."""
    names = short_names([groups[start] for start, _ in runs]) if isinstance(groups[0], str) else [""] * len(runs)
    for name, (start, end) in zip(names, runs, strict=True):
        if start > 0:
            ax.axvline(first + start - 0.5, color="#cccccc", linewidth=0.6, zorder=0)
        if name and len(name) * len(groups) <= _ACROSS * (end - start):
            place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "xytext": (0, 2), "textcoords": "offset points"}
            style: dict[str, Any] = {"ha": "center", "fontsize": 8, "color": COLOURS["ink"], "parse_math": False}
            ax.annotate(name, (first + (start + end - 1) / 2, 1.0), **place, **style)


def _name_largest(ax: Any, heights: Array, labels: Sequence[str]) -> None:
    """Write the names of the largest bars at their ends, where neither another name nor a longer bar is in the way."""
    style: dict[str, Any] = {"fontsize": 8, "color": COLOURS["ink"], "parse_math": False, "textcoords": "offset points"}
    for j, start, end in _places_of_names(heights, labels):
        up = heights[j] > 0.0
        at, side = (start, "left") if start <= 0.0 else (end, "right") if end >= len(heights) - 1.0 else (j, "center")
        place = {"xytext": (0, 2 if up else -2), "va": "bottom" if up else "top", "ha": side}
        ax.annotate(labels[j], (at, heights[j]), **place, **style)
    ax.margins(y=0.12)  # room for them


def _places_of_names(heights: Array, labels: Sequence[str]) -> list[tuple[int, float, float]]:
    """Return the bars that are named, and from where to where the names go, in columns.

    Examples
    --------
    >>> _places_of_names(np.array([3.0, 2.0, -1.0, 0.0]), ["a" * 20, "b" * 20, "c" * 20, "d"])
    [(0, 0.0, 1.0), (2, 1.5, 2.5)]
    """
    p = len(heights)
    order = np.argsort(-np.abs(heights), kind="stable")[:_MOST_LOOKED_AT].tolist()
    named: list[tuple[int, float, float]] = []
    for rank, j in enumerate(order):
        if heights[j] == 0.0 or len(named) == _MOST_NAMED:
            break
        width = len(labels[j]) * p / _ACROSS
        start = min(max(j - width / 2.0, 0.0), max(p - 1.0 - width, 0.0))  # not beyond the axis
        end = start + width
        alike = [i for i in order[:rank] if heights[i] * heights[j] > 0.0]  # up or down as this one, and longer
        taken = any(start < other_end and other < end for i, other, other_end in named if i in alike)
        if not taken and not any(start <= i <= end for i in alike):
            named.append((j, start, end))
    return named


def _round_step(count: int, most: int = 8) -> int:
    """Return how far apart places on an axis are so that there are not too many: 1, 2 or 5 times a power of ten."""
    steps = (factor * 10**power for power in range(20) for factor in (1, 2, 5))
    return next(step for step in steps if count <= most * step)


def _few_places(count: int) -> Array:
    """Return places on an axis that can be told from each other, with the first and the last one.

    Examples
    --------
    >>> _few_places(500).tolist(), _few_places(202).tolist()
    ([0, 100, 200, 300, 400, 499], [0, 50, 100, 150, 201])
    """
    step, last = _round_step(count), count - 1
    places = np.arange(0, count, step)
    return np.append(places[last - places >= step // 2], last)


def plot_cv(model: CrossValidated, path: Any = None) -> Figure:
    """Draw the score of every fold and their mean against the strength, and mark the chosen one."""
    from .estimators._search import errors_of

    figure = pyplot().figure(figsize=(6.0, 4.4), layout="constrained")
    ax = figure.add_subplot()
    alphas, scores = model.best_curve()
    name, scores = errors_of(model.score_name_, scores)
    mean, folds = scores.mean(axis=1), scores.shape[1]
    error = scores.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros_like(mean)
    alone = len(alphas) == 1  # where a line would have no length
    label = ["one fold"] + ["_"] * (folds - 1)
    ax.plot(
        alphas,
        scores,
        color="#bbbbbb",
        linewidth=0.8,
        marker="." if alone else None,
        linestyle="" if alone else "-",
        label=label,
    )
    if not alone:
        ax.plot(alphas, mean, color=COLOURS["dap"], label="mean over the folds")
    if folds > 1:
        known: dict[str, Any] = {"color": COLOURS["dap"], "label": "one standard error"}
        if alone:
            ax.errorbar(alphas, mean, error, capsize=4.0, linestyle="", **known)
        else:
            ax.fill_between(alphas, mean - error, mean + error, alpha=0.2, linewidth=0.0, **known)
    ax.set_ylabel(name)
    lower = name != model.score_name_  # is better: scores that are minus an error are drawn as the error
    if lower and (scores > 0.0).all():  # small differences at the bottom are what is chosen by
        ax.set_yscale("log")
    best = int(np.argmin(mean) if lower else np.argmax(mean))
    ax.plot(
        alphas[best],
        mean[best],
        "o",
        color=COLOURS["other"],
        label="mean over the folds" if alone else f"{'lowest' if lower else 'highest'} mean, at {alphas[best]:.4g}",
    )
    within = ", within one standard error" if model.rule == "one_se" else ""
    _dress_strengths(ax, alphas, model.alpha_, within)
    _plain_numbers(ax.yaxis)
    _legend(figure)
    target = f",{_for_target(name)}" if (name := model._target()) else ""
    _title(figure, f"Cross-validation of the strength of {model._varied()}{target}, on {counted(folds, 'fold')}")
    if path is not None:
        save(figure, path)
    return figure


def _legend(figure: Figure) -> None:
    """Say below a picture what its lines are, once for all panels."""
    found = [ax.get_legend_handles_labels() for ax in figure.axes]
    named = {label: handle for handles, labels in found for handle, label in zip(handles, labels, strict=True)}
    if named:
        figure.legend(named.values(), named, loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _dress_strengths(ax: Any, lams: Any, chosen: float | None, why: str = "") -> None:
    """Put decreasing strengths on the horizontal axis."""
    if (np.asarray(lams) > 0.0).all():
        ax.set_xscale("log")
        if len(lams) == 1:  # which is drawn in the middle, not beside decades in which nothing is
            ax.set_xlim(lams[0] / _AROUND, lams[0] * _AROUND)
    ax.invert_xaxis()
    if chosen is not None:
        ax.axvline(chosen, color=COLOURS["tap"], linewidth=1.0, linestyle="--", zorder=1.9, label=f"chosen: {chosen:.4g}{why}")
    _plain_numbers(ax.xaxis)
    ax.set_xlabel("strength")
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def _few_ticks(axis: Any, whole: bool) -> None:
    """Leave room between numbers with many digits, such as the seconds of a short run; not if somebody chose the ticks.

    What is counted has no ticks between ``whole`` numbers.
    """
    from matplotlib.ticker import AutoLocator, ScalarFormatter

    if isinstance(axis.get_major_locator(), AutoLocator) and isinstance(axis.get_major_formatter(), ScalarFormatter):
        axis.get_major_locator().set_params(nbins=_FEW_TICKS, integer=whole, min_n_ticks=1)
        axis.get_major_formatter().set_powerlimits((-2, 5))


def _plain_numbers(axis: Any) -> None:
    """Write 0.4 and 0.6 along a logarithmic axis with less than two powers of ten, and so few that they do not touch."""
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator, ScalarFormatter

    low, high = sorted(axis.get_view_interval())
    if axis.get_scale() == "log" and np.floor(np.log10(high)) <= np.ceil(np.log10(low)):
        short = high < 4.0 * low
        numbers = MaxNLocator(nbins=9, steps=[1, 2, 5, 10]) if short else LogLocator(subs=(1.0, 2.0, 3.0, 5.0, 7.0))
        found = [tick for tick in numbers.tick_values(low, high) if low <= tick <= high]
        box, longest = axis.axes.bbox, max((len(f"{tick:g}") for tick in found), default=0)
        share = (8 * longest + 6) / box.width if axis.axis_name == "x" else 20 / box.height  # points, of which an inch has 72
        apart = (high / low) ** (share * axis.axes.figure.dpi / 72.0)
        ticks: list[float] = []
        for tick in found:
            if not ticks or tick > ticks[-1] * apart:
                ticks.append(tick)
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(ScalarFormatter(useOffset=False))
        axis.set_minor_locator(NullLocator())


def check_picture(path: Any, argument: str = "path") -> None:
    """Raise if a picture cannot be saved there: no such folder, a folder itself, or a kind of file nobody can draw."""
    pyplot()  # if it is missing, say so before anything else
    from matplotlib.backend_bases import FigureCanvasBase

    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise TypeError(f"{argument} must be the name of a file; got {path!r}")
    path = pathlib.Path(path)
    check_place(path, argument)
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix and path.suffix[1:].lower() not in known:
        raise ValueError(f"{argument} must end in one of {', '.join(known)}; got {path.name!r}")


def save(figure: Figure, path: Any) -> None:
    """Save a picture, whole or not at all."""
    check_picture(path)
    with replacing(path, ending=".png") as temporary:
        figure.savefig(temporary, dpi=150)
    pyplot().close(figure)  # which only takes it out of the list of those to show: it is in a file
