"""What the files of the benchopt benchmark share: the problems and the adapters of ``benchmarks/peers``."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

import problems

__all__ = ["PeerSolver", "pose", "problems"]


def pose(X, y, penalty, loss, size, reg):
    """Make the problem of ``benchmarks/peers`` for this data; ``reg`` is a share of the largest useful strength."""
    n, p = X.shape
    targets = y.shape[1] if y.ndim == 2 else 1
    spec = problems.Spec("benchopt", penalty, n, p, targets, loss, reg, size=size, nonzeros=int(not isinstance(X, np.ndarray)))
    return problems.Problem(spec, X, y, float(reg * problems.lam_max(spec, X, y)))


class PeerSolver(BaseSolver):
    """A solver that is an adapter in ``benchmarks/peers/solvers``: a subclass names it."""

    module = ""
    parameters = {"variant": [""]}  # noqa: RUF012

    def __init_subclass__(cls, **kwargs):
        """Be patient: one tolerance after the other may give the same answer, before a tighter one gives a better one."""
        super().__init_subclass__(**kwargs)
        cls.stopping_criterion = SufficientProgressCriterion(patience=10, strategy=cls.sampling_strategy)

    def skip(self, problem):
        """Skip what the package does not solve."""
        reason = import_module(f"solvers.{self.module}").refuses(problem.spec, self.variant)
        return bool(reason), reason or None

    def set_objective(self, problem):
        """Bring the data into the layout that the package likes."""
        adapter = import_module(f"solvers.{self.module}")
        self.shape = problem.spec.shape
        self.loosest = adapter.BUDGETS[0]
        self.solve = adapter.prepare(problem, self.variant)

    def warm_up(self):
        """Compile."""
        self.solve(self.loosest)

    def run(self, budget):
        """Solve from zero, with a tolerance or a number of iterations."""
        nothing = budget == 0 if self.sampling_strategy == "iteration" else budget > 1.0
        self.w = np.zeros(self.shape) if nothing else self.solve(budget)

    def get_result(self):
        """Return the coefficients."""
        return {"w": self.w}
