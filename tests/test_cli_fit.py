"""``dapsgd fit`` and ``dapsgd predict``."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

import dapsgd as ds
import dapsgd_command
from dapsgd import models, plots
from dapsgd.cli import app
from dapsgd.commands import _data, predict

RNG = np.random.default_rng(0)
N, P = 120, 6
X = RNG.standard_normal((N, P)).round(3)
Y = (X @ np.array([2.0, 2.0, 2.0, 0.0, 0.0, 0.0]) + 0.5 * RNG.standard_normal(N)).round(3)
WORDS = np.where(Y > 0, "up", "down")
NAMES = ["a_1", "a_2", "a_3", "b_1", "b_2", "b_3"]


def write(path, X=X, y=Y, names=(*NAMES, "y")):
    rows = [list(row) + ([] if y is None else [target]) for row, target in zip(X, y if y is not None else X, strict=True)]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([list(names), *rows] if names else rows)
    return path


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("t.csv")
    write("words.csv", y=WORDS)
    write("bare.csv", names=None)
    dump_svmlight_file(csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)), np.sign(Y), "t.svm", zero_based=True)
    np.save("t.npy", np.column_stack([X, Y]))
    np.savez("t.npz", X=X, y=Y)
    return tmp_path


def call(*arguments):
    outcome = CliRunner().invoke(app, [str(a) for a in arguments])
    assert "Traceback" not in outcome.output
    return outcome


def done(*arguments):
    outcome = call(*arguments)
    assert outcome.exit_code == 0, outcome.output
    return outcome


def column(path, k=0):
    with open(path, newline="") as file:
        return [row[k] for row in csv.reader(file)][1:]


@pytest.mark.parametrize(
    ("data", "target"), [("t.csv", "y"), ("t.csv", -1), ("bare.csv", 6), ("t.npy", 6), ("t.npz", None), ("t.npz", "y")]
)
def test_fit_and_predict(here, data, target):
    given = [] if target is None else ["--target", target]
    outcome = done("fit", data, *given, "--penalty", "fused_lasso", "--alpha", "0.1", "--tol", "1e-8")
    assert "jumps" in outcome.output
    expected = ds.DAPRegressor("fused_lasso", alpha=0.1, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(models.load("model.npz").coef_, expected.coef_)
    scored = done("predict", "model.npz", data)
    assert f"R2: {expected.score(X, Y):.4f}" in scored.output
    np.testing.assert_allclose([float(v) for v in column("predictions.csv")], expected.predict(X))
    assert not [name for name in os.listdir() if "part" in name]


def test_svmlight_and_conversion(monkeypatch):
    done("fit", "t.svm", "--alpha", "0.01", "--cache", "kept", "--no-intercept")
    assert len(os.listdir("kept")) == 1
    model = models.load("model.npz")
    assert model.classes_.tolist() == [-1.0, 1.0]
    monkeypatch.setattr("dapsgd.io._folder._write", None)  # it need not be converted again
    about = json.loads(call("fit", "t.svm", "--alpha", "0.01", "--cache", "kept", "--no-intercept", "--json").stdout)
    assert about["task"] == "classification"
    assert "accuracy" in done("predict", "model.npz", "t.svm").output
    assert set(column("predictions.csv")) == {"-1", "1"}
    # A file in which the first column happens to be zero is read as the model's data were.
    first = np.zeros((2, P))
    first[:, 1:] = X[:2, 1:]
    dump_svmlight_file(csr_matrix(first), [1, 1], "late.svm", zero_based=True)
    done("predict", "model.npz", "late.svm", "--out", "late.csv")
    assert column("late.csv") == [str(int(v)) for v in model.predict(first)]


def test_a_large_file_is_converted_by_itself(monkeypatch):
    monkeypatch.setattr(_data, "LARGE", 100)
    done("fit", "t.csv", "--target", "y")
    assert sorted(os.listdir("t.csv.dapsgd")) == ["X.npy", "meta.json", "y.npy"]
    done("fit", "words.csv", "--target", "y", "--no-convert")
    assert not os.path.exists("words.csv.dapsgd")


def test_classes_in_words_and_their_probabilities():
    outcome = done("fit", "words.csv", "--target", "y", "--alpha", "0.01", "--out", "words.npz")
    assert "classification: the target is text" in outcome.output
    done("predict", "words.npz", "words.csv", "--proba", "--out", "p.csv")
    assert Path("p.csv").read_text().splitlines()[0] == "prediction,probability down,probability up"
    model = ds.DAPClassifier("l1", 0.01).fit(X, WORDS)
    assert column("p.csv") == model.predict(X).tolist()
    np.testing.assert_allclose([float(v) for v in column("p.csv", 2)], model.predict_proba(X)[:, 1])
    shown = call("predict", "words.npz", "words.csv", "--out", "-")
    assert shown.stdout.splitlines()[:2] == ["prediction", column("p.csv")[0]]


def test_columns_are_found_by_name():
    done("fit", "t.csv", "--target", "y", "--alpha", "0.1")
    done("predict", "model.npz", "t.csv", "--out", "one.csv")
    order = [3, 0, 5, 1, 4, 2]
    write("mixed.csv", np.column_stack([np.zeros(N), X[:, order]]), None, ["other", *[NAMES[j] for j in order]])
    assert "R2" not in done("predict", "model.npz", "mixed.csv", "--out", "two.csv").output
    np.testing.assert_allclose([float(v) for v in column("one.csv")], [float(v) for v in column("two.csv")])
    write("fewer.csv", X[:, 2:], None, NAMES[2:])
    outcome = call("predict", "model.npz", "fewer.csv")
    assert outcome.exit_code == 2
    assert "lacks 2 of 6 columns: 'a_1', 'a_2'" in outcome.output


def test_columns_without_names_are_taken_in_order():
    done("fit", "bare.csv", "--target", "-1", "--alpha", "0.1")
    done("predict", "model.npz", "bare.csv", "--out", "one.csv")
    write("only.csv", X, None, None)
    done("predict", "model.npz", "only.csv", "--out", "two.csv")
    assert column("one.csv") == column("two.csv")
    write("wide.csv", np.hstack([X, X]), None, None)
    outcome = call("predict", "model.npz", "wide.csv")
    assert outcome.exit_code == 2
    assert "wide.csv has 12 columns; model.npz has coefficients for 6" in outcome.output


@pytest.mark.parametrize("names", [NAMES, [900.5, 901.0, 902.0, 903.0, 904.0, 905.0]])
def test_a_model_fitted_in_python_to_a_data_frame(names):
    pandas = pytest.importorskip("pandas")
    model = ds.DAPRegressor("l1", 0.1).fit(pandas.DataFrame(X, columns=names), Y)
    models.save(model, "frame.npz")
    order = [3, 0, 5, 1, 4, 2]
    write("mixed.csv", X[:, order], None, [str(names[j]) for j in order])
    done("predict", "frame.npz", "mixed.csv")
    np.testing.assert_allclose([float(v) for v in column("predictions.csv")], X @ model.coef_ + model.intercept_)


def test_several_targets():
    write("two.csv", y=Y)
    done("fit", "t.csv", "--target", "y", "--target", "a_1", "--penalty", "nuclear", "--alpha", "0.05")
    done("predict", "model.npz", "t.csv")
    assert Path("predictions.csv").read_text().splitlines()[0] == "y,a_1"
    assert "rank" in done("fit", "t.csv", "--target", "y", "--target", "a_1", "--penalty", "nuclear").output


@pytest.mark.parametrize("groups", ["3", "prefix:_", "labels.txt", "named.csv"])
def test_groups(groups):
    with open("labels.txt", "w") as file:
        file.write("x\nx\nx\nz\nz\nz\n")
    with open("named.csv", "w") as file:
        file.write("".join(f"{name},{name[0]}\n" for name in reversed(NAMES)))
    outcome = done("fit", "t.csv", "--target", "y", "--penalty", "group_lasso", "--groups", groups, "--alpha", "0.5", "--json")
    about = json.loads(outcome.stdout)
    assert (about["groups"], about["nonzero_groups"], about["nonzeros"]) == (2, 1, 3)


LABELS = ["b", "a", "b", "c", "b", "b"]
GROUPED = ("--groups", "labels.txt", "--alpha", "0.2", "--tol", "1e-9")


@pytest.mark.parametrize("penalty", ["group_lasso", "sparse_group_lasso"])
@pytest.mark.parametrize(
    ("given", "weights"), [("root", [1.0, 2.0, 1.0]), ("3,0.5,1", [3.0, 0.5, 1.0]), ("0, 1, 2e-1", [0.0, 1.0, 0.2])]
)
def test_groups_have_weights(penalty, given, weights):
    Path("labels.txt").write_text("\n".join(LABELS))
    done("fit", "t.csv", "--target", "y", "--penalty", penalty, *GROUPED, "--weights", given)
    model = models.load("model.npz")
    expected = ds.DAPRegressor(penalty, 0.2, groups=LABELS, weights=weights, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.weights == weights
    assert not np.allclose(model.coef_, ds.DAPRegressor(penalty, 0.2, groups=LABELS).fit(X, Y).coef_, atol=1e-3)


def test_groups_of_one_size_and_coefficients_in_order_have_weights():
    penalty = ("--penalty", "group_lasso", "--groups", "3", "--cv", "3", "--eps", "0.1")
    done("fit", "t.csv", "--target", "y", *penalty, "--weights", "root")
    assert models.load("model.npz").weights == [3**0.5] * 2
    done("fit", "t.csv", "--target", "y", "--penalty", "slope", "--alpha", "0.1", "--weights", "6,5,4,3,2,1")
    expected = ds.DAPRegressor("slope", 0.1, weights=[6, 5, 4, 3, 2, 1]).fit(X, Y)
    np.testing.assert_allclose(models.load("model.npz").coef_, expected.coef_)


def test_a_run_with_other_weights_does_not_go_on_from_a_checkpoint():
    kept = ("--penalty", "group_lasso", "--groups", "3", "--alpha", "0.1", "--checkpoint", "run.ckpt")
    done("fit", "t.csv", "--target", "y", *kept, "--weights", "1,2")
    done("fit", "t.csv", "--target", "y", *kept, "--weights", "1,2", "--resume")
    outcome = call("fit", "t.csv", "--target", "y", *kept, "--weights", "2,1", "--resume")
    assert outcome.exit_code == 2
    assert "run.ckpt is of another run: regularizer is GroupLasso(lam=0.1, groups=3) there and here, but" in outcome.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--weights root", "must be left out unless --penalty is group_lasso, sparse_group_lasso or slope; got l1"),
        ("--penalty slope --weights root", "root is for groups; for --penalty slope give a number for each coefficient"),
        ("--penalty group_lasso --weights root", "root needs --groups: without"),
        ("--penalty group_lasso --groups 2 --weights size", "must be root, or numbers separated by commas, such as 1,0.5; got"),
        ("--penalty slope --weights 1;2", "must be numbers separated by commas, such as 1,0.5; got '1;2'"),
        ("--penalty group_lasso --groups 2 --weights 1,-1", "must be finite and >= 0; got -1"),
        ("--penalty group_lasso --groups 2 --weights 1,nan", "must be finite and >= 0; got nan"),
        ("--penalty slope --weights 1,2", "must be in decreasing order for --penalty slope"),
    ],
)
def test_wrong_weights_are_noticed_before_data_are_read(options, said):
    outcome = call("fit", "none.csv", "--target", "y", *options.split())
    assert outcome.exit_code == 2
    assert f"error: --weights {said}" in outcome.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--penalty group_lasso --groups 3 --weights 1,2,3", "must be 2 numbers, one for each group; got 3\n"),
        ("--penalty group_lasso --groups prefix:_ --weights 1", "must be 2 numbers, one for each group: a, b; got 1\n"),
        ("--penalty group_lasso --weights 1,2", "must be 6 numbers, one for each group; got 2\n"),
        ("--penalty slope --weights 2,1", "must be 6 numbers, one a coefficient, in decreasing order and none negative"),
    ],
)
def test_too_few_or_too_many_weights_are_counted(options, said, monkeypatch):
    monkeypatch.setattr("dapsgd.estimators._base.solve", None)  # nothing is to be solved
    outcome = call("fit", "t.csv", "--target", "y", *options.split())
    assert outcome.exit_code == 2
    assert f"error: --weights {said}" in outcome.output


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_standardised_columns_give_coefficients_in_the_original_units(sparse, intercept):
    scaled = X * [1.0, 10.0, 0.1, 1.0, 1.0, 5.0] + (0.0 if sparse else 3.0)
    if sparse:
        dump_svmlight_file(scaled, Y, "s.svm")
    else:
        write("s.csv", scaled)
    given = ["s.svm"] if sparse else ["s.csv", "--target", "y"]
    flag = "--intercept" if intercept else "--no-intercept"
    done("fit", *given, "--task", "regression", "--alpha", "0.3", "--standardize", "--tol", "1e-9", flag)
    model = models.load("model.npz")
    deviation = scaled.std(axis=0)
    by_hand = ds.DAPRegressor("l1", 0.3, tol=1e-9, fit_intercept=intercept).fit(scaled / deviation, Y)
    np.testing.assert_allclose(model.coef_, by_hand.coef_ / deviation, atol=1e-4 / deviation.min())
    np.testing.assert_allclose(model.predict(scaled), by_hand.predict(scaled / deviation), atol=1e-3)


@pytest.mark.parametrize("data", ["dense", "sparse", "classes"])
def test_of_standardised_columns_the_path_is_in_the_original_units_too(data, monkeypatch):
    from dapsgd.estimators import _search

    drawn = []
    monkeypatch.setattr(_search.CrossValidated, "plot_path", lambda self, path, names: drawn.append(self))
    scaled = X * [1.0, 10.0, 0.1, 1.0, 1.0, 5.0] + (0.0 if data == "sparse" else 3.0)
    if data == "sparse":
        dump_svmlight_file(scaled, Y, "s.svm")
    else:
        write("s.csv", scaled, np.digitize(Y, [-1.0, 1.0]).astype(str) if data == "classes" else Y)
    given = ["s.svm"] if data == "sparse" else ["s.csv", "--target", "y"]
    task = "classification" if data == "classes" else "regression"
    options = ("--task", task, "--cv", "3", "--eps", "0.1", "--standardize", "--plot-path", "p.png")
    outcome = done("fit", *given, "--penalty", "fused_lasso", *options)
    (model,) = drawn
    k = int(np.argmin(np.abs(model.path_.lams - model.alpha_)))
    np.testing.assert_allclose(model.path_.coefs[..., k].T, model.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.path_.intercepts[..., k], model.intercept_, rtol=1e-12)
    assert not np.allclose(model.result_.x.T, model.coef_)
    shown = done("show", "model.npz").output
    for text in (outcome.output, shown):
        assert "each column by its standard deviation" in text
        assert f"{model.objective_:.6g}, on the scaled columns" in text
    assert re.search(r"jumps +\d+, on the scaled columns", outcome.output)
    assert models.load("model.npz").metadata_["scaled"] is True


def test_columns_that_were_not_scaled_are_not_said_to_be():
    outcome = done(*FIT)
    assert "scaled" not in outcome.output + done("show", "model.npz").output
    assert models.load("model.npz").metadata_["scaled"] is False


def test_what_does_not_converge_is_written_and_has_status_1():
    outcome = call("fit", "t.csv", "--target", "y", "--tol", "1e-14", "--max-passes", "1")
    assert outcome.exit_code == 1
    assert "tolerance was not reached" in outcome.output
    assert models.load("model.npz").coef_.shape == (P,)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), ", or try --standardize"),
        (("--algorithm", "fista"), ", try --standardize, or use --algorithm auto"),
        (("--standardize",), ""),
        (("--standardize", "--algorithm", "fista"), ", or use --algorithm auto"),
        (("--penalty", "box", "--bounds", "0", "1"), ""),
        (("--dtype", "float32"), ", or use --dtype float64: float32 is good for about 1e-06"),
    ],
)
def test_what_was_done_already_is_no_advice(options, said):
    write("unlike.csv", X * np.where(np.arange(P) == 0, 100.0, 1.0), Y)
    outcome = call("fit", "unlike.csv", "--target", "y", "--tol", "1e-14", "--max-passes", "1", *options)
    assert outcome.exit_code == 1
    assert f"): raise --max-passes or --tol{said}\n" in outcome.output


def test_what_would_not_help_is_no_advice():
    little = ("--tol", "1e-14", "--max-passes", "1")
    assert "): raise --max-passes or --tol\n" in call(*FIT, *little).output  # columns are of one size
    write("far.csv", X, Y + 1e8)
    outcome = call("fit", "far.csv", "--target", "y", "--no-intercept", "--loss", "huber", "--alpha", "0.01", *little)
    assert "or --tol, or leave out --no-intercept (the target is far from zero)\n" in outcome.output


def test_what_gives_nothing_to_learn_is_said():
    write("same.csv", y=np.ones(N))
    assert "the target is the same in every row" in done("fit", "same.csv", "--target", "y").output
    said = "the penalty is too strong for any to be of use; lower "
    outcome = done("fit", "t.csv", "--target", "y", "--alpha", "1000", "--plot", "zero.png")
    assert f"all coefficients are zero: {said}--alpha, or choose it with --cv\n" in outcome.output
    assert f"0 of 6 are not zero: {said}alpha, or choose it by DAPRegressorCV\n" in done("show", "model.npz").output
    write("one.csv", X[:1], Y[:1])
    assert "--cv needs at least 2 rows; one.csv has 1" in call("fit", "one.csv", "--target", "y", "--cv", "5").output
    write("class.csv", y=np.full(N, "up"))
    assert "--target must hold at least two classes; all rows are up" in call("fit", "class.csv", "--target", "y").output


def test_how_many_workers_there_were_and_why_is_said():
    shown = " ".join(done("fit", "--help").output.replace("│", " ").split())
    assert "one for each core by default; fista, gram, working-set and p-sgd have one." in shown
    assert "1 worker, as working-set always has" in done(*FIT).output
    outcome = done(*FIT, "--algorithm", "dap-svrg", "--workers", "2", "--alpha", "0.1")
    assert ", 2 workers\n" in outcome.output
    about = json.loads(done(*FIT, "--json").stdout)
    assert (about["algorithm"], about["workers"]) == ("working-set", 1)


def test_help_teaches():
    for command in ("fit", "predict"):
        shown = done(command, "--help").output
        assert "Examples" in shown
        assert f"dapsgd {command} " in shown


@pytest.mark.parametrize("command", [[], *([name] for name in ("demo", "fit", "predict", "show", "simulate", "reproduce"))])
def test_flags_are_not_shown_as_if_they_took_a_value(command):
    lines = [line.lower() for line in done(*command, "--help").output.splitlines()]
    (shown,) = (line for line in lines if "--help" in line)
    assert "show this message and exit" in shown
    assert not any("bool" in line for line in lines)


def test_options_reach_the_estimator():
    done(
        *("fit", "t.csv", "--target", "y", "--loss", "huber", "--delta", "0.7", "--penalty", "elastic_net", "--alpha", "0.2"),
        *("--l1-ratio", "0.3", "--l2", "0.01", "--positive", "--no-intercept", "--algorithm", "dap-svrg", "--workers", "2"),
        *("--tol", "1e-3", "--max-passes", "50", "--seed", "3", "--drop", "b_1", "--dtype", "float32", "--progress"),
    )
    model = models.load("model.npz")
    expected = {"loss": "huber", "delta": 0.7, "penalty": "elastic_net", "alpha": 0.2, "l1_ratio": 0.3, "l2": 0.01}
    expected |= {"positive": True, "fit_intercept": False, "algorithm": "dap-svrg", "workers": 2, "tol": 1e-3}
    expected |= {"max_passes": 50.0, "random_state": 3}
    assert {name: getattr(model, name) for name in expected} == expected
    assert model.coef_.dtype == np.float32
    assert model.coef_.shape == (5,)


def test_the_strength_by_cross_validation_and_a_picture():
    outcome = done(
        "fit", "t.csv", "--target", "y", "--penalty", "fused_lasso", "--cv", "3", "--rule", "one_se", "--plot", "c.png"
    )
    expected = ds.DAPRegressorCV("fused_lasso", cv=3, rule="one_se").fit(X, Y)
    assert f"strength {expected.alpha_:.6g}, chosen on 3 folds by the rule one_se" in outcome.output
    assert "picture: c.png" in outcome.output
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")
    model = models.load("model.npz")
    assert model.alpha_ == expected.alpha_
    done("predict", "model.npz", "t.csv")
    np.testing.assert_allclose([float(v) for v in column("predictions.csv")], expected.predict(X))


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch):
    fit = ("fit", "t.csv", "--target", "y", "--cv", "3", "--out", "b.npz")
    assert "400" not in done(*fit).stderr  # it is over soon
    monkeypatch.setattr("dapsgd._progress._SOON", 0.0)
    assert done(*fit).stderr.splitlines()[-1] == "dapsgd: 400 of 400 fits (100%) after 00:00"
    assert "400" not in done(*fit, "--no-progress").stderr
    monkeypatch.setattr("dapsgd._progress._is_watched", lambda: True)
    assert "400/400" in done(*fit).stderr


def test_a_strength_at_the_end_of_those_tried_is_said_to_be(monkeypatch):
    said = "the strength is the smallest tried: try a smaller --eps"
    outcome = done("fit", "t.csv", "--target", "y", "--cv", "3", "--eps", "0.5")
    assert said in outcome.stderr.splitlines()  # a line of its own
    assert "smallest" not in outcome.stdout
    about = json.loads(done("fit", "t.csv", "--target", "y", "--cv", "3", "--eps", "0.5", "--json").stdout)
    assert (about["smallest"], about["edge"]) == (True, said)
    both = done("fit", "t.csv", "--target", "y", "--cv", "3", "--eps", "0.5", "--penalty", "nuclear").stderr.splitlines()
    assert said in both
    assert any(line.startswith("penalty nuclear is for several targets") for line in both)
    about = json.loads(done("fit", "t.csv", "--target", "y", "--cv", "3", "--json").stdout)["held_out"]
    assert about["name"] == "mean squared error"
    assert 0.0 < about["standard_error"] < about["mean"]
    assert said not in done("fit", "t.csv", "--target", "y", "--cv", "3", "--eps", "1e-5").output
    assert "--eps needs --cv" in call("fit", "t.csv", "--target", "y", "--eps", "0.5").output


def test_a_model_without_names_of_columns_says_that_it_takes_them_in_order():
    model = ds.DAPRegressor().fit(X, Y)
    models.save(model, "model.npz")
    write("backwards.csv", X[:, ::-1], y=None, names=NAMES[::-1])
    outcome = done("predict", "model.npz", "backwards.csv")
    assert "the model has no names of columns: they were taken in order" in outcome.stderr
    np.testing.assert_allclose([float(v) for v in column("predictions.csv")], model.predict(X[:, ::-1]))
    assert "no names by which to find them" in call("predict", "model.npz", "t.csv").output
    models.save(model, "model.npz", feature_names=NAMES)
    outcome = done("predict", "model.npz", "backwards.csv")
    assert "taken in order" not in outcome.stderr
    np.testing.assert_allclose([float(v) for v in column("predictions.csv")], model.predict(X))


def test_rows_with_a_missing_value_are_left_out_if_asked_for(here):
    write("holes.csv", np.where(np.arange(N)[:, None] == [2, 5, -1, -1, -1, -1], np.nan, X))
    about = json.loads(done("fit", "holes.csv", "--target", "y", "--skip-missing", "--json").stdout)
    assert (about["rows"], about["skipped"]) == (N - 2, 2)
    keep = np.isin(np.arange(N), [2, 5], invert=True)
    np.testing.assert_allclose(models.load("model.npz").coef_, ds.DAPRegressor("l1").fit(X[keep], Y[keep]).coef_)


@pytest.mark.parametrize("names", [(*NAMES, "y"), None])
def test_rows_whose_target_is_not_known_yet_are_predicted(names):
    write("t.csv", names=names)
    done("fit", "t.csv", "--target", "y" if names else "6", "--alpha", "0.1")
    expected = models.load("model.npz").predict(X)
    write("new.csv", y=["" if k == 7 else target for k, target in enumerate(Y)], names=names)
    outcome = done("predict", "model.npz", "new.csv")
    line = 9 if names else 8
    assert f"no score: new.csv: line {line}, column {'y' if names else 6!r}: the value is missing\n" in outcome.stderr
    assert "R2" not in outcome.output
    np.testing.assert_allclose([float(v) for v in column("predictions.csv")], expected)


def test_a_missing_value_among_the_features_is_said_as_fits_predictions():
    done("fit", "t.csv", "--target", "y")
    write("holes.csv", np.where(np.arange(N)[:, None] == [2, -1, -1, -1, -1, -1], np.nan, X))
    outcome = call("predict", "model.npz", "holes.csv")
    assert outcome.exit_code == 2
    assert "line 4, column 'a_1': the value 'nan' counts as missing, and every row gets a prediction" in outcome.output
    assert "--skip-missing" not in outcome.output  # which predict has not
    assert not os.path.exists("predictions.csv")


def test_a_fit_goes_on_from_its_checkpoint():
    options = ("--algorithm", "dap-svrg", "--workers", "1", "--seed", "0", "--tol", "0", "--alpha", "0.1", "--json")
    kept = (*options, "--checkpoint", "run.ckpt")
    done(*FIT, *options, "--max-passes", "30", "--out", "whole.npz")
    first = json.loads(done(*FIT, *kept, "--max-passes", "12").stdout)
    rest = json.loads(done(*FIT, *kept, "--max-passes", "30", "--resume", "--out", "rest.npz").stdout)
    assert 0 < first["iterations"] < rest["iterations"]
    whole, rest = models.load("whole.npz"), models.load("rest.npz")
    assert np.array_equal(rest.coef_, whole.coef_)
    assert not np.array_equal(models.load("model.npz").coef_, whole.coef_)
    before = Path("run.ckpt").read_bytes()
    refused = call(*FIT, *kept, "--max-passes", "30", "--resume", "--penalty", "fused_lasso")
    assert refused.exit_code == 2
    assert "run.ckpt is of another run: regularizer" in " ".join(refused.output.split())
    assert "or no --resume to start" in " ".join(refused.output.split())
    assert Path("run.ckpt").read_bytes() == before
    done(*FIT, *kept, "--max-passes", "12", "--out", "again.npz")  # without --resume from the beginning
    assert np.array_equal(models.load("again.npz").coef_, models.load("model.npz").coef_)


FIT = ("fit", "t.csv", "--target", "y")
WRONG = {
    "no command": ((), "Usage"),
    "resume without a checkpoint": ((*FIT, "--resume"), "--resume needs --checkpoint"),
    "a checkpoint of many runs": ((*FIT, "--cv", "3", "--checkpoint", "c.ckpt"), "--checkpoint keeps one run"),
    "checkpoint in no folder": ((*FIT, "--checkpoint", "none/run.ckpt"), "--checkpoint: the folder none does not exist"),
    "checkpoint that is a folder": ((*FIT, "--checkpoint", "folder.npz"), "--checkpoint must be a file"),
    "checkpoint that is the data": ((*FIT, "--checkpoint", "t.csv"), "--checkpoint must not be the file of data"),
    "checkpoint that is the model": ((*FIT, "--checkpoint", "model.npz"), "--checkpoint must not be --out"),
    "no checkpoint": ((*FIT, "--checkpoint", "t.npy", "--resume"), "is damaged, or is no checkpoint"),
    "unknown command": (("fitt",), "fitt"),
    "no data": (("fit",), "data"),
    "no file": (("fit", "none.csv", "--target", "y"), "none.csv"),
    "a folder": (("fit", ".", "--target", "y"), "not a file"),
    "unknown ending": (("fit", "t.xlsx", "--target", "y"), "t.xlsx"),
    "no target": (("fit", "t.csv"), "--target"),
    "unknown target": (("fit", "t.csv", "--target", "yy"), "target 'yy'"),
    "target out of range": (("fit", "t.csv", "--target", "7"), "target 7"),
    "target twice": ((*FIT, "--target", "y"), "target must not name"),
    "target by name without names": (("fit", "bare.csv", "--target", "y"), "--target must be a position"),
    "target for svmlight": (("fit", "t.svm", "--target", "y"), "target means nothing"),
    "unknown array": (("fit", "t.npz", "--target", "z"), "target 'z' is not an array"),
    "unknown option": ((*FIT, "--colour", "red"), "--colour"),
    "unknown task": ((*FIT, "--task", "clustering"), "--task"),
    "misspelt task": ((*FIT, "--task", "classificaton"), "did you mean 'classification'"),
    "unknown loss": ((*FIT, "--loss", "absolute"), "--loss"),
    "loss of the other task": ((*FIT, "--task", "regression", "--loss", "logistic"), "--loss logistic"),
    "text for regression": (("fit", "words.csv", "--target", "y", "--task", "regression"), "holds text"),
    "text for squared loss": (("fit", "words.csv", "--target", "y", "--loss", "squared"), "holds text"),
    "too many classes": ((*FIT, "--task", "classification"), "too many to be classes"),
    "negative counts": ((*FIT, "--loss", "poisson"), "y must be >= 0"),
    "unknown penalty": ((*FIT, "--penalty", "lasso"), "penalty"),
    "misspelt penalty": ((*FIT, "--penalty", "fused_laso"), "did you mean 'fused_lasso'"),
    "negative alpha": ((*FIT, "--alpha", "-1"), "alpha"),
    "nan alpha": ((*FIT, "--alpha", "nan"), "alpha"),
    "alpha and folds": ((*FIT, "--alpha", "1", "--cv", "3"), "--alpha and --cv"),
    "one fold": ((*FIT, "--cv", "1"), "--cv"),
    "rule without folds": ((*FIT, "--rule", "one_se"), "--rule"),
    "unknown rule": ((*FIT, "--cv", "3", "--rule", "two_se"), "--rule"),
    "folds for no strength": ((*FIT, "--cv", "3", "--penalty", "zero"), "penalty must have a strength"),
    "picture of another kind": ((*FIT, "--plot", "c.xls"), "--plot must end in"),
    "picture in no folder": ((*FIT, "--plot", "no/c.png"), "--plot"),
    "a missing value": (("fit", "holes.csv", "--target", "y"), "--skip-missing"),
    "missing values in NPZ": (("fit", "t.npz", "--skip-missing"), "--skip-missing means nothing"),
    "text alpha": ((*FIT, "--alpha", "much"), "--alpha"),
    "infinite alpha": ((*FIT, "--alpha", "inf"), "alpha"),
    "l1_ratio out of range": ((*FIT, "--penalty", "elastic_net", "--l1-ratio", "2"), "--l1-ratio"),
    "l1_ratio for l1": ((*FIT, "--l1-ratio", "0.5"), "--l1-ratio"),
    "negative l2": ((*FIT, "--l2", "-1"), "l2"),
    "delta without huber": ((*FIT, "--delta", "1"), "--delta"),
    "delta of zero": ((*FIT, "--loss", "huber", "--delta", "0"), "delta"),
    "no bounds": ((*FIT, "--penalty", "box"), "bounds"),
    "half of the bounds": ((*FIT, "--penalty", "box", "--bounds", "1"), "--bounds"),
    "bounds in the wrong order": ((*FIT, "--penalty", "box", "--bounds", "1", "0"), "bounds"),
    "bounds for l1": ((*FIT, "--bounds", "0", "1"), "bounds"),
    "standardised box": ((*FIT, "--penalty", "box", "--bounds", "0", "1", "--standardize"), "--standardize"),
    "positive for fused": ((*FIT, "--penalty", "fused_lasso", "--positive"), "positive"),
    "groups for l1": ((*FIT, "--groups", "2"), "groups"),
    "groups that do not divide": ((*FIT, "--penalty", "group_lasso", "--groups", "4"), "--groups 4 must be a size"),
    "groups of zero": ((*FIT, "--penalty", "group_lasso", "--groups", "0"), "--groups 0 must be a size"),
    "groups from no file": ((*FIT, "--penalty", "group_lasso", "--groups", "none.txt"), "none.txt"),
    "groups by an empty prefix": ((*FIT, "--penalty", "group_lasso", "--groups", "prefix:"), "--groups prefix:"),
    "groups by prefix without names": (
        ("fit", "bare.csv", "--target", "-1", "--penalty", "group_lasso", "--groups", "prefix:_"),
        "--groups prefix:_",
    ),
    "groups with too few labels": ((*FIT, "--penalty", "group_lasso", "--groups", "short.txt"), "short.txt"),
    "groups in a binary file": ((*FIT, "--penalty", "group_lasso", "--groups", "t.npz"), "--groups"),
    "groups for other columns": ((*FIT, "--penalty", "group_lasso", "--groups", "others.txt"), "others.txt"),
    "unknown algorithm": ((*FIT, "--algorithm", "adam"), "algorithm"),
    "no workers": ((*FIT, "--algorithm", "dap-sgd", "--workers", "0"), "--workers"),
    "workers for one worker": ((*FIT, "--algorithm", "p-sgd", "--workers", "2"), "workers"),
    "negative tol": ((*FIT, "--tol", "-1"), "tol"),
    "no passes": ((*FIT, "--max-passes", "0"), "--max-passes"),
    "negative seed": ((*FIT, "--seed", "-1"), "--seed"),
    "unknown drop": ((*FIT, "--drop", "z"), "--drop 'z'"),
    "drop the target": ((*FIT, "--drop", "y"), "--drop and --target"),
    "drop everything": (("fit", "small.csv", "--target", "y", "--drop", "a"), "no column left"),
    "decimal for NPZ": (("fit", "t.npz", "--decimal", ","), "--decimal means nothing"),
    "unknown decimal": ((*FIT, "--decimal", "x"), "--decimal must be a point or a comma"),
    "unknown encoding": ((*FIT, "--encoding", "cp1251x"), "--encoding must be the name of an encoding of text"),
    "encoding of bytes": ((*FIT, "--encoding", "hex", "--cache", "c"), "got 'hex', which is not for files of text"),
    "encoding for NPZ": (("fit", "t.npz", "--encoding", "cp1252"), "--encoding means nothing"),
    "encoding of NPY": (("predict", "good.npz", "t.npy", "--encoding", "cp1252"), "--encoding means nothing for t.npy"),
    "predict in an unknown encoding": (("predict", "good.npz", "t.csv", "--encoding", "rot13"), "--encoding must be"),
    "another encoding": (
        ("fit", "latin.csv", "--target", "y"),
        "line 1 is not UTF-8 text; save the file as UTF-8, or say what",
    ),
    "predict another encoding": (("predict", "good.npz", "latin.csv"), "such as --encoding cp1252"),
    "fewer than no lines": ((*FIT, "--skip-lines", "-1"), "--skip-lines"),
    "half a line": ((*FIT, "--skip-lines", "0.5"), "--skip-lines"),
    "more lines than there are": ((*FIT, "--skip-lines", "999"), "t.csv has 121 lines; --skip-lines 999 leaves nothing"),
    "predict too few lines": (("predict", "good.npz", "t.csv", "--skip-lines", "999"), "--skip-lines 999 leaves nothing"),
    "lines of NPZ": (("fit", "t.npz", "--skip-lines", "1"), "--skip-lines means nothing"),
    "lines of NPY": (("predict", "good.npz", "t.npy", "--skip-lines", "1"), "--skip-lines means nothing for t.npy"),
    "a title": (
        ("fit", "title.csv", "--target", "y"),
        "line 2 has 2 fields; the header has 1; if it is further down, leave out",
    ),
    "predict below a title": (("predict", "good.npz", "title.csv"), "the lines above it with --skip-lines"),
    "decimal of NPY": (("predict", "good.npz", "t.npy", "--decimal", ","), "--decimal means nothing for t.npy"),
    "header for NPZ": (("fit", "t.npz", "--header"), "--header means nothing"),
    "names taken for numbers": (
        (*FIT, "--no-header"),
        "nothing but text, as a header does; leave --no-header out",
    ),
    "zero-based CSV": ((*FIT, "--zero-based"), "--zero-based means nothing"),
    "one-based CSV": ((*FIT, "--one-based"), "--one-based means nothing"),
    "one-based with a 0": (("fit", "t.svm", "--one-based"), "with --one-based indices must start at 1"),
    "columns for CSV": ((*FIT, "--n-features", "9"), "--n-features means nothing"),
    "too few columns": (("fit", "t.svm", "--n-features", "2"), "--n-features is 2"),
    "no columns": (("fit", "t.svm", "--n-features", "0"), "--n-features"),
    "unknown dtype": ((*FIT, "--dtype", "int8"), "dtype"),
    "nonsense dtype": ((*FIT, "--dtype", "blue"), "dtype"),
    "out in no folder": ((*FIT, "--out", "no/model.npz"), "--out"),
    "out of another kind": ((*FIT, "--out", "model.pkl"), "--out"),
    "out is a folder": ((*FIT, "--out", "folder.npz"), "--out"),
    "out is the data": (("fit", "t.npz", "--out", "t.npz"), "--out"),
    "cache is a file": ((*FIT, "--cache", "t.npz"), "--cache"),
    "cache and no conversion": ((*FIT, "--cache", "c", "--no-convert"), "--cache"),
    "a text column": (("fit", "words.csv", "--target", "a_1"), "column 'y': '"),
    "one class": (("fit", "same.csv", "--target", "y", "--task", "classification"), "two classes"),
    "damaged data": (("fit", "damaged.npz"), "damaged.npz"),
    "no model": (("predict", "none.npz", "t.csv"), "none.npz"),
    "model of another kind": (("predict", "t.csv", "t.csv"), "t.csv"),
    "data as a model": (("predict", "t.npz", "t.csv"), "t.npz"),
    "damaged model": (("predict", "damaged.npz", "t.csv"), "damaged.npz"),
    "predict without data": (("predict", "good.npz"), "data"),
    "predict no file": (("predict", "good.npz", "none.csv"), "none.csv"),
    "predict unknown ending": (("predict", "good.npz", "t.xlsx"), "t.xlsx"),
    "predict other columns": (("predict", "good.npz", "small.csv"), "small.csv lacks 6 of 6 columns"),
    "predict another width": (("predict", "good.npz", "narrow.npy"), "narrow.npy"),
    "predict another width, NPZ": (("predict", "good.npz", "narrow.npz"), "narrow.npz"),
    "predict another width, svmlight": (("predict", "good.npz", "wide.svm"), "wide.svm has 9 columns; good.npz has"),
    "predict text": (("predict", "good.npz", "text.csv"), "'x' is not a number, and good.npz has a coefficient for it"),
    "predict an empty column": (("predict", "good.npz", "empty.csv"), "column 'b_1' is empty in every row, and good.npz has"),
    "keep no column": (("predict", "good.npz", "t.csv", "--keep", "b_11"), "--keep 'b_11' is not a column of t.csv (did you"),
    "keep no position": (("predict", "good.npz", "t.csv", "--keep", "7"), "--keep 7 is not a column of t.csv"),
    "keep twice": (
        ("predict", "good.npz", "t.csv", "--keep", "y", "--keep", "-1"),
        "--keep must not name a column of t.csv twice",
    ),
    "keep a prediction": (("predict", "good.npz", "taken.csv", "--keep", "prediction"), "--keep 'prediction'"),
    "keep of NPY": (("predict", "good.npz", "t.npy", "--keep", "0"), "--keep needs a CSV, Parquet or Arrow file"),
    "keep of NPZ": (("predict", "good.npz", "t.npz", "--keep", "y"), "--keep needs a CSV, Parquet or Arrow file"),
    "keep of svmlight": (("predict", "good.npz", "t.svm", "--keep", "0"), "--keep needs a CSV, Parquet or Arrow file"),
    "keep a feature by position": (("predict", "plain.npz", "only.csv", "--keep", "2"), "6 columns, 5 without what is kept"),
    "an empty column": (
        ("fit", "empty.csv", "--target", "y"),
        "column 'b_1' is empty in every row; leave it out with --drop b_1",
    ),
    "probabilities of a regression": (("predict", "good.npz", "t.csv", "--proba"), "--proba"),
    "predictions in no folder": (("predict", "good.npz", "t.csv", "--out", "no/p.csv"), "--out"),
    "predictions over the data": (("predict", "good.npz", "t.csv", "--out", "t.csv"), "--out"),
    "predictions over the model": (("predict", "good.npz", "t.csv", "--out", "good.npz"), "--out"),
    "header of NPY": (("predict", "good.npz", "t.npy", "--header"), "--header"),
    "zero-based Parquet": (("predict", "good.npz", "t.csv", "--zero-based"), "--zero-based"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_a_sentence_that_names_what_is_wrong(here, name):
    arguments, message = WRONG[name]
    write("small.csv", X[:, :1], Y, ("a", "y"))
    write("same.csv", y=np.ones(N))
    write("holes.csv", np.where(np.arange(N)[:, None] == 1, np.nan, X))
    os.mkdir("folder.npz")
    for file, text in (
        ("t.xlsx", ""),
        ("short.txt", "a\nb\n"),
        ("others.txt", "q,1\n" * 6),
        ("wide.svm", "1 1:1 9:1\n"),
        ("title.csv", "A title\na,y\n1,2\n"),
    ):
        Path(file).write_text(text)
    Path("latin.csv").write_bytes("é,y\n1,2\n".encode("latin-1"))
    Path("damaged.npz").write_bytes(Path("t.npz").read_bytes()[:-100])
    np.save("narrow.npy", X[:, :3])
    np.savez("narrow.npz", X=X[:, :3])
    model = ds.DAPRegressor()
    model.coef_, model.intercept_, model.n_features_in_ = np.ones(P), 0.0, P
    models.save(model, "good.npz", {"feature_names": NAMES, "target_names": ["y"]})
    models.save(model, "plain.npz")
    write("only.csv", X, None, None)
    write("taken.csv", names=(*NAMES, "prediction"))
    write("text.csv", [["x", *row[1:]] for row in X])
    write("empty.csv", [[*row[:3], "", *row[4:]] for row in X])
    before = sorted(os.listdir())
    outcome = call(*arguments)
    assert outcome.exit_code == 2, outcome.output
    assert message in " ".join(outcome.output.replace("│", " ").split())
    assert sorted(os.listdir()) == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can write")
def test_a_folder_in_which_nothing_can_be_written_is_named_before_any_work(here):
    outcome = call("fit", "t.csv", "--target", "y", "--out", "/proc/model.npz")
    assert outcome.exit_code == 2
    assert outcome.output == "error: --out: nothing can be written to the folder /proc: No such file or directory\n"


def test_there_are_enough_wrong_calls():
    assert len(WRONG) >= 60


SLOW = """
import sys, time
import dapsgd.commands.fit as fit
from dapsgd_command import main
plain = fit._save
def slow(*arguments):
    import numpy as np
    stored = np.savez_compressed
    def half(path, **arrays):
        stored(path, **arrays)
        print("half", file=sys.stderr, flush=True)
        time.sleep(60)
    np.savez_compressed = half
    plain(*arguments)
