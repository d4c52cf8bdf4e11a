"""A deterministic simulation: any number of workers, real arithmetic, simulated seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .._checks import non_negative, non_negative_integer, positive_integer
from .._jit import kernel, run
from ._crew import count_stripes
from ._leases import in_time, remove
from ._measure import measure_costs
from ._plan import Monitor, Outcome, Plan
from ._recursion import Piece, follow
from .costs import as_model

if TYPE_CHECKING:
    from ..checkpoints import Saved

__all__ = ["Simulated", "Timing"]

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 15  # updates that are timed at once

# What the simulation of time remembers, by its place in Events.counters.
ITERATION, LEASES, LAST_WORKER, FIRST_IN_LINE, IN_LINE = range(5)
COUNTERS = 5


class Events(NamedTuple):
    """The state of the simulation of time."""

    arrival: Array  # for each worker, when its message reaches the master; infinite while it has no lease
    version: Array  # for each worker, the version it works on
    factors: Array  # for each worker, how slow it is
    slowness: Array  # for each worker, how slow its updates are applied
    leases: Array  # versions being worked on, in the order they were read
    line: Array  # ring: workers that wait for a lease
    free: Array  # for each master, when it is done with what it has
    busy: Array  # for each master, how long it has been busy
    counters: Array
    max_delay: int
    handover: float


class Timing(NamedTuple):
    """What a simulation says about speed, without any arithmetic.

    Attributes
    ----------
    workers : int
    updates_per_second : float
    utilisation : float
        The share of the time during which the busiest master works.
    delays : array of int
        ``delays[k]`` updates had a delay of k.
    """

    workers: int
    updates_per_second: float
    utilisation: float
    delays: Array


class Simulated:
    """Simulate workers and a master, with real arithmetic in the simulated order and simulated seconds.

    A worker needs ``work`` seconds for its message, then waits until the master has time and the bound on the delay allows
    its update. The master needs ``apply`` seconds for it, after which the worker has read the new version and goes on. The
    run is the paper's recursion along the order that comes out; ``result.seconds`` and the trace are simulated time. The
    same seed gives the same bits.

    Parameters
    ----------
    work, apply : float or cost model, optional
        Seconds: a number, or ``Fixed``, ``Exponential``, ``HeavyTailed``, ``Straggler`` or ``Recorded``. By default what
        they take on this machine for the given problem, measured once for each kind of problem in a process.
    handover : float, optional
        What an update costs in addition if the one before it was another worker's: the parameter moves from core to core. By
        default measured with ``apply``, 0 if that is given.
    masters : int, optional
        Split the parameter by coordinates among so many masters, each of which needs that share of ``apply``. Possible
        where the master only adds (DAP-SGD), or runs a prox that is element-wise. By default 1, or, if ``apply`` is
        measured, as many as the parts into which the ``threads`` runtime cuts the parameter.
    delays : number or model, optional
        Do not simulate who is ready when: update t was read that many updates before, at most ``max_delay``. For recorded or
        adversarial delays. The master is then as fast as ``work``, ``apply`` and the number of workers allow.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 10))
    >>> problem = ds.Problem(X, X[:, 0], regularizer=ds.FusedLasso(0.1), l2=0.1)
    >>> runtime = ds.Simulated(work=ds.Exponential(20e-6), apply=1e-6)
    >>> run = ds.solve(problem, "dap-sgd", runtime=runtime, workers=16, step=ds.Constant(1e-3), max_iter=500, tol=0, seed=0)
    >>> run.delays.sum(), bool(run.delays[8:].any())
    (np.int64(500), True)
    >>> ds.Simulated(work=20e-6, apply=1e-6).timing(workers=16).updates_per_second > 700_000
    True
    """

    def __init__(
        self,
        work: Any = None,
        apply: Any = None,
        *,
        handover: float | None = None,
        masters: int | None = None,
        delays: Any = None,
    ) -> None:
        self.work: Any = None if work is None else as_model("Simulated: work", work)
        self.apply: Any = None if apply is None else as_model("Simulated: apply", apply)
        self.handover = None if handover is None else non_negative("Simulated: handover", handover)
        self.masters = None if masters is None else positive_integer("Simulated: masters", masters)
        self.delays: Any = None if delays is None else as_model("Simulated: delays", delays)

    def run(self, plan: Plan, monitor: Monitor) -> Outcome:
        """Run the plan in simulated time."""
        if (self.masters or 1) > 1 and not plan.elementwise:
            raise ValueError(
                "Simulated: masters must be 1 for a prox that ties coordinates together and runs at the master; "
                f"got {self.masters}"
            )
        streams = [np.random.default_rng(seed) for seed in plan.seed.spawn(plan.workers)]  # as in a real run
        seed = plan.seed.spawn(1)[0]
        prices = _Prices(self)
        if not plan.keeper.join("costs", prices):
            prices.simulation = self._with_costs(plan)
        clockwork = _Clockwork(prices.simulation, plan.workers, plan.max_delay, seed)

        def take(start: int, stop: int) -> Piece:
            worker, read, finished = clockwork.take(start, stop)
            rows = np.empty((stop - start, plan.batch_size), np.int64)
            for number, stream in enumerate(streams):
                mine = np.flatnonzero(worker == number)
                rows[mine] = plan.draw(number, stream, len(mine))
            return Piece(worker, read, rows, finished)

        return follow(plan, monitor, plan.max_iter, plan.max_delay, take)

    @classmethod
    def measured(cls, problem: Any, algorithm: str = "dap-sgd", *, workers: int, **options: Any) -> Simulated:
        """Measure what updates cost on this machine, and return a simulation with these costs.

        Parameters
        ----------
        problem, algorithm, workers, options
            As for :func:`dapsgd.solve`. With more than one worker, costs are those with all cores busy.
        """
        from ..solve import solve

        probe = _Probe()
        solve(problem, algorithm, runtime=probe, workers=workers, tol=0.0, **options)
        return probe.simulation

    def timing(self, workers: int, *, max_delay: int | None = None, updates: int = 20_000, seed: Any = 0) -> Timing:
        """Simulate the time only, and say how fast it goes.

        Parameters
        ----------
        workers : int
        max_delay : int, optional
            By default the number of workers.
        updates : int
            How many to simulate.
        seed : int
            Of the random costs.
        """
        workers, updates = positive_integer("workers", workers), positive_integer("updates", updates)
        if self.work is None or self.apply is None:
            raise ValueError("Simulated: timing needs work and apply to be given")
        limit = workers if max_delay is None else non_negative_integer("max_delay", max_delay)
        clockwork = _Clockwork(self, workers, limit, np.random.SeedSequence(seed))
        delays = np.zeros(limit + 1, np.int64)
        finished = np.zeros(1)
        for start in range(0, updates, _CHUNK):
            stop = min(start + _CHUNK, updates)
            _, read, finished = clockwork.take(start, stop)
            delays += np.bincount(np.arange(start, stop) - read, minlength=limit + 1)
        total = max(float(finished[-1]), np.finfo(np.float64).tiny)
        return Timing(workers, updates / total, clockwork.busy / total, delays)

    def _with_costs(self, plan: Plan, again: bool = False) -> Simulated:
        """Return this simulation with costs that are not given filled in."""
        if self.work is not None and self.apply is not None:
            return self
        costs = measure_costs(plan, again)
        work = costs.work if self.work is None else self.work
        if self.apply is not None:
            return Simulated(work, self.apply, handover=self.handover, masters=self.masters, delays=self.delays)
        handover = costs.handover if self.handover is None else self.handover
        masters = count_stripes(plan, plan.workers) if self.masters is None else self.masters
        return Simulated(work, costs.apply, handover=handover, masters=masters, delays=self.delays)

    def __repr__(self) -> str:
        names = ("work", "apply", "handover", "masters", "delays")
        return f"Simulated({', '.join(f'{name}={getattr(self, name)!r}' for name in names if getattr(self, name) is not None)})"


class _Prices:
    """The costs of a simulation as a checkpoint keeps them: what was measured must not be measured anew."""

    def __init__(self, given: Simulated) -> None:
        self._given = self.simulation = given

    def state(self) -> dict[str, Any]:
        known, given = self.simulation, self._given
        measured = {name: getattr(known, name).value for name in ("work", "apply") if getattr(given, name) is None}
        return {**measured, "handover": known.handover, "masters": known.masters}

    def restore(self, saved: Saved) -> None:
        given, known = self._given, {}
        for name in ("work", "apply"):
            model = getattr(given, name)
            known[name] = saved.number(name, 0.0, np.inf) if model is None else model
        handover = None if saved.item("handover") is None else saved.number("handover", 0.0, np.inf)
        masters = None if saved.item("masters") is None else saved.integer("masters", 1, 1 << 30)
        self.simulation = Simulated(known["work"], known["apply"], handover=handover, masters=masters, delays=given.delays)


class _Probe:
    """A runtime that runs nothing: it takes the costs of the plan."""

    simulation: Simulated

    def run(self, plan: Plan, monitor: Monitor) -> Outcome:
        self.simulation = Simulated()._with_costs(plan, again=True)
        return Outcome(plan.x0, plan.x0, 0, 0.0, np.zeros(plan.max_delay + 1, np.int64), None)


class _Clockwork:
    """Who is applied when: the simulation of time, piece by piece."""

    def __init__(self, costs: Simulated, workers: int, max_delay: int, seed: np.random.SeedSequence) -> None:
        self._work, self._apply, self._delays = (cast(Any, model) for model in (costs.work, costs.apply, costs.delays))
        self._max_delay = max_delay
        self._work_rng, self._apply_rng, self._delays_rng = (np.random.default_rng(stream) for stream in seed.spawn(3))
        factors = self._work.factors(workers)
        leases, masters = min(workers, max_delay + 1), costs.masters or 1
        self._events = Events(
            arrival=np.where(np.arange(workers) < leases, self._work.sample(self._work_rng, 0, workers) * factors, np.inf),
            version=np.zeros(workers, np.int64),
            factors=factors,
            slowness=self._apply.factors(workers),
            leases=np.zeros(workers, np.int64),
            line=np.roll(np.arange(workers), -leases),
            free=np.zeros(masters),
            busy=np.zeros(masters),
            counters=np.array([0, leases, -1, 0, workers - leases], np.int64),
            max_delay=max_delay,
            handover=(costs.handover or 0.0) if workers > 1 else 0.0,
        )

    @property
    def busy(self) -> float:
        """For how long the busiest master has worked."""
        return float(self._events.busy.max())

    def take(self, start: int, stop: int) -> tuple[Array, Array, Array]:
        """Return worker, version read, and time of the updates from ``start`` to ``stop``, which follow the last taken."""
        count = stop - start
        work = self._work.sample(self._work_rng, start + len(self._events.arrival), count)
        apply = self._apply.sample(self._apply_rng, start, count)
        if self._delays is not None:
            return self._take_delays(start, stop, work, apply)
        worker, read, finished = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
        run(tick, self._events, work, apply, worker, read, finished)
        return worker, read, finished

    def _take_delays(self, start: int, stop: int, work: Array, apply: Array) -> tuple[Array, Array, Array]:
        events, t = self._events, np.arange(start, stop)
        workers = len(events.arrival)
        worker = t % workers
        delays = self._delays.sample(self._delays_rng, start, stop - start) * self._delays.factors(workers)[worker]
        read = t - np.minimum(np.minimum(delays, self._max_delay).astype(np.int64), t)
        apply = apply * events.slowness[worker]
        service = apply / len(events.free)
        periods = np.maximum(service, (work * events.factors[worker] + apply) / workers)
        finished = np.cumsum(np.concatenate([events.free[:1], periods]))[1:]  # in this order, however it is cut into pieces
        events.free[:] = finished[-1]
        events.busy[:] = np.cumsum(np.concatenate([events.busy[:1], service]))[-1]
        return worker, read, finished


@kernel
def tick(events: Events, work: Array, apply: Array, worker: Array, read: Array, finished: Array) -> None:
    """Simulate as many updates as there are costs; write who, which version and when."""
    counters, arrival, line = events.counters, events.arrival, events.line
    masters = events.free.size
    for k in range(work.size):
        t = counters[ITERATION]
        who = next_worker(events)
        service = apply[k] * events.slowness[who] / masters
        if counters[LAST_WORKER] != who and counters[LAST_WORKER] >= 0:
            service += events.handover / masters
        now = arrival[who]
        for s in range(masters):
            now = max(now, events.free[s]) + service
            events.free[s] = now
            events.busy[s] += service
        worker[k], read[k], finished[k] = who, events.version[who], now
        remove(events.leases, counters[LEASES], events.version[who])
        counters[LEASES] -= 1
        counters[ITERATION], counters[LAST_WORKER] = t + 1, who
        arrival[who] = np.inf
        if counters[IN_LINE] > 0:  # the first in line gets the lease, this worker takes the last place
            last = (counters[FIRST_IN_LINE] + counters[IN_LINE]) % line.size
            line[last] = who
            who = line[counters[FIRST_IN_LINE]]
            counters[FIRST_IN_LINE] = (counters[FIRST_IN_LINE] + 1) % line.size
        events.leases[counters[LEASES]] = t + 1
        counters[LEASES] += 1
        events.version[who] = t + 1
        arrival[who] = now + work[k] * events.factors[who]


@kernel
def next_worker(events: Events) -> int:
    """Return whose message reaches the master first among those that the bound on the delay allows."""
    best = -1
    for w in range(events.arrival.size):
        if events.arrival[w] < np.inf and (best < 0 or events.arrival[w] < events.arrival[best]):
            if in_time(events.leases, events.counters[LEASES], events.version[w], events.counters[ITERATION], events.max_delay):
                best = w
    return best
