from benchmark_utils import problems
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Data with the structure that a penalty looks for; as in ``benchmarks/peers/problems.py``."""

    name = "simulated"
    parameters = {  # noqa: RUF012
        "penalty": ["l1", "group", "fused", "nuclear"],
        "loss": ["squared", "logistic"],
        "n, p": [(1000, 200)],
        "rho": [0.5],
        "seed": [0],
    }
    test_parameters = {"n, p": [(100, 20)]}  # noqa: RUF012

    def get_data(self):
        """Draw."""
        targets = 10 if self.penalty == "nuclear" else 1
        active = min(5, self.p // 10)
        spec = problems.Spec(
            "benchopt", self.penalty, self.n, self.p, targets, self.loss, rho=self.rho, active=active, seed=self.seed
        )
        problem = problems.draw(spec)
        return {"X": problem.X, "y": problem.y, "size": spec.size, "structure": self.penalty}
