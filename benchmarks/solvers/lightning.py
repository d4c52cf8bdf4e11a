import lightning  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/lightning_.py``."""

    name = "lightning"
    module = "lightning_"
    requirements = ["pip::sklearn-contrib-lightning"]  # noqa: RUF012
    sampling_strategy = "iteration"
    parameters = {"variant": ["", "cd"]}  # noqa: RUF012
