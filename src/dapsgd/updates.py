"""Updates: who runs the prox. This file is the paper's contribution.

Every runtime calls two functions and restates nothing: :func:`work`, on a worker's private copy of the parameter, and
:func:`apply`, at the shared parameter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._jit import kernel
from ._loops import copy

__all__ = ["Buffers", "Coupled", "Decoupled", "Pace", "Parts", "apply", "make_buffers", "padded", "work"]

Array = np.ndarray[Any, Any]


class Parts(NamedTuple):
    """The independent choices that make an algorithm for a problem."""

    estimator: Any  # how grad f is estimated
    regularizer: Any
    update: Any  # who runs the prox


class Buffers(NamedTuple):
    """Memory that a worker owns, so that the hot path allocates nothing."""

    predictions: Array  # (q,)
    slopes: Array  # (q,)
    point: Array  # like x: the argument of the prox


class Pace(NamedTuple):
    """The step-sizes that an update has to do with."""

    read: float  # of the iteration at which the worker read the parameter: what DAP-SGD uses
    now: float  # of the iteration at which the master applies the update: what TAP-SGD uses
    allowed: float  # the longest that is allowed after the steps taken in between; infinite but for delay-adaptive steps


def make_buffers(targets: int, x: Array) -> Buffers:
    """Allocate a worker's buffers for so many targets and a parameter like x."""
    return Buffers(padded(targets, x.dtype), padded(targets, x.dtype), np.zeros_like(x))


def padded(size: int, dtype: Any) -> Array:
    """Allocate zeros that share no cache line with another worker's."""
    margin = 128 // np.dtype(dtype).itemsize
    return np.zeros(size + 2 * margin, dtype)[margin : margin + size]


@kernel
def work(parts: Parts, x: Array, batch: Array, eta: float, buffers: Buffers, message: Array) -> bool:
    """Write a worker's message about its copy ``x`` and some rows to ``message``; return whether it is finite."""
    return parts.update.send(parts, x, batch, eta, buffers, message)


@kernel
def apply(parts: Parts, x: Array, message: Array, pace: Pace, start: int, stop: int, buffers: Buffers, out: Array) -> None:
    """Write rows ``start:stop`` of the parameter ``x`` after a message to ``out``, which may be x itself."""
    parts.update.apply(parts.regularizer, x, message, pace, start, stop, buffers.point, out)


class Decoupled(NamedTuple):
    """DAP-SGD, Equation (8): the worker runs the prox and sends a difference; the master only adds."""

    penalised: int  # the regulariser sees this many rows of x; the intercept, if any, is the one after

    def send(self, parts: Any, x: Array, batch: Array, eta: float, buffers: Any, out: Array) -> bool:
        """Write ``delta = prox(x - eta * g(x)) - x``."""
        finite = parts.estimator.estimate(x, batch, 1.0, -eta, buffers, buffers.point)
        prox_of_penalised(parts.regularizer, self.penalised, buffers.point, eta, out)
        delta, read = out.ravel(), x.ravel()
        for j in range(delta.size):
            delta[j] -= read[j]
        return finite

    def apply(
        self, regularizer: Any, x: Array, message: Array, pace: Pace, start: int, stop: int, point: Array, out: Array
    ) -> None:
        """Add the difference, or less of it where the step it was made with is longer than allowed by now."""
        old, delta, new = x[start:stop].ravel(), message[start:stop].ravel(), out[start:stop].ravel()
        factor = x.dtype.type(min(1.0, pace.allowed / pace.read))
        if old is new:  # said apart, because the compiler gives up on vector instructions where the two may overlap
            for j in range(new.size):
                new[j] += factor * delta[j]
        else:
            for j in range(new.size):
                new[j] = old[j] + factor * delta[j]


class Coupled(NamedTuple):
    """TAP-SGD, Equation (3): the worker sends a gradient; the master runs the prox."""

    penalised: int  # the regulariser sees this many rows of x; the intercept, if any, is the one after

    def send(self, parts: Any, x: Array, batch: Array, eta: float, buffers: Any, out: Array) -> bool:
        """Write ``g(x)``."""
        return parts.estimator.estimate(x, batch, 0.0, 1.0, buffers, out)

    def apply(
        self, regularizer: Any, x: Array, message: Array, pace: Pace, start: int, stop: int, point: Array, out: Array
    ) -> None:
        """Run the prox of ``x - eta * g``; for a slice of the rows only if the regulariser is element-wise."""
        old, gradient, argument = x[start:stop].ravel(), message[start:stop].ravel(), point[start:stop].ravel()
        eta = min(pace.now, pace.allowed)
        step = x.dtype.type(eta)
        for j in range(old.size):
            argument[j] = old[j] - step * gradient[j]
        penalised = max(min(self.penalised, stop) - start, 0)
        prox_of_penalised(regularizer, penalised, point[start:stop], eta, out[start:stop])


@kernel
def prox_of_penalised(regularizer: Any, penalised: int, v: Array, step: float, out: Array) -> None:
    """Run the prox on the first rows and copy the others, which belong to the intercept."""
    if penalised == v.shape[0]:
        regularizer.prox(v, step, out)
    else:
        regularizer.prox(v[:penalised], step, out[:penalised])
        copy(v[penalised:], out[penalised:])
