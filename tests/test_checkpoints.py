"""A run that was interrupted goes on as if nothing had happened, and never from a file that it should not go on from."""

import _thread
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

import dapsgd as ds
from dapsgd import _files, checkpoints

from . import cases
from .test_threads import no_more_threads_than


class Interrupted(Exception):
    pass


def interrupt_at(iteration):
    def look(checkup):
        if checkup.iteration >= iteration:
            raise Interrupted

    return look


def always(path):
    return ds.Checkpoint(path, every=1e-9)


def in_pieces(problem, algorithm, path, at, **options):
    """Run to the end with an interruption at each of some iterations."""
    for iteration in at:
        with pytest.raises(Interrupted):
            ds.solve(problem, algorithm, checkpoint=always(path), resume=True, callbacks=[interrupt_at(iteration)], **options)
    return ds.solve(problem, algorithm, checkpoint=always(path), resume=True, **options)


def check_same(whole, pieces):
    assert np.array_equal(whole.iterate, pieces.iterate)
    assert np.array_equal(whole.x, pieces.x)
    assert whole.iterations == pieces.iterations
    assert np.array_equal(whole.delays, pieces.delays)
    for column in ("iteration", "passes", "objective", "residual"):
        assert np.array_equal(getattr(whole.trace, column), getattr(pieces.trace, column), equal_nan=True)
    if whole.schedule is not None:
        for column in ("worker", "read", "rows"):
            assert np.array_equal(getattr(whole.schedule, column), getattr(pieces.schedule, column))


ONE_WORKER = {
    "serial": ("dap-sgd", {"runtime": "serial"}),
    "threads": ("dap-sgd", {"batch_size": 3, "record_schedule": True}),
    "coupled": ("tap-sgd", {}),
    "average": ("p-sgd", {"average": True}),
    "step": ("dap-sgd", {"step": ds.DelayAdaptive(ds.Constant(1e-3), budget=2e-3)}),
    "decreasing": ("dap-sgd", {"step": ds.InverseTime(500.0, 0.1)}),
    "snapshots": ("dap-svrg", {"batch_size": 8}),
    "coupled snapshots": ("tap-svrg", {"runtime": "serial"}),
    "shares": ("dave-rpg", {}),
    "simulated shares": ("dave-rpg", {"runtime": ds.Simulated(ds.Exponential(2e-5), 1e-6), "workers": 7}),
    "simulated": ("dap-sgd", {"runtime": ds.Simulated(ds.HeavyTailed(2e-5), 1e-6), "workers": 7, "record_schedule": True}),
    "simulated delays": ("dap-sgd", {"runtime": ds.Simulated(1e-5, 1e-6, delays=ds.Exponential(3.0)), "workers": 4}),
    "simulated snapshots": ("dap-svrg", {"runtime": ds.Simulated(ds.Exponential(2e-5), 1e-6), "workers": 7}),
}


@pytest.mark.parametrize("case", ONE_WORKER)
def test_a_run_in_pieces_is_the_whole_run_to_the_last_bit(case, tmp_path):
    algorithm, options = ONE_WORKER[case]
    options = {"workers": 1, "max_iter": 3000, "record_every": 130, "tol": 0, "seed": 4} | options
    problem = cases.problem("squared", "fused_lasso", n=200, l2=0.05)
    whole = ds.solve(problem, algorithm, **options)
    check_same(whole, in_pieces(problem, algorithm, tmp_path / "run.ckpt", (500, 900, 2500), **options))
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]


def test_a_run_that_was_put_back_goes_on_with_the_shorter_step(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12))
    X[350:] *= 30.0  # what a sample of the rows does not show
    problem = ds.Problem(X, X[:, 0] + rng.standard_normal(400), regularizer=ds.L1(0.01), l2=1e-3)
    options = {"workers": 1, "batch_size": 4, "max_passes": 60, "tol": 0, "seed": 0}
    whole = ds.solve(problem, "dap-svrg", **options)
    pieces = in_pieces(problem, "dap-svrg", tmp_path / "run.ckpt", (400, 1000, 2000), **options)
    check_same(whole, pieces)
    assert pieces.message == whole.message


