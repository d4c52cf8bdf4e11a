import adelie  # noqa: F401
from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/adelie_.py``."""

    name = "adelie"
    module = "adelie_"
    requirements = ["pip::adelie"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    parameters = {"variant": ["", "path", "cov"]}  # noqa: RUF012
