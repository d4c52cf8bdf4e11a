"""The command line and the pictures."""

import inspect
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import dapsgd as ds
from dapsgd import _progress, demo, plots
from dapsgd._progress import Lines
from dapsgd.cli import app, main

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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fitt"], "no such command 'fitt'. Did you mean 'fit'?; see dapsgd --help"),
        (["fit"], "missing argument 'data'; see dapsgd fit --help"),
        (["fit", "x.csv", "--alfa", "1"], "no such option: --alfa"),
        (["fit", "x.csv", "--alpha", "much"], "--alpha must be a number; got 'much'; see dapsgd fit --help"),
        (["fit", "x.csv", "--alpha", "0,1"], "--alpha must be a number, with a decimal point; got '0,1'; see"),
        (["fit", "x.csv", "--tol=1e"], "--tol must be a number; got '1e'"),
        (["fit", "x.csv", "--l1-ratio", "1", "--l1-ratio", "q"], "--l1-ratio must be a number; got 'q'"),
        (
            ["fit", "x.csv", "--l1-ratio", "0.1,0.5"],
            "--l1-ratio must be a number, with a decimal point; got '0.1,0.5': for several",
        ),
        (["fit", "x.csv", "--cv"], "option '--cv' requires an argument; see dapsgd fit --help"),
        (["fit", "x.csv", "--bounds", "1"], "option '--bounds' requires 2 arguments; see dapsgd fit --help"),
        (["predict", "m.npz", "x.csv", "--out"], "option '--out' requires an argument; see dapsgd predict --help"),
        (["fit", "x.csv", "--alpha", "1", "--alpha=2"], "--alpha must be given once; got it 2 times; see dapsgd fit --help"),
        (["fit", "x.csv", "--bounds", "0", "1", "--bounds", "0", "2"], "--bounds must be given once; got it 2 times"),
        (["fit", "x.csv", "--bounds", "0", "x"], "--bounds must be a number; got 'x'"),
        (["fit", "x.csv", "--cv", "2.5"], "--cv must be a whole number, at least 2; got '2.5'"),
        (["fit", "x.csv", "--cv", "1"], "--cv must be a whole number, at least 2; got '1'"),
        (["simulate", "--work", "x"], "--work must be a number; got 'x'; see dapsgd simulate --help"),
        (["fit", "x.csv", "--penalty", "fused"], "--penalty must be one of"),  # before it is noticed that there is no file
        (["fit", "x.csv", "--algorithm", "sgd"], "--algorithm must be one of"),
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_one_line_and_status_2(arguments, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dapsgd", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {said}")


