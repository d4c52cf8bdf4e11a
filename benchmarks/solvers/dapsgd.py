from benchmark_utils import PeerSolver

import dapsgd  # noqa: F401


class Solver(PeerSolver):
    """See ``benchmarks/peers/solvers/dapsgd_.py``."""

    name = "dapsgd"
    module = "dapsgd_"
    requirements = ["pip::dapsgd"]  # noqa: RUF012
    sampling_strategy = "tolerance"
    parameters = {"variant": ["", "rows", "one", "dap-svrg-1", "dap-svrg-2"]}  # noqa: RUF012
