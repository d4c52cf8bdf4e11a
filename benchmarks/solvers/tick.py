import tick  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/tick_.py``."""

    name = "tick"
    module = "tick_"
    requirements = ["pip::tick"]  # noqa: RUF012
    sampling_strategy = "iteration"
    parameters = {"variant": ["", "svrg-1", "svrg-all"]}  # noqa: RUF012