fit._save = slow
sys.argv = ["dapsgd", "fit", "t.csv", "--target", "y"]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
def test_ctrl_c_while_the_model_is_written_leaves_no_part_of_it(here):
    process = subprocess.Popen([sys.executable, "-c", SLOW], stderr=subprocess.PIPE, text=True)
    assert "half\n" in process.stderr  # perhaps after a line that says that it compiles
    assert any("part" in name for name in os.listdir())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not any("part" in name or name == "model.npz" for name in os.listdir())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
@pytest.mark.parametrize("lost", [False, True], ids=["raised", "lost"])
def test_ctrl_c_while_the_package_is_imported_is_no_traceback(here, lost):
    """An extension may turn what is raised while it is imported into an ImportError, as those of NumPy do."""
    slow = "import time\nprint('importing', flush=True)\n"
    sleep = "try:\n    time.sleep(60)\nexcept BaseException:\n    raise ImportError\n" if lost else "time.sleep(60)\n"
    Path("slow").mkdir()
    Path("slow/numpy.py").write_text(slow + sleep)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["slow", str(Path(dapsgd_command.__file__).parent)])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-m", "dapsgd_command", "--version"], env=environment, **pipes)
    assert process.stdout.readline().strip() == "importing"
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("", "interrupted\n")
    assert process.returncode == 130


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_the_command_leaves_ctrl_c_as_it_was(handler, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dapsgd", "--version"])
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(SystemExit):
            dapsgd_command.main()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().out.strip() == f"dapsgd {ds.__version__}"


def test_the_command_starts_where_ctrl_c_is_taken_care_of():
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"dapsgd": "dapsgd_command:main"}


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import dapsgd, sys; print(sorted(m for m in ('sklearn', 'pyarrow', 'scipy.sparse', 'dapsgd.io') if m in sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def with_ids(path, ids, names=("id", *NAMES, "y"), y=Y):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = [[one, *row] + ([] if y is None else [target]) for one, row, target in zip(ids, X, Y, strict=True)]
        csv.writer(file).writerows([names, *rows] if names else rows)


IDS = [[f"00{k}", f" s {k}", f"a,{k}", f'"{k}"', f"two\nlines {k}", f"cr\r{k}"][k % 6] for k in range(N)]


def test_columns_are_written_beside_their_predictions():
    with_ids("ids.csv", IDS)
    done("fit", "ids.csv", "--target", "y", "--drop", "id", "--alpha", "0.1")
    outcome = done("predict", "model.npz", "ids.csv", "--keep", "id", "--keep", "a_2")
    assert "R2" in outcome.output
    with open("predictions.csv", newline="", encoding="utf-8") as file:
        titles, *rows = csv.reader(file)
    assert titles == ["id", "a_2", "prediction"]
    assert [row[0] for row in rows] == IDS
    assert [row[1] for row in rows] == [str(v) for v in X[:, 1]]
    np.testing.assert_allclose([float(row[2]) for row in rows], models.load("model.npz").predict(X))
    shown = done("predict", "model.npz", "ids.csv", "--keep", "id", "--out", "-").stdout
    assert shown.splitlines()[:2] == ["id,prediction", f"000,{rows[0][2]}"]
    with_ids("ids.csv", IDS, y=["" if k == 3 else y for k, y in enumerate(Y)])
    done("predict", "model.npz", "ids.csv", "--keep", "id", "--out", "again.csv")
    assert column("again.csv") == IDS


@pytest.mark.parametrize("here_too", [True, False])
@pytest.mark.parametrize("fitted", ["with ids", "without"])
def test_what_is_kept_is_no_feature_where_columns_have_no_names(fitted, here_too):
    numbers = [str(1000 + k) for k in range(N)]  # which could be taken for a feature
    if fitted == "with ids":
        with_ids("fit.csv", numbers, None)
        done("fit", "fit.csv", "--drop", "0", "--target", "-1", "--alpha", "0.1")
    else:
        done("fit", "bare.csv", "--target", "-1", "--alpha", "0.1")
    with_ids("new.csv", numbers, None, y=Y if here_too else None)
    outcome = done("predict", "model.npz", "new.csv", "--keep", "0")
    assert ("R2" in outcome.output) == here_too
    assert column("predictions.csv") == numbers
    model = models.load("model.npz")
    np.testing.assert_allclose([float(v) for v in column("predictions.csv", 1)], model.predict(X))
    assert Path("predictions.csv").read_text().startswith("column 0,prediction\n")
    done("predict", "model.npz", "bare.csv", "--keep", "6", "--out", "truth.csv")
    assert column("truth.csv") == [str(y) for y in Y]
    np.testing.assert_allclose([float(v) for v in column("truth.csv", 1)], model.predict(X))


def test_a_model_without_names_leaves_out_what_is_kept():
    model = ds.DAPRegressor().fit(X, Y)
    models.save(model, "model.npz")
    with_ids("new.csv", IDS, ("id", *NAMES), y=None)
    done("predict", "model.npz", "new.csv", "--keep", "id")
    assert column("predictions.csv") == IDS
    np.testing.assert_allclose([float(v) for v in column("predictions.csv", 1)], model.predict(X))


def test_columns_of_parquet_are_written_beside_their_predictions():
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {"id": IDS, "day": np.arange(N).astype("datetime64[D]"), **{n: X[:, j] for j, n in enumerate(NAMES)}, "y": Y}
    parquet.write_table(pa.table(table), "t.parquet")
    done("fit", "t.parquet", "--target", "y", "--drop", "id", "--drop", "day", "--alpha", "0.1")
    done("predict", "model.npz", "t.parquet", "--keep", "day", "--keep", "id")
    assert column("predictions.csv")[:2] == ["1970-01-01", "1970-01-02"]
    assert column("predictions.csv", 1) == IDS
    np.testing.assert_allclose([float(v) for v in column("predictions.csv", 2)], models.load("model.npz").predict(X))


def test_messages_of_the_readers_name_options_here():
    with_ids("ids.csv", IDS)
    assert "leave it out with --drop\n" in call("fit", "ids.csv", "--target", "y").output


@pytest.mark.parametrize("task", [(), ("--task", "regression")])
def test_a_word_in_the_target_gets_advice_for_a_target(task):
    write("t.csv", y=[*Y[:8], "high", *Y[9:]])
    said = "'high' is not a number; correct it, or if the column holds classes, write every one as a word\n"
    assert f"line 10, column 'y': {said}" in call(*FIT, *task).output
    write("t.csv", y=["high", *Y[1:]])
    said = "such as 'high' in line 2; correct it if the column should hold numbers, as most of it does\n"
    assert said in call(*FIT, *task).output
    write("t.csv", y=["", *Y[1:]])
    assert "fill it in, or leave out such rows with --skip-missing\n" in call(*FIT, *task).output


def test_a_column_that_counts_the_rows_is_noticed(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    lines = ["sample,a,b,c,y", *(f"{k:04d},{a},{b},{c},{a + b}" for k, (a, b, c) in enumerate(X))]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    call = ["fit", tmp_path / "data.csv", "--target", "y", "--out", tmp_path / "m.npz"]
    said = "column 'sample' counts the rows, and is used as any other; leave it out with --drop sample"
    outcome = CliRunner().invoke(app, [str(part) for part in call])
    assert outcome.exit_code == 0
    assert said in outcome.output
    assert "which is the default; --cv chooses one" in outcome.output
    outcome = CliRunner().invoke(app, [str(part) for part in [*call, "--drop", "sample", "--alpha", "1"]])
    assert said not in outcome.output
    assert "default" not in outcome.output
    outcome = CliRunner().invoke(app, [str(part) for part in [*call, "--penalty", "group_lasso", "--groups", "3"]])
    assert "--groups 3 must be a size that divides the 4 columns" in outcome.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--alpha", "-1"), "--alpha must be finite and >= 0; got -1.0"),
        (("--l1-ratio", "0.5"), "--l1-ratio must be left out unless penalty is"),
        (("--max-passes", "0"), "--max-passes must be finite and > 0"),
        (("--cv", "1000"), "--cv must be at most 120, the number of rows; got 1000"),
    ],
)
def test_a_wrong_value_is_told_by_the_name_of_its_option(options, said):
    outcome = call("fit", "t.csv", "--target", "y", *options)
    assert outcome.exit_code == 2
    assert f"error: {said}" in outcome.stderr


@pytest.mark.parametrize(("zero_based", "first"), [(True, 0), (False, 1)])
def test_columns_of_svmlight_are_counted_in_pictures_as_in_the_file(zero_based, first, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "save", lambda figure, path: drawn.append(figure))
    full = np.column_stack([np.ones(N), X])  # so that the first index is there
    dump_svmlight_file(full, Y, "one.svm", zero_based=zero_based)
    names = ("--plot", "c.png", "--plot-path", "p.png")
    done("fit", "one.svm", "--cv", "3", "--eps", "0.1", "--task", "regression", *names)
    model = models.load("model.npz")
    coef, path = drawn
    alive = sorted(segment[0, 0] for segment in coef.axes[0].collections[0].get_segments())
    assert alive == (first + np.flatnonzero(model.coef_)).tolist()
    largest = first + int(np.argmax(np.abs(model.coef_)))
    assert f"column {largest}" in [text.get_text() for text in path.axes[0].texts]
    again = model.plot_coef().axes[0]
    assert again.get_xlim() == (first - 0.5, first + P + 0.5)


def test_the_accuracy_on_rows_held_out_is_said():
    fit = ("fit", "words.csv", "--target", "y", "--cv", "3", "--eps", "0.1")
    about = json.loads(done(*fit, "--json").stdout)
    mean = about["held_out_accuracy"]["mean"]
    assert about["held_out"]["name"] == "mean loss"
    assert 0.8 < mean <= 1.0
    assert f", accuracy {mean:.4g} ± " in done(*fit).output
    assert "held_out_accuracy" not in json.loads(done(*FIT, "--cv", "3", "--eps", "0.1", "--json").stdout)


def test_the_share_of_the_l1_norm_is_said():
    fit = (*FIT, "--penalty", "fused_lasso", "--l1-ratio", "0.3", "--alpha", "0.01")
    for text in (done(*fit).output, done("show", "model.npz").output):
        assert "fused_lasso (l1_ratio 0.3) of strength 0.01\n" in text
    assert json.loads(done(*fit, "--json").stdout)["l1_ratio"] == 0.3


def test_whole_numbers_that_are_classes_have_no_point():
    outcome = done("fit", "t.svm", "--alpha", "0.01")
    for text in (outcome.output, done("show", "model.npz").output):
        assert "-1, 1; coefficients above 0 speak for 1\n" in text
    assert models.load("model.npz").plot_coef().axes[0].get_ylabel() == "coefficient, for 1"


ENDINGS = ["xlsx", "xls", "ods", "parquet", "pq", "feather", "arrow", "npy", "npz", "json", "html", "gz", "tsv", "tab"]


@pytest.mark.parametrize("ending", [*ENDINGS, "csv.gz", "XLSX"])
def test_predictions_are_not_written_under_the_name_of_another_format(ending):
    last = ending.rpartition(".")[2]
    said = f"--out must not end in .{last}: predictions are written as CSV; got 'p.{ending}', write 'p.csv'\n"
    outcome = call("predict", "none.npz", "none.csv", "--out", f"p.{ending}")  # before it is noticed that there is no file
    assert outcome.exit_code == 2
    assert said in outcome.output


@pytest.mark.parametrize("name", ["p.csv", "p.txt", "p", "p.v2", "p.json.csv"])
def test_predictions_have_any_other_name(name):
    done(*FIT)
    done("predict", "model.npz", "t.csv", "--out", name)
    assert Path(name).read_text().startswith("prediction\n")


def test_predictions_that_replace_others_are_said_to():
    done(*FIT)
    assert "predictions.csv\n" in done("predict", "model.npz", "t.csv").stderr
    assert "predictions.csv (replaced)\n" in done("predict", "model.npz", "t.csv").stderr
    assert json.loads(done("predict", "model.npz", "t.csv", "--json").stdout)["replaced"] is True


def test_options_are_shown_by_what_they_are_about():
    shown = done("fit", "--help").output
    titles = ["The data", "What is written", "The model", "The strength of the penalty", "How it is solved"]
    places = [shown.index(title) for title in titles]
    assert places == sorted(places)


def test_pictures_of_a_cross_validation_and_a_model_shown_again():
    asked = [f"--{name}={name}.png" for name in ("plot", "plot-cv", "plot-path")]
    outcome = done("fit", "t.csv", "--target", "y", "--cv", "3", "--eps", "0.5", *asked)
    assert outcome.output.count("picture: ") == 3
    assert all(Path(f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in ("plot", "plot-cv", "plot-path"))
    shown = done("show", "model.npz", "--plot", "again.png").output
    assert "try a smaller eps\n" in shown  # as Python has it: a model file is for all
    assert "picture: again.png" in shown
    assert Path("again.png").exists()
    assert "there is no model file" in call("show", "nix.npz").output
    assert "--plot-cv needs --cv" in call("fit", "t.csv", "--target", "y", "--plot-cv", "a.png").output


@pytest.mark.parametrize(("file", "target", "name"), [("t.csv", "y", "y"), ("bare.csv", "6", "column 6")])
def test_the_one_target_is_named_in_pictures(file, target, name, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "save", lambda figure, path: drawn.append(figure.get_suptitle().replace("\n", " ")))
    pictures = ("--plot", "c.png", "--plot-cv", "v.png", "--plot-path", "p.png")
    done("fit", file, "--target", target, "--cv", "3", "--eps", "0.5", *pictures)
    alpha = models.load("model.npz").alpha_
    assert drawn == [
        f"Coefficients for {name}: l1 of strength {alpha:.4g}",
        f"Cross-validation of the strength of l1, for {name}, on 3 folds",
        f"Coefficients for {name} along the strength of l1",
    ]


def test_several_targets_keep_their_names_in_pictures():
    write("two.csv", np.column_stack([X, Y]), -Y, (*NAMES, "now", "later"))
    done("fit", "two.csv", "--target", "now", "--target", "later", "--penalty", "nuclear", "--alpha", "0.1")
    model = models.load("model.npz")
    assert [ax.get_title() for ax in model.plot_coef().axes] == ["now", "later"]
    assert "rank" in str(model)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--target", "a_1", "--loss", "logistic"), "use --loss squared"),
        (("--target", "a_1", "--task", "classification"), "use --task regression"),
        (("--target", "y", "--groups", "prefix:-", "--penalty", "group_lasso"), "finds no '-' in any name of a column"),
    ],
)
def test_what_to_do_instead_is_said(options, said):
    assert said in call("fit", "t.csv", *options).output


