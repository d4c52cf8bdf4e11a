"""The simulation computes the paper's recursion along an order that arithmetic decides, in seconds that arithmetic decides."""

from typing import NamedTuple

import numpy as np
import pytest

import dapsgd as ds
from dapsgd import reference

from . import cases
from .test_reference import in_numpy

COSTS = {
    "fixed": {"work": 20.0, "apply": 1.0},
    "exponential": {"work": ds.Exponential(20.0), "apply": ds.Exponential(1.0)},
    "heavy-tailed": {"work": ds.HeavyTailed(20.0), "apply": 1.0},
    "straggler": {"work": ds.Straggler(ds.Exponential(20.0), factor=30.0, worker=1), "apply": 1.0, "handover": 0.5},
    "recorded": {"work": ds.Recorded([3.0, 40.0, 17.0]), "apply": ds.Recorded([1.0, 2.0]), "masters": 3},
    "given delays": {"work": ds.Exponential(20.0), "apply": 1.0, "delays": ds.Exponential(3.0)},
}


def problem_with(regularizer="fused_lasso", **options):
    return cases.problem("squared", regularizer, n=100, l2=0.05, **options)


def solve(problem, runtime, algorithm="dap-sgd", **options):
    defaults = {
        "workers": 4,
        "step": ds.InverseTime(200.0, 0.02),
        "max_iter": 800,
        "tol": 0,
        "seed": 5,
        "record_schedule": True,
    }
    return ds.solve(problem, algorithm, runtime=runtime, **{**defaults, **options})


def assert_same_order(first, second):
    assert np.array_equal(first.schedule.worker, second.schedule.worker)
    assert np.array_equal(first.schedule.read, second.schedule.read)
    assert np.array_equal(first.schedule.rows, second.schedule.rows)
    assert np.array_equal(first.delays, second.delays)


def assert_same_bits(first, second):
    assert_same_order(first, second)
    assert np.array_equal(first.iterate, second.iterate)
    assert np.array_equal(first.x, second.x)
    assert first.seconds == second.seconds
    for column in ds.Trace.columns():
        assert np.array_equal(getattr(first.trace, column), getattr(second.trace, column), equal_nan=True), column


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("algorithm", ["tap-sgd", "dap-sgd"])
def test_same_seed_gives_the_same_bits(algorithm, costs):
    problem = problem_with("l1")
    runtime = ds.Simulated(**COSTS[costs])
    first = solve(problem, runtime, algorithm)
    assert_same_bits(first, solve(problem, runtime, algorithm))
    assert_same_bits(first, solve(problem, ds.Simulated(**COSTS[costs]), algorithm))
    other = solve(problem, runtime, algorithm, seed=6)
    assert not np.array_equal(first.iterate, other.iterate)
    assert not np.array_equal(first.schedule.rows, other.schedule.rows)
    if costs not in ("fixed", "recorded"):
        assert first.seconds != other.seconds


@pytest.mark.parametrize("costs", COSTS)
def test_recording_more_often_changes_nothing_but_the_trace(costs):
    problem, runtime = problem_with(), ds.Simulated(**COSTS[costs])
    often, seldom = (solve(problem, runtime, record_every=every) for every in (7, 70))
    assert np.array_equal(often.iterate, seldom.iterate)
    assert_same_order(often, seldom)
    assert often.seconds == seldom.seconds
    assert often.trace.iteration.tolist() == [*range(0, 800, 7), 800]
    assert seldom.trace.iteration.tolist() == [*range(0, 800, 70), 800]
    for column in ds.Trace.columns():
        some = getattr(often.trace, column)[::10][: len(seldom.trace) - 1]
        assert np.array_equal(some, getattr(seldom.trace, column)[:-1], equal_nan=True), column


@pytest.mark.parametrize("costs", COSTS)
def test_slices_of_another_length_change_nothing(monkeypatch, costs):
    from dapsgd.runtimes import _recursion

    problem, runtime = problem_with(), ds.Simulated(**COSTS[costs])
    whole = solve(problem, runtime, record_every=800)
    monkeypatch.setattr(_recursion, "_SLICE_SECONDS", 0.0)  # as on a machine that is very slow
    assert_same_bits(whole, solve(problem, runtime, record_every=800))


