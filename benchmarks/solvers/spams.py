import spams  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/spams_.py``."""

    name = "SPAMS"
    module = "spams_"
    requirements = ["pip::spams-bin"]  # noqa: RUF012
    sampling_strategy = "iteration"
    parameters = {"variant": ["", "gram"]}  # noqa: RUF012
