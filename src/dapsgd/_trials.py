"""Tries a regulariser at random points: its prox must be that of a convex function, and of its own value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._calls import run_value
from ._checks import positive_integer
from ._first_use import compare
from ._terms import bind, prox

__all__ = ["check_regularizer"]

Array = np.ndarray[Any, Any]

_STEPS = (0.1, 1.0, 10.0)
_SLACK = 1e-6  # relative, for rounding and for a prox that iterates


def check_regularizer(regularizer: Any, shape: int | tuple[int, ...], *, seed: int = 0) -> None:
    r"""Raise if a regulariser's ``prox`` does not fit its ``value``, as far as random points show.

    At points of three sizes, and with three steps, p = prox(v, step) must have a finite value, and

    .. math:: \frac{\|u - v\|^2}{2\,\mathrm{step}} + h(u)

    must not be smaller at other points u than at p. Two such p must be at least as close as a convex h brings them together:
    :math:`\|p - p'\|^2 \le \langle p - p', v - v' \rangle`.

    Parameters
    ----------
    regularizer : regulariser
        Your own, or a built-in.
    shape : int or tuple of int
        The shape of the coefficients: p, or (p, q) with several targets.
    seed : int, default 0
        Which points.

    Raises
    ------
    ValueError
        If it is found wrong; the message says in what.
    TypeError
        If compiled code cannot use it.

    Examples
    --------
    >>> import dapsgd as ds
    >>> from typing import NamedTuple
    >>> ds.check_regularizer(ds.FusedLasso(0.5), 20)
    >>> class Ridge(NamedTuple):
    ...     lam: float
    ...     def value(self, w):
    ...         return self.lam * (w * w).sum()
    ...     def prox(self, v, step, out):
    ...         out[:] = v / (1.0 + 2.0 * self.lam)
    >>> ds.check_regularizer(Ridge(0.5), 20)
    Traceback (most recent call last):
        ...
    ValueError: Ridge.prox is not the minimiser for step 0.1: ... Is step left out, ...
    """
    size = tuple(positive_integer("shape", one) for one in (shape if isinstance(shape, tuple) else (shape,)))
    if len(size) not in (1, 2):
        raise ValueError(f"shape must be p or (p, q); got {shape!r}")
    name, bound, rng = type(regularizer).__name__, bind(regularizer, size), np.random.default_rng(seed)
    for scale in (0.1, 1.0, 10.0):
        v, other = scale * rng.standard_normal((2, *size))
        for step in _STEPS:
            p, q = prox(regularizer, v, step), prox(regularizer, other, step)
            value = run_value(bound, p)
            if not math.isfinite(value):
                raise ValueError(f"{name}.value must be finite at what {name}.prox returns; it is {value}")
            compare(bound, v, step, p, _others(regularizer, v, p, q, rng), _SLACK)
            for moved, apart in ((p - q, v - other), (p - prox(regularizer, 1.2 * v, step), -0.2 * v)):
                if (moved * moved).sum() <= (moved * apart).sum() + _SLACK * (1.0 + (apart * apart).sum()):
                    continue
                raise ValueError(
                    f"{name}.prox moves points apart, with step {step:g}, as that of no convex function does: the algorithms "
                    "and their certificates are for a convex h only"
                )


def _others(regularizer: Any, v: Array, p: Array, q: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Give points to compare p with: on the way to v, to zero and to proximal points, where h is finite, and around."""
    ends = [v, np.zeros_like(v), q, *(prox(regularizer, v, step) for step in _STEPS)]
    for near in (1e-3, 0.1, 1.0):
        for end in ends:
            yield p + near * (end - p)
        yield p + near * np.abs(v).mean() * rng.standard_normal(v.shape)