@pytest.mark.parametrize("regularizer", ["l1", "group_lasso", "fused_lasso"])
@pytest.mark.parametrize("algorithm", ["p-sgd", "tap-sgd", "dap-sgd"])
def test_one_worker_computes_what_the_serial_runtime_does(algorithm, regularizer):
    for options in ({}, {"fit_intercept": True}):
        problem = problem_with(regularizer, **options)
        runs = [
            solve(problem, runtime, algorithm, workers=1, batch_size=2, average=average)
            for average in (False, True)
            for runtime in ("serial", ds.Simulated(work=ds.Exponential(3.0), apply=1.0))
        ]
        for serial, simulated in (runs[:2], runs[2:]):
            assert np.array_equal(serial.iterate, simulated.iterate)
            assert serial.intercept == pytest.approx(simulated.intercept, rel=0, abs=0)
            assert np.array_equal(serial.schedule.rows, simulated.schedule.rows)
            assert np.array_equal(serial.trace.objective, simulated.trace.objective)


def test_the_algorithm_for_one_worker_has_no_delays():
    run = solve(problem_with(), ds.Simulated(work=20.0, apply=1.0), "p-sgd", workers=None, max_iter=200)
    assert run.delays[0] == 200


@pytest.mark.parametrize("max_delay", [0, 1, 2, 30])
@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize("algorithm", ["tap-sgd", "dap-sgd"])
def test_replay_gives_the_same_bits_and_no_delay_is_too_long(algorithm, workers, max_delay):
    problem = problem_with()
    runtime = ds.Simulated(work=ds.HeavyTailed(20.0), apply=ds.Exponential(2.0))
    options = {"step": ds.DelayAdaptive(ds.Constant(0.01), budget=0.05), "average": max_delay == 2}
    run = solve(problem, runtime, algorithm, workers=workers, max_delay=max_delay, batch_size=3, **options)
    again = ds.solve(problem, algorithm, runtime=ds.Replay(run.schedule), tol=0, **options)
    assert np.array_equal(run.iterate, again.iterate)
    assert run.iterations == run.delays.sum() == len(run.schedule) == 800
    assert len(run.delays) == max_delay + 1
    assert 0 <= run.schedule.delays.min() <= run.schedule.delays.max() <= max_delay
    assert np.array_equal(np.bincount(run.schedule.delays, minlength=max_delay + 1), run.delays)
    assert set(run.schedule.worker) == set(range(workers))
    assert (np.diff(run.trace.seconds) > 0).all()


@pytest.mark.parametrize("options", [{"sparse": True}, {"sparse": True, "dtype": np.float32}])
def test_sparse_and_single_precision_runs_replay(options):
    problem = cases.problem("huber", "sparse_group_lasso", n=100, l2=0.05, **options)
    run = solve(problem, ds.Simulated(work=ds.Exponential(20.0), apply=1.0))
    again = ds.solve(problem, "dap-sgd", runtime=ds.Replay(run.schedule), step=ds.InverseTime(200.0, 0.02), tol=0)
    assert run.iterate.dtype == options.get("dtype", np.float64)
    assert np.array_equal(run.iterate, again.iterate)


