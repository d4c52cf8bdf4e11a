r"""The duality gap: a certificate of how far a point can be from the optimum.

With :math:`F(u) = \frac1n \sum_i s_i\,\mathrm{loss}(u_i, y_i)` and :math:`R(w) = l_2\|w\|^2 + h(w)`, every :math:`\theta`
gives a lower bound on the optimum,

.. math:: -F^*(\theta) - R^*(-X^T\theta) \le \min_w F(Xw) + R(w).

The one used is the gradient of F at the predictions, which is optimal at the optimum. With :math:`l_2 > 0` the conjugate of
R is finite everywhere and found by one prox, whatever the regulariser. Without, R is taken to be a norm times its strength; its
conjugate is zero inside the dual norm's ball and infinite outside, and :math:`\theta` is scaled into it. The fused lasso is a
norm but for constants: there the gradient is taken where these are fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import rows as _rows
from ._calls import has_trait
from ._jit import run
from ._passes import each_part, sum_over_rows
from .losses import Multinomial, is_quadratic
from .regularizers import Box, ElasticNet, FusedLasso

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["compile_for", "constant", "dual_of_quadratic", "duality_gap", "has_gap", "ignores_constants", "needs_row_sums"]

Array = np.ndarray[Any, Any]

_DEPENDENT = 1e-12  # what is left of a column, beyond others
_BLOCK = 1 << 20  # entries of a parameter: all that is made of a larger one at once would be several copies


def has_gap(problem: Problem) -> bool:
    """Tell whether a duality gap is known for a problem."""
    known = hasattr(type(problem.loss), "conjugate")
    penalised = problem.l2 > 0.0 or _is_norm(problem) or _has_conjugate(problem)
    return known and (penalised or ignores_constants(problem))


def _has_conjugate(problem: Problem) -> bool:
    """Tell whether the regulariser has a conjugate that is not infinite nearly everywhere."""
    bound = problem._bound
    endless = isinstance(bound, Box) and not (math.isfinite(bound.low) and math.isfinite(bound.high))
    return hasattr(type(bound), "conjugate") and not endless


def _is_norm(problem: Problem) -> bool:
    """Tell whether the regulariser is a norm; with no strength it bounds nothing."""
    bound = problem._bound
    if isinstance(bound, FusedLasso):
        return bound.l1 > 0.0
    return has_trait(type(bound), "is_norm") and float(getattr(bound, "lam", 1.0)) > 0.0


def ignores_constants(problem: Problem) -> bool:
    """Tell whether the regulariser is a norm but for constants, which it does not see; and the loss can be fitted to them.

    With l2 that does not matter: the regulariser and l2 together see everything.
    """
    bound = problem._bound
    fused = isinstance(bound, FusedLasso) and bound.l1 == 0.0 and bound.lam > 0.0 and problem._targets.shape[1] == 1
    return fused and hasattr(type(problem.loss), "second_derivative")


def needs_row_sums(problem: Problem) -> bool:
    """Tell whether a duality gap will ask for the sums of the rows, which are not known yet."""
    return problem.l2 == 0.0 and ignores_constants(problem) and "row sums" not in problem._facts


def duality_gap(
    problem: Problem,
    x: Array,
    predictions: Array | None = None,
    gradient: Array | None = None,
    objective: float | None = None,
    enough: float = math.inf,
) -> float:
    """Return the objective at a packed parameter minus a lower bound on the optimum; infinite if this point gives none.

    Predictions, gradient and objective at x save time if they are known. A gap above ``enough`` may be an estimate, where
    the exact one costs more.
    """
    predictions = problem.predict(x) if predictions is None else predictions
    predictions = predictions.astype(np.promote_types(predictions.dtype, _precision(problem)), copy=False)
    primal = problem.smooth_value(x, predictions) + problem.penalty(x) if objective is None else objective
    best = _gap_of_data(problem, x, primal, predictions, gradient, enough)
    if best > 0.0 and "gram" in problem._facts:  # it was made for other strengths, or for this one
        from .gram import gap_by_step, tells_gaps

        if tells_gaps(problem):
            best = min(best, gap_by_step(problem, x))
    return best


def _gap_of_data(problem: Problem, x: Array, primal: float, predictions: Array, gradient: Array | None, enough: float) -> float:
    """Return the gap to the bound that the slopes give."""
    if problem.l2 > 0.0 or not ignores_constants(problem):
        return _gap(problem, x, primal, predictions, gradient)
    if gradient is not None:
        estimate = _gap(problem, x, primal, predictions, gradient, balance=False)
        if estimate > enough:
            return estimate
    fitted = _fit_constants(problem, predictions)
    if fitted is None:
        return math.inf
    return _gap(problem, x, primal, fitted.predictions, None, balance=False, directions=fitted.directions)


class _Fitted(NamedTuple):
    """Predictions where constants are fitted, and directions that the slopes there must be orthogonal to."""

    predictions: Array
    directions: Array


def _gap(
    problem: Problem,
    x: Array,
    primal: float,
    predictions: Array,
    gradient: Array | None,
    balance: bool = True,
    directions: Array | None = None,
) -> float:
    """Return the gap to the bound that the slopes at some predictions give, once they are orthogonal to some directions."""
    from .problem import add_multiple, loss_slopes

    targets, weights = (given.astype(predictions.dtype, copy=False) for given in (problem._targets, problem._weights))
    theta, changed = None, False
    if gradient is None or directions is not None or (balance and problem.fit_intercept):
        theta, shares = problem.slopes_for(predictions, targets, weights), weights[:, None].astype(np.float64) / problem.n
        if directions is not None and is_quadratic(problem.loss):  # which has any slopes: rounding can be taken out of them
            theta = _orthogonal(theta, directions, np.sqrt(shares))
            if problem.fit_intercept:  # then it does not matter where the targets are, but for rounding
                targets = targets - np.average(targets, axis=0, weights=weights)
        changed = balance and problem.fit_intercept and _balance(problem.loss, theta, shares, targets)
    known = None if gradient is None or changed else gradient[: problem.p]
    if known is None and theta is not None:
        slopes = theta.reshape(problem.n, *problem.shape[1:]).astype(problem.dtype, copy=False)  # or X would be converted
        other = _rows.transpose_times(problem._rows, slopes)[: problem.p]
        np.negative(other, out=other)

    def image(part: slice) -> Array:
        if known is None:
            result = other[part]
        elif problem.l2 == 0.0 and (_is_norm(problem) or ignores_constants(problem) or isinstance(problem._bound, ElasticNet)):
            result = known[part]  # these do not tell it from its negative: a copy less
        else:
            result = -known[part]
            add_multiple(result, 2.0 * problem.l2, x[: problem.p][part])
        return result.astype(np.float64, copy=False)

    if problem.l2 > 0.0:
        scale, of_penalty = 1.0, sum(_conjugate_by_prox(problem, image(part)) for part in _parts(problem))
    else:
        whole = image(slice(problem.p))
        scale, of_penalty = _scale_into_ball(problem, whole), _conjugate(problem, whole)
    if scale == 0.0:  # something is not penalised at all
        return math.inf

    def slopes_of(block: slice) -> Array:
        if theta is not None:
            return theta[block]
        made = np.empty_like(predictions[block])  # and not for all rows, as the system takes its time to give pages
        run(loss_slopes, problem.loss, predictions[block], targets[block], weights[block], problem.n, made)
        return made

    gap = primal + _conjugate_of_losses(problem, slopes_of, targets, weights, scale) + of_penalty
    return max(gap, 0.0) if not math.isnan(gap) else math.inf


def compile_for(problem: Problem) -> None:
    """Compile what a duality gap needs, before any clock starts."""
    from .problem import add_up_fit, loss_slopes

    dtype = _precision(problem)
    nothing, weight = np.zeros((1, problem._targets.shape[1]), dtype), np.zeros(1, dtype)
    run(loss_slopes, problem.loss, nothing, nothing, weight, 1, np.empty_like(nothing))
    _conjugate_of_losses(problem, lambda block: nothing, nothing, weight, 1.0)
    if ignores_constants(problem):
        given, none = problem._targets[:1], np.zeros((1, 1))
        run(add_up_fit, problem.loss, none, given, problem._weights[:1], 1, none, none[0], np.zeros((3, 1)))


def _precision(problem: Problem) -> Any:
    """Return the precision of slopes: double, unless that is as much memory again, and hardly more exact."""
    return np.float64 if problem._targets.shape[1] == 1 or problem.fit_intercept else problem.dtype


def _conjugate_of_losses(
    problem: Problem, slopes_of: Callable[[slice], Array], targets: Array, weights: Array, scale: float
) -> float:
    """Return the conjugate of the mean loss at ``scale`` times the slopes, of which those of some rows are asked for."""
    from .problem import conjugate_of_losses

    def part(block: slice) -> float:
        some = slopes_of(block), targets[block], weights[block]
        return float(run(conjugate_of_losses, problem.loss, *some, problem.n, scale))

    return sum_over_rows(len(targets), problem._numbers_a_row, part)


def _fit_constants(problem: Problem, predictions: Array) -> _Fitted | None:
    """Fit a change of x by a constant, and the intercept, to the data; None if that is not possible.

    Only there do the slopes give a finite bound. Newton's method in one or two dimensions, on vectors of n entries.
    """
    columns = problem._fact("row sums", lambda: _rows.predict(problem._rows, constant(problem)).reshape(problem.n, 1))
    if problem.fit_intercept:
        columns = np.column_stack([np.ones(problem.n), columns])
    columns = _basis(columns.astype(np.float64))  # however far from zero they are, and however large
    away = np.zeros(columns.shape[1])
    for steps in range(1 if is_quadratic(problem.loss) else 50):
        gradient, sizes, *hessian = _sums_of_fit(problem, predictions, columns, away)
        if (np.abs(gradient) <= 1e-13 * sizes).all():
            return _Fitted(predictions - (columns @ away)[:, None] if steps else predictions, columns)
        try:
            away = away + np.linalg.solve(np.array(hessian), gradient)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(away).all():
            return None
    return _Fitted(predictions - (columns @ away)[:, None], columns) if is_quadratic(problem.loss) else None


def _sums_of_fit(problem: Problem, predictions: Array, columns: Array, away: Array) -> Array:
    """Return what ``add_up_fit`` adds up over all rows."""
    from .problem import add_up_fit

    def part(block: slice) -> Array:
        out = np.zeros((2 + away.size, away.size))
        some = predictions[block], problem._targets[block], problem._weights[block]
        run(add_up_fit, problem.loss, *some, problem.n, columns[block], away, out)
        return out

    first, *others = each_part(problem.n, away.size, part)
    return sum(others, first)


def _basis(columns: Array) -> Array:
    """Return orthogonal unit vectors that span some columns."""
    sizes = np.linalg.norm(columns, axis=0)
    columns = columns[:, sizes > 0.0] / sizes[sizes > 0.0]
    if columns.shape[1] == 1:
        return columns
    basis, left = np.linalg.qr(columns)
    return np.ascontiguousarray(basis[:, np.abs(np.diagonal(left)) > _DEPENDENT])


def _orthogonal(theta: Array, directions: Array, roots: Array) -> Array:
    """Return slopes without their part in some directions, those of rows that have the weight zero left zero."""
    basis = _basis(roots * directions)
    scaled = np.divide(theta, roots, out=np.zeros_like(theta), where=roots > 0.0)
    for _ in range(2):  # what rounding leaves the first time
        scaled = scaled - basis @ (basis.T @ scaled)
    return roots * scaled


def constant(problem: Problem) -> Array:
    """Return a packed parameter of ones, and no intercept."""
    result = np.ones(problem.packed_shape, problem.dtype)
    result[problem.p :] = 0.0
    return result


def dual_of_quadratic(problem: Problem, loss: float, inner: float, image: Array) -> float:
    """Return the lower bound that a squared loss's own value, ``<gradient, w>`` and minus its gradient give."""
    scale = _scale_into_ball(problem, image)
    return -scale * (scale * loss + inner - 2.0 * loss) - _conjugate(problem, image)


