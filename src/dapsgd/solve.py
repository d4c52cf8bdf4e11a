"""``solve``: checks what was asked for, picks the parts, runs them, polishes the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from functools import cache, partial, wraps
from typing import Any, ParamSpec

import numpy as np

from ._calls import has_trait
from ._checks import (
    all_finite,
    finite_array,
    flag,
    known_name,
    non_negative,
    non_negative_integer,
    positive_integer,
    suggesting,
)
from ._handles import EstimatorHandle, RegularizerHandle, estimate_entry, make_handle
from ._kept import keep_full, keep_plan
from ._memory import require_memory, set_aside
from ._monitor import Checkup, RunMonitor
from ._passes import standing_threads
from ._summaries import counted, penalty_of
from ._team import available_cores
from .algorithms import ALGORITHMS, Algorithm
from .auto import asks_for_workers, choose
from .checkpoints import Keeper
from .choices import minibatch_step, pick_batch_size, pick_length, pick_rule, pick_runtime, pick_seed, pick_shares, pick_workers
from .errors import NumbersTooLargeError
from .fista import proximal_step
from .full import FULL, Limits, Progress
from .gradients import Share, Snapshot
from .problem import Problem
from .result import Result
from .runtimes import Replay
from .runtimes._blas import single_threaded_blas
from .runtimes._plan import Marks, Outcome, Plan
from .runtimes.ray import Ray
from .runtimes.ray.cluster import Cluster
from .shares import share_step
from .snapshots import Refresher, make_epochs, snapshot_step
from .steps import step_at
from .updates import Coupled, Parts, make_buffers, runs_in_place

__all__ = ["solve"]

Array = np.ndarray[Any, Any]
P = ParamSpec("P")

_DEFAULT_POINTS = 100  # of the trace


def _speaking_of_overflow(function: Callable[P, Result]) -> Callable[P, Result]:
    """Say in words what otherwise shows as a warning, or as a matrix that cannot be decomposed: numbers that are too large."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                return function(*args, **kwargs)
            except (ArithmeticError, ValueError, RuntimeError) as error:
                problem = args[0] if args else kwargs.get("problem")
                if isinstance(problem, Problem) and problem.partitions is None and problem._overflows:
                    raise NumbersTooLargeError from error
                raise

    return call