@pytest.mark.parametrize("algorithm", ["tap-sgd", "dap-sgd"])
def test_iterate_and_average_are_those_of_the_reference(algorithm):
    problem = problem_with()
    grad, prox = in_numpy(problem)
    recursion = {"tap-sgd": reference.tap_sgd, "dap-sgd": reference.dap_sgd}[algorithm]
    runtime = ds.Simulated(work=ds.Exponential(20.0), apply=1.0)
    last, mean = (solve(problem, runtime, algorithm, max_iter=150, batch_size=2, average=average) for average in (False, True))
    assert_same_order(last, mean)
    assert last.delays[3:].any()
    rows, read = last.schedule.rows, last.schedule.read
    x = recursion(grad, prox, lambda t: 1.0 / (200.0 + 0.02 * t), np.zeros(problem.shape), rows, read)
    np.testing.assert_allclose(last.iterate, x[-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(mean.iterate, reference.running_average(x), rtol=0, atol=1e-12)
    assert mean.trace.objective[-1] == pytest.approx(problem.objective(mean.iterate))


class Shrink(NamedTuple):
    """Half the squared norm, written by a user."""

    strength: float

    def value(self, w):
        total = 0.0
        for j in range(w.size):
            total += w[j] * w[j]
        return 0.5 * self.strength * total

    def prox(self, v, step, out):
        for j in range(v.size):
            out[j] = v[j] / (1.0 + step * self.strength)


def test_a_regulariser_of_ones_own_is_simulated():
    built_in = cases.problem("squared", "zero", n=100, l2=0.05)
    problem = ds.Problem(built_in._rows.X, built_in._targets[:, 0], ds.Squared(0.5), Shrink(0.2), l2=0.05)
    grad, prox = in_numpy(problem)
    run = solve(problem, ds.Simulated(work=20.0, apply=1.0), max_iter=150)
    eta = ds.InverseTime(200.0, 0.02)
    x = reference.dap_sgd(
        grad, prox, lambda t: 1.0 / (eta.u + eta.c * t), np.zeros(problem.shape), run.schedule.rows, run.schedule.read
    )
    np.testing.assert_allclose(run.iterate, x[-1], rtol=0, atol=1e-12)


def test_a_run_ends_when_the_residual_is_small():
    run = solve(problem_with("l1"), ds.Simulated(work=20.0, apply=1.0), step=None, tol=0.1, max_iter=100_000, record_every=50)
    assert run.converged
    assert run.iterations == run.trace.iteration[-1] < 100_000
    assert run.seconds == run.trace.seconds[-1]
    assert len(run.schedule) == run.iterations


def test_a_run_of_no_iterations():
    run = solve(problem_with(), ds.Simulated(work=20.0, apply=1.0), max_iter=0)
    assert run.iterations == len(run.schedule) == 0
    assert run.seconds == 0.0


@pytest.mark.parametrize("costs", [{"work": 20.0, "apply": 1.0}, {"work": 20.0, "apply": 1.0, "delays": 2}])
def test_a_step_that_is_too_long_is_noticed(costs):
    with pytest.raises(ds.DivergenceError, match=r"iteration \d+.*Constant") as caught:
        solve(problem_with(), ds.Simulated(**costs), step=ds.Constant(10.0), max_iter=10**6)
    safe = solve(problem_with(), ds.Simulated(**costs), step=ds.Constant(caught.value.suggested_step))
    assert np.isfinite(safe.objective)


# Speed, computed by hand. All times are whole numbers, so that they are exact.


@pytest.mark.parametrize("workers", [1, 2, 4, 16])
def test_a_master_with_time_to_spare_is_as_fast_as_its_workers(workers):
    work, apply, rounds = 20.0, 1.0, 50
    updates = rounds * workers
    speed = ds.Simulated(work=work, apply=apply).timing(workers, updates=updates)
    total = work + workers * apply + (rounds - 1) * (work + apply)
    assert speed.workers == workers
    assert speed.updates_per_second == pytest.approx(updates / total, rel=1e-12)
    assert speed.utilisation == pytest.approx(updates * apply / total, rel=1e-12)
    expected = np.ones(workers + 1, int)
    expected[workers - 1], expected[workers] = updates - (workers - 1), 0
    assert speed.delays.tolist() == expected.tolist()
    long = ds.Simulated(work=work, apply=apply).timing(workers, updates=100_000)
    assert 1.0 / long.updates_per_second == pytest.approx((work + apply) / workers, rel=1e-3)


@pytest.mark.parametrize("workers", [21, 30, 100])
def test_a_master_without_time_to_spare_is_the_limit(workers):
    work, apply, updates = 20.0, 1.0, 5000
    speed = ds.Simulated(work=work, apply=apply).timing(workers, updates=updates)
    total = work + updates * apply
    assert speed.updates_per_second == pytest.approx(updates / total, rel=1e-12)
    assert speed.utilisation == pytest.approx(updates * apply / total, rel=1e-12)
    assert speed.delays.sum() == updates
    assert speed.delays[workers - 1] == updates - (workers - 1)


@pytest.mark.parametrize("masters", [1, 2, 4])
def test_more_masters_raise_the_limit(masters):
    work, apply, updates = 20.0, 4.0, 5000
    speed = ds.Simulated(work=work, apply=apply, masters=masters).timing(200, updates=updates)
    total = work + apply + (updates - 1) * apply / masters
    assert speed.updates_per_second == pytest.approx(updates / total, rel=1e-12)
    assert speed.utilisation == pytest.approx(updates * apply / masters / total, rel=1e-12)
    few = ds.Simulated(work=work, apply=apply, masters=masters).timing(2, updates=updates)
    assert 1.0 / few.updates_per_second == pytest.approx((work + apply) / 2, rel=0.01)


def test_a_handover_costs_time_if_the_worker_is_another():
    updates = 1000
    alone = ds.Simulated(work=20.0, apply=1.0, handover=3.0).timing(1, updates=updates)
    assert alone.updates_per_second == pytest.approx(1.0 / 21.0)
    many = ds.Simulated(work=20.0, apply=1.0, handover=3.0).timing(100, updates=updates)
    assert many.updates_per_second == pytest.approx(updates / (20.0 + 1.0 + (updates - 1) * 4.0))


@pytest.mark.parametrize("max_delay", [0, 1, 3])
def test_a_bound_on_the_delay_keeps_the_other_workers_waiting(max_delay):
    runtime = ds.Simulated(work=20.0, apply=1.0)
    many, few = runtime.timing(16, max_delay=max_delay), runtime.timing(max_delay + 1, max_delay=max_delay)
    assert many.updates_per_second == pytest.approx(few.updates_per_second, rel=1e-12)
    assert len(many.delays) == max_delay + 1
    assert np.array_equal(many.delays, few.delays)


def test_seconds_of_one_worker_add_up():
    runtime = ds.Simulated(work=ds.Recorded([10.0, 30.0]), apply=ds.Recorded([1.0, 2.0, 3.0]))
    run = solve(problem_with(), runtime, workers=1, max_iter=5, record_every=1)
    assert run.trace.seconds.tolist() == [0.0, 11.0, 43.0, 56.0, 87.0, 99.0]
    assert run.seconds == 99.0


def test_seconds_of_two_workers_add_up():
    run = solve(problem_with(), ds.Simulated(work=10.0, apply=4.0), workers=2, max_iter=5, record_every=1)
    assert run.trace.seconds.tolist() == [0.0, 14.0, 18.0, 28.0, 32.0, 42.0]
    assert run.schedule.worker.tolist() == [0, 1, 0, 1, 0]
    assert run.schedule.read.tolist() == [0, 0, 1, 2, 3]


def test_timing_tells_the_time_of_the_run():
    runtime = ds.Simulated(work=20.0, apply=3.0, handover=1.0, masters=2)
    run = solve(problem_with(), runtime, workers=6)
    speed = runtime.timing(6, updates=800)
    assert speed.updates_per_second == pytest.approx(800 / run.seconds, rel=1e-12)
    assert np.array_equal(speed.delays, run.delays)


def test_random_costs_have_the_mean_they_say():
    rng = np.random.default_rng(0)
    for model in (
        ds.Fixed(3.0),
        ds.Exponential(3.0),
        ds.HeavyTailed(3.0, tail=4.0),
        ds.Straggler(3.0),
        ds.Recorded([2.0, 4.0]),
    ):
        numbers = model.sample(rng, 0, 100_000)
        assert numbers.shape == (100_000,)
        assert numbers.min() >= 0.0
        assert numbers.mean() == pytest.approx(3.0, rel=0.02)
    assert ds.Straggler(3.0, factor=7.0, worker=2).factors(4).tolist() == [1.0, 1.0, 7.0, 1.0]
    nested = ds.Straggler(ds.Straggler(1.0, factor=7.0, worker=2), factor=3.0)
    assert nested.factors(3).tolist() == [3.0, 1.0, 7.0]


def test_a_straggler_is_late_and_slows_the_others_down_if_the_bound_is_tight():
    even, odd = ds.Simulated(work=20.0, apply=1.0), ds.Simulated(work=ds.Straggler(20.0, factor=10.0, worker=2), apply=1.0)
    free = odd.timing(4, max_delay=1000).updates_per_second
    assert free == pytest.approx(3.0 / 21.0 + 1.0 / 201.0, rel=0.01)
    assert free < even.timing(4, max_delay=1000).updates_per_second
    tight = odd.timing(4, max_delay=4).updates_per_second
    assert tight == pytest.approx(5.0 / 201.0, rel=0.1)  # at most five updates while the straggler works
    run = solve(problem_with(), odd, max_delay=1000)
    late = run.schedule.worker == 2
    assert 0 < late.sum() < 0.1 * len(late)
    assert run.schedule.delays[late].mean() > 5.0 * run.schedule.delays[~late].mean()


def test_a_straggler_at_the_master_is_slow_there():
    speed = ds.Simulated(work=0.0, apply=ds.Straggler(1.0, factor=10.0, worker=0)).timing(1, updates=1000)
    assert speed.updates_per_second == pytest.approx(0.1)
    with pytest.raises(ValueError, match="worker"):
        ds.Simulated(work=1.0, apply=ds.Straggler(1.0, worker=4)).timing(4)


@pytest.mark.parametrize("max_delay", [0, 4, 100])
@pytest.mark.parametrize("workers", [1, 3])
def test_recorded_delays_are_followed_exactly(workers, max_delay):
    log = [0, 3, 7, 50, 2]
    run = solve(
        problem_with(), ds.Simulated(work=20.0, apply=1.0, delays=ds.Recorded(log)), workers=workers, max_delay=max_delay
    )
    t = np.arange(800)
    expected = np.minimum(np.minimum(np.resize(log, 800), t), max_delay)
    assert run.schedule.delays.tolist() == expected.tolist()
    assert np.array_equal(run.delays, np.bincount(expected, minlength=max_delay + 1))
    assert run.seconds == pytest.approx(800 * max(1.0, 21.0 / workers))
    again = ds.solve(
        problem_with(), "dap-sgd", runtime=ds.Replay(run.schedule), step=ds.InverseTime(200.0, 0.02), tol=0, max_iter=800
    )
    assert np.array_equal(run.iterate, again.iterate)


@pytest.mark.parametrize("delays", [3, 3.0, ds.Fixed(3)])
def test_fixed_delays_are_followed_exactly(delays):
    run = solve(problem_with(), ds.Simulated(work=20.0, apply=1.0, delays=delays), max_delay=9)
    assert run.schedule.delays.tolist() == [0, 1, 2] + [3] * 797


def test_the_delays_of_a_run_can_be_recorded_and_used_again():
    first = solve(problem_with(), ds.Simulated(work=ds.HeavyTailed(20.0), apply=1.0), workers=8)
    runtime = ds.Simulated(work=20.0, apply=1.0, delays=ds.Recorded(first.schedule.delays))
    second = solve(problem_with(), runtime, workers=8, seed=99)
    assert np.array_equal(first.schedule.read, second.schedule.read)


def test_given_delays_leave_the_speed_limits_in_force():
    busy = ds.Simulated(work=20.0, apply=4.0, masters=2, delays=3).timing(100, updates=1000)
    assert busy.updates_per_second == pytest.approx(0.5)
    assert busy.utilisation == pytest.approx(1.0)
    idle = ds.Simulated(work=20.0, apply=4.0, delays=3).timing(2, updates=1000)
    assert idle.updates_per_second == pytest.approx(1.0 / 12.0)
    assert idle.utilisation == pytest.approx(4.0 / 12.0)


def test_masters_share_only_what_can_be_shared():
    runtime = ds.Simulated(work=20.0, apply=1.0, masters=2)
    with pytest.raises(ValueError, match="masters"):
        solve(problem_with("fused_lasso"), runtime, "tap-sgd")
    for algorithm, regularizer in (("dap-sgd", "fused_lasso"), ("dap-sgd", "l1"), ("tap-sgd", "l1")):
        run = solve(problem_with(regularizer), runtime, algorithm)
        assert run.iterations == 800
    assert solve(problem_with("fused_lasso"), ds.Simulated(work=20.0, apply=1.0, masters=1), "tap-sgd").iterations == 800


@pytest.fixture
def quick_measurement(monkeypatch):
    from dapsgd.runtimes import _measure

    monkeypatch.setattr(_measure, "_SECONDS", 0.01)
    monkeypatch.setattr(_measure, "_known", {})
    return _measure


@pytest.mark.parametrize("algorithm", ["tap-sgd", "dap-sgd"])
def test_costs_are_measured_once_if_they_are_not_given(quick_measurement, algorithm):
    problem = problem_with()
    first = solve(problem, ds.Simulated(), algorithm)
    assert first.seconds > 0.0
    assert (np.diff(first.trace.seconds) > 0).all()
    assert_same_bits(first, solve(problem, ds.Simulated(), algorithm))
    assert len(quick_measurement._known) == 1
    (costs,) = quick_measurement._known.values()
    assert costs.work >= 0.0
    assert costs.apply >= 0.0
    assert costs.handover >= 0.0
    solve(problem_with("l1"), ds.Simulated(), algorithm)
    assert len(quick_measurement._known) == 2


def test_a_cost_that_is_given_is_not_measured(quick_measurement):
    problem = problem_with()
    slow = solve(problem, ds.Simulated(work=1e6), workers=2, max_iter=100)
    assert slow.seconds == pytest.approx(50e6, rel=1e-3)
    slow = solve(problem, ds.Simulated(apply=1e6), workers=2, max_iter=100)
    assert slow.seconds == pytest.approx(100e6, rel=1e-3)


@pytest.mark.parametrize(
    "given", [{"work": ds.Exponential(1.0)}, {"apply": ds.Exponential(1.0)}, {"delays": ds.Exponential(3.0)}]
)
def test_the_run_that_measures_has_the_same_random_numbers_as_the_next(quick_measurement, given):
    first, second = (solve(problem_with(), ds.Simulated(**given)) for _ in range(2))
    assert len(quick_measurement._known) == 1
    assert_same_bits(first, second)


@pytest.mark.parametrize("max_iter", [0, 1])
def test_costs_of_a_short_run_are_measured(quick_measurement, max_iter):
    run = solve(problem_with(), ds.Simulated(), max_iter=max_iter)
    assert run.iterations == max_iter


def test_measuring_costs_survives_a_step_that_is_too_long(quick_measurement):
    with pytest.raises(ds.DivergenceError):
        solve(problem_with(), ds.Simulated(), step=ds.Constant(10.0), max_iter=10**6)


def test_a_simulation_says_what_it_simulates():
    assert repr(ds.Simulated()) == "Simulated()"
    runtime = ds.Simulated(work=2.0, apply=ds.Exponential(1.0), handover=0.5, masters=2, delays=3)
    assert repr(runtime) == (
        "Simulated(work=Fixed(value=2.0), apply=Exponential(mean=1.0), handover=0.5, masters=2, delays=Fixed(value=3.0))"
    )


COST = {"work": 1.0, "apply": 1.0}

BAD = {
    "negative work": (lambda: ds.Simulated(work=-1.0), ValueError, "work"),
    "nan work": (lambda: ds.Simulated(work=np.nan), ValueError, "work"),
    "infinite work": (lambda: ds.Simulated(work=np.inf), ValueError, "work"),
    "string work": (lambda: ds.Simulated(work="fast"), TypeError, "work"),
    "boolean work": (lambda: ds.Simulated(work=True), TypeError, "work"),
    "list of work": (lambda: ds.Simulated(work=[1.0, 2.0]), TypeError, "work"),
    "class as work": (lambda: ds.Simulated(work=ds.Exponential), TypeError, "work"),
    "negative apply": (lambda: ds.Simulated(apply=-1.0), ValueError, "apply"),
    "step as apply": (lambda: ds.Simulated(apply=ds.Constant(1.0)), TypeError, "apply"),
    "negative handover": (lambda: ds.Simulated(handover=-1.0), ValueError, "handover"),
    "string handover": (lambda: ds.Simulated(handover="1"), TypeError, "handover"),
    "no masters": (lambda: ds.Simulated(masters=0), ValueError, "masters"),
    "half a master": (lambda: ds.Simulated(masters=1.5), TypeError, "masters"),
    "negative delays": (lambda: ds.Simulated(delays=-1), ValueError, "delays"),
    "string delays": (lambda: ds.Simulated(delays="late"), TypeError, "delays"),
    "negative value": (lambda: ds.Fixed(-1.0), ValueError, "value"),
    "negative mean": (lambda: ds.Exponential(-1.0), ValueError, "mean"),
    "string mean": (lambda: ds.Exponential("1"), TypeError, "mean"),
    "nan mean": (lambda: ds.HeavyTailed(np.nan), ValueError, "mean"),
    "tail of 1": (lambda: ds.HeavyTailed(1.0, tail=1.0), ValueError, "tail"),
    "nan tail": (lambda: ds.HeavyTailed(1.0, tail=np.nan), ValueError, "tail"),
    "infinite tail": (lambda: ds.HeavyTailed(1.0, tail=np.inf), ValueError, "tail"),
    "straggler's base": (lambda: ds.Straggler("slow"), TypeError, "base"),
    "straggler's negative base": (lambda: ds.Straggler(-1.0), ValueError, "base"),
    "straggler's factor": (lambda: ds.Straggler(1.0, factor=0.0), ValueError, "factor"),
    "negative straggler": (lambda: ds.Straggler(1.0, worker=-1), ValueError, "worker"),
    "half a straggler": (lambda: ds.Straggler(1.0, worker=0.5), TypeError, "worker"),
    "no such straggler": (lambda: ds.Simulated(ds.Straggler(1.0, worker=4), 1.0).timing(4), ValueError, "worker"),
    "no such straggler in a run": (
        lambda: solve(problem_with(), ds.Simulated(ds.Straggler(1.0, worker=4), 1.0)),
        ValueError,
        "worker",
    ),
    "no such straggler's delay": (
        lambda: solve(problem_with(), ds.Simulated(**COST, delays=ds.Straggler(1.0, worker=4))),
        ValueError,
        "worker",
    ),
    "nothing recorded": (lambda: ds.Recorded([]), ValueError, "log"),
    "recorded nan": (lambda: ds.Recorded([1.0, np.nan]), ValueError, "log"),
    "recorded negative": (lambda: ds.Recorded([1.0, -2.0]), ValueError, "log"),
    "recorded table": (lambda: ds.Recorded([[1.0]]), ValueError, "log"),
    "recorded strings": (lambda: ds.Recorded(["1"]), TypeError, "log"),
    "timing without costs": (lambda: ds.Simulated().timing(4), ValueError, "work and apply"),
    "timing without apply": (lambda: ds.Simulated(work=1.0).timing(4), ValueError, "apply"),
    "timing of nobody": (lambda: ds.Simulated(**COST).timing(0), ValueError, "workers"),
    "timing of half a worker": (lambda: ds.Simulated(**COST).timing(1.5), TypeError, "workers"),
    "timing of nothing": (lambda: ds.Simulated(**COST).timing(4, updates=0), ValueError, "updates"),
    "timing with half a delay": (lambda: ds.Simulated(**COST).timing(4, max_delay=1.5), TypeError, "max_delay"),
    "timing with a negative delay": (lambda: ds.Simulated(**COST).timing(4, max_delay=-1), ValueError, "max_delay"),
    "class as runtime": (lambda: solve(problem_with(), ds.Simulated), TypeError, "runtime"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named(name):
    call, error, match = BAD[name]
    with pytest.raises(error, match=match):
        call()
