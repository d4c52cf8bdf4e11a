"""What a run gives back: the answer, how good it is, and how it got there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ._checks import non_negative_integer
from ._summaries import about_result, as_html, as_text, counted, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .runtimes.ray.statistics import ClusterStatistics

__all__ = ["Result", "Schedule", "Trace"]

Array = np.ndarray[Any, Any]


class Schedule:
    """The order in which an asynchronous run did things, one entry for each master iteration.

    Parameters
    ----------
    worker : array of int, shape (T,)
        Which worker's update was applied.
    read : array of int, shape (T,)
        Which version of the parameter that worker had read: ``d(t)`` in the paper.
    rows : array of int, shape (T, batch size) or (T,)
        Which rows it looked at.
    max_delay : int, optional
        The bound that was in force; by default the largest delay that occurs.

    Examples
    --------
    >>> import dapsgd as ds
    >>> schedule = ds.Schedule(worker=[0, 1, 0], read=[0, 0, 1], rows=[4, 2, 7])
    >>> schedule.delays
    array([0, 1, 1])
    """

    def __init__(self, worker: Any, read: Any, rows: Any, max_delay: int | None = None) -> None:
        self.worker = _integers("worker", worker, (1,))
        self.read = _integers("read", read, (1,))
        rows = _integers("rows", rows, (1, 2))
        self.rows = rows if rows.ndim == 2 else rows[:, None]
        if not len(self.worker) == len(self.read) == len(self.rows):
            raise ValueError(
                f"Schedule: worker, read and rows must be equally long; got {len(self.worker)}, {len(self.read)} "
                f"and {len(self.rows)}"
            )
        longest = int(self.delays.max(initial=0))
        self.max_delay = longest if max_delay is None else non_negative_integer("Schedule: max_delay", max_delay)
        if self.max_delay < longest:
            raise ValueError(f"Schedule: max_delay must be at least the largest delay, {longest}; got {max_delay}")

    @property
    def delays(self) -> Array:
        """The delay of every iteration, ``t - d(t)``."""
        result: Array = np.arange(len(self)) - self.read
        return result

    def check(self, n: int) -> None:
        """Raise ``ValueError`` unless this is a schedule for data with n rows."""
        if len(self) == 0 or self.rows.shape[1] == 0:
            raise ValueError("Schedule: must have at least one iteration and one row in each")
        if (self.read < 0).any() or (self.delays < 0).any():
            raise ValueError("Schedule: read must lie between 0 and the iteration itself")
        if (self.rows < 0).any() or (self.rows >= n).any():
            raise ValueError(f"Schedule: rows must lie between 0 and {n - 1}")

    def check_shares(self) -> None:
        """Raise ``ValueError`` unless every line of rows is a worker's share: its number, its first row and its last."""
        if self.rows.shape[1] != 3 or (self.rows[:, 0] != self.worker).any() or (self.rows[:, 1] > self.rows[:, 2]).any():
            raise ValueError("Schedule: for 'dave-rpg' rows must hold the worker's number, its first row and its last")

    def __len__(self) -> int:
        return len(self.read)

    def __getitem__(self, part: slice) -> Schedule:
        return Schedule(self.worker[part], self.read[part], self.rows[part], self.max_delay)

    def __repr__(self) -> str:
        if len(self) == 0:
            return "Schedule(0 iterations)"
        return f"Schedule({len(self)} iterations, {self.worker.max() + 1} workers, delays up to {self.delays.max()})"


def _integers(name: str, value: Any, dimensions: tuple[int, ...]) -> Array:
    array = np.asarray(value)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"Schedule: {name} must hold integers; got dtype {array.dtype}")
    if array.ndim not in dimensions:
        raise ValueError(f"Schedule: {name} must have {' or '.join(map(str, dimensions))} dimension(s)")
    return np.ascontiguousarray(array, dtype=np.int64)


