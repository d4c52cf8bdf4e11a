r"""The duality gap: a certificate of how far a point can be from the optimum.

With :math:`F(u) = \frac1n \sum_i s_i\,\mathrm{loss}(u_i, y_i)` and :math:`R(w) = l_2\|w\|^2 + h(w)`, every :math:`\theta`
gives a lower bound on the optimum,

.. math:: -F^*(\theta) - R^*(-X^T\theta) \le \min_w F(Xw) + R(w).

The one used is the gradient of F at the predictions, which is optimal at the optimum. With :math:`l_2 > 0` the conjugate of
R is finite everywhere and found by one prox, whatever the regulariser. Without, R is taken to be a norm times its strength; its
conjugate is zero inside the dual norm's ball and infinite outside, and :math:`\theta` is scaled into it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import rows as _rows
from ._jit import run
from ._terms import has_trait

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["duality_gap", "has_gap"]

Array = np.ndarray[Any, Any]


def has_gap(problem: Problem) -> bool:
    """Tell whether a duality gap is known for a problem."""
    known = hasattr(type(problem.loss), "conjugate")
    return known and (problem.l2 > 0.0 or has_trait(type(problem._bound), "is_norm"))


def duality_gap(problem: Problem, x: Array) -> float:
    """Return the objective at a packed parameter minus a lower bound on the optimum; infinite if this point gives none."""
    from .problem import loss_slopes

    predictions = problem.predict(x)
    targets, weights = problem._targets.astype(np.float64), problem._weights.astype(np.float64)
    theta = np.empty(predictions.shape)
    run(loss_slopes, problem.loss, predictions.astype(np.float64), targets, weights, theta)
    weights = weights[:, None] / problem.n
    if problem.fit_intercept:
        _balance(theta, weights, has_trait(type(problem.loss), "joint"))
    image = -_rows.transpose_times(problem._rows, theta.reshape(problem.n, *problem.shape[1:]))[: problem.p].astype(np.float64)
    scale = 1.0 if problem.l2 > 0.0 else _scale_into_ball(problem, image)
    if scale == 0.0:  # something is not penalised at all
        return math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = np.where(weights > 0.0, scale * theta / weights, 0.0)
    of_losses = float(weights[:, 0] @ problem.loss.conjugate(raw, targets))
    of_penalty = _conjugate_by_prox(problem, image) if problem.l2 > 0.0 else 0.0
    gap = problem.smooth_value(x, predictions) + problem.penalty(x) + of_losses + of_penalty
    return max(gap, 0.0) if not math.isnan(gap) else math.inf


def _balance(theta: Array, weights: Array, joint: bool) -> None:
    """Make theta add up to zero over the rows: with an unpenalised constant no other gives a finite bound.

    Shrinking the rows on the heavier side keeps every slope among those that its loss can have. A joint loss ties a row's
    slopes together, so there all rows are shifted.
    """
    if joint:
        theta -= weights * (theta.sum(axis=0) / weights.sum())
        return
    up, down = np.maximum(theta, 0.0).sum(axis=0), np.maximum(-theta, 0.0).sum(axis=0)
    least = np.minimum(up, down)
    with np.errstate(divide="ignore", invalid="ignore"):
        theta *= np.where(theta > 0.0, np.where(up > 0.0, least / up, 1.0), np.where(down > 0.0, least / down, 1.0))


def _scale_into_ball(problem: Problem, image: Array) -> float:
    """Return the factor that brings ``image`` into the ball of the dual norm."""
    size = problem._bound.lam_max(np.ascontiguousarray(image))
    strength = float(getattr(problem._bound, "lam", 1.0))
    return 1.0 if size <= strength else strength / size * (1.0 - 1e-12)


def _conjugate_by_prox(problem: Problem, v: Array) -> float:
    r"""Return :math:`\max_w \langle v, w\rangle - l_2\|w\|^2 - h(w)`, attained at the prox of ``v / (2 l2)``."""
    packed = np.zeros(problem.packed_shape, problem.dtype)
    packed[: problem.p] = v / (2.0 * problem.l2)
    best = problem.packed_prox(packed, 0.5 / problem.l2)[: problem.p]
    inner = float(np.vdot(v, best.astype(np.float64)))
    return inner - problem.l2 * float(np.vdot(best, best)) - problem.penalty(best)
