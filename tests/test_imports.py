"""What is imported, when: nothing that a first fit does not need, and what was put off as soon as somebody asks for it."""

import importlib
import subprocess
import sys
import threading

import pytest

from dapsgd._imports import put_off

LAZY = """
import importlib
def __getattr__(name):
    if name == "heavy":
        return importlib.import_module("lazy_package_of_tests.heavy")
    raise AttributeError(name)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that finds its module by itself, as SciPy does; the module says how often it was loaded."""
    folder = tmp_path / "lazy_package_of_tests"
    folder.mkdir()
    (folder / "__init__.py").write_text(LAZY)
    (folder / "heavy.py").write_text("import sys\nsys.heavy_loads = getattr(sys, 'heavy_loads', 0) + 1\nvalue = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "heavy_loads", 0, raising=False)
    yield "lazy_package_of_tests.heavy"
    for name in [name for name in sys.modules if name.startswith("lazy_package_of_tests")]:
        del sys.modules[name]


def test_a_module_that_was_put_off_is_loaded_when_it_is_used(package):
    with put_off(package):
        root = importlib.import_module("lazy_package_of_tests")
        importlib.import_module(package)
        assert sys.heavy_loads == 0
    assert package not in sys.modules
    assert root.heavy.value == 42
    assert sys.heavy_loads == 1


def test_whoever_uses_it_meanwhile_gets_it(package):
    found = []
    with put_off(package):
        held = importlib.import_module(package)
        thread = threading.Thread(target=lambda: found.append(importlib.import_module(package).value))
        thread.start()
        thread.join()
        assert sys.modules[package] is not held
    assert found == [42]
    assert (held.value, sys.heavy_loads) == (42, 1)
    assert sys.modules[package].value == 42  # the real one stays


def test_one_that_is_there_is_left_alone(package):
    there = importlib.import_module(package)
    with put_off(package):
        assert importlib.import_module(package) is there
    assert sys.modules[package] is there


def test_an_error_leaves_no_trace(package):
    with pytest.raises(ZeroDivisionError), put_off(package):
        raise ZeroDivisionError
    assert package not in sys.modules


def test_estimators_do_not_wait_for_statistics_which_others_still_have():
    code = (
        "import sys, dapsgd, dapsgd.estimators; dapsgd.DAPRegressor; assert 'scipy.stats' not in sys.modules;"
        "from sklearn.utils.fixes import _mode; print(_mode([1, 2, 2])[0].item());"
        "import scipy.stats; print(scipy.stats.norm.cdf(0.0).item())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (run.stdout.split(), run.stderr) == (["2", "0.5"], "")


def test_statistics_that_were_there_stay_the_same_module():
    code = "import scipy.stats as s, sys, dapsgd; dapsgd.DAPRegressor; assert sys.modules['scipy.stats'] is s"
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 0