def _balance(loss: Any, theta: Array, weights: Array, targets: Array) -> bool:
    """Make theta add up to zero over the rows: with an unpenalised constant no other gives a finite bound.

    Shrinking the rows on the heavier side keeps every slope among those that its loss can have. A joint loss ties a row's
    slopes together, so there all rows are shifted, unless they are those of classes. Return whether theta was changed.
    """
    excess = theta.sum(axis=0)
    if (np.abs(excess) <= 1e-15 * np.abs(theta).sum(axis=0)).all():
        return False
    if isinstance(loss, Multinomial):
        # Probabilities less targets: where a class has too much in all, every row gives a share of it to those with too little.
        probable = theta + loss.scale * weights * targets
        taken = probable * (np.maximum(excess, 0.0) / np.maximum(probable.sum(axis=0), np.finfo(np.float64).tiny))
        theta -= taken
        theta += taken.sum(axis=1, keepdims=True) * (np.maximum(-excess, 0.0) / np.maximum(-excess, 0.0).sum())
        return True
    if has_trait(type(loss), "joint"):
        theta -= weights * (theta.sum(axis=0) / weights.sum())
        return True
    up, down = np.maximum(theta, 0.0).sum(axis=0), np.maximum(-theta, 0.0).sum(axis=0)
    least = np.minimum(up, down)
    with np.errstate(divide="ignore", invalid="ignore"):
        theta *= np.where(theta > 0.0, np.where(up > 0.0, least / up, 1.0), np.where(down > 0.0, least / down, 1.0))
    return True