def test_names_of_rows_are_no_classes():
    write("names.csv", y=[f"sample {i}" for i in range(N)])
    assert "120 different texts, too many to be classes" in call("fit", "names.csv", "--target", "y").output
    assert "it needs a loss for classes" in call("fit", "words.csv", "--target", "y", "--loss", "squared").output


@pytest.mark.parametrize(
    ("write_number", "said"),
    [
        (lambda v: f"{1000 + v:,.3f}", "in line 2, which has separators of thousands; write numbers without them"),
        (
            lambda v: f"{v:.4f}".replace(".", ","),
            "in line 2, which has a decimal comma; write numbers with a point, or say --decimal ,",
        ),
    ],
)
def test_numbers_of_another_country_are_no_classes(write_number, said):
    write("t.csv", y=[write_number(v) for v in np.abs(Y)])
    assert f"too many to be classes, such as '{write_number(abs(Y[0]))}' {said}" in call(*FIT).output
    assert f"--target holds text, such as '{write_number(abs(Y[0]))}' {said}" in call(*FIT, "--loss", "squared").output
    few = [write_number(v) for v in np.tile([1.5, 2.5, 3.5], N // 3)]
    write("few.csv", y=few)
    assert f"the target is text, such as '{few[0]}' {said.replace(';', ':')}" in done("fit", "few.csv", "--target", "y").output


def test_decimal_commas_from_fit_to_predictions():
    rows = [[f"{value}".replace(".", ",") for value in row] for row in np.column_stack([X, Y])]
    Path("commas.csv").write_text("\n".join(map(";".join, [[*NAMES, "y"], *rows])))
    Path("bare.csv").write_text("\n".join(";".join(row[:-1]) for row in rows))
    done(*FIT)
    done("predict", "model.npz", "t.csv", "--out", "points.csv")
    refused = call("fit", "commas.csv", "--target", "y").output
    assert "has a decimal comma; write numbers with a point, or say --decimal ," in refused
    done("fit", "commas.csv", "--target", "y", "--decimal", ",")
    for name in ("commas.csv", "bare.csv"):
        done("predict", "model.npz", name, "--decimal", ",", "--out", "p.csv")
        assert Path("p.csv").read_text() == Path("points.csv").read_text()


def test_another_encoding_from_fit_to_predictions():
    names = ["Größe", "naïve", "c", "d", "e", "à"]
    write("t.csv", y=np.where(Y > 0, "größer", "kleiner"), names=[*names, "y"])
    done(*FIT, "--alpha", "0.01", "--out", "utf8.npz")
    done("predict", "utf8.npz", "t.csv", "--keep", "y", "--out", "utf8.csv")
    text = Path("t.csv").read_text(encoding="utf-8")
    for encoding in ("cp1252", "utf-16"):
        Path("t.csv").write_text(text, encoding=encoding)
        done(*FIT, "--alpha", "0.01", "--encoding", encoding)
        assert models.load("model.npz").metadata_["feature_names"] == names
        done("predict", "model.npz", "t.csv", "--encoding", encoding, "--keep", "y", "--out", "p.csv")
        assert Path("p.csv").read_bytes() == Path("utf8.csv").read_bytes()


@pytest.mark.parametrize("names", [(*NAMES, "y"), None])
def test_lines_above_the_table_from_fit_to_predictions(names):
    target = "y" if names else "-1"
    write("t.csv", names=names)
    done("fit", "t.csv", "--target", target, "--out", "plain.npz")
    done("predict", "plain.npz", "t.csv", "--keep", "6", "--out", "plain.csv")
    Path("t.csv").write_text('A title, "of\n\nunits: nm\n' + Path("t.csv").read_text())
    done("fit", "t.csv", "--target", target, "--skip-lines", "3")
    assert "R2" in done("predict", "model.npz", "t.csv", "--skip-lines", "3", "--keep", "6", "--out", "p.csv").output
    assert Path("p.csv").read_text() == Path("plain.csv").read_text()
    write("t.csv", y=[f"{v:.4f}".replace(".", ",") for v in Y], names=names)
    Path("t.csv").write_text("A title\n" + Path("t.csv").read_text())
    header = () if names else ("--no-header",)
    said = call("fit", "t.csv", "--target", target, "--skip-lines", "1", "--loss", "squared", *header).output
    assert f"in line {3 if names else 2}, which has a decimal comma" in said


def test_a_file_without_names_of_columns_says_that_they_are_taken_in_order():
    done(*FIT)
    write("bare.csv", X, None, None)
    assert "bare.csv has no names of columns: they were taken in order" in done("predict", "model.npz", "bare.csv").stderr


@pytest.mark.parametrize("place", [0, 3, 6])
def test_in_a_file_without_names_the_target_is_where_it_was(place):
    table, names = np.insert(X, place, Y, axis=1), [*NAMES[:place], "y", *NAMES[place:]]
    write("t.csv", table, None, names)
    done("fit", "t.csv", "--target", "y")
    expected = done("predict", "model.npz", "t.csv", "--out", "named.csv").stdout
    write("bare.csv", table, None, None)
    outcome = done("predict", "model.npz", "bare.csv", "--out", "bare_predictions.csv")
    assert "R2" in expected
    assert outcome.stdout == expected.replace("named.csv", "bare_predictions.csv")
    assert "bare.csv has no names of columns: they were taken in order" in outcome.stderr
    assert Path("bare_predictions.csv").read_text() == Path("named.csv").read_text()


def test_in_a_file_without_names_what_was_dropped_is_where_it_was():
    write("t.csv", np.column_stack([np.arange(N), X, Y]), None, ["id", *NAMES, "y"])
    done("fit", "t.csv", "--target", "-1", "--drop", "id")
    done("predict", "model.npz", "t.csv", "--out", "named.csv")
    write("bare.csv", np.column_stack([np.arange(N), X, Y]), None, None)
    assert "R2" in done("predict", "model.npz", "bare.csv").output
    assert Path("predictions.csv").read_text() == Path("named.csv").read_text()


def test_a_file_without_names_and_with_too_many_columns_is_answered_with_what_to_do():
    models.save(ds.DAPRegressor().fit(X, Y), "model.npz", feature_names=NAMES)
    said = " ".join(call("predict", "model.npz", "bare.csv").output.split())
    assert "bare.csv has 7 columns; model.npz has coefficients for 6; write their names in its first line, or take" in said


def test_several_shares_of_the_l1_norm_are_chosen_from():
    shares = ("--penalty", "elastic_net", "--l1-ratio", "0.2", "--l1-ratio", "0.8")
    about = json.loads(done(*FIT, *shares, "--cv", "3", "--json").stdout)
    assert about["l1_ratio"] in (0.2, 0.8)
    assert "--l1-ratio must be given once without --cv" in call(*FIT, *shares).output


def test_a_header_of_wavelengths_alone_is_one():
    wavelengths = [str(900 + 4 * j) for j in range(P)]
    write("n.csv", names=(*wavelengths, "RON"))
    done("fit", "n.csv", "--target", "RON", "--out", "n.npz")
    done("predict", "n.npz", "n.csv", "--out", "p.csv")
    expected = Path("p.csv").read_text()
    write("new.csv", X[:, ::-1], None, wavelengths[::-1])
    assert "120 predictions" in done("predict", "n.npz", "new.csv", "--out", "p.csv").output
    assert Path("p.csv").read_text() == expected
    write("rows.csv", X, None, None)
    assert "120 predictions" in done("predict", "n.npz", "rows.csv", "--out", "p.csv").output
    assert Path("p.csv").read_text() == expected
    done("predict", "n.npz", "new.csv", "--keep", wavelengths[0], "--out", "p.csv")
    assert Path("p.csv").read_text().startswith(f"{wavelengths[0]},prediction\n{X[0, 0]},")
    write("spelt.csv", X, None, [f"{name}.0" for name in wavelengths])
    assert "spelt.csv lacks 6 of 6 columns" in call("predict", "n.npz", "spelt.csv").output
    write("others.csv", X, None, [*wavelengths[:5], "1000"])
    assert "others.csv: line 1 may be names or a row" in call("predict", "n.npz", "others.csv").output
    assert "others.csv lacks 1 of 6 columns: '920'" in call("predict", "n.npz", "others.csv", "--header").output


def test_numbers_in_order_are_asked_about():
    write("numbers.csv", names=[str(900 + 10 * j) for j in range(P + 1)])
    for target in ("-1", "960"):
        said = call("fit", "numbers.csv", "--target", target).output
        assert "line 1 may be names or a row" in said
        assert "say --header or --no-header" in " ".join(said.split())
        assert "target 960" in done("fit", "numbers.csv", "--target", target, "--header").output
    said = call("fit", "numbers.csv", "--target", "960", "--no-header").output
    assert "'960' stands in its first line" in said


def test_a_nuclear_norm_of_one_target_and_a_fit_of_one_row():
    assert "penalty nuclear is for several targets" in done("fit", "t.csv", "--target", "y", "--penalty", "nuclear").output
    write("one.csv", X[:1], Y[:1])
    shown = done("fit", "one.csv", "--target", "y").output
    assert "1 row, 6 columns" in shown
    assert "R2" not in shown


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_predictions_do_not_make_a_file_of_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError, match="pipe is a device or a pipe, and would become a file; give the name of a file"):
        predict.run(tmp_path / "none.npz", tmp_path / "none.csv", pipe, proba=False, zero_based=None, reading={})
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t.csv"], "which column it is; its columns are 'a_1', 'a_2', 'a_3', 'b_1', 'b_2', 'b_3', 'y'"),
        (["bare.csv"], "which column it is; its columns are 0 to 6; -1 is the last"),
        (["t.npy"], "which column it is; its columns are 0 to 6; -1 is the last"),
        (["t.npz", "--target", "Y"], "error: --target 'Y' is not an array of t.npz (did you mean 'y'?); it has X, y"),
        (["only.npz"], "error: only.npz holds X only, and no target: write both to one file, np.savez('both.npz', X=X, y=y)"),
        (["other.npz"], "error: --target must be given: other.npz has no array y; it has z beside X"),
        (["none.npz"], "error: none.npz must have an array X, or X_data"),
        (
            ["sparse.npz"],
            "error: sparse.npz holds X only, and no target, as what scipy.sparse.save_npz writes does: write both to",
        ),
        (["sparse.npz", "--target", "z"], "'z' is not an array of sparse.npz; it has data, format, indices, indptr, shape; it"),
        (["t.csv", "--target", "y", "--penalty", "box"], "--bounds must be given for penalty 'box': as --bounds LOW HIGH,"),
        (["t.csv", "--target", "y", "--cv", "5", "--rule", "1se"], "got '1se' (did you mean 'one_se'?)"),
        (["t.csv", "--target", "y", "--loss", "mse"], "got 'mse' (did you mean 'squared'?)"),
        (["t.csv", "--target", "y", "--l1-ratio", "1", "--l1-ratio", "0"], "--l1-ratio must be given once without --cv"),
    ],
)
def test_what_is_missing_is_named(arguments, words):
    save_npz("sparse.npz", csr_matrix(X))
    np.savez("only.npz", X=X)
    np.savez("other.npz", X=X, z=Y)
    np.savez("none.npz", z=Y)
    outcome = call("fit", *arguments)
    assert outcome.exit_code == 2
    assert words in outcome.output


