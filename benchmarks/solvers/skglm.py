import skglm  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/skglm_.py``."""

    name = "skglm"
    module = "skglm_"
    requirements = ["pip::skglm"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    parameters = {"variant": ["", "gram"]}  # noqa: RUF012
