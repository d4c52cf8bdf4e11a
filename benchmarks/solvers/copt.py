import copt  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/copt_.py``."""

    name = "copt"
    module = "copt_"
    requirements = ["pip::copt"]  # noqa: RUF012
    sampling_strategy = "iteration"
    parameters = {"variant": [""]}  # noqa: RUF012
