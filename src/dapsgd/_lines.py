"""The lines of a picture of a path: which belong together, which are named, and where the names go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Branch", "Line", "colour_numbers", "named_branches", "named_lines", "spread"]

Array = np.ndarray[Any, Any]

_NAMED = 6  # the largest
_BAND = 0.15  # of the largest coefficient, between neighbours that look alike
_SMALL = 0.05  # of the largest coefficient: not worth a name
_TOUCHING = 0.02  # of the largest coefficient: lines that end so near each other look like one


class Line(NamedTuple):
    """Coefficients that have one colour and one name."""

    places: list[int]  # the largest first
    name: str


class Branch(NamedTuple):
    """What the name of a line points at."""

    places: list[int]  # of the line, those that end there
    end: float


def named_lines(values: Array, ends: Array, names: Sequence[str], groups: Any = None, steps: bool = False) -> list[Line]:
    """Return the lines to be named: those whose values are largest at the strength that matters.

    Columns that have a label of ``groups`` in common are one line; so are neighbours of about one size if ``steps``; else those
    that have the same value, and the same end.

    Examples
    --------
    >>> import numpy as np
    >>> values, names = np.array([0.0, 1.0, 1.0, -2.0]), ["a", "b", "c", "d"]
    >>> named_lines(values, values, names)
    [Line(places=[3], name='d'), Line(places=[1, 2], name='b and 1 more')]
    >>> named_lines(values, values, names, steps=True)
    [Line(places=[3], name='d'), Line(places=[1, 2], name='b to c')]
    >>> named_lines(values, values, names, groups=[0, 0, 1, 1])
    [Line(places=[3, 2], name='group 1'), Line(places=[1, 0], name='group 0')]
    """
    labels = _bands(values) if steps else _by_end(values, ends) if groups is None else list(groups)
    found = _largest(values, labels)
    if steps:
        return [Line(places, _from_to(names[min(places)], names[max(places)])) for places in found]
    if groups is None:
        return [Line(places, names[places[0]] + f" and {len(places) - 1} more" * (len(places) > 1)) for places in found]
    texts = [labels[places[0]] for places in found]
    return [Line(places, text if isinstance(text, str) else f"group {text}") for places, text in zip(found, texts, strict=True)]


def _from_to(start: str, end: str) -> str:
    return start if start == end else f"{start} to {end}"


def _largest(values: Array, labels: Sequence[Any]) -> list[list[int]]:
    """Return the places of the labels whose values are largest, of each the largest first; not of labels that are all zero.

    Examples
    --------
    >>> import numpy as np
    >>> _largest(np.array([0.0, 0.0, 1.0, 2.0, -3.0]), ["a", "a", "b", "b", "c"])
    [[4], [3, 2]]
    """
    members: dict[Any, list[int]] = {}
    for place in np.argsort(-np.abs(values), kind="stable").tolist():
        if labels[place] is not None and (values[place] != 0.0 or labels[place] in members):
            members.setdefault(labels[place], []).append(place)
    return list(members.values())[:_NAMED]


def _bands(values: Array) -> list[int | None]:
    """Return a label for each coefficient, the same for neighbours of about one size and sign; None for those about zero.

    Examples
    --------
    >>> import numpy as np
    >>> _bands(np.array([0.0, 1.0, 1.1, 0.0, -2.0, -2.0]))
    [None, 1, 1, None, 3, 3]
    """
    limit = _BAND * float(np.abs(values).max(initial=0.0))
    side = np.where(np.abs(values) > limit, np.sign(values), 0.0)
    edges = (np.abs(np.diff(values)) > limit) | (np.diff(side) != 0.0)
    band = np.cumsum(np.append(0, edges)).tolist()
    return [k if there else None for k, there in zip(band, side, strict=True)]


def _by_end(values: Array, ends: Array) -> list[Any]:
    """Return a label for each coefficient, the same for equal values whose ends look like one; None for small ones.

    Examples
    --------
    >>> import numpy as np
    >>> _by_end(np.array([1.0, 1.0, 1.0, 0.5]), np.array([2.0, 1.99, 1.0, 0.0]))
    [(1.0, 1), (1.0, 1), (1.0, 0), None]
    """
    large = np.abs(values) > _SMALL * np.abs(values).max(initial=0.0)
    top = float(np.abs(ends).max(initial=0.0))
    large &= np.abs(ends) > _SMALL * top
    labels: list[Any] = [None] * len(values)
    for value in set(values[large].tolist()):
        there = np.flatnonzero(large & (values == value))
        order = there[np.argsort(ends[there], kind="stable")]
        parts = np.cumsum(np.append(0, np.diff(ends[order]) > _TOUCHING * top))
        for place, part in zip(order.tolist(), parts.tolist(), strict=True):
            labels[place] = value, part
    return labels


def colour_numbers(panels: Sequence[Sequence[Line]]) -> list[list[int]]:
    """Return the number of a colour for each line of each panel: a column has the same one in all panels that colour it.

    Where the lines of two panels share some of their columns only, those have one colour that share the most.

    Examples
    --------
    >>> first = [Line([3], "d"), Line([0, 1, 2], "a to c")]
    >>> second = [Line([2, 4], "c to e"), Line([0, 1], "a to b"), Line([3], "d")]
    >>> colour_numbers([first, second])
    [[0, 1], [2, 1, 0]]
    """
    known: dict[int, int] = {}  # the colour of each column so far
    numbers = []
    for lines in panels:
        shared = [Counter(known[place] for place in line.places if place in known) for line in lines]
        wishes = [(times, k, number) for k, counts in enumerate(shared) for number, times in counts.items()]
        found: dict[int, int] = {}
        for _, k, number in sorted(wishes, key=lambda wish: -wish[0]):
            if k not in found and number not in found.values():
                found[k] = number
        for k, line in enumerate(lines):
            number = found.setdefault(k, max([*known.values(), *found.values()], default=-1) + 1)
            known = dict.fromkeys(line.places, number) | known
        numbers.append([found[k] for k in range(len(lines))])
    return numbers


def named_branches(lines: Sequence[Line], ends: Array, steps: bool = False) -> list[Branch]:
    """Return for each line what its name points at: all of it, at the end of its largest coefficient.

    If ``steps`` it is where most of the band ends, or the next best place if another name points there.

    Examples
    --------
    >>> import numpy as np
    >>> lines = [Line([0, 1, 2], "a to c"), Line([3, 4, 5], "d to f")]
    >>> ends = np.array([3.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    >>> named_branches(lines, ends)
    [Branch(places=[0, 1, 2], end=3.0), Branch(places=[3, 4, 5], end=1.0)]
    >>> named_branches(lines, ends, steps=True)
    [Branch(places=[1, 2], end=1.0), Branch(places=[5], end=2.0)]
    """
    if not steps:
        return [Branch(line.places, float(ends[line.places[0]])) for line in lines]
    near, found = _TOUCHING * float(np.abs(ends).max(initial=0.0)), list[Branch]()
    for line in lines:
        there = np.sort(ends[line.places])
        middle = np.median(there)
        parts = np.split(there, np.flatnonzero(np.diff(there) > near) + 1)
        parts.sort(key=lambda part: (-len(part), abs(np.median(part) - middle)))
        places = [float(part[len(part) // 2]) for part in parts]
        end = next((end for end in places if all(abs(end - other.end) > near for other in found)), places[0])
        found.append(Branch([place for place in line.places if abs(ends[place] - end) <= near], end))
    return found


def spread(heights: Sequence[float], apart: float = 0.07) -> list[float]:
    """Return increasing heights in [0, 1], moved so far apart that labels at them do not touch."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + apart) if placed else height)
    top = 1.0
    for k in reversed(range(len(placed))):
        placed[k] = min(placed[k], top)
        top = placed[k] - apart
    return placed
