from benchmark_utils import pose
from benchopt import BaseObjective


class Objective(BaseObjective):
    """(1/n) sum_i loss(x_i . w, y_i) + lam * penalty(w), lam a share of the smallest that makes the answer trivial."""

    name = "Regularised linear model"
    url = "https://arxiv.org/abs/1605.06619"
    requirements = ["numpy", "scipy"]  # noqa: RUF012
    min_benchopt_version = "1.6"
    parameters = {"penalty": ["l1", "group", "fused", "nuclear"], "loss": ["squared", "logistic"], "reg": [0.02]}  # noqa: RUF012
    sampling_strategy = "iteration"

    def skip(self, X, y, size=5, structure=None):
        """Skip what the data is not for."""
        if structure not in (None, self.penalty):
            return True, f"the data was drawn for {structure}"
        if (y.ndim == 2) != (self.penalty == "nuclear"):
            return True, "several targets go with the nuclear norm"
        if (self.loss == "logistic") != (set(map(float, y.ravel()[:1000])) == {-1.0, 1.0}):
            return True, "classes go with the logistic loss"
        if self.penalty == "group" and X.shape[1] % size:
            return True, f"groups of {size} do not divide {X.shape[1]} columns"
        return False, None

    def set_data(self, X, y, size=5, structure=None):
        """Pose the problem."""
        self.problem = pose(X, y, self.penalty, self.loss, size, self.reg)

    def get_one_result(self):
        """Return a result of the right shape."""
        import numpy as np

        return {"w": np.zeros(self.problem.spec.shape)}

    def evaluate_result(self, w):
        """Evaluate the objective in float64."""
        return {"value": self.problem.objective(w)}

    def get_objective(self):
        """Return what solvers get."""
        return {"problem": self.problem}
