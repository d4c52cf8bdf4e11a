r"""The paper's theory: constants of a problem, the theorems' steps, and their bounds as curves.

The names are the paper's: :math:`L` and :math:`\mu` of f, :math:`C_f` bounds the variance of the gradients, :math:`C_h` the
squared subgradients of h, and :math:`C_1` to :math:`C_5` are those of the appendix. :math:`\tau` is ``max_delay``.

Three things are not as printed, because the printed ones are too small or too loose:

- the sums over :math:`p = 0, \ldots, 2\tau` have :math:`2\tau + 1` terms, which the appendix counts as :math:`2\tau`;
- :math:`C_3 = u/(u - \mu\tau)` does not bound the ratio it is meant for, :math:`1 + 2\mu\tau/(\mu + u)` does;
- :math:`C_h` comes from the tight bounds on subgradients; :func:`printed_subgradient_bound` has the paper's.

A run without delay is one with delays of at most 1, so :math:`\tau` is at least 1 in all formulas.

References
----------
Li, Xu, Zhong, Ling: Make workers work harder: decoupled asynchronous proximal stochastic gradient descent, Appendix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import rows as _rows
from ._calls import has_trait
from ._checks import finite_array, non_negative, non_negative_integer, number, positive, positive_integer
from ._memory import require_memory
from .fista import minimise
from .problem import Problem
from .steps import Theorem1, Theorem2

__all__ = ["Constants", "constants", "gradient_variance", "printed_subgradient_bound", "strong_convexity", "variance_bound"]

Array = np.ndarray[Any, Any]

_EXACT_COLUMNS = 3000  # up to so many an eigenvalue decomposition is cheap


@dataclass(frozen=True)
class Constants:
    r"""What the theorems know of a problem.

    Attributes
    ----------
    L : float
        The smoothness of f.
    mu : float
        The strong convexity of f; the theorems need it to be positive.
    C_f : float
        The bound on the variance of a mini-batch's gradient.
    C_h : float
        The bound on the squared norm of a subgradient of h.
    max_delay : int
        The paper's :math:`\tau`.

    Examples
    --------
    >>> import dapsgd as ds
    >>> theory = ds.theory.Constants(L=2.0, mu=1.0, C_f=1.0, C_h=1.0, max_delay=4)
    >>> theory.C4, theory.C5
    (904.0, 267.0)
    >>> step = theory.theorem1()
    >>> bool(1.0 / (step.mu + step.u) <= 1.0 / (16.0 * theory.C1(step.u)) * (1 + 1e-9))
    True
    """

    L: float
    mu: float
    C_f: float
    C_h: float
    max_delay: int

    def __post_init__(self) -> None:
        for name in ("L", "C_f", "C_h"):
            non_negative(f"Constants: {name}", getattr(self, name))
        positive("Constants: mu", self.mu)
        non_negative_integer("Constants: max_delay", self.max_delay)
        if self.mu > self.L * (1.0 + 1e-2):
            raise ValueError(f"Constants: mu must be at most L; got mu={self.mu:g} and L={self.L:g}")

    @property
    def tau(self) -> int:
        """The bound on the delay in the formulas, at least 1."""
        return max(self.max_delay, 1)

    def C1(self, u: float) -> float:  # noqa: N802
        """Return C1 for Theorem 1's step with this u."""
        top = self._checked(u)
        twice = top / (top - 2.0 * self.mu * self.tau)
        square = self.L**2
        inner = 2.0 * square * twice + 48.0 * self.tau * square + 8.0 * self.tau * square * twice
        return inner * top / (top - self.mu * self.tau) + 18.0 * square

    def C2(self, u: float) -> float:  # noqa: N802
        """Return C2 for Theorem 1's step with this u."""
        top = self._checked(u)
        return self.C5 * (top / (top - 2.0 * self.mu * self.tau)) ** 2

    def C3(self, u: float) -> float:  # noqa: N802
        """Return C3 for Theorem 1's step with this u, as printed."""
        self._checked(u)
        return u / (u - self.mu * self.tau)

    def _checked(self, u: float) -> float:
        """Return ``mu + u`` if Theorem 1 may have this u."""
        if not number("u", u) > (2.0 * self.tau - 1.0) * self.mu or not math.isfinite(u):
            raise ValueError(f"u must be larger than (2 tau - 1) mu = {(2.0 * self.tau - 1.0) * self.mu:g}; got {u:g}")
        return self.mu + u

    @property
    def C4(self) -> float:  # noqa: N802
        """The paper's C4."""
        return (2.0 + 56.0 * self.tau) * self.L**2

    @property
    def C5(self) -> float:  # noqa: N802
        """The paper's C5."""
        return (16.0 * self.tau + 8.0) * self.C_f + (43.0 * self.tau + 23.0) * self.C_h

    def smallest_u(self) -> float:
        r"""Return the smallest u that Theorem 1 allows.

        It has :math:`u > (2\tau - 1)\mu` and :math:`\eta_0 = 1/(\mu + u) \le \min(\mu/(4 C_1 \tau), 1/L)`. C1 decreases
        with u, so there is one smallest, found by bisection.
        """

        def allowed(u: float) -> bool:
            return self.mu + u >= max(4.0 * self.tau * self.C1(u) / self.mu, self.L)

        low = (2.0 * self.tau - 1.0) * self.mu
        high = max(2.0 * low, 1.0, self.L)
        while not allowed(high):
            high *= 2.0
        while high - low > 1e-12 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if middle > low and allowed(middle) else (middle, high)
        return high

    def smallest_v(self, T: int) -> float:
        r"""Return the smallest v that Theorem 2 allows for T iterations.

        It has :math:`1/(v\sqrt T) \le \min(\mu/(4 C_4 \tau), 1/L)`.
        """
        return max(4.0 * self.C4 * self.tau / self.mu, self.L) / math.sqrt(positive_integer("T", T))

    def theorem1(self) -> Theorem1:
        """Return Theorem 1's step with the smallest u, for ``solve``."""
        return Theorem1(self.mu, self.smallest_u())

    def theorem2(self, T: int, v: float | None = None) -> Theorem2:
        """Return Theorem 2's step for T iterations, with the smallest v unless one is given, for ``solve``."""
        return Theorem2(self.smallest_v(T) if v is None else v, T)

    def bound1(self, T: Any, distance: float, u: float | None = None) -> Array:
        r"""Return Theorem 1's bound on :math:`E\|x_T - x^\star\|^2` for each T.

        Parameters
        ----------
        T : int or array of int
        distance : float
            :math:`\|x_0 - x^\star\|`.
        u : float, optional
            The smallest by default.
        """
        T, start = _iterations(T), non_negative("distance", distance) ** 2
        u = self.smallest_u() if u is None else u
        terms, top = 2 * self.tau + 1, self.mu + u
        kept = 1.0 - terms * self.C1(u) / (self.mu * top)  # the appendix has 1/2, for 2 tau terms
        if kept <= 0.0:
            raise ValueError(f"u must be at least {self.smallest_u():g} for Theorem 1; got {u:g}")
        steps, squares = _sums_of_steps(self.mu, u, T)
        ratio = max(self.C3(u), 1.0 + 2.0 * self.mu * self.tau / top)
        past = terms * self.C1(u) * ratio * (start + self.C2(u) * squares) / (self.mu * kept)
        return (u * start + past + self.C2(u) * steps) / (self.mu * T + u)

    def bound2(self, T: Any, distance: float, v: float) -> Array:
        r"""Return Theorem 2's bound on :math:`E\|\bar x_T - x^\star\|^2` for each T, with the step :math:`1/(v\sqrt T)`."""
        T, start = _iterations(T), non_negative("distance", distance) ** 2
        eta = 1.0 / (positive("v", v) * np.sqrt(T))
        kept = 1.0 - (2 * self.tau + 1) * self.C4 * eta / self.mu
        if (kept <= 0.0).any():
            raise ValueError(f"v must be at least {self.smallest_v(int(T.min())):g} for T = {T.min():g}; got {v:g}")
        result: Array = (start / eta + self.C5 * (T + 1.0) * eta) / (kept * self.mu * (T + 1.0))
        return result


