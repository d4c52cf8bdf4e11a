"""The examples run, they find what they say they find, and the page that shows them shows the very files."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import dapsgd as ds

ROOT = Path(__file__).parent.parent
FILES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py")) if not path.stem.startswith("plot_")}
PAGE = ROOT / "docs" / "write_your_own_regularizer.md"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FILES[name])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def modules():
    return {name: load(name) for name in FILES}


def check_own_regularizer(module):
    found = module.main(max_passes=20)
    assert list(found) == ["fista", "serial", "threads", "replay"]
    best = found["fista"]
    assert best.converged
    for name, result in found.items():
        alive = np.flatnonzero(result.x.reshape(12, 5).any(axis=1))
        assert alive.tolist() == [1, 4, 9], name
        assert (result.x >= 0.0).all(), name
        assert best.objective <= result.objective * (1.0 + 1e-12)
        assert result.objective <= 1.02 * best.objective, name
    assert found["serial"].iterations == found["threads"].iterations == found["replay"].iterations == 20 * 300
    assert np.array_equal(found["threads"].iterate, found["replay"].iterate)


def check_own_loss(module):
    found = module.main(max_passes=30)
    assert list(found) == [0.1, 0.5, 0.9]
    for level, fit in found.items():
        assert fit["best"].converged
        assert abs(fit["below"] - level) < 0.04
        assert fit["best"].objective <= fit["result"].objective * (1.0 + 1e-12)
        assert fit["result"].objective <= 1.05 * fit["best"].objective
    intercepts = [fit["result"].intercept for fit in found.values()]
    assert intercepts[0] < -0.5 < intercepts[1] < 0.5 < intercepts[2]


def check_sparse_regression(module):
    found = module.main()
    assert found["fused_lasso"]["error"] < 0.5 * found["l1"]["error"]
    assert found["fused_lasso"]["model"].score(*module.spectra()[:2]) > 0.8


CHECKS = {
    "own_loss": check_own_loss,
    "own_regularizer": check_own_regularizer,
    "sparse_regression": check_sparse_regression,
}


def test_every_example_is_checked():
    assert set(FILES) == set(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_example(name, modules, capsys):
    CHECKS[name](modules[name])
    assert capsys.readouterr().out


def test_own_regularizer_has_the_right_prox(modules):
    rng = np.random.default_rng(0)
    weights = rng.random(4)
    own, built_in = modules["own_regularizer"].NonNegativeGroups(weights), ds.GroupLasso(1.0, 3, weights)
    for shape in ((12,), (12, 2)):
        v = rng.standard_normal(shape)
        found = ds.prox(own, v, 0.8)
        expected = ds.prox(built_in, np.maximum(v, 0.0), 0.8)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        plain = np.empty_like(v)
        own.prox(v, 0.8, plain)
        np.testing.assert_allclose(plain, found, rtol=1e-12)
        X, y = np.zeros((1, 12)), np.zeros((1, *shape[1:]))
        problem, reference = ds.Problem(X, y, regularizer=own), ds.Problem(X, y, regularizer=built_in)
        assert problem.objective(found) == pytest.approx(reference.objective(found), rel=1e-12)
        assert problem.objective(v) == np.inf


def test_own_loss_has_the_right_derivative(modules):
    loss = modules["own_loss"].SmoothQuantile(0.3, 0.2)
    predictions = np.linspace(-1.0, 1.0, 401)
    slopes = np.array([loss.derivative(p, 0.1) for p in predictions])
    values = np.array([loss.value(p, 0.1) for p in predictions])
    width = predictions[1] - predictions[0]
    centred = (values[2:] - values[:-2]) / (2.0 * width)
    np.testing.assert_allclose(slopes[1:-1], centred, atol=loss.curvature * width)
    assert np.diff(slopes).min() > -1e-12
    assert np.diff(slopes).max() <= loss.curvature * width * (1.0 + 1e-9)
    assert slopes[0] == pytest.approx(-0.3)
    assert slopes[-1] == pytest.approx(0.7)


def test_the_page_shows_the_files():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    files = [FILES[name].read_text(encoding="utf-8") for name in ("own_regularizer", "own_loss")]
    assert [block for block in blocks if not block.startswith(">>>")] == files  # doctests run as they are