def test_a_seed_of_the_operating_system_is_kept(tmp_path):
    problem = cases.problem("squared", "l1", n=100)
    options = {"runtime": ds.Simulated(ds.Exponential(1e-5), 1e-6), "workers": 3, "max_iter": 2000, "record_every": 100}
    path = tmp_path / "run.ckpt"
    pieces = in_pieces(problem, "dap-sgd", path, (700,), tol=0, record_schedule=True, **options)
    again = ds.solve(problem, "dap-sgd", runtime=ds.Replay(pieces.schedule), step=None, tol=0)
    assert np.array_equal(pieces.iterate, again.iterate)


def test_a_replay_goes_on(tmp_path):
    problem, step = cases.problem("squared", "l1", n=100), ds.Constant(1e-3)
    run = ds.solve(problem, "dap-sgd", workers=3, step=step, max_iter=2000, tol=0, seed=0, record_schedule=True)
    options = {"runtime": ds.Replay(run.schedule), "step": step, "record_every": 100, "tol": 0}
    pieces = in_pieces(problem, "dap-sgd", tmp_path / "run.ckpt", (500, 1500), **options)
    assert np.array_equal(pieces.iterate, run.iterate)


@pytest.mark.parametrize("algorithm", ["dap-sgd", "tap-sgd", "dap-svrg", "dave-rpg"])
def test_several_workers_go_on_and_every_update_is_counted(algorithm, tmp_path):
    problem = cases.problem("squared", "group_lasso", n=200, l2=0.05)
    options = {"workers": 3, "max_iter": 4000, "record_every": 200, "tol": 0, "seed": 1, "record_schedule": True}
    run = in_pieces(problem, algorithm, tmp_path / "run.ckpt", (1000, 3000), **options)
    assert run.iterations == run.delays.sum() == len(run.schedule) == 4000
    assert run.trace.iteration.tolist() == list(range(0, 4001, 200))
    assert (np.diff(run.trace.seconds) >= 0).all()
    if algorithm in ("dap-sgd", "tap-sgd"):  # the others are more than their schedule
        again = ds.solve(problem, algorithm, runtime=ds.Replay(run.schedule), tol=0)
        np.testing.assert_allclose(again.iterate, run.iterate, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["fista", "gram", "working-set", "auto"])
def test_algorithms_that_look_at_all_rows_go_on_from_their_last_point(algorithm, tmp_path):
    problem = cases.problem("squared", "l1", n=30)
    path = tmp_path / "run.ckpt"
    whole = ds.solve(problem, algorithm, tol=1e-10)
    with pytest.raises(Interrupted):
        ds.solve(problem, algorithm, tol=1e-10, checkpoint=always(path), callbacks=[interrupt_at(1)])
    pieces = ds.solve(problem, algorithm, tol=1e-10, checkpoint=always(path), resume=True)
    assert pieces.converged
    assert pieces.objective == pytest.approx(whole.objective, rel=1e-9)
    again = ds.solve(problem, algorithm, tol=1e-10, checkpoint=path, resume=True)
    assert again.iterations == pieces.iterations
    assert again.message == pieces.message
    assert np.array_equal(again.x, pieces.x)


def test_a_run_that_had_arrived_has_arrived_until_more_is_asked_for(tmp_path):
    problem = cases.problem("squared", "l1", n=200, l2=0.05)
    options = {"workers": 1, "seed": 0, "max_passes": 2000, "record_every": 5, "checkpoint": tmp_path / "run.ckpt"}
    first = ds.solve(problem, "dap-svrg", tol=1e-4, **options)
    same = ds.solve(problem, "dap-svrg", tol=1e-4, resume=True, **options)
    more = ds.solve(problem, "dap-svrg", tol=1e-8, resume=True, **options)
    assert first.converged
    assert same.iterations == first.iterations < more.iterations
    assert np.array_equal(first.x, same.x)
    whole = ds.solve(problem, "dap-svrg", tol=1e-8, **{**options, "checkpoint": None})
    assert np.array_equal(more.x, whole.x)