def _iterations(T: Any) -> Array:
    T = np.asarray(T, dtype=np.float64)
    if T.size == 0 or not (T >= 1.0).all():
        raise ValueError("T must be at least 1")
    return T


def _sums_of_steps(mu: float, u: float, T: Array) -> tuple[Array, Array]:
    """Bound the sums of the steps and of their squares over t = 0 to T-1, by their first terms and integrals."""
    first = 1.0 / (mu + u)
    steps = first + np.log((mu * T + u) / (mu + u)) / mu
    squares = first**2 + (first - 1.0 / (mu * T + u)) / mu
    return steps, squares


def constants(
    problem: Problem, *, max_delay: int, x_star: Any = None, x0: Any = None, radius: float | None = None, batch_size: int = 1
) -> Constants:
    r"""Find the constants of a problem.

    L is exact to about 1e-3. mu is exact for the squared loss with up to 3,000 columns and :math:`2 l_2`, a lower bound,
    otherwise. C_h is the tight bound of the regulariser. C_f has no finite value for losses whose derivative grows, such as
    squares, unless x is confined: it holds in the ball of a given radius about the optimum.

    Parameters
    ----------
    problem : Problem
    max_delay : int
        The bound on the delay.
    x_star : array, optional
        The optimum; computed if it is not given.
    x0 : array, optional
        The starting point, zero by default.
    radius : float, optional
        Of the ball in which C_f is to hold; by default the distance from ``x0`` to the optimum.
    batch_size : int, default 1
        Rows in a mini-batch.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> problem = ds.Problem(np.eye(4), np.arange(4.0), regularizer=ds.L1(0.1), l2=0.5)
    >>> theory = ds.theory.constants(problem, max_delay=2)
    >>> round(theory.mu, 6), round(theory.C_h, 6)
    (1.5, 0.04)
    """
    start = np.zeros(problem.packed_shape, problem.dtype) if x0 is None else problem.pack(x0, name="x0")
    if x_star is None:
        best = minimise(problem, start, tol=1e-10, scale=1.0, max_iter=20_000).x
    else:
        best = problem.pack(finite_array("x_star", x_star), name="x_star")
    if radius is None:
        radius = float(np.linalg.norm((start - best).astype(np.float64).ravel()))
    bound = getattr(problem._bound, "subgradient_bound", None)
    if bound is None:
        raise ValueError(f"{type(problem.regularizer).__name__} must say its subgradient_bound(shape) for C_h to be known")
    subgradient = float(bound(problem.shape))
    if not math.isfinite(subgradient):
        raise ValueError(f"{type(problem.regularizer).__name__} has no bounded subgradient, which the theorems ask for")
    return Constants(
        L=problem.lipschitz(),
        mu=strong_convexity(problem),
        C_f=variance_bound(problem, best, non_negative("radius", radius)) / positive_integer("batch_size", batch_size),
        C_h=subgradient**2,
        max_delay=max_delay,
    )


