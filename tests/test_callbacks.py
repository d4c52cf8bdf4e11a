"""Callbacks: what they write is what was recorded, and they end a run when they should."""

import csv
import json
import math
import sys
import types

import matplotlib
import numpy as np
import pytest

import dapsgd as ds

matplotlib.use("Agg")


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    return ds.Problem(X, X[:, 0] + 2.0 + 0.3 * rng.standard_normal(60), regularizer=ds.L1(0.01), fit_intercept=True)


def run(problem, *callbacks, **options):
    return ds.solve(problem, "dap-sgd", workers=1, max_iter=100, record_every=25, tol=0, seed=0, callbacks=callbacks, **options)


def test_a_checkup_has_the_intercept(problem):
    seen = []
    result = run(problem, seen.append)
    assert seen[0].intercept == 0.0
    assert problem.objective(seen[-1].x, seen[-1].intercept) == pytest.approx(seen[-1].objective, rel=1e-12)
    assert np.array_equal(seen[-1].x, result.iterate)


def test_a_checkup_has_an_intercept_for_each_target():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    seen = []
    run(ds.Problem(X, rng.standard_normal((30, 3)) + 1.0, fit_intercept=True), seen.append)
    assert seen[-1].intercept.shape == (3,)
    assert seen[-1].x.shape == (4, 3)


def test_csv_log(problem, tmp_path):
    log = ds.callbacks.CSVLog(tmp_path / "run.csv")
    trace = run(problem, log).trace
    with log.path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(trace.columns())
    assert [int(row["iteration"]) for row in rows] == trace.iteration.tolist() == [0, 25, 50, 75, 100]
    for name in ("seconds", "passes", "objective", "residual"):
        assert [float(row[name]) for row in rows] == getattr(trace, name).tolist()
    assert all(row["distance"] == "" for row in rows)


def test_json_lines_log(problem, tmp_path):
    log = ds.callbacks.JSONLinesLog(tmp_path / "run.jsonl")
    trace = run(problem, log, x_star=np.zeros(8)).trace
    rows = [json.loads(line) for line in log.path.read_text().splitlines()]
    for name in trace.columns():
        assert [row[name] for row in rows] == getattr(trace, name).tolist()
    run(problem, log)
    assert json.loads(log.path.read_text().splitlines()[0])["distance"] is None


@pytest.mark.parametrize("kind", [ds.callbacks.CSVLog, ds.callbacks.JSONLinesLog])
def test_a_log_is_replaced_or_added_to(kind, problem, tmp_path):
    path = tmp_path / "log"
    heads = kind is ds.callbacks.CSVLog
    for append, lines in ((False, 5), (False, 5), (True, 10)):
        run(problem, kind(path, append=append))
        assert len(path.read_text().splitlines()) == lines + heads
    with pytest.raises(FileNotFoundError, match="folder that exists"):
        kind(tmp_path / "nowhere" / "log")


def test_early_stopping_judges_by_the_loss_of_the_problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    y = np.sign(X[:, 0] + 0.1 * rng.standard_normal(80))
    held = ds.Problem(X[50:], y[50:], ds.Logistic(), fit_intercept=True)
    stop, squared = ds.callbacks.EarlyStopping(X[50:], y[50:]), ds.callbacks.EarlyStopping(X[50:], y[50:], ds.Squared())
    run(ds.Problem(X[:50], y[:50], ds.Logistic()), stop, squared)
    assert stop.best_score == pytest.approx(held.objective(stop.best_x, stop.best_intercept), rel=1e-12)
    assert stop.scores[0] == pytest.approx(math.log(2.0))
    assert squared.scores[0] == pytest.approx(1.0)
    run(ds.Problem(X[:50], y[:50]), stop)  # another loss in another run
    assert stop.scores[0] == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"EarlyStopping: y must be -1 or \+1 for Logistic"):
        run(ds.Problem(X[:50], y[:50], ds.Logistic()), ds.callbacks.EarlyStopping(X[50:], y[50:] > 0.0))


def test_early_stopping_ends_where_validation_gets_worse():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 40))
    y = X[:, 0] + 1.0 + rng.standard_normal(80)
    problem = ds.Problem(X[:50], y[:50], fit_intercept=True)
    stop = ds.callbacks.EarlyStopping(X[50:], y[50:], patience=4)
    options = {"max_passes": 60, "record_every": 50, "tol": 0, "seed": 0}
    result = ds.solve(problem, "p-sgd", callbacks=[stop], **options)
    assert "a callback asked to stop" in result.message
    assert result.iterations < 60 * 50
    assert len(stop.scores) == len(result.trace)
    k = int(np.argmin(stop.scores))
    assert stop.best_iteration == result.trace.iteration[k]
    assert stop.best_score == stop.scores[k]
    assert len(stop.scores) - 1 - k == 4
    mean = np.mean((X[50:] @ stop.best_x + stop.best_intercept - y[50:]) ** 2)
    assert mean == pytest.approx(stop.best_score, rel=1e-12)
    first = list(stop.scores)
    ds.solve(problem, "p-sgd", callbacks=[stop], **options)
    assert stop.scores == first  # it starts anew with every run


@pytest.mark.parametrize("algorithm", ["dap-sgd", "dap-svrg", "dave-rpg"])
@pytest.mark.parametrize("runtime", ["serial", "threads"])
def test_a_run_ends_where_a_callback_asks_it_to(runtime, algorithm):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 40))
    problem = ds.Problem(X, X[:, 0], regularizer=ds.L1(0.1), l2=0.1)
    workers = 1 if runtime == "serial" else 4
    options = {"workers": workers, "max_iter": 20_000, "record_every": 7, "tol": 0, "seed": 0}
    result = ds.solve(problem, algorithm, runtime=runtime, callbacks=[lambda now: now.iteration >= 21], **options)
    assert result.iterations == result.trace.iteration[-1] == 21
    assert "a callback asked to stop after 21 iterations" in result.message