def test_more_iterations_than_before(tmp_path):
    problem = cases.problem("squared", "l1", n=100)
    options = {"workers": 1, "seed": 0, "step": ds.Constant(1e-3), "record_every": 100, "tol": 0}
    path = tmp_path / "run.ckpt"
    ds.solve(problem, "dap-sgd", max_iter=1000, checkpoint=path, **options)
    longer = ds.solve(problem, "dap-sgd", max_iter=3000, checkpoint=path, resume=True, **options)
    check_same(ds.solve(problem, "dap-sgd", max_iter=3000, **options), longer)
    with pytest.raises(ds.CheckpointError, match="iteration is 3000"):
        ds.solve(problem, "dap-sgd", max_iter=2000, checkpoint=path, resume=True, **options)


def test_without_a_file_a_run_starts_from_the_beginning_and_without_resume_always(tmp_path):
    problem = cases.problem("squared", "l1")
    options = {"workers": 1, "max_iter": 500, "tol": 0, "seed": 0, "checkpoint": tmp_path / "run.ckpt"}
    first = ds.solve(problem, "dap-sgd", resume=True, **options)
    second = ds.solve(problem, "dap-sgd", **options)
    assert first.iterations == second.iterations == 500
    assert np.array_equal(first.x, second.x)


# What is refused.


class Mine(NamedTuple):
    lam: float

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        for j in range(v.size):
            out[j] = v[j]


class Other(NamedTuple):
    lam: float

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        for j in range(v.size):
            out[j] = 1.0 * v[j]


Other.__name__ = Other.__qualname__ = "Mine"  # a regulariser whose code was changed

X = np.random.default_rng(0).standard_normal((30, 6))
Y = X[:, 0] - X[:, 1]
BASE = {"X": X, "y": Y, "regularizer": ds.GroupLasso(0.1, 3), "l2": 0.1}
RUN = {"workers": 1, "step": ds.Constant(1e-3), "max_iter": 200, "tol": 0, "seed": 0}


def changed(array):
    copy = array.copy()
    copy.flat[-1] = np.nextafter(copy.flat[-1], 1e9)
    return copy


