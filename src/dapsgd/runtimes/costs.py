"""How long things take in a simulation, or how late updates are: distributions with a mean that one can imagine.

A model is used twice: as seconds, for what a worker or the master needs, and as a number of updates, for a delay. It says
``sample(rng, start, count)``, the numbers from the ``start``-th on, and ``factors(workers)``, by what each worker's are
multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._checks import finite_array, non_negative, non_negative_integer, number, positive, validated

__all__ = ["Exponential", "Fixed", "HeavyTailed", "Recorded", "Straggler", "as_model"]

Array = np.ndarray[Any, Any]


@validated(value=non_negative)
class Fixed(NamedTuple):
    """Always the same number, of seconds or of updates.

    Parameters
    ----------
    value : float

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Fixed(2e-6)
    Fixed(value=2e-06)
    """

    value: float

    def sample(self, rng: np.random.Generator, start: int, count: int) -> Array:
        """Return the next numbers."""
        return np.full(count, self.value)

    def factors(self, workers: int) -> Array:
        """Return by what each worker's numbers are multiplied."""
        return np.ones(workers)


@validated(mean=non_negative)
class Exponential(NamedTuple):
    """Exponentially distributed: most are short, few are some times the mean.

    Parameters
    ----------
    mean : float
        In seconds, or in updates for a delay.
    """

    mean: float

    def sample(self, rng: np.random.Generator, start: int, count: int) -> Array:
        """Return the next numbers."""
        return self.mean * rng.standard_exponential(count)

    def factors(self, workers: int) -> Array:
        """Return by what each worker's numbers are multiplied."""
        return np.ones(workers)


def _tail(name: str, value: Any) -> float:
    if not number(name, value) > 1.0:
        raise ValueError(f"{name} must be > 1, or there is no mean; got {value!r}")
    return positive(name, value)


@validated(mean=non_negative, tail=_tail)
class HeavyTailed(NamedTuple):
    """Pareto-distributed: now and then one is very long.

    Parameters
    ----------
    mean : float
    tail : float, default 1.5
        The smaller, the heavier; larger than 1. With 2 or less the variance is infinite.
    """

    mean: float
    tail: float = 1.5

    def sample(self, rng: np.random.Generator, start: int, count: int) -> Array:
        """Return the next numbers."""
        return self.mean * (self.tail - 1.0) / self.tail * (1.0 + rng.pareto(self.tail, count))

    def factors(self, workers: int) -> Array:
        """Return by what each worker's numbers are multiplied."""
        return np.ones(workers)


def _model(name: str, value: Any) -> Any:
    return as_model(name, value)


@validated(base=_model, factor=positive, worker=non_negative_integer)
class Straggler(NamedTuple):
    """Another model, with one worker that is slower than all others.

    Parameters
    ----------
    base : model or number
    factor : float, default 10
        By which the straggler is slower.
    worker : int, default 0
        Who it is.
    """

    base: Any
    factor: float = 10.0
    worker: int = 0

    def sample(self, rng: np.random.Generator, start: int, count: int) -> Array:
        """Return the next numbers."""
        result: Array = self.base.sample(rng, start, count)
        return result

    def factors(self, workers: int) -> Array:
        """Return by what each worker's numbers are multiplied."""
        if self.worker >= workers:
            raise ValueError(f"Straggler: worker must be less than the number of workers, {workers}; got {self.worker}")
        result: Array = self.base.factors(workers)
        result[self.worker] *= self.factor
        return result


def _log(name: str, value: Any) -> Array:
    log = finite_array(name, value, np.float64)
    if log.ndim != 1 or log.size == 0:
        raise ValueError(f"{name} must be a list of at least one number; got shape {log.shape}")
    if (log < 0.0).any():
        raise ValueError(f"{name} must be >= 0; got {log.min():g}")
    return log.copy()


@validated(log=_log)
class Recorded(NamedTuple):
    """What was recorded of a real run, one number after the other, and from the start again.

    Parameters
    ----------
    log : array
        Seconds, or updates for a delay.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> ds.Recorded([1, 4, 2]).sample(np.random.default_rng(0), start=0, count=5)
    array([1., 4., 2., 1., 4.])
    """

    log: Any

    def sample(self, rng: np.random.Generator, start: int, count: int) -> Array:
        """Return the next numbers."""
        result: Array = self.log[np.arange(start, start + count) % len(self.log)]
        return result

    def factors(self, workers: int) -> Array:
        """Return by what each worker's numbers are multiplied."""
        return np.ones(workers)


MODELS: tuple[Callable[..., Any], ...] = (Fixed, Exponential, HeavyTailed, Straggler, Recorded)


def as_model(name: str, value: Any) -> Any:
    """Return a model; a plain number is a fixed one."""
    if isinstance(value, (Fixed, Exponential, HeavyTailed, Straggler, Recorded)):
        return value
    if isinstance(value, tuple) or not np.isscalar(value):
        raise TypeError(
            f"{name} must be a number, or dapsgd.Fixed, Exponential, HeavyTailed, Straggler or Recorded; got {value!r}"
        )
    return Fixed(non_negative(name, value))
