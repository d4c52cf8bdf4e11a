"""Algorithms: a name for one combination of a gradient estimate and an update. This table is the whole story."""

from __future__ import annotations

from typing import Any, NamedTuple

from .gradients import MiniBatch, Share, Snapshot
from .updates import Aggregated, Coupled, Decoupled

__all__ = ["ALGORITHMS", "Algorithm"]


class Algorithm(NamedTuple):
    """One line of the table."""

    estimator: Any  # how grad f is estimated; None: computed in full
    update: Any  # who runs the prox
    serial: bool  # for one worker only
    summary: str


ALGORITHMS: dict[str, Algorithm] = {
    "p-sgd": Algorithm(MiniBatch, Coupled, True, "proximal SGD, Equation (2)"),
    "tap-sgd": Algorithm(MiniBatch, Coupled, False, "asynchronous, the master runs the prox, Equation (3)"),
    "dap-sgd": Algorithm(MiniBatch, Decoupled, False, "asynchronous, the workers run the prox, Equation (8)"),
    "tap-svrg": Algorithm(Snapshot, Coupled, False, "TAP-SGD with variance reduction: linear convergence"),
    "dap-svrg": Algorithm(Snapshot, Decoupled, False, "DAP-SGD with variance reduction: linear convergence"),
    "dave-rpg": Algorithm(Share, Aggregated, False, "every worker on its own share of the rows: no step depends on a delay"),
    "fista": Algorithm(None, None, True, "accelerated full gradients with restart: the reference for x*"),
    "gram": Algorithm(None, None, True, "accelerated gradients from the Gram matrix: squared loss, few columns"),
    "working-set": Algorithm(None, None, True, "Newton steps on the coordinates that are not zero: L1, groups"),
}