OTHERS = {
    "fit_intercept": ({"fit_intercept": True}, {}),
    "loss": ({"loss": ds.Huber(1.0)}, {}),
    "regularizer": ({"regularizer": ds.GroupLasso(0.1, 2)}, {}),
    "l2": ({"l2": 0.2}, {}),
    "algorithm": ({}, {"algorithm": "tap-sgd"}),
    "runtime": ({}, {"runtime": "serial"}),
    "workers": ({}, {"workers": 2}),
    "batch_size": ({}, {"batch_size": 2}),
    "max_delay": ({}, {"max_delay": 5}),
    "step": ({}, {"step": ds.Constant(2e-3)}),
    "average": ({}, {"average": True}),
    "record_schedule": ({}, {"record_schedule": True}),
    "seed": ({}, {"seed": 1}),
    "x0": ({}, {"x0": np.ones(6)}),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "run.ckpt"
    ds.solve(ds.Problem(**BASE), "dap-sgd", checkpoint=path, **RUN)
    return path.read_bytes()


@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_of_another_run_is_refused(name, kept, tmp_path):
    path = tmp_path / "run.ckpt"
    path.write_bytes(kept)
    of_problem, of_run = OTHERS[name]
    options = {"algorithm": "dap-sgd", **RUN, **of_run}
    with pytest.raises(ds.CheckpointError, match=f"is of another run: {name} is"):
        ds.solve(ds.Problem(**{**BASE, **of_problem}), checkpoint=path, resume=True, **options)
    assert path.read_bytes() == kept


OTHER_DATA = {
    "X has 30 rows there and 20 here": {"X": X[:20], "y": Y[:20]},
    "X has 6 columns there and 3 here": {"X": X[:, :3]},
    "X is dense float64 there and dense float32 here": {"X": X.astype(np.float32)},
    "X is dense float64 there and sparse float64 here": {"X": csr_array(X)},
    "X has other values than in the run that is kept": {"X": changed(X), "y": changed(Y)},
    "y has other values than in the run that is kept": {"y": changed(Y)},
    "y has 1 column there and 2 here": {"y": np.column_stack([Y, Y]), "regularizer": ds.L1(0.1)},
    "sample_weight has other values than in the run that is kept": {"sample_weight": changed(np.ones(30))},
}


@pytest.mark.parametrize("said", OTHER_DATA)
def test_that_data_are_others_is_said_first(said, kept, tmp_path):
    path = tmp_path / "run.ckpt"
    path.write_bytes(kept)
    options = {**RUN, "step": ds.Constant(2e-3)}  # automatic steps follow from the data
    with pytest.raises(ds.CheckpointError, match=f"is of another run, on other data: {said}; ask for the same"):
        ds.solve(ds.Problem(**{**BASE, **OTHER_DATA[said]}), "dap-sgd", checkpoint=path, resume=True, **options)
    assert path.read_bytes() == kept


def test_what_follows_from_other_data_is_not_named(tmp_path):
    path, other = tmp_path / "run.ckpt", ds.Problem(X + 1.0, Y, regularizer=ds.FusedLasso(0.05), fit_intercept=True)
    ds.solve(ds.Problem(X, Y, regularizer=ds.FusedLasso(0.05), fit_intercept=True), "dap-svrg", checkpoint=path, workers=1)
    with pytest.raises(ds.CheckpointError, match="on other data: X has other values than in the run that is kept; ask"):
        ds.solve(other, "dap-svrg", checkpoint=path, resume=True, workers=1)
    with pytest.raises(ds.CheckpointError, match=r"X has other values .*; algorithm is dap-svrg there and fista here; ask"):
        ds.solve(other, "fista", checkpoint=path, resume=True)


def test_a_loss_that_turns_targets_into_others_is_named(tmp_path):
    path, labels = tmp_path / "run.ckpt", (Y > 0.0).astype(float)
    ds.solve(ds.Problem(X, labels), "fista", checkpoint=path)
    with pytest.raises(ds.CheckpointError, match=r"another run: loss is Squared.* there and Multinomial.* here"):
        ds.solve(ds.Problem(X, labels, ds.Multinomial()), "fista", checkpoint=path, resume=True)


def test_another_strength_is_named(kept, tmp_path):
    path = tmp_path / "run.ckpt"
    path.write_bytes(kept)
    strength = BASE["regularizer"].lam
    for other, said in (
        (ds.GroupLasso(0.125, 3), r"GroupLasso\(lam=0.125, groups=3\) here; ask for the same"),
        (BASE["regularizer"]._replace(lam=0.25), rf"\(lam={strength:g}.*\) there and .*\(lam=0.25.*\) here; ask"),
    ):
        with pytest.raises(ds.CheckpointError, match=said):
            ds.solve(ds.Problem(**{**BASE, "regularizer": other}), "dap-sgd", checkpoint=path, resume=True, **RUN)
    with pytest.raises(ds.CheckpointError, match=r"loss is Squared\(.*\) there and Huber\(delta=3\) here"):
        ds.solve(ds.Problem(**{**BASE, "loss": ds.Huber(3.0)}), "dap-sgd", checkpoint=path, resume=True, **RUN)


def test_a_term_of_ones_own_is_known_by_its_code(tmp_path):
    path = tmp_path / "run.ckpt"
    for kind in (Mine, Mine, Other):
        problem = ds.Problem(X, Y, regularizer=kind(0.1))
        if kind is Other:
            with pytest.raises(ds.CheckpointError, match="regularizer"):
                ds.solve(problem, "dap-sgd", checkpoint=path, resume=True, **RUN)
        else:
            ds.solve(problem, "dap-sgd", checkpoint=path, resume=True, **RUN)


def rewritten(content, change, tmp_path):
    """Return a checkpoint whose description or arrays were changed, with checksums that are right."""
    source = tmp_path / "source.npz"
    source.write_bytes(content)
    with np.load(source) as archive:
        arrays = dict(archive)
    about = json.loads(arrays["about"].tobytes())
    change(about, arrays)
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(source, **arrays)
    return source.read_bytes()


LIES = {
    "another version of dapsgd": (lambda about, arrays: about.update(dapsgd="9.9"), "version 9.9 of dapsgd"),
    "another format": (lambda about, arrays: about.update(version=1), "version 1 of checkpoint format"),
    "no checkpoint": (lambda about, arrays: about.update(format="dapsgd model"), "does not say what it is"),
    "no facts": (lambda about, arrays: about.pop("facts"), "facts"),
    "no parts": (lambda about, arrays: about.pop("parts"), "parts"),
    "no trace": (lambda about, arrays: about["parts"].pop("trace"), "trace"),
    "no run": (lambda about, arrays: about["parts"].pop("run"), "run"),
    "an iteration beyond the end": (lambda about, arrays: about["parts"]["run"].update(iteration=201), "iteration is 201"),
    "a negative iteration": (lambda about, arrays: about["parts"]["run"].update(iteration=-1), "iteration is -1"),
    "no integer": (lambda about, arrays: about["parts"]["run"].update(iteration=1.5), "iteration"),
    "a flag for an integer": (lambda about, arrays: about["parts"]["run"].update(iteration=True), "iteration"),
    "fewer iterations than delays": (lambda about, arrays: about["parts"]["run"].update(iteration=100), "delays"),
    "infinite seconds": (lambda about, arrays: about["parts"]["run"].update(seconds=np.inf), "seconds"),
    "NaN seconds": (lambda about, arrays: about["parts"]["run"].update(seconds=np.nan), "seconds"),
    "a longer step": (lambda about, arrays: about["parts"]["run"].update(scale=1.0), "scale"),
    "no streams": (lambda about, arrays: about["parts"]["run"].update(streams=[]), "random stream of worker 0"),
    "streams that are text": (lambda about, arrays: about["parts"]["run"].update(streams=["a"]), "random stream"),
    "another generator": (
        lambda about, arrays: about["parts"]["run"]["streams"][0].update(bit_generator="MT19937"),
        "random stream",
    ),
    "a stream beyond its range": (
        lambda about, arrays: about["parts"]["run"]["streams"][0]["state"].update(state=-(2**200)),
        "random stream",
    ),
    "x of another shape": (lambda about, arrays: arrays.update({"run.x": np.zeros(7)}), "x has the wrong shape"),
    "x of another type": (lambda about, arrays: arrays.update({"run.x": np.zeros(6, np.float32)}), "x has the wrong"),
    "x of text": (lambda about, arrays: arrays.update({"run.x": np.array(["a"] * 6)}), "x has the wrong shape"),
    "NaN in x": (lambda about, arrays: arrays.update({"run.x": np.full(6, np.nan)}), "x holds numbers that are not finite"),
    "no x": (lambda about, arrays: arrays.pop("run.x"), "x is missing"),
    "x that is no array": (
        lambda about, arrays: (arrays.pop("run.x"), about["parts"]["run"].update(x=[0.0] * 6)),
        "x has the wrong shape",
    ),
    "rows beyond those drawn": (lambda about, arrays: arrays.update({"run.drawn": np.array([10**9])}), "more rows"),
    "a negative row": (lambda about, arrays: arrays.update({"run.drawn": np.array([-1])}), "more rows"),
    "negative delays": (lambda about, arrays: arrays["run.delays"].__setitem__(slice(None), [201, -1]), "delays"),
    "a trace of text": (lambda about, arrays: arrays.update({"trace.points": np.array([["a"] * 6])}), "trace"),
    "a trace out of order": (
        lambda about, arrays: arrays.update({"trace.points": arrays["trace.points"][::-1].copy()}),
        "trace is not in order",
    ),
    "a reason that is no text": (lambda about, arrays: about["parts"]["trace"].update(arrived=5), "arrived"),
    "a seed of text": (lambda about, arrays: about["parts"]["seed"].update(entropy="a"), "seed"),
    "a part that does not exist": (lambda about, arrays: arrays.update({"else.x": np.zeros(1)}), "else"),
}


@pytest.mark.parametrize("case", LIES)
def test_a_checkpoint_that_lies_is_refused(case, kept, tmp_path):
    change, words = LIES[case]
    path = tmp_path / "run.ckpt"
    path.write_bytes(rewritten(kept, change, tmp_path))
    before = path.read_bytes()
    with pytest.raises(ds.CheckpointError, match=words) as caught:
        ds.solve(ds.Problem(**BASE), "dap-sgd", checkpoint=path, resume=True, **RUN)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_a_checkpoint_that_was_cut_off_or_changed_is_refused_or_harmless(kept, tmp_path):
    """Every cut is noticed; a changed byte is noticed, or is one that means nothing, and the result is right."""
    problem, path = ds.Problem(**BASE), tmp_path / "run.ckpt"
    rng = np.random.default_rng(0)
    expected = ds.solve(problem, "dap-sgd", **RUN).x
    for length in [0, 1, 21, 22, *rng.integers(len(kept), size=20), len(kept) - 1]:
        path.write_bytes(kept[:length])
        with pytest.raises(ds.CheckpointError, match="damaged"):
            ds.solve(problem, "dap-sgd", checkpoint=path, resume=True, **RUN)
    refused = 0
    for place in rng.integers(len(kept), size=150):
        content = bytearray(kept)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        try:
            found = ds.solve(problem, "dap-sgd", checkpoint=path, resume=True, **RUN)
        except ds.CheckpointError:
            refused += 1
        else:
            assert np.array_equal(found.x, expected)
    assert refused > 50


def test_a_checkpoint_cannot_be_larger_than_its_file(kept, tmp_path):
    path = tmp_path / "run.ckpt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.npy", b"\0" * 10**7)
    with pytest.raises(ds.CheckpointError, match="do not add up"):
        ds.solve(ds.Problem(**BASE), "dap-sgd", checkpoint=path, resume=True, **RUN)


