"""Model files: what is loaded predicts as what was saved, and a damaged file is said to be one."""

import io
import json
import math
import pickle
import re
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dapsgd as ds
from dapsgd import models

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 6))
Y = X @ np.array([2.0, -1.0, 0.0, 0.0, 1.0, 0.0]) + 0.1 * RNG.standard_normal(60)
WORDS = np.array(["low", "middle", "hïgh"])[np.digitize(Y, [-1.0, 1.0])]

FITS = {
    "regression": lambda: ds.DAPRegressor("l1", 0.1).fit(X, Y),
    "no intercept": lambda: ds.DAPRegressor("l1", 0.1, fit_intercept=False).fit(X, Y),
    "float32": lambda: ds.DAPRegressor("l1", 0.1).fit(X.astype(np.float32), Y.astype(np.float32)),
    "groups": lambda: ds.DAPRegressor("group_lasso", 0.1, groups=[0, 0, 1, 1, 2, 2]).fit(X, Y),
    "several": lambda: ds.DAPRegressor("nuclear", 0.1).fit(X, np.column_stack([Y, -Y, X[:, 0]])),
    "poisson": lambda: ds.DAPRegressor("l1", 0.1, loss="poisson").fit(X, np.round(np.exp(X[:, 0] / 3))),
    "loss object": lambda: ds.DAPRegressor("l1", 0.1, loss=ds.Huber(0.5)).fit(X, Y),
    "penalty object": lambda: ds.DAPRegressor(ds.L1(0.1)).fit(X, Y),
    "cross-validation": lambda: ds.DAPRegressorCV("l1", alphas=3, cv=2).fit(X, Y),
    "cross-validated classes": lambda: ds.DAPClassifierCV("l1", alphas=3, cv=2).fit(X, WORDS),
    "two classes": lambda: ds.DAPClassifier("l1", 0.01).fit(X, Y > 0),
    "words": lambda: ds.DAPClassifier("l1", 0.01).fit(X, WORDS),
    "objects": lambda: ds.DAPClassifier("l1", 0.01).fit(X, WORDS.astype(object)),
    "integers": lambda: ds.DAPClassifier("l1", 0.01, loss="squared_hinge").fit(X, np.where(Y > 0, 7, 3)),
    "one against the rest": lambda: ds.DAPClassifier("l1", 0.01, loss="logistic").fit(X, WORDS),
}


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_model_predicts_the_same(tmp_path, name):
    model = FITS[name]()
    models.save(model, tmp_path / "model.npz", {"where": ["here"]})
    loaded = models.load(tmp_path / "model.npz")
    assert type(loaded) is type(model)
    for rows in (X[:7], csr_matrix(X)):
        assert np.array_equal(loaded.predict(rows), model.predict(rows))
        assert loaded.predict(rows).dtype == model.predict(rows).dtype or name == "objects"
        for method in ("decision_function", "predict_proba"):
            assert hasattr(loaded, method) == hasattr(model, method)
            if hasattr(model, method):
                assert np.array_equal(getattr(loaded, method)(rows), getattr(model, method)(rows))
    assert loaded.metadata_ == {"where": ["here"]}
    assert loaded.objective_ == model.objective_
    assert loaded.n_iter_ == model.n_iter_
    assert getattr(loaded, "alpha_", loaded.get_params().get("alpha")) == getattr(
        model, "alpha_", model.get_params().get("alpha")
    )
    assert type(loaded.intercept_) is type(model.intercept_)
    if name not in ("penalty object", "objects"):
        assert repr(loaded) == repr(model)
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_names_of_features_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = ds.DAPRegressor("l1", 0.1).fit(frame, Y)
    models.save(model, tmp_path / "model.npz")
    loaded = models.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    for use in (model.predict, loaded.predict, lambda X: model.partial_fit(X, Y), lambda X: loaded.partial_fit(X, Y)):
        for other in (frame[list("fedcba")], frame.assign(g=1.0)):
            with pytest.raises(ValueError, match=r"\nX\[list\(model.feature_names_in_\)\] has the columns of the fit"):
                use(other)
        with pytest.raises(ValueError, match=r"Feature names seen at fit time, yet now missing:\n- a$"):
            use(frame.rename(columns={"a": "z"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        loaded.predict(X)


class Own(NamedTuple):
    scale: float = 1.0

    def value(self, pred, y):
        return self.scale * (pred - y) ** 2

    def derivative(self, pred, y):
        return 2.0 * self.scale * (pred - y)


def test_what_cannot_be_saved_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    model = FITS["regression"]()
    path = tmp_path / "model.npz"
    with pytest.raises(TypeError, match="model must be one of DAPClassifier"):
        models.save(object(), path)
    with pytest.raises(ValueError, match="not fitted"):
        models.save(ds.DAPRegressor(), path)
    with pytest.raises(TypeError, match="metadata must be what JSON can hold"):
        models.save(model, path, {"x": object()})
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        models.save(model, tmp_path / "model.pkl")
    with pytest.raises(TypeError, match="path"):
        models.save(model, 7)
    own = FITS["regression"]().set_params(loss=Own())
    with pytest.raises(TypeError, match="loss of dapsgd's"):
        models.save(own, path)

    def interrupted(*args, **kwargs):
        open(args[0], "wb").close()
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        models.save(model, path)
    assert list(tmp_path.iterdir()) == []


def arrays_of(path):
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def about_of(arrays, **changes):
    about = json.loads(arrays["about"].tobytes()) | changes
    return np.frombuffer(json.dumps(about).encode(), np.uint8)


DAMAGE = {
    "unknown version": (lambda a: a | {"about": about_of(a, version=2)}, "version 2"),
    "no version": (lambda a: a | {"about": about_of(a, version=None)}, "version None"),
    "other format": (lambda a: a | {"about": about_of(a, format="x")}, "does not say what it is"),
    "unknown estimator": (lambda a: a | {"about": about_of(a, estimator="Ridge")}, "unknown kind 'Ridge'"),
    "odd parameter": (lambda a: a | {"about": about_of(a, parameters={"colour": 1})}, "makes no sense"),
    "odd parameters": (lambda a: a | {"about": about_of(a, parameters=7)}, "makes no sense"),
    "odd loss": (lambda a: a | {"about": about_of(a, parameters={"loss": {"loss": "eval", "fields": []}})}, "makes no sense"),
    "list as loss": (lambda a: a | {"about": about_of(a, parameters={"loss": []})}, "makes no sense"),
    "odd numbers": (lambda a: a | {"about": about_of(a, numbers={"objective_": "x"})}, "makes no sense"),
    "summary in a list": (lambda a: a | {"about": about_of(a, summary=["x"])}, "its summary must be"),
    "empty summary": (lambda a: a | {"about": about_of(a, summary={})}, "its summary must be"),
    "endless summary": (lambda a: a | {"about": about_of(a, summary={str(k): "x" for k in range(99)})}, "its summary must be"),
    "numbers in the summary": (lambda a: a | {"about": about_of(a, summary={"data": 7})}, "no line of text"),
    "escapes in the summary": (lambda a: a | {"about": about_of(a, summary={"data": "\x1b[2J"})}, "no line of text"),
    "escapes in a title": (lambda a: a | {"about": about_of(a, summary={"\x1b[2J": "x"})}, "no line of text"),
    "long summary": (lambda a: a | {"about": about_of(a, summary={"data": "x" * 2000})}, "no line of text"),
    "no JSON": (lambda a: a | {"about": a["about"][:-3]}, "does not say what it is"),
    "list": (lambda a: a | {"about": np.frombuffer(b"[]", np.uint8)}, "does not say what it is"),
    "no bytes": (lambda a: a | {"about": np.full(9, np.nan)}, "does not say what it is"),
    "deep": (lambda a: a | {"about": np.frombuffer(b"[" * 100_000, np.uint8)}, "does not say what it is"),
    "no about": (lambda a: {k: v for k, v in a.items() if k != "about"}, "lacks about"),
    "no coef": (lambda a: {k: v for k, v in a.items() if k != "coef"}, "lacks coef"),
    "no classes": (lambda a: {k: v for k, v in a.items() if k != "classes"}, "classes are missing"),
    "NaN": (lambda a: a | {"coef": a["coef"] * np.nan}, "coef must hold finite"),
    "integers": (lambda a: a | {"coef": a["coef"].astype(int)}, "coef must hold finite"),
    "infinite": (lambda a: a | {"intercept": a["intercept"] + np.inf}, "intercept must hold finite"),
    "cube": (lambda a: a | {"coef": a["coef"][None]}, "do not belong together"),
    "empty": (lambda a: a | {"coef": a["coef"][:, :0]}, "do not belong together"),
    "flat": (lambda a: a | {"coef": a["coef"][0], "intercept": a["intercept"][0]}, "classes for coefficients"),
    "more classes": (lambda a: a | {"classes": np.array(list("abcd"))}, "classes for coefficients"),
    "same classes": (lambda a: a | {"classes": np.array(["a", "a", "b"])}, "not different"),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.npz"
    models.save(FITS["words"](), path)
    return path


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_model_is_said_to_be_one(tmp_path, saved, name):
    damage, message = DAMAGE[name]
    np.savez(tmp_path / "bad.npz", **damage(arrays_of(saved)))
    with pytest.raises(ds.FileFormatError, match=message) as caught:
        models.load(tmp_path / "bad.npz")
    assert "bad.npz" in str(caught.value)


def test_a_pickle_in_a_model_is_never_run(tmp_path, saved):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was run",))

    body = io.BytesIO()
    np.lib.format.write_array_header_1_0(body, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    whole = b"\x93NUMPY\x01\x00" + body.getvalue()[8:] + pickle.dumps(np.array([Trap()], dtype=object))
    np.savez(tmp_path / "bad.npz", **{k: v for k, v in arrays_of(saved).items() if k != "classes"})
    with zipfile.ZipFile(tmp_path / "bad.npz", "a") as archive:
        archive.writestr("classes.npy", whole)
    with pytest.raises(ds.FileFormatError, match="pickled"):
        models.load(tmp_path / "bad.npz")


def test_cut_and_flipped_files_never_fail_in_another_way(tmp_path, saved):
    whole = saved.read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "bad.npz"
    contents = [whole[:k] for k in range(0, len(whole), 41)] + [b"", rng.bytes(500), b"PK\x03\x04" + rng.bytes(100)]
    for _ in range(300):
        content = bytearray(whole)
        for place in rng.integers(len(whole), size=rng.integers(1, 4)):
            content[place] ^= 1 << int(rng.integers(8))
        contents.append(bytes(content))
    refused = 0
    for content in contents:
        path.write_bytes(content)
        try:
            models.load(path).predict(X)
        except ds.FileFormatError as error:
            if "bad.npz" not in str(error):
                raise
            refused += 1
    assert refused > 200
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        models.load(tmp_path / "none.npz")


def test_columns_of_an_array_can_be_given_names(tmp_path):
    model = FITS["regression"]()
    models.save(model, tmp_path / "model.npz", feature_names=list("abcdef"))
    loaded = models.load(tmp_path / "model.npz")
    assert loaded.metadata_ == {"feature_names": list("abcdef")}
    assert np.array_equal(loaded.predict(X), model.predict(X))  # which would warn if scikit-learn knew of the names
    axis = loaded.plot_coef().axes[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == list("abcdef")


@pytest.mark.parametrize("names", ["abcdef", [1, 2, 3, 4, 5, 6], list("abc"), list("aabcde")])
def test_names_that_are_none_are_refused(tmp_path, names):
    with pytest.raises((TypeError, ValueError), match="feature_names must be"):
        models.save(FITS["regression"](), tmp_path / "model.npz", feature_names=names)
    assert not list(tmp_path.iterdir())


def make_frame(library, columns):
    frames = pytest.importorskip(library)
    return frames.table(columns) if library == "pyarrow" else frames.DataFrame(columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("kind", [ds.DAPRegressor, ds.DAPClassifier])
def test_columns_of_a_frame_are_compared_with_the_names_in_a_file(tmp_path, library, kind):
    X = np.random.default_rng(0).standard_normal((30, 3))
    y = X[:, 0] - X[:, 2]
    model = kind("l1", alpha=0.1).fit(X, y if kind is ds.DAPRegressor else np.where(y > 0.0, "up", "down"))
    models.save(model, tmp_path / "m.npz", feature_names=["a", "b", "c"])
    loaded = models.load(tmp_path / "m.npz")
    frame = make_frame(library, {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    for one, other in ((loaded.predict(frame), model.predict(X)), (loaded.predict(X), model.predict(X))):
        assert (one == other).all() if one.dtype.kind == "U" else np.allclose(one, other, rtol=1e-12, atol=0.0)
    wide = make_frame(library, {"id": ["x"] * 30, "c": X[:, 2], "b": X[:, 1], "a": X[:, 0]})
    way = ".select(" if library == "pyarrow" else "["
    said = re.escape(f"in their order, and no others; it also has 'id'\nX{way}model.metadata_")
    with pytest.raises(ValueError, match=said) as caught:
        loaded.predict(wide)
    remedy = str(caught.value).split("\n")[1].removesuffix(" has them")
    again = loaded.predict(eval(remedy, {"X": wide, "model": loaded}))
    assert (again == model.predict(X)).all() if again.dtype.kind == "U" else np.allclose(again, model.predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="in their order, and no others; their order is another one\nX"):
        loaded.predict(make_frame(library, {"a": X[:, 0], "c": X[:, 2], "b": X[:, 1]}))
    with pytest.raises(ValueError, match="X lacks 2 of the 3 columns that the model was fitted to: 'a', 'b'"):
        loaded.predict(make_frame(library, {"id": ["x"] * 30, "c": X[:, 2]}))
    holes = np.where(np.arange(30) == 4, np.nan, X[:, 1])
    with pytest.raises(ValueError, match="X must not contain NaN or infinity, as it does in 'b' in 1 row; fill in"):
        loaded.predict(make_frame(library, {"a": X[:, 0], "b": holes, "c": X[:, 2]}))
    with pytest.raises(ValueError, match=r"code column 'b' as numbers|could not convert string to float: 'x'"):
        loaded.predict(make_frame(library, {"a": X[:, 0], "b": ["x"] * 30, "c": X[:, 2]}))


def test_names_in_a_file_are_those_of_its_fit(tmp_path):
    frames = pytest.importorskip("pandas")
    X = np.random.default_rng(0).standard_normal((30, 3))
    models.save(ds.DAPRegressor("l1", alpha=0.1).fit(X, X[:, 0]), tmp_path / "m.npz", feature_names=["0", "1", "2"])
    loaded = models.load(tmp_path / "m.npz")
    np.testing.assert_allclose(loaded.predict(frames.DataFrame(X)), loaded.predict(X))  # whose names are numbers
    twice = frames.DataFrame(X[:, [0, 1, 2, 0]], columns=["0", "1", "2", "0"])
    with pytest.raises(ValueError, match="X must have one column named '0'; it has 2"):
        loaded.predict(twice)
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"):
        models.save(loaded, tmp_path / "nowhere" / "m.npz")
    loaded.fit(X[:, ::-1], X[:, 0])
    with pytest.warns(UserWarning, match="fitted without feature names"):
        again = loaded.predict(frames.DataFrame(X[:, ::-1], columns=["2", "1", "0"]))
    np.testing.assert_array_equal(again, loaded.predict(X[:, ::-1]))


@pytest.mark.parametrize("names", [5, True, "abc", ["a", "b"], ["a", "a", "b"], [["a"], "b", "c"]])
def test_names_in_metadata_are_checked(tmp_path, names):
    X = np.random.default_rng(0).standard_normal((30, 3))
    model = ds.DAPRegressor("l1", alpha=0.1).fit(X, X[:, 0])
    with pytest.raises((TypeError, ValueError), match="feature_names must be"):
        models.save(model, tmp_path / "m.npz", {"feature_names": names})
    models.save(model, tmp_path / "m.npz")
    for place in ("metadata", "top"):
        about = json.loads(np.load(tmp_path / "m.npz")["about"].tobytes())
        (about["metadata"] if place == "metadata" else about)["feature_names"] = names
        arrays = dict(np.load(tmp_path / "m.npz")) | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}
        np.savez(tmp_path / "odd.npz", **arrays)
        with pytest.raises(ds.FileFormatError, match="its names of columns make no sense"):
            models.load(tmp_path / "odd.npz")


@pytest.mark.parametrize("fitted", [False, True])
def test_batches_go_on_after_a_model_was_loaded(tmp_path, fitted):
    X = np.random.default_rng(0).standard_normal((60, 4))
    model = ds.DAPRegressor("l1", alpha=0.1, random_state=0)
    if fitted:
        model.fit(X, X[:, 0])
    model.partial_fit(X[:20], X[:20, 0]).partial_fit(X[:30], X[:30, 0])
    models.save(model, tmp_path / "m.npz")
    loaded = models.load(tmp_path / "m.npz")
    assert str(loaded) == str(model)
    for _ in range(2):
        assert loaded.t_ == model.t_
        np.testing.assert_array_equal(loaded.partial_fit(X, X[:, 0]).coef_, model.partial_fit(X, X[:, 0]).coef_)


def test_odd_means_in_a_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 3)) + 5.0
    models.save(ds.DAPRegressor("l1", alpha=0.1).partial_fit(X, X[:, 0]), tmp_path / "m.npz")
    stored = dict(np.load(tmp_path / "m.npz"))
    odd = {
        "means must be": {"means": stored["means"][:2]},
        "a finite float64": {"means": stored["means"] * np.nan},
        "float64 for each": {"means": stored["means"].astype(np.float32)},
        "do not belong together": {"about": stored["about"].tobytes().replace(b'"weight": 30.0', b'"weight": 0.00')},
        "weight must be": {"about": stored["about"].tobytes().replace(b'"weight": 30.0', b'"weight": -1.0')},
    }
    for words, change in odd.items():
        change = {name: np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value for name, value in change.items()}
        np.savez(tmp_path / "odd.npz", **stored | change)
        with pytest.raises(ds.FileFormatError, match=words):
            models.load(tmp_path / "odd.npz")


def test_odd_counts_in_a_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 3))
    models.save(ds.DAPRegressor("l1", alpha=0.1).fit(X, X[:, 0]), tmp_path / "m.npz")
    stored = dict(np.load(tmp_path / "m.npz"))
    about = json.loads(stored["about"].tobytes())
    odd = [{"stream": stream} for stream in ([1.0, -1], [math.inf, 1], [-1.0, 1], ["a", 1], [1.0], None)]
    for change in (*odd, {"numbers": {"t_": -1}}, {"numbers": {"t_": math.nan}}):
        text = json.dumps(about | change).encode()
        np.savez(tmp_path / "odd.npz", **stored | {"about": np.frombuffer(text, np.uint8)})
        with pytest.raises(ds.FileFormatError, match="makes no sense"):
            models.load(tmp_path / "odd.npz")
    older = {name: value for name, value in about.items() if name != "stream"}
    np.savez(tmp_path / "old.npz", **stored | {"about": np.frombuffer(json.dumps(older).encode(), np.uint8)})
    assert models.load(tmp_path / "old.npz").t_ == 30


def test_odd_numbers_in_a_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 3))
    models.save(ds.DAPRegressor("l1", alpha=0.1).fit(X, X[:, 0]), tmp_path / "m.npz")
    for numbers, right in (({"objective_": 1.0}, True), ({"n_iter_": 10**400}, False)):
        about = json.loads(np.load(tmp_path / "m.npz")["about"].tobytes()) | {"numbers": numbers}
        arrays = dict(np.load(tmp_path / "m.npz")) | {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}
        np.savez(tmp_path / "odd.npz", **arrays)
        if right:
            assert "objective" in str(models.load(tmp_path / "odd.npz"))
        else:
            with pytest.raises(ds.FileFormatError, match="makes no sense"):
                models.load(tmp_path / "odd.npz")


def test_a_loaded_model_says_that_it_has_no_path(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 3))
    model = ds.DAPRegressorCV("l1", alphas=3, cv=2).fit(X, X[:, 0])
    assert "held out" in str(model)
    models.save(model, tmp_path / "m.npz")
    loaded = models.load(tmp_path / "m.npz")
    for draw in (loaded.plot_cv, loaded.plot_path):
        with pytest.raises(ValueError, match="a model from a file has no path"):
            draw()


def test_names_of_a_frame_are_among_the_metadata(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 3)), columns=["a", "b", "c"])
    models.save(ds.DAPRegressor("l1", alpha=0.1).fit(frame, frame["a"]), tmp_path / "m.npz")
    assert models.load(tmp_path / "m.npz").metadata_["feature_names"] == ["a", "b", "c"]


