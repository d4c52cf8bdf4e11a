"""Install a wheel into new environments of several Pythons, and try it in each: ``python .ci/smoke.py dist/NAME.whl``.

Interpreters are found as ``python3.11`` and so on, or where pyenv keeps them. One that is not there is left out, and said so;
if none is there, that is a failure.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")

TRIAL = """
import importlib.resources, importlib.metadata, sys
import numpy as np
import dapsgd as ds
assert "site-packages" in ds.__file__, ds.__file__
assert ds.__version__ == importlib.metadata.version("dapsgd")
assert importlib.resources.files("dapsgd").joinpath("py.typed").is_file()
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 30))
y = X @ np.repeat([0.0, 2.0, 0.5], 10) + 0.1 * rng.standard_normal(200)
problem = ds.Problem(X, y, regularizer=ds.FusedLasso(0.1), l2=0.01)
best = ds.solve(problem, "fista", tol=1e-8)
run = ds.solve(problem, "dap-sgd", workers=2, step=ds.InverseTime(200.0, 0.1), max_iter=4000, tol=0, seed=0)
assert best.objective <= run.objective < 1.05 * best.objective, (run.objective, best.objective)
model = ds.DAPRegressorCV("l1", alphas=5, cv=2).fit(X, y)
assert model.score(X, y) > 0.9
assert "Fitted" in model._repr_mimebundle_()["text/html"]
missing = [name for name in ds.__all__ if not hasattr(ds, name)]
assert not missing, missing
print("python", sys.version.split()[0], "numpy", np.__version__, "dapsgd", ds.__version__, "works")
"""


def find(version: str) -> str | None:
    """Return an interpreter of a version that runs."""
    homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for candidate in [shutil.which(f"python{version}"), *map(str, reversed(homes))]:
        if candidate and subprocess.run([candidate, "-c", "import venv"], capture_output=True).returncode == 0:
            return candidate
    return None


def trial(python: str, wheel: Path) -> bool:
    """Install and try."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        inside = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        install = [inside / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel.absolute()]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if subprocess.run(install, env=environment, stderr=subprocess.DEVNULL).returncode:
            print(f"{python}: the wheel does not install")
            return False
        commands = ([inside / "python", "-W", "error", "-c", TRIAL], [inside / "dapsgd", "--version"])
        return all(subprocess.run(command, env=environment, cwd=folder).returncode == 0 for command in commands)


def main() -> None:
    """Try all versions."""
    (wheel,) = map(Path, sys.argv[1:])
    found = {version: find(version) for version in VERSIONS}
    for version, python in found.items():
        if python is None:
            print(f"python {version}: not on this machine, left out")
    outcomes = [trial(python, wheel) for python in found.values() if python]
    if not outcomes or not all(outcomes):
        sys.exit("the smoke test failed" if outcomes else "none of the interpreters is on this machine")


if __name__ == "__main__":
    main()
