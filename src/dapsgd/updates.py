"""Updates: who runs the prox. This file is the paper's contribution.

Every runtime calls two functions and restates nothing: :func:`work`, on a worker's private copy of the parameter, and
:func:`apply`, at the shared parameter.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ._calls import has_trait
from ._jit import kernel
from ._loops import copy

__all__ = ["Aggregated", "Buffers", "Coupled", "Decoupled", "Pace", "Parts"]
__all__ += ["apply", "make_buffers", "padded", "padded_copy", "runs_in_place", "sweep", "work"]

Array = np.ndarray[Any, Any]

_LINES = 128  # bytes: two cache lines, which processors like to fetch together


class Parts(NamedTuple):
    """The independent choices that make an algorithm for a problem."""

    estimator: Any  # how grad f is estimated
    regularizer: Any
    update: Any  # who runs the prox


class Buffers(NamedTuple):
    """Memory that a worker owns, so that nothing large is allocated in the hot path."""

    predictions: Array  # (q,)
    slopes: Array  # (q,)
    point: Array  # like x: the argument of the prox, or the point that a worker will keep
    share: Array  # (1,): the number of the share that the last message is about


class Pace(NamedTuple):
    """The step-sizes that an update has to do with."""

    read: float  # of the iteration at which the worker read the parameter: what DAP-SGD uses
    now: float  # of the iteration at which the master applies the update: what TAP-SGD uses
    allowed: float  # the longest that is allowed after the steps taken in between; infinite but for delay-adaptive steps


def make_buffers(targets: int, x: Array, point: Array | None = None) -> Buffers:
    """Allocate a worker's buffers for so many targets and a parameter like x; ``point`` may be memory that there is already."""
    point = padded(x.shape, x.dtype) if point is None else point
    return Buffers(padded(targets, x.dtype), padded(targets, x.dtype), point, padded(1, np.int64))


def runs_in_place(update: Any, regularizer: Any) -> bool:
    """Tell whether the argument of a worker's prox, ``Buffers.point``, may be its message itself."""
    return update is Decoupled and has_trait(type(regularizer), "in_place")