def test_every_option_that_takes_a_number_says_what_is_wrong_in_the_same_words(monkeypatch, capsys):
    seen = 0
    for name in ("demo", "fit", "predict", "show", "simulate", "reproduce"):
        command = typer.main.get_command(app).commands[name]
        hints = inspect.signature(inspect.unwrap(command.callback)).parameters
        for option in command.params:
            if not re.search(r"\b(int|float)\b", str(hints[option.name].annotation).partition("(")[0]):
                continue
            values = ["a,b"] * option.nargs
            monkeypatch.setattr(sys, "argv", ["dapsgd", name, *["x"] * 2, option.opts[0], *values])
            with pytest.raises(SystemExit):
                main()
            assert re.match(rf"error: {option.opts[0]} must be a .*number.*; got 'a,b'", capsys.readouterr().err)
            seen += 1
    assert seen >= 20


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["--version"], 0), (["show", "--help"], 0)])
def test_help_is_not_an_error(arguments, status, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dapsgd", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == status
    told = capsys.readouterr()
    assert "dapsgd" in told.out + told.err
    assert "error:" not in told.err


def test_version():
    outcome = CliRunner().invoke(app, ["--version"])
    assert outcome.output.strip() == f"dapsgd {ds.__version__}"


def test_a_result_draws_itself(tmp_path):
    problem = cases.problem("squared", "fused_lasso", l2=0.1)
    best = ds.solve(problem, "fista", tol=1e-10)
    run = ds.solve(problem, "dap-sgd", workers=3, max_iter=500, seed=0, tol=0, x_star=best.x)
    figure = run.plot(tmp_path / "run.svg")
    labels = {axes.get_ylabel() for axes in figure.axes}
    assert {"objective above a bound", "residual", r"distance to $x^\star$", "share of updates"} <= labels
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
    with pytest.raises(ValueError, match=r"path must end in one of .*svg.*; got 'picture.nonsense'"):
        plots.save(figure, tmp_path / "picture.nonsense")
    with pytest.raises(FileNotFoundError, match=r"the folder .*no does not exist"):
        plots.save(figure, tmp_path / "no" / "picture.svg")
    assert list(tmp_path.iterdir()) == []


def test_representations_are_short():
    problem = cases.problem("logistic", "group_lasso", fit_intercept=True)
    run = ds.solve(problem, "dap-sgd", workers=2, max_iter=50, seed=0, record_schedule=True)
    assert repr(problem) == "Problem(40 x 12 dense float64, Logistic + GroupLasso, l2=0, intercept)"
    assert repr(run).startswith("Result(not converged: objective ")
    assert repr(run.schedule).startswith("Schedule(50 iterations")
    assert np.isfinite(run.objective)


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setattr("dapsgd._progress._is_watched", lambda: True)
    ds.solve(cases.problem(), "dap-sgd", max_iter=200, seed=0, progress=True)
    assert "dapsgd" in capsys.readouterr().err
    ds.path(cases.problem(), n_lams=5, progress=True)
    assert "5/5" in capsys.readouterr().err


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


def at(lines, clock, *seconds):
    """Take note of one more at each of these times, and return the number of lines after each."""
    counts = []
    for clock.seconds in seconds:
        lines.update()
        counts.append(lines.printed())
    return counts


@pytest.fixture
def log(capsys):
    """Return lines with a clock that stands still, and what they have printed."""
    clock = Clock()
    text = []

    def make(**options):
        lines = Lines(clock=clock, **options)

        def printed():
            text.extend(capsys.readouterr().err.splitlines())
            return len(text)

        lines.printed = printed
        return lines, clock, text

    return make


def test_in_a_log_progress_is_a_line_now_and_then(log):
    lines, clock, text = log(total=400, unit="fit")
    assert at(lines, clock, 0.0, 5.0, 9.9, 10.0, 19.9, 20.0) == [0, 0, 0, 1, 1, 2]
    assert text == ["dapsgd: 4 of 400 fits (1%) after 00:10", "dapsgd: 6 of 400 fits (2%) after 00:20"]
    assert at(lines, clock, 100.0, 119.9, 120.0) == [3, 3, 4]  # a fifth of the time so far
    assert at(lines, clock, 10_000.0, 10_299.0, 10_300.0) == [5, 5, 6]  # but no more than five minutes
    lines.close()
    assert lines.printed() == 6  # nothing is new
    lines.update()
    lines.close()
    assert lines.printed() == 7
    assert text[-1] == "dapsgd: 13 of 400 fits (3%) after 2:51:40"


def test_in_a_log_what_is_short_says_nothing(log):
    lines, clock, _ = log(total=2, unit="strength")
    assert at(lines, clock, 1.0, 9.0) == [0, 0]
    lines.close()
    assert lines.printed() == 0
    lines, clock, _ = log(total=2, disable=True)
    assert at(lines, clock, 100.0) == [0]
    lines.close()
    assert lines.printed() == 0


def test_in_a_log_numbers_and_notes_are_short(log):
    lines, clock, text = log(total=2_000_000, unit="it", unit_scale=True, leave=True)
    lines.set_postfix_str("objective 1.5, gap 0.2", refresh=False)
    clock.seconds = 70.0
    lines.update(500_000)
    lines.printed()
    assert text == ["dapsgd: 500k of 2.00M iterations (25%) after 01:10, objective 1.5, gap 0.2"]


def test_progress_of_all_kinds_goes_to_a_log(capsys, monkeypatch):
    monkeypatch.setattr("dapsgd._progress._SOON", 0.0)
    monkeypatch.setattr("dapsgd._progress._APART", 0.0)
    ds.solve(cases.problem(), "dap-sgd", max_iter=200, seed=0, progress=True)
    shown = capsys.readouterr().err
    assert "\r" not in shown
    assert re.search(r"^dapsgd: 200 of 200 iterations \(100%\) after 00:00, objective \S+, gap \S+$", shown, re.MULTILINE)
    ds.path(cases.problem(), n_lams=5, progress=True)
    assert capsys.readouterr().err.splitlines()[-1] == "dapsgd: 5 of 5 strengths (100%) after 00:00"
    ds.solve(cases.problem(), "dap-sgd", max_iter=200, seed=0)
    assert capsys.readouterr().err == ""


def test_what_is_watched_has_a_bar(monkeypatch):
    screen = SimpleNamespace(isatty=lambda: True)
    assert [_is_watched_with(monkeypatch, stderr) for stderr in (screen, SimpleNamespace(), None)] == [True, False, False]
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert _is_watched_with(monkeypatch, None)


def _is_watched_with(monkeypatch, stderr):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        return _progress._is_watched()


def test_the_largest_of_many_bars_are_named():
    from matplotlib.text import Annotation

    rng = np.random.default_rng(0)
    coef = np.where(rng.random(300) < 0.2, rng.standard_normal(300), 0.0)
    coef[0], coef[150], coef[299] = -9.0, 8.0, 7.0
    figure = plots.plot_coef(coef, names=[f"gene {k} of many" for k in range(300)])
    figure.canvas.draw()
    (ax,) = figure.axes
    said = [child for child in ax.get_children() if isinstance(child, Annotation)]
    named = [one.get_text() for one in said]
    assert {"gene 0 of many", "gene 150 of many", "gene 299 of many"} <= set(named)
    assert 3 < len(named) <= 8
    boxes = [one.get_window_extent() for one in said]
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])
    frame = ax.get_window_extent()
    assert all(frame.x0 - 1 <= box.x0 and box.x1 <= frame.x1 + 1 and frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes)


@pytest.mark.parametrize("options", [{"steps": True}, {}], ids=["steps", "no names"])
def test_only_bars_with_names_are_named(options):
    from matplotlib.text import Annotation

    names = [f"w{k}" for k in range(90)] if options else None
    (ax,) = plots.plot_coef(np.arange(90.0), names=names, **options).axes
    assert not [child for child in ax.get_children() if isinstance(child, Annotation)]