@suggesting
@_speaking_of_overflow
def solve(
    problem: Problem,
    algorithm: str = "auto",
    *,
    runtime: Any = "threads",
    workers: int | None = None,
    step: Any = None,
    batch_size: int | str = "auto",
    max_delay: int | None = None,
    max_iter: int | None = None,
    max_passes: float | None = None,
    tol: float = 1e-4,
    x0: Any = None,
    average: bool = False,
    seed: Any = None,
    x_star: Any = None,
    record_every: int | None = None,
    record_schedule: bool = False,
    checkpoint: Any = None,
    resume: bool = False,
    callbacks: Sequence[Callable[[Checkup], Any]] = (),
    progress: bool = False,
) -> Result:
    """Minimise a problem.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    algorithm : str, default "auto"
        ``"p-sgd"``, ``"tap-sgd"``, ``"dap-sgd"``; ``"tap-svrg"``, ``"dap-svrg"``, which reduce the variance and reach any
        accuracy; ``"dave-rpg"``, whose workers keep to their own rows and need few messages; ``"fista"``, ``"gram"`` and
        ``"working-set"``, which look at all rows. ``"auto"`` chooses one and says why in
        ``result.message``.
    runtime : str or runtime, default "threads"
        ``"serial"``, ``"threads"`` or an object such as ``Replay(schedule)`` or, for a cluster, ``Ray(...)``. Algorithms for
        one worker run in the calling thread.
    workers : int, optional
        The number of workers; by default the cores that this process may use. ``"p-sgd"``, ``"fista"``, ``"gram"`` and
        ``"working-set"`` always have one.
    step : step rule, optional
        ``Constant(eta)``, ``InverseTime(u, c)``, ``Theorem1(...)``, ``Theorem2(...)``, ``DelayAdaptive(...)``. By default
        a decreasing step, from the smoothness of the problem, the batch size and the bound on the delay.
    batch_size : int or "auto"
        Rows in a mini-batch; ``"auto"`` is 1, as in the paper, and 32 to 256 with variance reduction, the more the dearer the
        prox; there a mini-batch is made of neighbouring rows.
    max_delay : int, optional
        The paper's tau: no update with a larger delay is applied, fast workers wait. By default the number of workers.
    max_iter, max_passes : optional
        The run ends after so many master iterations, or so many passes over the rows, whichever comes first. By default 100
        passes, or 10,000 iterations of ``"fista"``.
    tol : float, default 1e-4
        Stop when the duality gap is at most ``tol`` times the objective, where a gap is known (see
        :meth:`Problem.duality_gap`), otherwise when the residual is at most ``tol`` times the residual at zero; looked at
        whenever a point is recorded. ``"fista"``, the reference, asks for both; ``"auto"`` goes on to a hundredth of that
        residual if it can, as it says little of the objective where columns are correlated. With 0 the run goes to its end.
    x0 : array, optional
        Where to start; zero by default.
    average : bool, default False
        Answer with the running average of all iterates, as in Theorem 2.
    seed : int, SeedSequence or None
        Seeds the workers' random streams. With one worker the run is then repeatable to the last bit.
    x_star : array, optional
        A known optimum, to record the distance to it.
    record_every : int, optional
        Record a point every so many iterations; by default about 100 points.
    record_schedule : bool, default False
        Keep what happened in which order in ``result.schedule``, for ``Replay``.
    checkpoint : path or Checkpoint, optional
        Keep the run in this file, every five seconds or as ``Checkpoint(path, every)`` says, at its end, and on SIGINT and
        SIGTERM before they take effect. The page on trust has more.
    resume : bool, default False
        Go on from the file if it is there, otherwise start from the beginning. With one worker the result is that of a run
        which was never interrupted, to the last bit.
    callbacks : sequence of callables
        Each is called with a :class:`Checkup` at every recorded point, off the clock; one that returns True ends the run.
    progress : bool, default False
        Show a progress bar; where there is no terminal, print a line now and then.

    Returns
    -------
    Result

    Raises
    ------
    DivergenceError
        If the step is too long for the problem.
    NumbersTooLargeError
        If a square of the data overflows.
    CheckpointError
        If the checkpoint to go on from is damaged, or is of another problem, run or version.

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 30))
    >>> y = X @ np.repeat([1.0, 0.0, 2.0], 10) + 0.1 * rng.standard_normal(200)
    >>> problem = ds.Problem(X, y, regularizer=ds.FusedLasso(0.1), l2=0.01)
    >>> result = ds.solve(problem, "dap-sgd", workers=2, step=ds.InverseTime(200.0, 0.1), max_iter=4000, seed=0)
    >>> len(np.unique(result.x.round(6))) < 10
    True
    """
    given = locals()
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a dapsgd.Problem; got {type(problem).__name__}")
    chosen = known_name("algorithm", algorithm, [*ALGORITHMS, "auto"])
    if isinstance(runtime, Ray):
        runtime.check(chosen, problem, record_schedule, checkpoint)
        with runtime.open(problem, workers) as cluster:
            result = solve(**{**given, "problem": cluster.problem, "runtime": cluster, "workers": cluster.workers})
            if problem.partitions is not None:
                _ = result.residual  # as long as there are rows
            return result
    average, record_schedule = flag("average", average), flag("record_schedule", record_schedule)
    name, because = chosen, ""
    if chosen == "auto":
        asked = record_schedule or asks_for_workers(batch_size, runtime)
        few_messages = isinstance(runtime, Cluster) and batch_size == "auto" and not record_schedule
        name, because = choose(problem, stochastic=asked, step=step, average=average, few_messages=few_messages)
    spec = ALGORITHMS[name]
    if name in FULL and not FULL[name].can_solve(problem):
        raise ValueError(f"algorithm {name!r} is for problems where {FULL[name].needs}; this is {problem!r}")
    executor = pick_runtime(runtime, spec)
    workers = None if workers is None else positive_integer("workers", workers)
    blas_workers = workers if chosen == "auto" and spec.estimator is None else None
    workers = pick_workers(None if blas_workers is not None else workers, name, spec, executor)
    tol = non_negative("tol", tol)
    start = np.zeros(problem.packed_shape, problem.dtype) if x0 is None else problem.pack(x0, name="x0")
    if x_star is not None:
        x_star = finite_array("x_star", x_star)
        if x_star.shape != problem.shape:
            raise ValueError(f"x_star must have shape {problem.shape}; got {x_star.shape}")
    if callable(callbacks) or not all(callable(callback) for callback in callbacks):
        raise TypeError(f"callbacks must be a list of functions; got {callbacks!r}")
    batch_size = problem.n if spec.estimator is None else pick_batch_size(batch_size, problem, spec, executor)
    epochs = make_epochs(problem.n, batch_size) if spec.estimator is Snapshot else None
    aggregated = spec.estimator is Share
    shares = pick_shares(problem, step, workers, executor) if aggregated else np.zeros(0, np.int64)
    blocks = executor.pick_blocks(problem) if aggregated and isinstance(executor, Cluster) else 1

    def passes(iteration: int) -> float:
        """Return how often so many iterations look at a row, snapshots included."""
        if name in FULL:
            return FULL[name].passes(iteration)
        if aggregated:
            return iteration / workers
        return iteration * batch_size / problem.n + (0 if epochs is None else epochs.until(iteration))

    length = pick_length(max_iter, max_passes, passes, epochs, name, executor)
    delay = workers if max_delay is None else non_negative_integer("max_delay", max_delay)
    if isinstance(executor, Replay):
        delay = executor.schedule.max_delay
    delay = min(delay, max(length, 1))
    records = epochs
    if record_every is not None or records is None:
        every = max(1, length // _DEFAULT_POINTS) if record_every is None else positive_integer("record_every", record_every)
        records = Marks(every, every)

    @cache  # it looks at some rows, and is asked for again at the end
    def safe_step() -> float:
        if aggregated:
            return share_step(problem, shares, start, blocks)
        return (minibatch_step if epochs is None else snapshot_step)(problem, start, batch_size, delay)

    keeper = Keeper(checkpoint, flag("resume", resume))
    _ = problem._prox  # compiled, and its term checked, before anything else is done with it
    careful = epochs is not None and step is None
    refresh: Refresher | None = None
    if epochs is not None:
        refresh = executor.refresher(careful) if isinstance(executor, Cluster) else Refresher(problem, workers, careful)
    by_workers = spec.estimator is not None
    threads = min(workers, available_cores()) if by_workers else 1
    rule: Any = None
    if by_workers:
        with single_threaded_blas(), standing_threads(threads):
            rule = pick_rule(step, problem, spec, safe_step, length, delay)
    with (
        # From here to the end: threads of BLAS stay awake for a tenth of a second, on the cores of this run or of the next.
        single_threaded_blas() if by_workers else nullcontext(),
        standing_threads(threads),
        keeper,
        closing(
            RunMonitor(
                problem,
                x0=start,
                x_star=x_star,
                tol=tol,
                strict=chosen == "fista",  # x* is asked for
                passes=passes,
                suggested_step=safe_step,
                max_iter=length,
                callbacks=callbacks,
                progress=flag("progress", progress),
                # A residual needs L, which costs more than many a run: left out where neither step nor certificate asks for it.
                residuals=chosen == "fista" or record_every is not None or not (name in FULL or careful),
                closer=chosen == "auto",
                snapshots=refresh,
            )
        ) as monitor,
    ):
        if not by_workers:
            if step is not None or average or record_schedule:
                raise ValueError(f"algorithm {name!r} takes no step, average or record_schedule")
            keep_full(keeper, name, start, problem, monitor)
            limited = max_iter is not None or max_passes is not None
            limits = Limits(length, 1 if record_every is None else records.first, tol, quick=chosen == "auto", given=limited)
            with single_threaded_blas() if blas_workers == 1 else nullcontext():
                outcome = FULL[name].run(problem, limits, monitor, Progress(start, keeper))
        else:
            parts: Any = None
            alive: Any = None
            if not isinstance(executor, Cluster):  # whose workers make their own
                kept: tuple[Any, ...] = () if refresh is None else (refresh.at_snapshot, refresh.mean)
                memory: tuple[Any, ...] = ()
                if aggregated:
                    require_memory(workers * start.nbytes, f"a point for each of {workers} workers", "use fewer workers")
                    memory = (problem.n, np.stack([start] * workers))
                parts, alive = make_parts(problem, spec, start, (problem.p,) if aggregated else kept, memory)
            if aggregated:
                monitor.answer = partial(problem.packed_prox, step=step_at(rule, 0))
            plan = Plan(
                algorithm=name,
                parts=parts,
                alive=alive,
                rows=problem.n,
                targets=problem._targets.shape[1],
                rule=rule,
                x0=start,
                workers=workers,
                max_delay=delay,
                batch_size=batch_size,
                max_iter=length,
                records=records,
                record_schedule=record_schedule,
                average=average,
                means=careful and not average and not isinstance(executor, Cluster),
                shares=shares,
                blocks=blocks,
                neighbours=epochs is not None,
                refresh=refresh,
                careful=careful,
                epochs=epochs,
                elementwise=spec.update is not Coupled or has_trait(type(problem._bound), "elementwise"),
                in_place=runs_in_place(spec.update, problem._bound),
                seed=pick_seed(seed),
                keeper=keeper,
            )
            outcome = executor.run(keep_plan(plan, name, executor, seed, problem, monitor), monitor)
        keeper.finish()
        polish = safe_step() if careful else None
        seen, frugal = passes(outcome.iterations), isinstance(executor, Cluster)
        result = _finish(problem, outcome, monitor, name, because, workers, average, seen, polish, frugal)
        if refresh is not None and refresh.setbacks:
            result.message += f"; the objective went up {refresh.setbacks} times, each time the step was halved"
        return result


def make_parts(
    problem: Problem, spec: Algorithm, x: Array, kept: tuple[Any, ...], memory: tuple[Any, ...]
) -> tuple[Parts, tuple[Any, ...]]:
    """Compile the problem's terms and put them together; return also what must stay alive.

    ``kept`` and ``memory`` are what the estimator and the update have beyond what all of them have.
    """
    estimator = spec.estimator(problem._by_rows, problem.loss, problem._targets, problem._weights, problem.l2, *kept)
    buffers = make_buffers(problem._targets.shape[1], x[:0])  # only their types matter
    estimate = make_handle(estimate_entry, estimator, x, np.zeros(3, np.int64), 1.0, 1.0, buffers, x)
    prox = problem._prox
    parts = Parts(
        EstimatorHandle(estimate.code, estimate.data),
        RegularizerHandle(prox.code, prox.data),
        spec.update(problem.p, *memory),
    )
    return parts, (estimate, prox)


def _finish(
    problem: Problem,
    outcome: Outcome,
    monitor: RunMonitor,
    name: str,
    because: str,
    workers: int,
    average: bool,
    passes: float,
    step: float | None,
    frugal: bool,
) -> Result:
    """Record the last point, polish it into a proximal point, and put the result together.

    If ``frugal``, a large iterate is in a file until then: with the answer and its gradient it would be a third large array.
    """
    iterate = outcome.take(average)
    if not all_finite(iterate):
        monitor.diverged(outcome.iterations)
    again = set_aside(iterate[: problem.p]) if frugal else iterate[: problem.p].copy
    x = monitor.answer(iterate, spend=frugal)
    del iterate
    monitor.observe(outcome.iterations, outcome.seconds, x, answered=True)
    polished = name in (*FULL, "dave-rpg") and (outcome.iterations > 0 or monitor.stopped_by is not None)
    polished = polished or monitor.is_proximal(x)
    if not polished:
        x = _polish(problem, x, step, monitor.known_gradient(x))
    certificate = monitor.last(outcome.iterations) if polished else None
    if certificate is None or not certificate.converged:
        predictions = problem.predict(x)
        certificate = monitor.certify(x, problem.smooth_value(x, predictions) + problem.penalty(x), predictions, final=True)
    if not (all_finite(x) and math.isfinite(certificate.objective)):
        raise NumbersTooLargeError
    end = "it ran to its end, not converged," if monitor.has_goal else "it ran to its end"
    why = monitor.stopped_by or (certificate.reason if certificate.converged else end)
    what = f"{name} (chosen because {because})" if because else name
    residual = certificate.residual if math.isfinite(certificate.residual) else partial(problem.packed_residual, x)
    intercept, answer = problem.intercept_of(x), x[: problem.p].copy()
    del x  # before the other one is copied, unless somebody may still ask for the residual
    return Result(
        x=answer,
        iterate=again(),
        intercept=intercept,
        objective=certificate.objective,
        _residual=residual,
        gap=certificate.gap,
        converged=certificate.converged,
        iterations=outcome.iterations,
        passes=passes,
        seconds=outcome.seconds,
        workers=workers,
        delays=outcome.delays,
        trace=monitor.trace(),
        schedule=outcome.schedule,
        message=f"{what} on {counted(workers, 'worker')}: {why} after {counted(outcome.iterations, 'iteration')}",
        statistics=outcome.statistics,
        penalty=penalty_of(problem.regularizer),
        algorithm=name,
    )


def _polish(problem: Problem, x: Array, step: float | None, gradient: Array | None) -> Array:
    """Take one full proximal step, whose result is exactly sparse, grouped, fused or of low rank; of 1/L by default."""
    if step is not None:
        return proximal_step(problem, x, step, False, gradient)[0]
    lipschitz = problem.lipschitz()
    search = not math.isfinite(lipschitz)
    return proximal_step(problem, x, 1.0 if search or lipschitz == 0.0 else 1.0 / lipschitz, search, gradient)[0]
