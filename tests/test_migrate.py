"""Every row of the page on migration: both calls, as printed, reach the same objective. A missing package is skipped."""

import importlib
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import dapsgd as ds

PAGE = Path(__file__).parent.parent / "docs" / "migrate.md"
PACKAGES = {"scikit-learn": "sklearn", "skglm": "skglm", "celer": "celer", "lightning": "lightning", "cyanure": "cyanure"}


def rows():
    """Yield package, data, the call there, the call here."""
    found = []
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title = section.splitlines()[0]
        for line in re.findall(r"^\| `X, (\w+)` \| `(.*)` \| `(.*)` \|$", section, re.MULTILINE):
            found.append((title, *line))
    return found


ROWS = rows()


@pytest.fixture(scope="module")
def names():
    rng = np.random.default_rng(0)
    n, p = 120, 12
    X = np.asfortranarray(rng.standard_normal((n, p)))
    w = np.repeat([1.0, 0.0, -0.5], 4)
    signal = X @ w
    return {
        "np": np,
        "ds": ds,
        "n": n,
        "p": p,
        "X": X,
        "y": signal + 0.3 * rng.standard_normal(n),
        "Y": X @ np.outer(w, [1.0, -1.0, 0.5]) + 0.3 * rng.standard_normal((n, 3)),
        "c": np.where(signal + rng.logistic(size=n) > 0.0, 1, -1),
        "counts": rng.poisson(np.exp(0.3 * signal)).astype(float),
    }


def there_of(package, call, X, target, names):
    """Fit the other package's model; return coefficients as (p,) or (p, q), and the intercept."""
    scope = dict(names)
    if package == "sklearn":
        exec("from sklearn.linear_model import *", scope)
    else:
        scope[package] = importlib.import_module(package)
        for module in ("datafits", "penalties", "estimators", "regression", "classification"):
            if importlib.util.find_spec(f"{package}.{module}"):
                importlib.import_module(f"{package}.{module}")
    model = eval(call, scope)
    parameters = model.get_params()
    tight = {"tol": 1e-10, "max_iter": 20_000} if "tol=" not in call and package not in ("lightning",) else {}
    model.set_params(**{name: value for name, value in tight.items() if name in parameters and f"{name}=" not in call})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their own
        model.fit(X, target)
    q = target.shape[1] if target.ndim == 2 else 0
    coef = np.asarray(model.coef_, dtype=float)
    coef = (coef.reshape(q, -1).T if coef.size == q * X.shape[1] else coef) if q else coef.ravel()
    intercept = np.asarray(getattr(model, "intercept_", 0.0), dtype=float) if parameters.get("fit_intercept", False) else 0.0
    return coef, intercept if q else np.asarray(intercept).ravel().sum()


def here_of(call, X, target, names):
    """Fit ours; return the problem and its objective at our answer."""
    thing = eval(call, dict(names))
    if isinstance(thing, ds.Problem):
        result = ds.solve(thing, tol=1e-10)
        return thing, result.objective
    thing.set_params(tol=1e-9).fit(X, target)
    classes = hasattr(thing, "classes_")
    loss = ds.Logistic() if classes else thing._make_loss()
    problem = thing._pose(X, target.astype(float), loss, None)
    return problem.with_regularizer(thing._penalty(thing.alpha, problem.shape)), thing.objective_


def test_the_page_has_rows_for_every_package():
    assert {row[0] for row in ROWS} == set(PACKAGES)
    assert len(ROWS) == len(re.findall(r"^\| `X", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) > 20


@pytest.mark.parametrize(("title", "data", "there", "here"), ROWS, ids=[f"{row[0]}-{k}" for k, row in enumerate(ROWS)])
def test_row(title, data, there, here, names):
    package = PACKAGES[title]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(package, exc_type=ImportError)
    X, target = names["X"], names[data]
    coef, intercept = there_of(package, there, X, target, names)
    problem, ours = here_of(here, X, target, names)
    theirs = problem.objective(coef, intercept)
    assert theirs == pytest.approx(ours, rel=1e-5)
    nothing = problem.objective(np.zeros(problem.shape))
    assert ours < 0.97 * nothing  # the answer is not trivial
    if problem.regularizer != ds.Zero() and problem.lam_max() < np.inf:
        assert problem.penalty(problem.pack(coef, intercept)) > 0.0
