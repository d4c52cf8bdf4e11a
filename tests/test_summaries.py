"""What print and notebooks show."""

import base64
import inspect
import json
import re
import sys
from html.parser import HTMLParser
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit

import dapsgd as ds
from dapsgd import plots


class Balanced(HTMLParser):
    """Fails on a tag that is closed wrongly; keeps texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in ("img", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    problem = ds.Problem(X, X[:, :2].sum(axis=1), regularizer=ds.L1(0.2), l2=0.5)
    return problem, ds.solve(problem, "dap-sgd", workers=2, max_iter=200, record_every=50, tol=0, seed=0), X


def test_text(fit):
    problem, result, _ = fit
    assert str(problem).splitlines()[:3] == [
        "Problem",
        "  data         60 rows, 8 columns, dense, float64",
        "  loss         Squared(scale=1.0)",
    ]
    assert "\n" not in repr(problem)
    lines = str(result).splitlines()
    assert lines[0] == "Result"
    assert f"{np.count_nonzero(result.x)} of 8 are not zero" in str(result)
    assert result.message in lines[-1]
    assert "\n" not in repr(result)


def test_one_pass_is_no_passes():
    X = np.random.default_rng(0).standard_normal((100, 20))
    y = X @ np.linspace(-1.0, 1.0, 20)
    with pytest.warns(ConvergenceWarning, match="in 1 pass over the data: "):
        model = ds.DAPRegressor("l1", 1e-3, algorithm="fista", max_passes=1, tol=1e-9).fit(X, y)
    assert ", 1 iteration, 1 pass, " in repr(model.result_)
    path = ds.path(ds.Problem(X, y, regularizer=ds.L1(1.0)), lams=[1.0], algorithm="fista", max_passes=1)
    assert repr(path) == "Path(1 strength from 1 to 1, 1 pass)"


def test_jumps_of_fused_coefficients_are_counted():
    X = np.random.default_rng(0).standard_normal((100, 20))
    result = ds.solve(ds.Problem(X, X @ np.repeat([1.0, 2.0], 10), regularizer=ds.FusedLasso(0.5)), tol=1e-8)
    assert "20 of 20 are not zero, with 1 jump" in str(result)
    assert "jump" not in str(ds.solve(ds.Problem(X, X[:, 0], regularizer=ds.L1(1e3))))


def test_html_has_the_table_and_the_picture(fit):
    problem, result, _ = fit
    assert "60 rows, 8 columns" in "".join(Balanced(problem._repr_html_()).texts)
    page = result._repr_html_()
    assert result.message in "".join(Balanced(page).texts)
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert base64.b64decode(data).startswith(b"\x89PNG")
    assert "http" not in page.replace(data, "")  # in which any letters may stand


def test_html_without_matplotlib_is_the_table(fit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    page = fit[1]._repr_html_()
    Balanced(page)
    assert "<img" not in page
    assert "objective" in page


class Odd(NamedTuple):
    """A regulariser whose text would be HTML."""

    name: str

    def value(self, w):
        return 0.0

    def prox(self, v, step, out):
        out[:] = v


def test_html_is_escaped():
    problem = ds.Problem(np.eye(3), np.ones(3), regularizer=ds.Zero())
    problem.regularizer = Odd("<script>alert('&')</script>")
    page = problem._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)" in page


def test_several_targets_and_long_terms(fit):
    problem = ds.Problem(np.eye(40), np.ones((40, 2)), regularizer=ds.Slope(np.linspace(2.0, 1.0, 80)), fit_intercept=True)
    text = str(problem)
    assert "targets      2" in text
    assert "intercept    fitted" in text
    assert all(len(line) < 230 for line in text.splitlines())


def test_estimators_show_their_fit(fit):
    X = fit[2]
    model = ds.DAPRegressor("l1", alpha=0.1)
    plain = repr(model)
    assert str(model) == plain
    before = model._repr_mimebundle_()
    assert "<strong>Fitted" not in before["text/html"]
    model.fit(X, X[:, 0])
    assert repr(model) == plain
    assert "coefficients" in str(model)
    after = model._repr_mimebundle_()
    assert after["text/plain"] == plain
    assert "<strong>Fitted" in after["text/html"]
    assert "<strong>Fitted" in model._repr_html_()
    chosen = ds.DAPRegressorCV("l1", alphas=3, cv=2).fit(X, X[:, 0])
    assert f"l1 of strength {chosen.alpha_:.6g}, chosen by cross-validation" in str(chosen)
    assert f"{sum(one.iterations for one in chosen.path_.results)} iterations" in str(chosen)
    labels = np.where(X[:, 0] > 0, "a", "b")
    assert "objective" in str(ds.DAPClassifier("l1", alpha=0.1).fit(X, labels))


def test_what_folds_held_out_scored_is_said(fit):
    X = fit[2]
    score = ["held out", "mean absolute error"]
    several = ds.DAPRegressorCV("l1", alphas=3, cv=2, scoring="neg_mean_absolute_error").fit(X, X[:, 0])
    (line,) = (line for line in str(several).splitlines() if line.strip().startswith("held out"))
    assert all(part in line for part in (*score, " ± ", "over the folds"))
    assert f"{-several.scores_path_.mean(axis=1).max():.4g}" in line
    one = ds.DAPRegressorCV("l1", alphas=3, cv=ShuffleSplit(1, random_state=0)).fit(X, X[:, 0])
    assert "±" not in str(one)
    assert "accuracy" not in str(one) + str(several)
    one.plot_cv()
    plt.close("all")


@pytest.mark.parametrize("kind", [ds.DAPRegressor, ds.DAPRegressorCV])
def test_a_model_from_a_file_shows_what_it_knows(fit, tmp_path, kind):
    X = fit[2]
    model = kind("l1").fit(X, X[:, 0])
    ds.models.save(model, tmp_path / "model.npz")
    loaded = ds.models.load(tmp_path / "model.npz")
    assert str(loaded) == str(model)
    page = loaded._repr_html_()
    assert page.index("<strong>Fitted") < page.index("</body>")
    ds.models.save(loaded, tmp_path / "again.npz", {"target_names": ["octane\x1b[2J"]})
    again = ds.models.load(tmp_path / "again.npz")
    assert str(again).split() == [*str(model).split(), "target", "octane?[2J"]
    again.fit(X[:10], X[:10, 1])
    assert f"10 rows, {X.shape[1]} columns" in str(again)
    assert "octane" not in str(again)


def test_a_model_from_an_old_file_shows_what_it_knows(fit, tmp_path):
    X = fit[2]
    model = ds.DAPRegressorCV("l1", alphas=3, cv=2).fit(X, X[:, 0])
    ds.models.save(model, tmp_path / "model.npz")
    arrays = dict(np.load(tmp_path / "model.npz"))
    about = json.loads(arrays["about"].tobytes())
    del about["summary"]
    np.savez(tmp_path / "old.npz", **arrays | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)})
    text = str(ds.models.load(tmp_path / "old.npz"))
    assert f"l1 of strength {model.alpha_:.6g}, chosen by cross-validation" in text
    for name in ("objective", "duality gap", "coefficients"):
        (line,) = (line for line in text.splitlines() if line.strip().startswith(name))
        assert line.split() == next(x for x in str(model).splitlines() if x.strip().startswith(name)).split()
    assert "converged" not in text
    assert f"data {X.shape[1]} columns" in " ".join(text.split())


def test_a_fit_says_how_many_rows_it_has_seen(fit):
    X = fit[2]
    model = ds.DAPRegressor("l1", alpha=0.1).fit(X, X[:, :2])
    assert f"{len(X)} rows, {X.shape[1]} columns, 2 targets" in str(model)
    assert "l1 of strength 0.1" in str(model)
    after = str(model.partial_fit(X[:5], X[:5, :2]))
    assert f"{len(X) + 5} rows seen" in after
    assert "on the last batch, of 5 rows" in after
    assert not any(word in after for word in ("converged", "gap", "residual"))


@pytest.mark.parametrize("loss", ["logistic", "multinomial", "squared_hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_of_classes_the_accuracy_on_rows_held_out_is_said(fit, loss, classes):
    X = fit[2]
    rng = np.random.default_rng(0)
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(len(X)), [-0.3, 0.3][: classes - 1])
    weights = rng.uniform(0.5, 2.0, len(X))
    model = ds.DAPClassifierCV("l1", alphas=[0.03], cv=3, loss=loss, tol=1e-8).fit(X, y, weights)
    by_name = ds.DAPClassifierCV("l1", alphas=[0.03], cv=3, loss=loss, tol=1e-8, scoring="accuracy").fit(X, y, weights)
    expected = by_name.scores_path_[0]
    assert 0.3 < expected.mean() < 1.0
    np.testing.assert_allclose(model._accuracies, expected)
    said = f", accuracy {expected.mean():.4g} ± {expected.std(ddof=1) / np.sqrt(3):.2g}, over the folds"
    assert said in str(model)
    assert str(by_name).count("accuracy") == 2  # of the parameters, and of the score


def test_help_shows_the_fields_of_terms():
    assert str(inspect.signature(ds.FusedLasso)).startswith("(lam")
    assert list(inspect.signature(ds.Constant).parameters) == ["eta"]


def test_coefficients_are_drawn_a_panel_a_target():
    figure = plots.plot_coef(np.eye(3, 50), titles=["a", "b", "c"])
    assert [ax.get_title() for ax in figure.axes] == ["a", "b", "c"]
    assert figure.axes[0].get_gridspec().get_geometry() == (3, 1)  # without a hole
    titles = ["Research Octane Number [RON]", "Motor Octane Number [MON]"]
    assert [ax.get_title() for ax in plots.plot_coef(np.eye(2, 50), titles=titles).axes] == titles
    names = [f"w{j}" for j in range(5)]
    (ax,) = plots.plot_coef(np.arange(5.0), names=names, steps=True).axes
    assert [label.get_text() for label in ax.get_xticklabels()] == names
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), [0.0, 1.0, 2.0, 3.0, 4.0, 4.0])
    np.testing.assert_array_equal(ax.lines[-1].get_xdata(), np.arange(6.0) - 0.5)
    (ax,) = plots.plot_coef(np.arange(500.0), names=[f"w{j}" for j in range(500)]).axes
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"w{j}" for j in (0, 100, 200, 300, 400, 499)]
    plt.close("all")


def drawn_groups(figure):
    ax = figure.axes[0]
    edges = [line.get_xdata()[0] for line in ax.lines[1:]]
    colours = [tuple(colour) for colour in ax.collections[0].get_colors()]
    return edges, colours, [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(
    ("penalty", "groups", "names"),
    [
        ("group_lasso", list("aaabbc"), ["a", "b", "c"]),
        ("sparse_group_lasso", np.array([7, 7, 7, 2, 2, 5]), []),
        (ds.GroupLasso(1e-6, [[5], [0, 1, 2], [3, 4]]), None, []),
    ],
)
def test_groups_of_neighbours_are_told_apart(penalty, groups, names):
    X = np.random.default_rng(0).standard_normal((40, 6))
    model = ds.DAPRegressor(penalty, alpha=1e-6, groups=groups).fit(X, X.sum(axis=1))
    edges, colours, texts = drawn_groups(model.plot_coef())
    assert edges == [2.5, 4.5]
    one, other = colours[0], colours[3]
    assert one != other
    assert colours == [one, one, one, other, other, one]
    assert texts == names
    plt.close("all")


@pytest.mark.parametrize("groups", [list("abcabc"), [1, 2, 3, 4, 5, 6], None])
def test_groups_that_are_scattered_or_of_one_column_are_not_marked(groups):
    edges, colours, texts = drawn_groups(plots.plot_coef(np.ones(6), groups=groups))
    assert (edges, len(set(colours)), texts) == ([], 1, [])
    plt.close("all")


def test_names_of_groups_are_written_where_there_is_room():
    groups = ["a"] * 2 + ["b" * 20] * 200
    assert drawn_groups(plots.plot_coef(np.ones(202), groups=groups))[2] == ["b" * 20]
    assert drawn_groups(plots.plot_coef(np.ones(100), groups=np.arange(100) // 2))[0] == []  # they are too many for lines
    plt.close("all")


def test_columns_without_names_have_whole_numbers_below():
    (ax,) = plots.plot_coef(np.arange(6.0), first=1).axes
    ticks = ax.get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))
    assert ax.get_xlim() == (0.5, 6.5)
    plt.close("all")


@pytest.mark.parametrize("place", [0, 1500, 2999])
@pytest.mark.parametrize("first", [0, 1])
def test_a_single_bar_among_thousands_is_seen(place, first):
    coef = np.zeros(3000)
    coef[place] = 1.0
    figure = plots.plot_coef(coef, first=first)
    figure.canvas.draw()
    (ax,) = figure.axes
    (bars,) = ax.collections
    width = bars.get_linewidth()[0] * figure.dpi / 72.0
    assert width >= 1.5
    at = ax.transData.transform((first + place, 0.0))[0]
    left, right = ax.bbox.intervalx
    assert left + 2.0 * width < at < right - 2.0 * width
    assert all(first <= tick < first + 3000 for tick in ax.get_xticks())  # a number below is a column
    plt.close("all")


def test_long_names_are_shortened_so_that_they_stay_different():
    names = [f"a long name of a column, number {k} in kilograms" for k in range(12)]
    short = plots.short_names(names)
    assert max(map(len, short)) <= 24
    assert len(set(short)) == 12
    assert len(set(plots.short_names(["q" * 60] * 3))) == 3
    (ax,) = plots.plot_coef(np.arange(12.0), names=names, penalty="l1 of strength 1").axes
    assert [label.get_text() for label in ax.get_xticklabels()] == short
    assert plots.plot_coef(np.ones(3), names=["$x^", "b", "c"], titles=["$"]).canvas.draw() is None  # it is no formula
    plt.close("all")


@pytest.mark.parametrize("steps", [True, False])
def test_the_only_coefficient_is_seen(steps):
    figure = plots.plot_coef([1.1], first=1, steps=steps)
    (ax,) = figure.axes
    points = ax.lines[-1].get_xydata() if steps else ax.collections[0].get_segments()[0]
    np.testing.assert_allclose(np.ptp(points, axis=0), [1.0, 0.0] if steps else [0.0, 1.1])
    figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1"]
    plt.close("all")


def test_a_penalty_of_nothing_is_called_so():
    X = np.random.default_rng(0).standard_normal((40, 3))
    why = "(nothing is penalised, as one column has no neighbour to be fused with)"
    alone = ds.DAPRegressor("fused_lasso", alpha=0.1).fit(X[:, :1], X[:, 0] + X[:, 1])
    assert f"fused_lasso of strength 0.1 {why}" in str(alone)
    assert "nothing is penalised, so that the answer solves a linear system" in alone.result_.message
    searched = ds.DAPRegressorCV("fused_lasso", alphas=3, cv=3).fit(X[:, :1], X[:, 0] + X[:, 1])
    assert f"{why}, chosen by cross-validation" in str(searched)
    assert "l1 of strength 0 (nothing is penalised)" in str(ds.DAPRegressor("l1", alpha=0.0).fit(X, X[:, 0] + 1.0))
    for penalty, alpha in (("fused_lasso", 0.1), ("zero", 1.0), ("l1", 0.1), ("non_negative", 0.0)):
        said = str(ds.DAPRegressor(penalty, alpha=alpha).fit(X, X[:, 0] + 1.0))
        assert "(nothing is penalised" not in said, penalty
    both = ds.Problem(X[:, :1], X[:, 1], regularizer=ds.FusedLasso(0.1, l1=0.1))
    assert "nothing is penalised" not in ds.solve(both).message
    plt.close("all")


def test_an_only_strength_is_seen():
    X = np.random.default_rng(0).standard_normal((60, 5))
    model = ds.DAPRegressorCV("l1", alphas=[0.1], cv=3).fit(X, X[:, 0] + X[:, 1])
    (ax,) = model.plot_cv().axes
    scores = -model.scores_path_[0]
    seen = [line for line in ax.lines if line.get_marker() == "."]
    np.testing.assert_allclose([line.get_ydata()[0] for line in seen], scores)
    ((_, low), (_, high)) = ax.collections[0].get_segments()[0]
    np.testing.assert_allclose(high - low, 2.0 * scores.std(ddof=1) / np.sqrt(3.0))
    (legend,) = ax.figure.legends
    texts = {text.get_text() for text in legend.get_texts()}
    assert texts == {"one fold", "one standard error", "mean over the folds", "chosen: 0.1"}
    (ax,) = model.plot_path().axes
    assert {line.get_marker() for line in ax.lines if len(line.get_xdata()) == 1} == {"o"}
    assert ax.get_xlim() == (0.2, 0.05)
    folds = [(np.arange(40), np.arange(40, 60))]
    figure = ds.DAPRegressorCV("l1", alphas=3, cv=folds).fit(X, X[:, 0] + X[:, 1]).plot_cv()
    assert "one standard error" not in {text.get_text() for text in figure.legends[0].get_texts()}
    assert figure.get_suptitle().endswith("on 1 fold")
    plt.close("all")


def test_a_picture_of_a_run_leaves_out_what_was_not_recorded():
    X = np.random.default_rng(0).standard_normal((40, 5))
    result = ds.solve(ds.Problem(X, X[:, 0], regularizer=ds.L1(0.1)))
    assert np.isnan(result.trace.residual).all()
    figure = result.plot()
    assert {ax.get_ylabel() for ax in figure.axes} == {"objective above a bound"}
    assert figure.get_suptitle().replace("\n", " ") == f"Convergence, L1 of strength 0.1: {result.message}"
    plt.close("all")


def test_a_picture_of_a_run_shows_how_far_its_objective_is_from_the_best():
    X = np.random.default_rng(0).standard_normal((60, 5))
    problem = ds.Problem(X, X[:, 0] + 3.0, regularizer=ds.L1(0.1))
    result = ds.solve(problem, "fista", tol=1e-8)
    optimum = ds.solve(problem, "fista", tol=1e-14).objective
    for ax in result.plot().axes[:3]:
        above = ax.lines[0].get_ydata()
        assert (above >= result.trace.objective - optimum - 1e-14).all()
        np.testing.assert_allclose(above, result.trace.objective - result.objective + result.gap, atol=1e-14)
        assert ax.get_yscale() == "log"
        assert above[-1] < 1e-6 * above[0]
    assert result.trace.plot().get_ylabel() == "objective"
    np.testing.assert_array_equal(result.trace.plot().lines[0].get_ydata(), result.trace.objective)
    brief = ds.solve(problem, max_iter=2).plot()
    brief.canvas.draw()
    assert not any("." in label.get_text() for label in brief.axes[1].get_xticklabels())
    plt.close("all")


@pytest.mark.parametrize(
    ("recorded", "objective", "gap", "above", "what"),
    [
        ([-1.0, -3.0, -3.5], -3.5, 0.5, [3.0, 1.0, 0.5], "a bound"),
        ([9.0, np.nan, 2.0, np.inf, 1.0], 0.5, np.nan, [8.5, np.nan, 1.5, np.nan, 0.5], "its lowest"),
        ([9.0, 2.0, 1.0], 1.0, np.inf, [8.0, 1.0, np.nan], "its lowest"),
        ([1.2, 1.1, 1.0], 1.0, 0.9, [0.2, 0.1, np.nan], "its lowest"),  # of which the bound would leave a flat line
        ([2.0, 1.5, 1.0], 1.0, 0.0, [1.0, 0.5, np.finfo(float).eps], "a bound"),
        ([-9.0, -8.0, -10.0], np.inf, np.nan, [1.0, 2.0, np.nan], "its lowest"),
        ([3.0], 3.0, 0.1, None, None),
        ([3.0, 3.0, 3.0], 3.0, 0.0, None, None),
        ([4.0, 3.0], 3.0, np.nan, None, None),
        ([np.nan, np.nan], np.nan, np.nan, None, None),
        ([], np.nan, np.nan, None, None),
    ],
)
def test_the_objective_is_drawn_above_what_is_known(recorded, objective, gap, above, what):
    trace = ds.Trace.from_points([(k, k, k, value, np.nan, np.nan) for k, value in enumerate(recorded)])
    found, name = plots.objective_above(trace, objective, gap)
    if above is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, above, rtol=1e-14)
        assert name == f"objective above {what}"
    ax = plt.figure().subplots()
    plots.plot_progress(trace, ax=ax, objective=objective, gap=gap)
    assert ax.get_ylabel() == (name or "objective")
    ax.figure.canvas.draw()
    plt.close("all")


def test_the_seconds_of_a_short_run_are_few_and_short():
    run = [0.0, 0.000317], [1, 2], [0.1, 0.2], [2.0, 1.0], [1.0, 0.5], [1.0, 0.5]
    trace = ds.Trace(*map(np.array, run))
    ax = plots.plot_trace(trace)
    ax.figure.canvas.draw()
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert len(labels) <= 7  # of which two are outside
    assert max(map(len, labels)) <= 4
    axes = plt.figure().subplots()
    axes.set_xscale("log")
    chosen = axes.xaxis.get_major_locator()
    assert plots.plot_trace(trace, ax=axes).xaxis.get_major_locator() is chosen
    plt.close("all")


@pytest.mark.parametrize(("eps", "plain"), [(0.2, True), (0.01, False)])
def test_axes_of_less_than_a_decade_have_plain_numbers(eps, plain):
    X = np.random.default_rng(0).standard_normal((60, 5))
    figure = ds.DAPRegressorCV("l1", alphas=5, eps=eps, cv=3).fit(X, X[:, 0]).plot_cv()
    figure.canvas.draw()
    (ax,) = figure.axes
    texts = [label.get_text() for label in ax.get_xticklabels(which="both") if label.get_text()]
    assert len(texts) > 2
    assert all(text.replace(".", "").isdigit() for text in texts) == plain
    plt.close("all")


@pytest.mark.parametrize(
    ("algorithm", "workers", "said"),
    [
        ("fista", None, "1 worker, as fista always has"),
        ("working-set", None, "1 worker, as working-set always has"),
        ("dap-svrg", 1, "1 worker"),
        ("dap-svrg", 2, "2 workers"),
    ],
)
def test_one_worker_is_explained_where_there_is_never_another(fit, algorithm, workers, said):
    X = fit[2]
    result = ds.solve(ds.Problem(X, X[:, 0], regularizer=ds.L1(0.1)), algorithm, workers=workers, seed=0)
    assert result.algorithm == algorithm
    (line,) = (line for line in str(result).splitlines() if line.split()[0] == "work")
    assert line.endswith(f" s, {said}")


def test_a_result_says_what_it_lacks():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    near = ds.Problem(X, X[:, 0], regularizer=ds.L1(0.01), fit_intercept=True)
    far = ds.Problem(X + 100.0, X[:, 0] + 85.0, regularizer=ds.L1(0.01), fit_intercept=True)
    missed = ds.solve(far, "dap-sgd", workers=1, seed=0)
    assert not missed.converged
    assert "no: it takes more passes, columns that are centred and of one size, or algorithm='auto'" in str(missed)
    assert "it takes more passes" not in str(ds.solve(near, "dap-sgd", workers=1, seed=0, tol=0.0, max_iter=10))
