"""What ``solve`` makes of its options: checked, and the defaults for those that were not given.

``auto.py`` chooses the algorithm; here is what follows from it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np

from ._checks import known_name, non_negative_integer, positive, positive_integer
from ._team import available_cores
from .algorithms import Algorithm
from .fista import proximal_step
from .full import FULL
from .gradients import MiniBatch, Share, Snapshot
from .problem import Problem
from .runtimes import RUNTIMES, Replay, Serial, Threads
from .runtimes._plan import Marks
from .runtimes.ray.cluster import Cluster
from .shares import cut
from .steps import Constant, DelayAdaptive, InverseTime, StepRule, Theorem1, Theorem2, longest_step, settling
from .updates import Decoupled

__all__ = [
    "minibatch_step",
    "pick_batch_size",
    "pick_length",
    "pick_rule",
    "pick_runtime",
    "pick_seed",
    "pick_shares",
    "pick_workers",
]

Array = np.ndarray[Any, Any]

_MOST_PASSES = 1e15  # that can be told apart
_DEFAULT_PASSES = 100.0  # of a stochastic run, if nothing else ends it
_CLUSTER_MESSAGES = 64  # of a worker, in which it looks at about as many rows as it has
_SMALLEST_BATCH, _LARGEST_BATCH = 32, 256  # rows, with variance reduction
_MANY_ROWS = 1 << 17  # of which twice as many make the smallest: fewer, longer steps, and a pass has more of them than it needs
_BATCHES = 64  # at least, in a pass
_PROX_COST = 8.0  # rows whose gradients cost as much as a prox, unless the regulariser says otherwise
_ROWS_A_PROX = 4.0  # times as much as a prox cost the gradients of a mini-batch, at least


def pick_runtime(runtime: Any, spec: Algorithm) -> Any:
    """Return the runtime, an object; algorithms for one worker do not start threads."""
    if isinstance(runtime, str):
        if runtime in ("simulated", "replay"):
            raise ValueError(f"runtime must be an object here: dapsgd.{runtime.capitalize()}(...); got {runtime!r}")
        runtime = RUNTIMES[known_name("runtime", runtime, RUNTIMES)]()
    elif not hasattr(runtime, "run") or isinstance(runtime, type):
        raise TypeError(
            f"runtime must be {' or '.join(map(repr, RUNTIMES))}, or an object such as dapsgd.Replay(schedule); got {runtime!r}"
        )
    if spec.estimator is None and not isinstance(runtime, (Serial, Threads)):
        raise ValueError(f"this algorithm runs in the calling thread: runtime must be 'serial' or 'threads'; got {runtime!r}")
    return Serial() if spec.serial and isinstance(runtime, Threads) else runtime


def pick_workers(workers: int | None, algorithm: str, spec: Algorithm, runtime: Any) -> int:
    """Return the number of workers; by default the cores that this process may use."""
    if workers is not None:
        workers = positive_integer("workers", workers)
    if isinstance(runtime, Replay):
        return int(runtime.schedule.worker.max(initial=0)) + 1
    if spec.serial or isinstance(runtime, Serial):
        if workers is not None and workers > 1:
            where = "" if spec.serial else " on the serial runtime"
            raise ValueError(f"workers must be 1 for algorithm {algorithm!r}{where}; got {workers}")
        return 1
    return available_cores() if workers is None else workers


def pick_batch_size(batch_size: int | str, problem: Problem, spec: Algorithm, runtime: Any) -> int:
    """Return the number of rows, or of what names them, that one update looks at."""
    if isinstance(runtime, Replay):
        return int(runtime.schedule.rows.shape[1])
    if spec.estimator is Share:
        if batch_size != "auto":
            raise ValueError(
                f"batch_size must be 'auto' for 'dave-rpg', whose workers look at all rows of their share; got {batch_size!r}"
            )
        return 3  # a share is named by its number, its first row and its last
    if isinstance(batch_size, str):
        known_name("batch_size", batch_size, ["auto"])
        if isinstance(runtime, Cluster) and spec.estimator is Snapshot:  # a message costs as much as many rows
            return min(max(_SMALLEST_BATCH, problem.n // (_CLUSTER_MESSAGES * runtime.workers)), problem.n)
        return _snapshot_batch(problem) if spec.estimator is Snapshot else 1
    return positive_integer("batch_size", batch_size)


def _snapshot_batch(problem: Problem) -> int:
    """Return a power of two so that the prox does not dominate, but mini-batches remain a small part of the rows.

    It follows from prices that were measured once, not from a clock: a run must be repeatable. Larger ones than the prox asks
    for would need more passes where columns are correlated.
    """
    bound = problem._bound
    cost = bound.prox_cost(problem.shape) if hasattr(type(bound), "prox_cost") else _PROX_COST
    smallest = _SMALLEST_BATCH * (2 if problem.n >= _MANY_ROWS else 1)
    wanted = min(_ROWS_A_PROX * cost, problem.n / _BATCHES, _LARGEST_BATCH)
    return min(2 ** math.ceil(math.log2(max(wanted, smallest))), _LARGEST_BATCH, problem.n)


def pick_shares(problem: Problem, step: Any, workers: int, runtime: Any) -> Array:
    """Return the bounds of the rows that belong to each worker of DAve-RPG."""
    if step is not None and not isinstance(step, Constant):
        raise ValueError(f"step must be dapsgd.Constant or None for 'dave-rpg', whose answer depends on the step; got {step!r}")
    if isinstance(runtime, Replay):
        runtime.schedule.check_shares()
        if step is None:
            raise ValueError("step must be given to replay 'dave-rpg': an automatic one depends on the number of workers")
    return runtime.bounds if isinstance(runtime, Cluster) else cut(problem.n, workers)


def pick_length(
    max_iter: Any, max_passes: Any, passes: Callable[[int], float], epochs: Marks | None, name: str, runtime: Any
) -> int:
    """Return the number of iterations, of which so many make so many ``passes``; whole epochs, if there are any."""

    def in_passes(limit: float) -> int:
        if epochs is None:
            return math.ceil(limit / passes(1) - 1e-9)
        whole = range(1, int(min(limit, _MOST_PASSES)) + 2)  # an epoch is more than a pass
        return epochs.at(bisect_right(whole, limit + 1e-9, key=lambda k: passes(epochs.at(k))) or 1)

    lengths = []
    if max_iter is not None:
        lengths.append(non_negative_integer("max_iter", max_iter))
    if max_passes is not None:
        lengths.append(in_passes(positive("max_passes", max_passes)))
    if isinstance(runtime, Replay):
        lengths.append(len(runtime.schedule))
    if not lengths:
        lengths.append(FULL[name].max_iter if name in FULL else in_passes(_DEFAULT_PASSES))
    return min(lengths)


def pick_rule(
    step: Any, problem: Problem, spec: Algorithm, safe_step: Callable[[], float], length: int, max_delay: int
) -> StepRule:
    """Return the rule for the step-size; by default one that starts as long as is safe."""
    if step is None and spec.estimator is not MiniBatch:  # variance-reduced: nothing is gained by shorter steps later on
        return settling(safe_step(), max_delay) if spec.update is Decoupled else Constant(safe_step()).rule(math.inf)
    if step is None:
        # Start as long as is safe, and decrease: as Theorem 1 if f is known to be strongly convex, to a tenth otherwise.
        u = 1.0 / safe_step()
        return InverseTime(u, max(2.0 * problem.l2, 9.0 * u / max(length, 1))).rule(math.inf)
    if not isinstance(step, (Constant, InverseTime, Theorem1, Theorem2, DelayAdaptive)):
        raise TypeError(
            "step must be dapsgd.Constant, InverseTime, Theorem1, Theorem2 or DelayAdaptive, or None for an automatic one; "
            f"got {step!r}"
        )
    needs = isinstance(step, DelayAdaptive) and step.budget is None
    return step.rule(problem.lipschitz() if needs else math.inf)


def minibatch_step(problem: Problem, x0: Array, batch_size: int, max_delay: int) -> float:
    """Return a step that is stable for mini-batches read up to ``max_delay`` iterations ago."""
    whole, row = problem.lipschitz(), problem.row_lipschitz
    if not math.isfinite(whole):
        whole = 1.0 / proximal_step(problem, x0, 1.0, search=True)[1]
        row = whole * problem.row_share
    return longest_step(whole + row / batch_size, problem.dtype) / (1 + max_delay)


def pick_seed(seed: Any) -> np.random.SeedSequence:
    """Return the seed of the workers' random streams."""
    if isinstance(seed, np.random.SeedSequence):  # a copy: spawning from the caller's would change it
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    if seed is not None:
        seed = non_negative_integer("seed", seed)
    return np.random.SeedSequence(seed)