def strong_convexity(problem: Problem) -> float:
    """Return mu of f: exact for the squared loss with up to 3,000 columns, otherwise the lower bound that l2 gives."""
    convexity = float(getattr(problem.loss, "convexity", 0.0))
    size = problem.packed_shape[0]
    least = 0.0 if problem.fit_intercept else 2.0 * problem.l2
    if convexity == 0.0 or size > _EXACT_COLUMNS or (problem.n < size and not problem.fit_intercept):
        return least
    weights = problem._weights.astype(np.float64) / problem.n
    require_memory(2 * 8 * problem.n * size, "a dense copy of X in double precision", "give mu yourself")
    X: Any = _rows.matrix(problem._rows)
    X = (X.toarray() if hasattr(X, "toarray") else np.asarray(X)).astype(np.float64)
    if problem.fit_intercept:
        X = np.concatenate([X, np.ones((problem.n, 1))], axis=1)
    hessian = convexity * (X.T * weights) @ X
    hessian[np.arange(problem.p), np.arange(problem.p)] += 2.0 * problem.l2
    values = np.linalg.eigvalsh(hessian)
    rounding = 10.0 * size * float(np.finfo(np.float64).eps) * float(values[-1])  # zero must not be taken for positive
    return max(least, float(values[0]) - rounding)


def gradient_variance(problem: Problem, x: Array) -> float:
    r"""Return :math:`E_i \|\nabla f_i(x) - \nabla f(x)\|^2` at a packed parameter, exactly."""
    predictions = problem.predict(x)
    slopes = problem.slopes(predictions)
    mean = _rows.transpose_times(problem._rows, slopes.reshape(problem.n, *problem.shape[1:])).astype(np.float64)
    second = problem.n * float(((slopes.astype(np.float64) ** 2).sum(axis=1) * _rows.squared_norms(problem._rows)).sum())
    return max(second - float((mean**2).sum()), 0.0)


def variance_bound(problem: Problem, center: Array, radius: float) -> float:
    r"""Return a bound on the variance of a row's gradient in a ball.

    With :math:`d_i = \nabla f_i - \nabla f`, the root of :math:`E\|d_i\|^2` grows from the centre at most as fast as the
    root mean square of the rows' smoothness. Where the loss has a bounded derivative, its bound is taken if it is smaller.
    """
    norms, weights = _rows.squared_norms(problem._rows), problem._weights.astype(np.float64)
    smoothness = float(getattr(problem.loss, "curvature", math.inf)) * norms * weights
    growth = radius * math.sqrt(float((smoothness**2).mean())) if radius > 0.0 else 0.0
    local = (math.sqrt(gradient_variance(problem, center)) + growth) ** 2
    slope = float(getattr(problem.loss, "largest_slope", math.inf))
    if not has_trait(type(problem.loss), "joint"):
        slope *= math.sqrt(problem._targets.shape[1])  # each prediction has a slope of its own
    everywhere = float((slope**2 * weights**2 * norms).mean()) if math.isfinite(slope) else math.inf
    return min(local, everywhere)


def printed_subgradient_bound(problem: Problem) -> float:
    r"""Return the paper's own bound on a subgradient's norm, times the strength; infinite where it has none.

    :math:`m` for L1, :math:`g` for g groups, :math:`\sqrt2\,m(m-1)` for the simplified fused lasso, :math:`d^2 + d` with
    :math:`d = \min(m, q)` for the nuclear norm.
    """
    from .regularizers import L1, FusedLasso, GroupLasso, NuclearNorm

    regularizer, m = problem.regularizer, int(np.prod(problem.shape))
    if isinstance(regularizer, L1):
        return regularizer.lam * m
    if isinstance(regularizer, GroupLasso) and regularizer.weights is None:
        return regularizer.lam * (len(problem._bound.starts) - 1)
    if isinstance(regularizer, FusedLasso) and regularizer.l1 == 0.0 and len(problem.shape) == 1:
        return regularizer.lam * math.sqrt(2.0) * m * (m - 1)
    if isinstance(regularizer, NuclearNorm):
        d = min(problem.shape) if len(problem.shape) == 2 else 1
        return regularizer.lam * (d * d + d)
    return math.inf