# How it is written.


def test_a_disk_that_is_full_costs_a_warning_and_the_checkpoint_before_stays(tmp_path, monkeypatch):
    problem, path = cases.problem("squared", "l1"), tmp_path / "run.ckpt"
    options = {"workers": 2, "step": ds.Constant(1e-3), "max_iter": 3000, "record_every": 100, "tol": 0, "seed": 0}
    state = []

    def fill_up(checkup):
        if checkup.iteration == 1000:
            monkeypatch.setattr(_files.os, "fsync", full)

    def full(descriptor):
        state.append(path.read_bytes())
        raise OSError(28, "No space left on device")

    with pytest.warns(RuntimeWarning, match=r"could not be written .*No space left.*the one before stays"):
        run = ds.solve(problem, "dap-sgd", checkpoint=always(path), callbacks=[fill_up], **options)
    monkeypatch.undo()
    assert run.iterations == 3000
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]
    assert path.read_bytes() == state[0] == state[-1]
    rest = ds.solve(problem, "dap-sgd", checkpoint=path, resume=True, **options)
    assert rest.iterations == rest.delays.sum() == 3000


def test_what_cannot_be_written_at_all_is_an_error_before_any_work(tmp_path, monkeypatch):
    problem, seen = cases.problem("squared", "l1"), []

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        ds.solve(problem, "dap-sgd", checkpoint=tmp_path / "run.ckpt", max_iter=10**8, callbacks=[seen.append])
    assert len(seen) == 1
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed(tmp_path):
    left, others = tmp_path / "run.123.part.ckpt", tmp_path / "run.part.ckpt"
    left.write_text("half")
    others.write_text("of somebody else")
    ds.solve(cases.problem(), "dap-sgd", max_iter=100, tol=0, checkpoint=tmp_path / "run.ckpt")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.ckpt", "run.part.ckpt"]


