"""FISTA: accelerated proximal gradients with adaptive restart. The reference that computes x* to machine precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .steps import longest_step

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Fista", "minimise", "proximal_step"]

Array = np.ndarray[Any, Any]

_SLACK = 500.0  # rounding error of an objective value, in units of eps, which a line search must not take for an increase


class Fista(NamedTuple):
    """What :func:`minimise` gives back."""

    x: Array
    iterations: int
    residual: float
    step: float  # the last one


def minimise(
    problem: Problem,
    x0: Array,
    *,
    tol: float,
    max_iter: int,
    scale: float = 1.0,
    observe: Callable[..., bool] | None = None,
    keep: Callable[[int, Callable[[], Array]], None] | None = None,
    quick: bool = False,
    step: float | None = None,
) -> Fista:
    r"""Minimise f + h from a packed ``x0``, until the residual is at most ``tol * scale``.

    From the extrapolated point :math:`y`, :math:`x^+ = \mathrm{prox}(y - s \nabla f(y))`, and the momentum starts again
    whenever it points uphill, :math:`\langle y - x^+, x^+ - x \rangle > 0`. The step is :math:`s = 1/L`; where L has no
    bound it is found by backtracking and tried longer at each restart.

    Parameters
    ----------
    problem : Problem
    x0 : array
        A packed parameter.
    tol, scale : float
        With ``tol=0`` it goes on to the end, or until the iterate does not change any more.
    max_iter : int
        Each iteration is one pass over the data.
    observe : callable, optional
        Called with the iteration, x and its predictions after each; returns True to stop.
    keep : callable, optional
        Called with the iteration and a function that returns x after each.
    quick : bool, default False
        Find the step by backtracking from a first guess rather than know L before the start, and observe only points that
        are closer than the last by half: for those who want the answer, not the reference.
    step : float, optional
        That first guess; by default one from the curvature along the gradient.

    References
    ----------
    Beck, Teboulle: A fast iterative shrinkage-thresholding algorithm, SIAM Journal on Imaging Sciences 2 (2009).
    O'Donoghue, Candès: Adaptive restart for accelerated gradient schemes, Foundations of Computational Mathematics 15 (2015).
    """
    lipschitz = math.inf if quick else problem.lipschitz()
    search = not math.isfinite(lipschitz)
    if step is None:
        step = _first_step(problem, x0) if quick else 1.0 if search or lipschitz == 0.0 else 1.0 / lipschitz
    x, y, momentum, looked = x0, x0, 1.0, math.inf
    at_x = at_y = problem.predict(x0)
    residual = math.inf
    for iteration in range(1, max_iter + 1):
        new, at_new, step = _step(problem, y, at_y, step, search)
        still = bool((new == x).all() and (x == y).all())
        if float(np.vdot(y - new, new - x)) > 0.0:
            momentum, y, at_y = 1.0, new, at_new
            step = 2.0 * step if search and not quick else step
        else:
            following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
            ahead = problem.dtype.type((momentum - 1.0) / following)
            y, at_y = new + ahead * (new - x), at_new + ahead * (at_new - at_x)
            momentum = following
        moved = float(np.linalg.norm((new - x).ravel())) / step
        x, at_x = new, at_new
        if keep is not None:
            keep(iteration, partial(_same, x))
        if observe is not None and (not quick or still or moved <= 0.5 * looked or iteration == max_iter):
            looked = min(looked, moved)
            if observe(iteration, x, at_x):
                break
        # The distance moved is cheap but may be short for other reasons: ask for the residual itself before stopping.
        if still or (moved <= 10.0 * tol * scale and not quick):
            residual = problem.packed_residual(x)
            if still or residual <= tol * scale:
                break
    else:
        iteration = max_iter
    if not quick and (not math.isfinite(residual) or residual > tol * scale):
        residual = problem.packed_residual(x)
    return Fista(x, iteration if max_iter > 0 else 0, residual, step)


def _same(x: Array) -> Array:
    return x


def _first_step(problem: Problem, x: Array) -> float:
    """Return a step that is rather too long, from the curvature of f along its gradient: one pass over the data."""
    predictions = problem.predict(x)
    gradient = problem.packed_gradient(x, predictions)
    size = float(np.linalg.norm(gradient.ravel()))
    if size == 0.0:
        return 1.0
    direction = gradient / problem.dtype.type(size)
    curvature = getattr(problem.loss, "curvature", math.inf)
    if not math.isfinite(curvature):
        return 1.0
    along = problem.predict(direction).astype(np.float64)
    bent = curvature * float(problem._weights @ (along * along).sum(axis=1)) / problem.n + 2.0 * problem.l2
    return longest_step(bent, problem.dtype)


def proximal_step(problem: Problem, y: Array, step: float, search: bool, gradient: Array | None = None) -> tuple[Array, float]:
    """Return ``prox(y - step * grad f(y))`` and the step, halved until f lies below its quadratic model if ``search``.

    The gradient, which is spent, saves a pass if it is known and there is nothing to search for.
    """
    if search:
        new, _, step = _step(problem, y, problem.predict(y), step, search)
        return new, step
    return _plain_step(problem, y, problem.packed_gradient(y) if gradient is None else gradient, step), step


def _plain_step(problem: Problem, y: Array, gradient: Array, step: float) -> Array:
    gradient *= problem.dtype.type(-step)
    gradient += y
    return problem.packed_prox(gradient, step, spend=True)


def _step(problem: Problem, y: Array, predictions: Array, step: float, search: bool) -> tuple[Array, Array, float]:
    """Do the same given the predictions at y; return those at the new point, too."""
    gradient = problem.packed_gradient(y, predictions)
    if not search:
        new = _plain_step(problem, y, gradient, step)
        with np.errstate(over="ignore", invalid="ignore"):
            return new, problem.predict(new), step
    value = problem.smooth_value(y, predictions)
    for _ in range(200):
        new = problem.packed_prox(y - problem.dtype.type(step) * gradient, step, spend=True)
        with np.errstate(over="ignore", invalid="ignore"):
            at_new = problem.predict(new)
        if _lies_below_model(problem, y, value, gradient, new, at_new, step):
            break
        step *= 0.5
    return new, at_new, step


def _lies_below_model(
    problem: Problem, y: Array, value: float, gradient: Array, new: Array, predictions: Array, step: float
) -> bool:
    """Tell whether f at ``new`` is at most its quadratic model around ``y``, as far as rounding lets us."""
    eps = float(np.finfo(problem.dtype).eps)
    move = (new - y).ravel()
    square = float(np.vdot(move, move))
    if square <= (50.0 * eps) ** 2 * float(np.vdot(y, y)):
        return True
    model = value + float(np.vdot(gradient, move)) + square / (2.0 * step)
    rounding = _SLACK * eps * max(abs(value), abs(model))
    with np.errstate(over="ignore"):
        if rounding <= 0.01 * square / (2.0 * step):
            return problem.smooth_value(new, predictions) <= model + rounding
        # So short a move changes f by less than its rounding error, but its curvature still shows in the gradients.
        change = problem.packed_gradient(new, predictions) - gradient
        return float(np.vdot(change, move)) <= square / step