def test_early_stopping_says_what_is_wrong(problem):
    with pytest.raises(ValueError, match="patience"):
        ds.callbacks.EarlyStopping(np.eye(8), np.zeros(8), patience=0)
    with pytest.raises(ValueError, match="min_delta"):
        ds.callbacks.EarlyStopping(np.eye(8), np.zeros(8), min_delta=-1.0)
    with pytest.raises(ValueError, match=r"X and y must be as those of the problem.*\(8,\)"):
        run(problem, ds.callbacks.EarlyStopping(np.eye(3), np.zeros(3)))


def test_live_plot_saves_what_was_recorded(problem, tmp_path):
    live = ds.callbacks.LivePlot("residual", "passes", path=tmp_path / "live.png", every=0.0)
    trace = run(problem, live).trace
    (line,) = live.figure.axes[0].lines
    np.testing.assert_array_equal(line.get_xdata(), trace.passes)
    np.testing.assert_array_equal(line.get_ydata(), trace.residual)
    assert (tmp_path / "live.png").read_bytes().startswith(b"\x89PNG")
    live.close()
    with pytest.raises(ValueError, match="LivePlot: y must be"):
        ds.callbacks.LivePlot("speed")


def test_live_plot_waits_between_drawings_but_draws_the_end(problem):
    live, drawn = ds.callbacks.LivePlot(every=3600.0), []

    def look(now):
        drawn.append(len(live.figure.axes[0].lines[0].get_xdata()))

    ds.solve(problem, "p-sgd", max_iter=20, record_every=5, tol=0, seed=0, callbacks=[live, look])
    assert drawn == [1] * 5
    (ax,) = live.figure.axes
    assert len(ax.lines[0].get_xdata()) == 5
    assert (ax.get_yscale(), ax.get_ylabel()) == ("log", "objective above its lowest")
    live.close()
    live.finish()  # there is nothing new


def test_what_a_callback_is_at_is_finished_also_where_a_run_fails(problem):
    finished = []

    class Careful:
        def __call__(self, now):
            return 1 / 0 if now.iteration else None

        def finish(self):
            finished.append("finished")

    with pytest.raises(ZeroDivisionError):
        ds.solve(problem, "p-sgd", max_iter=20, record_every=5, tol=0, seed=0, callbacks=[Careful()])
    assert finished == ["finished"]


def test_live_plot_replaces_its_picture_in_a_notebook(problem, monkeypatch):
    import matplotlib.pyplot as plt

    plt.close(plt.figure())  # it asks for IPython when it is first used: before there is a false one
    shown, updated = [], []

    def display(figure, display_id):
        shown.append(figure)
        return types.SimpleNamespace(update=updated.append)

    notebook = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    live = ds.callbacks.LivePlot(every=0.0)
    run(problem, live)
    assert shown == [live.figure]
    assert updated == [live.figure] * 4


@pytest.mark.parametrize(("name", "package"), [("TensorBoard", "tensorboard"), ("MLflow", "mlflow")])
def test_a_tracker_that_is_missing_says_how_to_get_it(name, package, monkeypatch):
    for module in [key for key in sys.modules if key.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"{name} needs the package {package}: pip install {package}"):
        getattr(ds.callbacks, name)("somewhere")


def test_mlflow_gets_the_finite_numbers(problem, monkeypatch):
    logged = []
    fake = types.ModuleType("mlflow")
    fake.log_metrics = lambda metrics, step: logged.append((step, metrics))
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    trace = run(problem, ds.callbacks.MLflow(prefix="fit/")).trace
    assert [step for step, _ in logged] == trace.iteration.tolist()
    assert [metrics["fit/objective"] for _, metrics in logged] == trace.objective.tolist()
    assert set(logged[0][1]) == {"fit/seconds", "fit/passes", "fit/objective", "fit/residual"}
    assert all(math.isfinite(value) for _, metrics in logged for value in metrics.values())


def test_tensorboard_can_be_read_back(problem, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = ds.callbacks.TensorBoard(tmp_path / "board")
    trace = run(problem, board).trace
    board.close()
    events = EventAccumulator(str(tmp_path / "board")).Reload().Scalars("dapsgd/objective")
    assert [event.step for event in events] == trace.iteration.tolist()
    np.testing.assert_allclose([event.value for event in events], trace.objective, rtol=1e-6)


def test_callbacks_print_themselves(tmp_path):
    assert repr(ds.callbacks.CSVLog("run.csv")) == "CSVLog('run.csv', append=False)"
    assert repr(ds.callbacks.LivePlot()) == "LivePlot('objective', 'seconds')"
    assert repr(ds.callbacks.EarlyStopping(np.eye(3), np.zeros(3))) == "EarlyStopping(3 rows, patience=5, min_delta=0)"


def test_a_live_plot_looks_at_its_path_at_once(tmp_path):
    with pytest.raises(ValueError, match="LivePlot: path must end in one of"):
        ds.callbacks.LivePlot(path=tmp_path / "live.xyz")
    with pytest.raises(FileNotFoundError, match=r"LivePlot: path: the folder .* does not exist"):
        ds.callbacks.LivePlot(path=tmp_path / "none" / "live.png")