def test_checkpoints_are_no_burden_to_others(tmp_path):
    """No thread stays, signals are as before, and a run in another thread touches no signal."""
    before, handlers = threading.active_count(), [signal.getsignal(number) for number in checkpoints._SIGNALS]
    problem, results = cases.problem(), []

    def work():
        results.append(ds.solve(problem, "dap-sgd", max_iter=2000, record_every=50, checkpoint=always(tmp_path / "a")))

    threads = _thread._count()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    assert [run.iterations for run in results] == [2000, 2000]
    assert threading.active_count() == before
    assert no_more_threads_than(threads)
    assert [signal.getsignal(number) for number in checkpoints._SIGNALS] == handlers


@pytest.mark.parametrize("runtime", ["serial", "threads", "simulated", "fista"])
def test_a_signal_waits_for_the_checkpoint_and_then_has_its_effect(runtime, tmp_path):
    """A handler of the program's own is called when the file is there; one that returns lets the run go on."""
    problem, path, seen = cases.problem("squared", "l1", n=100), tmp_path / "run.ckpt", []
    options = {"max_iter": 3000, "record_every": 100, "tol": 0, "seed": 0}
    algorithm = "fista" if runtime == "fista" else "dap-sgd"
    if runtime != "fista":
        options["runtime"] = ds.Simulated(1e-5, 1e-6) if runtime == "simulated" else runtime
    if runtime == "fista":
        options = {"max_iter": 30, "tol": 0}

    def handler(number, frame):
        seen.append((number, path.stat().st_mtime_ns))

    def send(checkup):
        if checkup.iteration in (1, 500):
            sent.append(path.stat().st_mtime_ns)
            signal.raise_signal(signal.SIGTERM)
            assert len(seen) == (runtime == "fista")  # it waits, unless there is always a point to write

    sent = []
    old = signal.signal(signal.SIGTERM, handler)
    try:
        run = ds.solve(problem, algorithm, checkpoint=path, callbacks=[send], **options)
    finally:
        signal.signal(signal.SIGTERM, old)
    assert run.iterations == options["max_iter"]
    assert [number for number, _ in seen] == [signal.SIGTERM]
    assert seen[0][1] > sent[0]


