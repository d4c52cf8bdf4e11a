"""The command line and the pictures."""

import numpy as np
import pytest
from typer.testing import CliRunner

import dapsgd as ds
from dapsgd import demo, plots
from dapsgd.cli import app

from . import cases


@pytest.fixture(autouse=True)
def _no_screen(monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_the_demo_prints_a_table_and_saves_a_picture(tmp_path, monkeypatch):
    full = demo.run
    monkeypatch.setattr(demo, "run", lambda **options: full(repeats=1, share=0.02, **options))
    picture = tmp_path / "picture.png"
    outcome = CliRunner().invoke(app, ["demo", "--out", str(picture), "--workers", "2"])
    assert outcome.exit_code == 0, outcome.output
    assert "fused lasso, m = 5,000" in outcome.output
    assert "DAP-SGD makes" in outcome.output
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert list(tmp_path.iterdir()) == [picture]


@pytest.mark.parametrize("arguments", [["demo", "--workers", "0"], ["demo", "--out", "no/such/folder.png"], ["fitt"]])
def test_a_wrong_command_is_a_sentence_not_a_traceback(arguments):
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 2
    assert "Traceback" not in outcome.output


def test_version():
    outcome = CliRunner().invoke(app, ["--version"])
    assert outcome.output.strip() == f"dapsgd {ds.__version__}"


def test_a_result_draws_itself(tmp_path):
    problem = cases.problem("squared", "fused_lasso", l2=0.1)
    best = ds.solve(problem, "fista", tol=1e-10)
    run = ds.solve(problem, "dap-sgd", workers=3, max_iter=500, seed=0, tol=0, x_star=best.x)
    figure = run.plot(tmp_path / "run.svg")
    labels = {axes.get_ylabel() for axes in figure.axes}
    assert {"objective", "residual", r"distance to $x^\star$", "share of updates"} <= labels
    assert {axes.get_xlabel() for axes in figure.axes} >= {"seconds", "iterations", "passes over the data"}
    assert (tmp_path / "run.svg").stat().st_size > 1000
    without = ds.solve(problem, "fista", tol=1e-6).plot()
    assert r"distance to $x^\star$" not in {axes.get_ylabel() for axes in without.axes}
    axes = run.trace.plot(y="distance", x="passes")
    assert axes.get_yscale() == "log"
    with pytest.raises(ValueError, match="did you mean"):
        run.trace.plot(y="objectiv")


def test_a_picture_that_cannot_be_saved_leaves_nothing(tmp_path):
    problem = cases.problem()
    figure = ds.solve(problem).plot()
    with pytest.raises(ValueError, match=r"[Ff]ormat"):
        plots.save(figure, tmp_path / "picture.nonsense")
    assert list(tmp_path.iterdir()) == []


def test_representations_are_short():
    problem = cases.problem("logistic", "group_lasso", fit_intercept=True)
    run = ds.solve(problem, "dap-sgd", workers=2, max_iter=50, seed=0, record_schedule=True)
    assert repr(problem) == "Problem(40 x 12 dense float64, Logistic + GroupLasso, l2=0, intercept)"
    assert repr(run).startswith("Result(not converged: objective ")
    assert repr(run.schedule).startswith("Schedule(50 iterations")
    assert np.isfinite(run.objective)


def test_progress_is_shown(capsys):
    ds.solve(cases.problem(), "dap-sgd", max_iter=200, seed=0, progress=True)
    assert "dapsgd" in capsys.readouterr().err
    ds.path(cases.problem(), n_lams=5, progress=True)
    assert "5/5" in capsys.readouterr().err
