from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/numpy_fista.py``."""

    name = "numpy fista"
    module = "numpy_fista"
    requirements = ["numpy"]  # noqa: RUF012
    sampling_strategy = "iteration"
    parameters = {"variant": [""]}  # noqa: RUF012
