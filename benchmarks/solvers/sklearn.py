import sklearn  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/sklearn_.py``."""

    name = "scikit-learn"
    module = "sklearn_"
    requirements = ["scikit-learn"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    parameters = {"variant": ["", "gram", "saga"]}  # noqa: RUF012
