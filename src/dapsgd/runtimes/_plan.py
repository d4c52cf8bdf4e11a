"""What a runtime is given, what it reports while it runs, and what it gives back."""

from __future__ import annotations

import time
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..result import Schedule
from ..steps import StepRule
from ..updates import Parts

if TYPE_CHECKING:
    from ..checkpoints import Keeper
    from ..snapshots import Refresher
    from .ray.statistics import ClusterStatistics

__all__ = ["Clock", "Marks", "Monitor", "Outcome", "Plan", "Runtime"]

Array = np.ndarray[Any, Any]


class Marks(NamedTuple):
    """Iterations at which something happens, from 0 on: after ``first``, then each time after twice as many, to ``longest``.

    Examples
    --------
    >>> marks = Marks(10, 40)
    >>> [marks.at(k) for k in range(6)]
    [0, 10, 30, 70, 110, 150]
    >>> marks.after(30), marks.until(30), marks.until(31)
    (70, 2, 3)
    """

    first: int
    longest: int

    def at(self, k: int) -> int:
        """Return the k-th of them."""
        growing = min(k, (-(-self.longest // self.first) - 1).bit_length())
        return self.first * ((1 << growing) - 1) + (k - growing) * self.longest

    def until(self, iteration: int) -> int:
        """Return how many of them come before an iteration."""
        return bisect_left(range(-(-iteration // self.first) + 1), iteration, key=self.at)

    def after(self, iteration: int) -> int:
        """Return the first of them that comes after an iteration."""
        return self.at(self.until(iteration + 1))

    def has(self, iteration: int) -> bool:
        """Tell whether an iteration is one of them."""
        return self.at(self.until(iteration)) == iteration


@dataclass(frozen=True)
class Plan:
    """Everything a runtime needs to know; it never looks at the problem itself."""

    algorithm: str  # its name, for whoever has to make ``parts`` elsewhere
    parts: Parts
    alive: Any  # what the handles in ``parts`` point to
    rows: int  # of the data
    targets: int
    rule: StepRule
    x0: Array
    workers: int
    max_delay: int
    batch_size: int
    max_iter: int
    records: Marks  # when the parameter is recorded
    record_schedule: bool
    average: bool
    means: bool  # may a snapshot be taken at the mean of the second half of an epoch?
    shares: Array  # (workers + 1,): worker w looks at rows shares[w]:shares[w + 1] and no others; empty: at any
    blocks: int  # into which a worker cuts its share, where a message is about all of them
    neighbours: bool  # are the rows of a mini-batch next to each other? Memory is read faster then
    refresh: Refresher | None  # takes a snapshot for the estimator, while no worker runs
    careful: bool  # does it go back when a worker fails?
    epochs: Marks | None  # when one is due; None if there are no snapshots
    elementwise: bool  # may the master's prox be run stripe by stripe?
    in_place: bool  # may a worker run the prox where its message lies?
    seed: np.random.SeedSequence
    keeper: Keeper  # of checkpoints
    copies: bool = False  # shall a worker that is alone work on a copy, as one among others does?

    def draw(self, worker: int, stream: np.random.Generator, count: int) -> Array:
        """Draw the rows of so many mini-batches, each row as likely as any other; or name the worker's share of them."""
        if self.shares.size > 0:
            return np.tile([worker, self.shares[worker], self.shares[worker + 1] - 1], (count, 1))
        if not self.neighbours:
            return stream.integers(self.rows, size=(count, self.batch_size))
        first = stream.integers(self.rows, size=(count, 1))
        result: Array = (first + np.arange(self.batch_size)) % self.rows
        return result

    def next_stop(self, iteration: int, attended: bool = False) -> int:
        """Return until where workers may run from an iteration on: to the next snapshot, or to the end.

        If it is attended only to the next recorded point, because somebody may ask to stop there.
        """
        stops = [self.max_iter]
        if self.epochs is not None:
            stops.append(self.epochs.after(iteration))
        if attended:
            stops.append(self.records.after(iteration))
        return min(stops)

    def mean_from(self, iteration: int) -> int:
        """Return from where on iterates are averaged after a snapshot: from the middle of the epoch; -1 for all of them."""
        if not self.means or self.epochs is None:
            return -1
        return (iteration + self.epochs.after(iteration)) // 2

    def is_due(self, iteration: int) -> bool:
        """Tell whether a snapshot is to be taken before this iteration."""
        return self.epochs is not None and self.epochs.has(iteration)


class Monitor(Protocol):
    """What a runtime reports to, off the clock."""

    @property
    def is_patient(self) -> bool:
        """Whether nobody waits for what is recorded, so that it may be reported later."""

    @property
    def is_attended(self) -> bool:
        """Whether somebody looks at each recorded point and may ask to stop there."""

    def start(self) -> bool:
        """Take note of the start, before any clock runs; return True to end the run here."""

    def progress(self, iteration: int, note: str = "") -> None:
        """Show how far the run is; cheap, also while workers run."""

    def observe(self, iteration: int, seconds: float, x: Array, *, spend: bool = False) -> bool:
        """Evaluate a copy of the parameter, which is overwritten if it may be spent; return True to end the run here."""

    def diverged(self, iteration: int) -> None:
        """Raise because a worker met a number that is not finite."""


@dataclass
class Outcome:
    """What a run left behind."""

    x: Array
    mean: Array  # empty if not asked for
    iterations: int
    seconds: float
    delays: Array
    schedule: Schedule | None
    statistics: ClusterStatistics | None = None  # of a cluster

    def take(self, average: bool) -> Array:
        """Give away the parameter, or the mean: its memory is free when whoever asked is done with it."""
        taken = self.mean if average else self.x
        self.x = self.mean = taken[:0].copy()
        return taken


class Runtime(Protocol):
    """Who executes a plan, in what order."""

    def run(self, plan: Plan, monitor: Monitor) -> Outcome:
        """Run the plan to its end, or until the monitor says stop."""
        ...


class Clock:
    """Seconds of work: it stands still while results are evaluated."""

    def __init__(self) -> None:
        self._before = 0.0  # seconds until it was last started
        self._since = 0  # when that was, by the counter that compiled code reads, too
        self._ran = 0.0  # seconds from then on, once it stands still
        self._runs = False

    def __enter__(self) -> Clock:
        """Let the clock run."""
        self._before, self._since, self._ran, self._runs = self.seconds, time.perf_counter_ns(), 0.0, True
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the clock, unless it stands still already."""
        if self._runs:
            self._ran, self._runs = 1e-9 * (time.perf_counter_ns() - self._since), False

    def set(self, seconds: float) -> None:
        """Go on from a time, while it stands still."""
        self._before, self._ran = seconds, 0.0

    @property
    def seconds(self) -> float:
        """The time it has run so far."""
        return self.at(time.perf_counter_ns()) if self._runs else self._before + self._ran

    def at(self, nanoseconds: int) -> float:
        """Return what it showed at a moment since it was last started, given by ``time.perf_counter_ns``."""
        return self._before + 1e-9 * (nanoseconds - self._since)
