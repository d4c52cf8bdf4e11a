"""The worker: an actor that owns a share of the rows and runs the same compiled ``work`` as every other runtime."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import rows as _rows
from ..._jit import compiled
from ...algorithms import ALGORITHMS
from ...problem import Problem
from ...shares import cut, share_step
from ...snapshots import Refresher, snapshot_step
from ...steps import StepRule, step_at
from ...updates import Aggregated, Coupled, make_buffers, runs_in_place, sweep, work
from .._blas import single_threaded_blas
from .link import Link
from .order import GRANTED, OVER, REFUSED

__all__ = ["Task", "Worker"]

Array = np.ndarray[Any, Any]

_DRAWS = 4096  # rows drawn ahead
_FIRST = 2  # the incarnation of a worker that joins for the first time: one is given when the head opens


@dataclass(frozen=True)
class Task:
    """What a worker is told about a run."""

    algorithm: str
    rule: StepRule
    rows: int  # of all workers together
    first_row: int  # the number of this worker's first one among them
    blocks: int  # of this worker's rows that are looked at in one message, one after the other
    batch_size: int
    neighbours: bool
    max_iter: int
    entropy: Any  # of the seed
    spawn_key: tuple[int, ...]
    shape: tuple[int, ...]  # of the parameter
    dtype: str
    bounds: Array  # of the shards
    namespace: str
    replay_bytes: int
    lease_seconds: float
    patience: float
    log_rows: bool


class Worker:
    """One share of the rows.

    It is made without its rows: a constructor whose arguments are lost cannot be called again after a restart.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._problem: Problem | None = None
        self._link: Link | None = None
        self._refresh: Refresher | None = None
        self._rule: StepRule | None = None
        self._begun = False  # has this process been in a run before?
        self._has_snapshot = False

    def load(self, source: Callable[[], Problem]) -> dict[str, Any]:
        """Get the rows; return what the driver has to know about them."""
        if self._problem is None:
            self._problem = source()
        problem = self._problem
        return {
            "pid": os.getpid(),
            "n": problem.n,
            "p": problem.p,
            "shape": problem.shape,
            "dtype": problem.dtype,
            "targets": problem._targets,
            "weights": problem._weights,
        }

    def look(self, files: Any) -> Any:
        """Read the files of this worker; return what is in them."""
        self._files = files
        return files.look()

    def load_files(self, files: Any, columns: Any) -> dict[str, Any]:
        """Make rows of the files."""
        files = self.__dict__.pop("_files", files)  # those that were read before
        return self.load(lambda: files(columns))

    # The run.

    def prepare(self, task: Task, load: tuple[Any, ...]) -> int:
        """Compile everything before the clock starts; return the number of this process."""
        if self._problem is None:
            getattr(self, load[0])(*load[1:])
        problem, spec = self._own, ALGORITHMS[task.algorithm]
        self._task, self._rule = task, task.rule
        x = np.zeros(task.shape, task.dtype)  # for its type: it is never written to, and takes no memory
        kept: tuple[Any, ...] = ()
        remembered: tuple[Any, ...] = ()
        self._blocks = np.zeros((0, 3), np.int64)
        self._sends_gradients = spec.update is Coupled
        if spec.update is Aggregated:
            bounds = cut(problem.n, min(task.blocks, problem.n))
            self._blocks = np.column_stack([np.arange(len(bounds) - 1), bounds[:-1], bounds[1:] - 1])
            kept, remembered = (problem.p,), (task.rows, np.zeros((len(self._blocks), *task.shape), task.dtype))
        elif task.neighbours:
            self._refresh = Refresher(problem, 1)
            kept = self._refresh.at_snapshot, self._refresh.mean
        from ...solve import make_parts

        self._parts, self._alive = make_parts(problem, spec, x, kept, remembered)
        self._buffers = make_buffers(problem._targets.shape[1], x[:0])._replace(point=x)
        batches = np.zeros((1, task.batch_size), np.int64)
        self._work = compiled(work, self._parts, x, batches[0], 1.0, self._buffers, x)
        if len(self._blocks) > 1:
            self._sweep = compiled(sweep, self._parts, x, batches, 1.0, self._buffers, x)
            self._before = np.zeros(task.shape, task.dtype)
        self._link = Link(self._index, task.namespace, task.bounds, task.replay_bytes, task.patience, task.shape, task.dtype)
        # A copy of the parameter less where the point may lie in the place of the message, or of x, which are done with.
        if runs_in_place(spec.update, problem._bound):
            self._buffers = self._buffers._replace(point=self._link.message)
        elif len(self._blocks) == 1:
            self._buffers = self._buffers._replace(point=self._link.x)
        return os.getpid()

    def run(self, task: Task, snapshot: tuple[Array, Array, StepRule] | None, load: tuple[Any, ...]) -> int:
        """Work until the run is over; return how many updates this process got through.

        A process that was restarted prepares itself first, and takes the ``snapshot`` that the others have.
        """
        if self._link is None:
            self.prepare(task, load)
        if snapshot is not None and not self._has_snapshot:
            point, mean, rule = snapshot
            self.snapshot(point)
            self.use_snapshot(mean, rule)
        assert self._link is not None
        stop = threading.Event()
        threading.Thread(target=self._give_signs_of_life, args=(stop,), daemon=True).start()
        try:
            with single_threaded_blas():
                return self._run(self._link)
        finally:
            stop.set()

    def _run(self, link: Link) -> int:
        done, kind, version = 0, REFUSED, -1
        batches: Iterator[Array] | None = None
        while True:
            if kind == REFUSED:
                if not link.join(keeps=self._begun):
                    return done
                if batches is None:
                    batches = self._batches(self._stream(link.incarnation))
                self._begun, version = True, -1
                if not self._recall(link):
                    continue
            if version < 0:
                kind, version = link.lease()
                if kind != GRANTED:
                    if kind == OVER:
                        return done
                    continue
            assert self._rule is not None
            assert batches is not None
            rows = next(batches)
            if not self._make(rows, step_at(self._rule, version), link.x, link.message):
                link.fail()
                kind = REFUSED  # the memory of a share may have changed: recall it
                continue
            shown = rows + self._task.first_row if self._task.log_rows else None
            kind, version = link.send(shown)
            if kind == OVER:
                return done
            done += kind == GRANTED

    def _make(self, rows: Array, eta: float, x: Array, message: Array) -> bool:
        """Write a message about x, which is overwritten, and some rows; return whether it is finite."""
        if len(self._blocks) > 1:
            self._before[...] = x
            finite = self._sweep(self._parts, x, self._blocks, eta, self._buffers, message)
            np.subtract(x, self._before, out=message)
            return bool(finite)
        finite = self._work(self._parts, x, rows, eta, self._buffers, message)
        if not self._sends_gradients:
            message -= x  # where messages travel, the difference does
        if len(self._blocks) == 1:
            self._parts.update.memory[0] = self._buffers.point
        return bool(finite)

    def _stream(self, incarnation: int) -> np.random.Generator:
        """Return the random stream of this process: that of a thread in the first, another one after a restart."""
        task = self._task
        key = (*task.spawn_key, self._index) if incarnation <= _FIRST else (*task.spawn_key, self._index, incarnation)
        return np.random.default_rng(np.random.SeedSequence(task.entropy, spawn_key=key))

    def _batches(self, stream: np.random.Generator) -> Iterator[Array]:
        """Give the rows of one message after the other, or the name of the only block."""
        task, rows = self._task, self._own.n
        count = max(1, _DRAWS // task.batch_size)
        while True:
            if len(self._blocks):
                yield self._blocks[0]
            elif not task.neighbours:
                yield from stream.integers(rows, size=(count, task.batch_size))
            else:
                yield from (stream.integers(rows, size=(count, 1)) + np.arange(task.batch_size)) % rows

    def _recall(self, link: Link) -> bool:
        """Make the points that this worker keeps add up to what the shards say it has put in; return False if it must join."""
        if len(self._blocks):
            own = link.contribution()
            if own is None:
                return False
            self._parts.update.memory[0] = own
            self._parts.update.memory[0] *= self._task.rows / self._own.n
            self._parts.update.memory[1:] = self._parts.update.memory[0]
        return True

    def _give_signs_of_life(self, stop: threading.Event) -> None:
        while not stop.wait(self._task.lease_seconds / 4.0):
            if self._link is not None:
                self._link.renew()

    # While it runs.

    def pid(self) -> int:
        """Return the number of this process."""
        return os.getpid()

    def snapshot(self, x: Array) -> tuple[Array, Array]:
        """Look at all own rows at a point; return the sum of their gradients, and their predictions."""
        assert self._refresh is not None
        with single_threaded_blas():
            return self._refresh.take_sum(np.array(x)), self._refresh.predictions

    def use_snapshot(self, mean: Array, rule: StepRule) -> None:
        """Use the mean gradient over the rows of all workers, and a step rule, from now on."""
        assert self._refresh is not None
        self._refresh.mean[...] = mean
        self._rule = rule
        self._has_snapshot = True

    def replay(self, shard: int, opened: Sequence[tuple[int, int]], epoch: int, until: int) -> int:
        """Send again what a shard that was restarted may have lost."""
        return 0 if self._link is None else self._link.replay(shard, opened, epoch, until)

    def known(self, opened: Sequence[tuple[int, int]]) -> int:
        """Return one more than the last ticket that this process was given."""
        return 0 if self._link is None else self._link.known(opened)

    # Passes over the rows, for a driver that does not have them.

    def predict(self, x: Array) -> Array:
        """Return the predictions of the own rows."""
        return _rows.predict(self._own._rows, x)

    def transpose_times(self, d: Array) -> Array:
        """Return ``X.T @ d`` for the own rows."""
        return _rows.transpose_times(self._own._rows, d)

    def squared_norms(self) -> Array:
        """Return the squared norm of every own row."""
        return _rows.squared_norms(self._own._rows)

    def snapshot_step(self, x0: Array, batch_size: int, max_delay: int) -> float:
        """Return a step for mini-batches of the own rows."""
        return snapshot_step(self._own, np.array(x0), batch_size, max_delay)

    def share_step(self, blocks: int, x0: Array) -> float:
        """Return a step for blocks of the own rows."""
        return share_step(self._own, cut(self._own.n, min(blocks, self._own.n)), np.array(x0))

    @property
    def _own(self) -> Problem:
        assert self._problem is not None
        return self._problem