@dataclass
class Trace:
    """The recorded points of a run, one column a quantity.

    ``seconds`` counts work only: evaluating the other columns is off the clock. ``distance`` is the Euclidean distance to
    ``x_star``, NaN where that was not given; ``residual`` is NaN where neither the algorithm nor its certificate needs it,
    unless ``record_every`` was given. All columns speak of the raw iterate (or, with ``average=True``, of the running average),
    not of the polished answer ``result.x``.
    """

    seconds: Array = field(default_factory=lambda: np.zeros(0))
    iteration: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    passes: Array = field(default_factory=lambda: np.zeros(0))
    objective: Array = field(default_factory=lambda: np.zeros(0))
    residual: Array = field(default_factory=lambda: np.zeros(0))
    distance: Array = field(default_factory=lambda: np.zeros(0))

    @staticmethod
    def columns() -> tuple[str, ...]:
        """Return the names of the columns."""
        return "seconds", "iteration", "passes", "objective", "residual", "distance"

    @classmethod
    def from_points(cls, points: Sequence[tuple[float, ...]]) -> Trace:
        """Make a trace of one tuple a point, in the order of the columns."""
        table = np.array(points, dtype=np.float64).reshape(-1, 6)
        trace = cls(*(table[:, k].copy() for k in range(6)))
        trace.iteration = trace.iteration.astype(np.int64)
        return trace

    def __len__(self) -> int:
        return len(self.seconds)

    def plot(self, *, y: str = "objective", x: str = "seconds", ax: Any = None, **kwargs: Any) -> Any:
        """Draw one column against another; see :meth:`Result.plot`."""
        from .plots import plot_trace

        return plot_trace(self, y=y, x=x, ax=ax, **kwargs)


@dataclass
class Result:
    """The outcome of :func:`dapsgd.solve`.

    Attributes
    ----------
    x : array, shape (p,) or (p, q)
        The answer: a proximal point, hence exactly sparse, grouped, fused or of low rank.
    iterate : array
        The raw last iterate x_T, or the raw average with ``average=True``: what the paper's figures plot. A sum of deltas is
        in general not exactly sparse. With variance reduction and an automatic step it is where the last snapshot was taken,
        if the run ended there.
    intercept : float or array
        The intercept that belongs to ``x``; 0.0 without one.
    objective, residual : float
        Of ``x``. The residual is the norm of the proximal-gradient mapping: zero at an optimum and nowhere else.
    gap : float
        The duality gap of ``x``: the objective is at most this much above the optimum. NaN where no dual is known; infinite
        where x gives no bound.
    converged : bool
        Whether ``gap <= tol * objective`` was verified, or ``residual <= tol * (residual at zero)`` where no dual is known,
        or the penalty is less than the objective's rounding; at zero with the best intercept, if there is one.
    iterations : int
        Master iterations; each is one applied update.
    passes : float
        Rows looked at, divided by n.
    seconds : float
        Time spent working; compilation and recording are off the clock.
    workers : int
        The number of workers.
    delays : array of int
        ``delays[k]`` updates were applied with a delay of k.
    trace : Trace
        The recorded points.
    schedule : Schedule or None
        What happened in which order, with ``record_schedule=True``.
    message : str
        What was run and why it ended, in a sentence.
    statistics : ClusterStatistics or None
        What a cluster counted, with ``runtime=dapsgd.Ray(...)``.
    penalty : str
        The regulariser and its strength, in words.
    algorithm : str
        The algorithm, also where ``"auto"`` chose it.
    """

    x: Array
    iterate: Array
    intercept: Any
    objective: float
    _residual: float | Callable[[], float]  # a function where it would have cost more than the run
    gap: float
    converged: bool
    iterations: int
    passes: float
    seconds: float
    workers: int
    delays: Array
    trace: Trace
    schedule: Schedule | None
    message: str
    statistics: ClusterStatistics | None = None
    penalty: str = ""
    algorithm: str = ""

    def plot(self, path: Any = None) -> Figure:
        """Draw objective, residual and distance against seconds, iterations and passes, and the delays.

        Of the objective it is how far it is above the bound that the duality gap gives; above its lowest where there is none.

        Parameters
        ----------
        path : path, optional
            Where to save the picture; its ending chooses the format, PNG if it has none.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from .plots import plot_result

        return plot_result(self, path)

    @property
    def residual(self) -> float:
        """The norm of the proximal-gradient mapping at ``x``; computed when it is first asked for."""
        if callable(self._residual):
            self._residual = float(self._residual())
        return self._residual

    def __getstate__(self) -> dict[str, Any]:
        """Compute what would be computed later."""
        return {**self.__dict__, "_residual": self.residual}

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        accuracy = f"gap {self.gap:.2g}" if np.isfinite(self.gap) else f"residual {self.residual:.2g}"
        return (
            f"Result({state}: objective {self.objective:.6g}, {accuracy}, {counted(self.iterations, 'iteration')}, "
            f"{counted(self.passes, 'pass', 'passes')}, {self.seconds:.3g} s, {counted(self.workers, 'worker')})"
        )

    def __str__(self) -> str:
        return as_text("Result", about_result(self))

    def _repr_html_(self) -> str:
        return as_html("Result", about_result(self), picture(self.trace, self.objective, self.gap))