def test_a_loaded_model_of_a_penalty_object_names_no_strength_that_it_never_had(tmp_path):
    X, y = np.random.default_rng(0).standard_normal((40, 5)), np.arange(40.0)
    ds.models.save(ds.DAPRegressor(ds.FusedLasso(0.1)).fit(X, y), tmp_path / "model.npz")
    model = ds.models.load(tmp_path / "model.npz")
    assert model._penalty_text() == "FusedLasso"


def test_a_new_fit_forgets_how_a_file_counted_its_columns(tmp_path):
    X, y = np.random.default_rng(0).standard_normal((40, 5)), np.arange(40.0)
    model = ds.DAPRegressor()
    model._first_column, model._scaled = 1, True
    model.fit(X, y)
    assert (model._first_column, model._scaled) == (0, False)


def test_names_that_are_numbers_are_compared(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 8)), columns=range(1100, 1180, 10))
    y = frame[1120] - 2.0 * frame[1150]
    model = ds.DAPRegressor("l1", alpha=0.01).fit(frame, y)
    models.save(model, tmp_path / "m.npz")
    loaded = models.load(tmp_path / "m.npz")
    for one in (model, loaded):
        np.testing.assert_array_equal(one.predict(frame), model.predict(frame.to_numpy()))
        np.testing.assert_array_equal(one.predict(frame.rename(columns=str)), model.predict(frame))  # as of a file
        np.testing.assert_array_equal(one.predict(pd.DataFrame(frame.to_numpy())), model.predict(frame))  # without names
        with pytest.raises(ValueError, match=r"another one\nX\[sorted\(X.columns\)\] has them"):
            one.predict(frame[frame.columns[::-1]])
        with pytest.raises(ValueError, match="it also has '900'"):
            one.predict(frame.assign(**{"900": 0.0}).rename(columns={"900": 900}))
        with pytest.raises(ValueError, match="X lacks 1 of the 8 columns"):
            one.predict(frame.drop(columns=1120))
    assert loaded.metadata_["feature_names"][0] == "1100"
    places = ds.DAPRegressor("l1", alpha=0.01).fit(pd.DataFrame(frame.to_numpy()), y)
    np.testing.assert_allclose(places.predict(frame), model.predict(frame))
    with pytest.raises(TypeError, match=r"list\(map\(str, names\)\); it holds 1100"):
        models.save(model, tmp_path / "m.npz", feature_names=list(frame.columns))
