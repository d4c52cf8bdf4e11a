"""FISTA: accelerated proximal gradients with adaptive restart. The reference that computes x* to machine precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["Fista", "minimise", "proximal_step"]

Array = np.ndarray[Any, Any]

_SLACK = 1e-13  # relative rounding error of an objective value, which a line search must not mistake for an increase


class Fista(NamedTuple):
    """What :func:`minimise` gives back."""

    x: Array
    iterations: int
    residual: float


def minimise(
    problem: Problem,
    x0: Array,
    *,
    tol: float,
    max_iter: int,
    scale: float = 1.0,
    observe: Callable[[int, Array], bool] | None = None,
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
        Called with the iteration and x after each; returns True to stop.

    References
    ----------
    Beck, Teboulle: A fast iterative shrinkage-thresholding algorithm, SIAM Journal on Imaging Sciences 2 (2009).
    O'Donoghue, Candès: Adaptive restart for accelerated gradient schemes, Foundations of Computational Mathematics 15 (2015).
    """
    lipschitz = problem.lipschitz()
    search = not math.isfinite(lipschitz)
    step = 1.0 if search or lipschitz == 0.0 else 1.0 / lipschitz
    x, y, momentum = x0, x0, 1.0
    residual = math.inf
    for iteration in range(1, max_iter + 1):
        new, step = proximal_step(problem, y, step, search)
        still = bool((new == x).all() and (x == y).all())
        if float(np.vdot(y - new, new - x)) > 0.0:
            momentum, y = 1.0, new
            step = 2.0 * step if search else step
        else:
            following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
            y = new + problem.dtype.type((momentum - 1.0) / following) * (new - x)
            momentum = following
        moved = float(np.linalg.norm((new - x).ravel())) / step
        x = new
        if observe is not None and observe(iteration, x):
            break
        # The distance moved is cheap but may be short for other reasons: ask for the residual itself before stopping.
        if still or moved <= 10.0 * tol * scale:
            residual = problem.packed_residual(x)
            if still or residual <= tol * scale:
                break
    else:
        iteration = max_iter
    if not math.isfinite(residual) or residual > tol * scale:
        residual = problem.packed_residual(x)
    return Fista(x, iteration if max_iter > 0 else 0, residual)


def proximal_step(problem: Problem, y: Array, step: float, search: bool) -> tuple[Array, float]:
    """Return ``prox(y - step * grad f(y))`` and the step, halved until f lies below its quadratic model if ``search``."""
    predictions = problem.predict(y)
    gradient = problem.packed_gradient(y, predictions)
    value = problem.smooth_value(y, predictions) if search else 0.0
    for _ in range(200):
        new = problem.packed_prox(y - problem.dtype.type(step) * gradient, step)
        if not search:
            break
        move = (new - y).ravel()
        model = value + float(np.vdot(gradient.ravel(), move)) + float(np.vdot(move, move)) / (2.0 * step)
        with np.errstate(over="ignore"):
            if problem.smooth_value(new, problem.predict(new)) <= model + _SLACK * max(abs(value), abs(model)):
                break
        step *= 0.5
    return new, step
