"""Groups and their weights: matched by name where they have names."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dapsgd as ds

pd = pytest.importorskip("pandas")

LABELS = ["b", "a", "b", "c", "b"]
RNG = np.random.default_rng(0)
V = RNG.standard_normal(5)
FRAME = pd.DataFrame(RNG.standard_normal((60, 5)), columns=["v", "w", "x", "y", "z"])
TARGET = FRAME["v"] + FRAME["w"] - FRAME["y"] + 0.1 * RNG.standard_normal(60)


@pytest.mark.parametrize("kind", [ds.GroupLasso, ds.SparseGroupLasso])
def test_weights_are_matched_by_name(kind):
    expected = ds.prox(kind(0.3, LABELS, weights=[1.0, 2.0, 0.5]), V, 1.0)
    named = {"c": 0.5, "a": 1.0, "b": 2.0}
    for weights in (named, pd.Series(named)):
        assert (ds.prox(kind(0.3, LABELS, weights=weights), V, 1.0) == expected).all()
        assert (ds.prox(kind(0.3, np.array(LABELS), weights=weights), V, 1.0) == expected).all()
    lists = [[1], [0, 2, 4], [3]]
    assert (ds.prox(kind(0.3, lists, weights={2: 0.5, 0: 1.0, 1: 2.0}), V, 1.0) == expected).all()
    by_size = ds.prox(kind(0.3, 1, weights=pd.Series([1.0, 2.0, 0.5, 1.0, 3.0])), V, 1.0)
    assert (by_size == ds.prox(kind(0.3, 1, weights=[1.0, 2.0, 0.5, 1.0, 3.0]), V, 1.0)).all()


def test_numbers_are_names_too():
    expected = ds.prox(ds.GroupLasso(0.3, [7, 3, 7, 9, 7], [1.0, 2.0, 0.5]), V, 1.0)
    assert (ds.prox(ds.GroupLasso(0.3, [7, 3, 7, 9, 7], {9: 0.5, 7: 2.0, 3: 1.0}), V, 1.0) == expected).all()


@pytest.mark.parametrize("kind", [ds.GroupLasso, ds.SparseGroupLasso])
def test_root_weights_are_the_roots_of_sizes(kind):
    expected = ds.prox(kind(0.3, LABELS, weights=np.sqrt([1.0, 3.0, 1.0])), V, 1.0)
    assert (ds.prox(kind(0.3, LABELS, weights="root"), V, 1.0) == expected).all()
    two = np.ones((6, 2))  # groups of rows: the size counts rows, whatever the number of targets
    expected = ds.prox(kind(0.3, 3, weights=np.sqrt([3.0, 3.0])), two, 1.0)
    assert (ds.prox(kind(0.3, 3, weights="root"), two, 1.0) == expected).all()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"a": 1.0, "b": 1.0}, "nothing for 'c'. The groups are 'a', 'b', 'c': a list of weights is in this order"),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}, "it has 'd', which is none"),
        (pd.Series([1.0, 2.0, 3.0]), "where the index of a series names them; it has nothing for 'a'"),
        (pd.Series([1.0, 2.0, 3.0, 4.0], index=["a", "b", "c", "c"]), "it has one of them twice"),
        ("roots", "must be 'root', for the root of the size of each group, or numbers; got 'roots'"),
    ],
)
def test_weights_of_other_names_are_refused(weights, words):
    with pytest.raises(ValueError, match="weights") as caught:
        ds.prox(ds.GroupLasso(1.0, LABELS, weights), V, 1.0)
    assert words in str(caught.value)


def test_estimators_take_weights_by_name():
    def fit(weights):
        return ds.DAPRegressor("group_lasso", 0.3, groups=LABELS, weights=weights, tol=1e-8).fit(FRAME, TARGET).coef_

    assert (fit({"c": 0.5, "a": 1.0, "b": 2.0}) == fit([1.0, 2.0, 0.5])).all()
    assert (fit("root") == fit(np.sqrt([1.0, 3.0, 1.0]))).all()
    with pytest.raises(ValueError, match="weights must be numbers for penalty 'slope'; got 'root', and 'root' is for groups"):
        ds.DAPRegressor("slope", weights="root").fit(FRAME, TARGET)


@pytest.mark.parametrize("penalty", ["group_lasso", "sparse_group_lasso"])
def test_groups_are_matched_with_columns_by_name(penalty):
    groups = pd.Series(LABELS, index=FRAME.columns)
    expected = ds.DAPRegressor(penalty, 0.3, groups=LABELS).fit(FRAME, TARGET)
    for mixed in (groups, groups.sort_values(), groups.iloc[::-1]):
        model = ds.DAPRegressor(penalty, 0.3, groups=mixed).fit(FRAME, TARGET)
        assert (model.coef_ == expected.coef_).all()
        assert model._about()["groups"] == expected._about()["groups"]
        assert model._group_labels() == LABELS
    chosen = ds.DAPRegressorCV(penalty, alphas=[0.3, 0.1], groups=groups.iloc[::-1]).fit(FRAME, TARGET)
    assert (chosen.coef_ == ds.DAPRegressorCV(penalty, alphas=[0.3, 0.1], groups=LABELS).fit(FRAME, TARGET).coef_).all()


def test_groups_without_names_are_by_position():
    expected = ds.DAPRegressor("group_lasso", 0.3, groups=LABELS).fit(FRAME, TARGET).coef_
    assert (ds.DAPRegressor("group_lasso", 0.3, groups=pd.Series(LABELS)).fit(FRAME, TARGET).coef_ == expected).all()
    numbers = pd.Series(LABELS, index=[7, 3, 1, 9, 5])  # of rows of a table, say
    assert (ds.DAPRegressor("group_lasso", 0.3, groups=numbers).fit(FRAME.to_numpy(), TARGET).coef_ == expected).all()
    numbered, order = FRAME.set_axis(range(5), axis=1), [3, 1, 0, 4, 2]
    groups = pd.Series(LABELS).loc[order]
    assert (ds.DAPRegressor("group_lasso", 0.3, groups=groups).fit(numbered, TARGET).coef_ == expected).all()


def test_groups_with_names_are_refused_where_columns_have_none():
    """As behind a step of a pipeline that forgets them: taken by position they might be those of other columns."""
    named = pd.Series(LABELS, index=FRAME.columns)
    model = ds.DAPRegressor("group_lasso", 0.3, groups=named)
    with pytest.raises(ValueError, match=r"groups has names .* X has none .* groups.to_list\(\) .* set_output"):
        model.fit(FRAME.to_numpy(), TARGET)
    with pytest.raises(ValueError, match="groups has names"):
        make_pipeline(StandardScaler(), model).fit(FRAME, TARGET)
    kept = make_pipeline(StandardScaler(), clone(model).set_params(groups=named.iloc[::-1])).set_output(transform="pandas")
    plain = make_pipeline(StandardScaler(), ds.DAPRegressor("group_lasso", 0.3, groups=LABELS)).fit(FRAME, TARGET)
    assert (kept.fit(FRAME, TARGET)[-1].coef_ == plain[-1].coef_).all()


def test_groups_of_other_columns_are_refused():
    groups = pd.Series(LABELS, index=["v", "w", "x", "y", "zz"])
    with pytest.raises(ValueError, match=r"groups must have the names .* nothing for 'z'. By position, give groups.to_list"):
        ds.DAPRegressor("group_lasso", groups=groups).fit(FRAME, TARGET)
    with pytest.raises(ValueError, match="X has no 'zz'"):
        ds.DAPRegressor("group_lasso", groups=groups).fit(FRAME.drop(columns="z"), TARGET)
    with pytest.raises(ValueError, match="one of them twice"):
        ds.DAPRegressor("group_lasso", groups=pd.Series(LABELS, index=list("vvxyz"))).fit(FRAME, TARGET)