def padded(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """Allocate zeros that begin with a cache line, as vector instructions like it, and share none with another worker's."""
    size = math.prod(shape) if isinstance(shape, tuple) else shape
    raw = np.zeros(size * np.dtype(dtype).itemsize + 2 * _LINES, np.uint8)
    start = -raw.ctypes.data % _LINES
    return raw[start : start + size * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


def padded_copy(x: Array) -> Array:
    """Copy an array to such a place."""
    result = padded(x.shape, x.dtype)
    result[...] = x
    return result


@kernel
def work(parts: Parts, x: Array, batch: Array, eta: float, buffers: Buffers, message: Array) -> bool:
    """Write a worker's message about its copy ``x`` and some rows to ``message``; return whether it is finite."""
    return parts.update.send(parts, x, batch, eta, buffers, message)


@kernel
def apply(parts: Parts, x: Array, message: Array, own: Array, pace: Pace, start: int, stop: int, buffers: Buffers) -> None:
    """Update rows ``start:stop`` of the parameter ``x`` by a message about a worker's copy ``own``, which is updated, too.

    Updating and reading again is one pass over memory. A worker that is alone has no copy: ``own`` may be ``x`` itself.
    """
    parts.update.apply(parts.regularizer, x[start:stop], message[start:stop], own[start:stop], pace, start, buffers)


@kernel
def sweep(parts: Parts, x: Array, batches: Array, eta: float, buffers: Buffers, message: Array) -> bool:
    """Look at one batch after the other, each from where the last one left x; the sum of it all is one message."""
    finite = True
    for k in range(batches.shape[0]):
        finite = work(parts, x, batches[k], eta, buffers, message) and finite
        apply(parts, x, message, x, Pace(eta, eta, np.inf), 0, x.shape[0], buffers)
    return finite


class Decoupled(NamedTuple):
    """DAP-SGD, Equation (8): the worker runs the prox; the master only adds the difference that it made.

    In shared memory the message is ``x'`` itself, and ``x' - x`` is formed while it is added: a pass over the parameter
    less. Where messages travel, send ``x' - x`` and apply it as a message about zero.
    """

    penalised: int  # the regulariser sees this many rows of x; the intercept, if any, is the one after

    def send(self, parts: Any, x: Array, batch: Array, eta: float, buffers: Any, out: Array) -> bool:
        """Write ``x' = prox(x - eta * g(x))``."""
        finite = parts.estimator.estimate(x, batch, 1.0, -eta, buffers, buffers.point)
        prox_of_penalised(parts.regularizer, self.penalised, buffers.point, eta, out)
        return finite

    def apply(self, regularizer: Any, x: Array, message: Array, own: Array, pace: Pace, start: int, buffers: Any) -> None:
        """Add the difference, or less of it where the step it was made with is longer than allowed by now."""
        add_difference(message.ravel(), x.dtype.type(min(1.0, pace.allowed / pace.read)), own.ravel(), x.ravel())


@kernel
def add_difference(message: Array, factor: float, own: Array, x: Array) -> None:
    """Add ``factor * (message - own)`` to ``x``, and copy the sum to ``own``.

    The two cases are said apart, because the compiler gives up on vector instructions where arrays may overlap.
    """
    if own is x:
        for j in range(x.size):
            x[j] += factor * (message[j] - x[j])
    else:
        for j in range(x.size):
            entry = x[j] + factor * (message[j] - own[j])
            x[j] = entry
            own[j] = entry


class Aggregated(NamedTuple):
    r"""DAve-RPG: the parameter is the mean of points that the workers keep; they run the prox before the gradient step.

    Worker i owns a share :math:`\pi_i` of the rows. It reads the mean :math:`\bar x`, computes
    :math:`z = \mathrm{prox}_{\eta h}(\bar x)` and :math:`x_i' = z - \eta \nabla f_i(z)`, sends
    :math:`\pi_i (x_i' - x_i)` and keeps :math:`x_i'`; the master adds. The answer is the prox of the mean. As every share is
    always present in the mean, with an old gradient at worst, the step depends on no delay.

    References
    ----------
    Mishchenko, Iutzeler, Malick, Amini: A delay-tolerant proximal-gradient algorithm for distributed learning, ICML 2018.
    """

    penalised: int  # the regulariser sees this many rows of x; the intercept, if any, is the one after
    n: int  # rows of all shares together
    memory: Array  # (shares, *shape of x): x_i, which nobody but the owner of the share touches

    def send(self, parts: Any, x: Array, batch: Array, eta: float, buffers: Any, out: Array) -> bool:
        """Write what the mean becomes if nobody else changes it."""
        prox_of_penalised(parts.regularizer, self.penalised, x, eta, out)
        finite = parts.estimator.estimate(out, batch, 1.0, -eta, buffers, buffers.point)
        share = x.dtype.type((batch[2] + 1 - batch[1]) / self.n)
        buffers.share[0] = batch[0]
        move(x.ravel(), share, buffers.point.ravel(), self.memory[batch[0]].ravel(), out.ravel())
        return finite

    def apply(self, regularizer: Any, x: Array, message: Array, own: Array, pace: Pace, start: int, buffers: Any) -> None:
        """Add the difference; only now the worker's point changes, so that it never runs ahead of the mean."""
        add_difference(message.ravel(), x.dtype.type(1.0), own.ravel(), x.ravel())
        stop = start + len(x)
        copy(buffers.point[start:stop], self.memory[buffers.share[0], start:stop])


@kernel
def move(x: Array, share: float, point: Array, memory: Array, out: Array) -> None:
    """Write ``x + share * (point - memory)`` to ``out``."""
    for j in range(x.size):
        out[j] = x[j] + share * (point[j] - memory[j])


class Coupled(NamedTuple):
    """TAP-SGD, Equation (3): the worker sends a gradient; the master runs the prox."""

    penalised: int  # the regulariser sees this many rows of x; the intercept, if any, is the one after

    def send(self, parts: Any, x: Array, batch: Array, eta: float, buffers: Any, out: Array) -> bool:
        """Write ``g(x)``."""
        return parts.estimator.estimate(x, batch, 0.0, 1.0, buffers, out)

    def apply(self, regularizer: Any, x: Array, message: Array, own: Array, pace: Pace, start: int, buffers: Any) -> None:
        """Run the prox of ``x - eta * g``; on a part of the rows only if the regulariser is element-wise."""
        eta = min(pace.now, pace.allowed)
        argument = buffers.point[start : start + len(x)]
        subtract(x.ravel(), x.dtype.type(eta), message.ravel(), argument.ravel())
        prox_of_penalised(regularizer, max(min(self.penalised - start, len(x)), 0), argument, eta, own)
        if own is not x:
            copy(own, x)


@kernel
def subtract(x: Array, step: float, gradient: Array, out: Array) -> None:
    """Write ``x - step * gradient`` to ``out``."""
    for j in range(x.size):
        out[j] = x[j] - step * gradient[j]


@kernel
def prox_of_penalised(regularizer: Any, penalised: int, v: Array, step: float, out: Array) -> None:
    """Run the prox on the first rows and copy the others, which belong to the intercept."""
    if penalised == v.shape[0]:
        regularizer.prox(v, step, out)
    else:
        regularizer.prox(v[:penalised], step, out[:penalised])
        copy(v[penalised:], out[penalised:])