@pytest.mark.parametrize("algorithm", ["dap-sgd", "fista"])
def test_before_the_first_checkpoint_a_signal_does_not_wait(algorithm, tmp_path):
    """While code is compiled there is nothing to lose."""
    path, after = tmp_path / "run.ckpt", []

    def send(checkup):
        signal.raise_signal(signal.SIGINT)
        after.append(checkup)

    with pytest.raises(KeyboardInterrupt):
        ds.solve(cases.problem(), algorithm, max_iter=100, callbacks=[send], checkpoint=path)
    assert not after
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("algorithm", ["fista", "gram", "working-set"])
def test_a_signal_in_the_midst_of_an_iteration_has_the_last_point_written(algorithm, tmp_path, monkeypatch):
    """Whatever the run is doing; it goes on from there to the same optimum, with its trace in order."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 300))
    problem, path = ds.Problem(X, X[:, :5].sum(axis=1), regularizer=ds.L1(0.005)), tmp_path / "run.ckpt"
    options, calls = {"max_iter": 2000, "tol": 1e-10, "record_every": 1}, []
    best = ds.solve(problem, algorithm, **options)
    name = "packed_prox" if algorithm == "fista" else "penalty"
    original = getattr(ds.Problem, name)

    def interrupted(self, *arguments, **options):
        calls.extend([path.stat().st_mtime_ns] if path.exists() else [])
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
            calls.append(0)  # not reached: it does not wait
        return original(self, *arguments, **options)

    monkeypatch.setattr(ds.Problem, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        ds.solve(problem, algorithm, checkpoint=path, **options)
    monkeypatch.undo()
    assert len(calls) == 2
    assert path.stat().st_mtime_ns > calls[-1]
    rest = ds.solve(problem, algorithm, checkpoint=path, resume=True, **options)
    assert rest.objective == pytest.approx(best.objective, rel=1e-9)
    assert (np.diff(rest.trace.iteration) > 0).all()


def test_ctrl_c_leaves_a_checkpoint_from_which_the_run_goes_on(tmp_path):
    problem, path = cases.problem("squared", "l1", n=100), tmp_path / "run.ckpt"
    options = {"workers": 1, "max_iter": 3000, "record_every": 100, "tol": 0, "seed": 0, "checkpoint": path}

    def send(checkup):
        if checkup.iteration == 1500:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ds.solve(problem, "dap-sgd", callbacks=[send], **options)
    with np.load(path) as archive:
        assert json.loads(archive["about"].tobytes())["parts"]["run"]["iteration"] >= 1500
    whole = ds.solve(problem, "dap-sgd", **{**options, "checkpoint": None})
    check_same(whole, ds.solve(problem, "dap-sgd", resume=True, **options))


def test_a_second_signal_does_not_wait(tmp_path):
    def send(checkup):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ds.solve(cases.problem(), "dap-sgd", max_iter=1000, callbacks=[send], checkpoint=tmp_path / "run.ckpt")


PROGRAM = """
import sys
import numpy as np
import dapsgd as ds

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 12))
problem = ds.Problem(X, X[:, 0], regularizer=ds.L1(0.01), l2=0.01)
path, runtime = sys.argv[1:]
print("ready", flush=True)
ds.solve(problem, "dap-sgd", runtime=runtime, max_iter=10**10, record_every=10**9, tol=0, seed=0, step=ds.Constant(1e-4),
         checkpoint=ds.Checkpoint(path, every=0.05), resume=True,
         callbacks=[lambda checkup: print("running", flush=True)])