def test_what_is_said_of_an_archive_without_a_target_helps():
    matrix = csr_matrix(X)
    save_npz("sparse.npz", matrix)
    said = call("fit", "sparse.npz").output
    exec(said[said.index("np.savez") :].strip(), {"np": np, "X": matrix, "y": Y})
    done("fit", "both.npz", "--alpha", "0.1")
    done("predict", "model.npz", "sparse.npz", "--out", "p.csv")


def test_a_title_of_a_file_of_groups_is_named():
    lines = [f"{name},{name[0]}" for name in NAMES]
    Path("groups.csv").write_text("\n".join(["column,group", *lines]))
    outcome = call("fit", "t.csv", "--target", "y", "--penalty", "group_lasso", "--groups", "groups.csv")
    assert "it has 7: if its first line, 'column,group', is a title, delete it" in outcome.output
    Path("groups.csv").write_text("\n".join(lines))
    done("fit", "t.csv", "--target", "y", "--penalty", "group_lasso", "--groups", "groups.csv", "--alpha", "0.1")


def test_the_score_of_counts_is_the_deviance():
    counts = np.random.default_rng(1).poisson(np.exp(0.3 * X[:, 0]))
    write("counts.csv", y=counts)
    fitted = done("fit", "counts.csv", "--target", "y", "--loss", "poisson", "--alpha", "0.01", "--task", "regression")
    expected = f"{models.load('model.npz').score(X, counts):.4f}"
    assert re.search(rf"D2 +{expected} on these data", fitted.output)
    assert f"D2: {expected}" in done("predict", "model.npz", "counts.csv").output
    write("below.csv", y=counts - 5)
    assert "no score: the target has negative numbers" in done("predict", "model.npz", "below.csv").output
