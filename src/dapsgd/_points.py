"""Points at which predictions and gradient are known: along a path of strengths one answer tells about the next start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .losses import is_quadratic

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Point", "further", "kept_points", "recall", "remember"]

Array = np.ndarray[Any, Any]

_NAME = "points"  # among the problem's facts
_KEPT = 3  # two answers, and a start beyond them


class Point(NamedTuple):
    """A packed parameter, and what is known there."""

    x: Array
    predictions: Array
    gradient: Array | None  # of f


@contextmanager
def kept_points(problem: Problem) -> Iterator[None]:
    """Let the answers of problems that differ from this one in the regulariser be remembered."""
    problem._facts[_NAME] = []
    try:
        yield
    finally:
        del problem._facts[_NAME]


def remember(problem: Problem, point: Point) -> None:
    """Remember a point, if anybody asked for that; not in single precision, where predictions that are added up drift."""
    points = problem._facts.get(_NAME)
    if points is not None and problem.dtype == np.float64:
        points.append(point)
        del points[:-_KEPT]


def recall(problem: Problem, x: Array) -> Point | None:
    """Return what is known at a packed parameter."""
    for point in problem._facts.get(_NAME, ()):
        if np.array_equal(x, point.x):
            return cast("Point", point)
    return None


def further(problem: Problem, before: Array, last: Array, length: float) -> Array:
    """Return the point beyond the last one on a line; what is known at both ends of it is known there."""

    def beyond(a: Array, b: Array) -> Array:
        return b + problem.dtype.type(length) * (b - a)

    x = beyond(before, last)
    ends = recall(problem, before), recall(problem, last)
    if ends[0] is not None and ends[1] is not None:
        gradient = None
        if is_quadratic(problem.loss) and ends[0].gradient is not None and ends[1].gradient is not None:
            gradient = beyond(ends[0].gradient, ends[1].gradient)
        remember(problem, Point(x, beyond(ends[0].predictions, ends[1].predictions), gradient))
    return x
