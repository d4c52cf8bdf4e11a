import celer  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/celer_.py``."""

    name = "celer"
    module = "celer_"
    requirements = ["pip::celer"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    parameters = {"variant": [""]}  # noqa: RUF012