"""


@pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("runtime", ["serial", "threads"])
def test_a_process_that_is_ended_keeps_its_exit_code_and_leaves_a_whole_checkpoint(number, runtime, tmp_path):
    path = tmp_path / "run.ckpt"
    command = [sys.executable, "-c", PROGRAM, str(path), runtime]
    reached = []
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for word in ("ready", "running") if not reached else ("ready",):
                assert process.stdout.readline().strip() == word
            written = {path.stat().st_mtime_ns if path.exists() else 0}
            while len(written) < 4:  # the first is of the start
                assert process.poll() is None
                written |= {path.stat().st_mtime_ns} if path.exists() else set()
                time.sleep(0.01)
            process.send_signal(number)
            assert process.wait(60) == -number
            assert ("KeyboardInterrupt" in process.stderr.read()) == (number == signal.SIGINT)
        with np.load(path) as archive:
            reached.append(json.loads(archive["about"].tobytes())["parts"]["run"]["iteration"])
    assert 0 < reached[0] < reached[1]


BAD = {
    "resume without a checkpoint": ({"resume": True}, ValueError, "resume"),
    "resume that is no flag": ({"resume": 1}, TypeError, "resume"),
    "a number": ({"checkpoint": 5}, TypeError, "checkpoint"),
    "bytes": ({"checkpoint": b"run.ckpt"}, TypeError, "checkpoint"),
    "no folder": ({"checkpoint": "nowhere/run.ckpt"}, ValueError, "no folder"),
    "a folder": ({"checkpoint": "."}, ValueError, "is a folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_checkpoint_that_makes_no_sense(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options, kind, words = BAD[case]
    with pytest.raises(kind, match=words):
        ds.solve(cases.problem(), "dap-sgd", **options)
    assert not list(Path().iterdir())


@pytest.mark.parametrize("every", [0, -1, np.nan, np.inf, "often"])
def test_how_often_must_make_sense(every):
    with pytest.raises((ValueError, TypeError), match="every"):
        ds.Checkpoint("run.ckpt", every)


def test_an_automatic_step_that_depends_on_the_length_of_a_run_is_named(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 5))
    problem = ds.Problem(X, X[:, 0], regularizer=ds.L1(0.1))
    options = {"workers": 1, "seed": 0, "tol": 0.0, "checkpoint": tmp_path / "run.ckpt"}
    ds.solve(problem, "dap-sgd", max_passes=2, **options)
    with pytest.raises(ds.CheckpointError, match=r"step is another one, as it is with another max_passes if it is automatic"):
        ds.solve(problem, "dap-sgd", max_passes=4, resume=True, **options)
