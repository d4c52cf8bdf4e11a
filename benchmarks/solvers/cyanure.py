import cyanure  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/cyanure_.py``."""

    name = "cyanure"
    module = "cyanure_"
    requirements = ["pip::cyanure"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    parameters = {"variant": [""]}  # noqa: RUF012