def _scale_into_ball(problem: Problem, image: Array) -> float:
    """Return the factor that brings ``image`` into the ball of the dual norm; 1 where the conjugate is finite anyway."""
    if problem.l2 > 0.0 or not (_is_norm(problem) or ignores_constants(problem)):
        return 1.0
    if isinstance(problem._bound, FusedLasso) and problem._bound.l1 > 0.0:
        return problem._bound.ball_scale(image) * (1.0 - 1e-12)
    size = problem._bound.lam_max(np.ascontiguousarray(image))
    strength = float(getattr(problem._bound, "lam", 1.0))
    return 1.0 if size <= strength else strength / size * (1.0 - 1e-12)


def _conjugate(problem: Problem, image: Array) -> float:
    """Return the conjugate of l2 and the regulariser; a norm's is zero because ``image`` is scaled into its ball."""
    if problem.l2 > 0.0:
        return _conjugate_by_prox(problem, image)
    return float(problem._bound.conjugate(image)) if hasattr(type(problem._bound), "conjugate") else 0.0


def _parts(problem: Problem) -> list[slice]:
    """Return the rows of a parameter for which the prox can be run apart from the others."""
    if not has_trait(type(problem._bound), "elementwise"):
        return [slice(problem.p)]
    rows = max(1, _BLOCK // math.prod(problem.shape[1:]))
    return [slice(start, start + rows) for start in range(0, problem.p, rows)]


def _conjugate_by_prox(problem: Problem, v: Array) -> float:
    r"""Return :math:`\max_w \langle v, w\rangle - l_2\|w\|^2 - h(w)`, attained at the prox of ``v / (2 l2)``."""
    best = np.empty(v.shape, problem.dtype)
    np.divide(v, 2.0 * problem.l2, out=best, casting="same_kind")
    best = problem.packed_prox(best, 0.5 / problem.l2, spend=True)
    inner = float(np.vdot(v, best.astype(np.float64, copy=False)))
    return inner - problem.l2 * float(np.vdot(best, best)) - problem.penalty(best)
