"""Regularised linear models by decoupled asynchronous proximal stochastic gradient descent.

>>> import dapsgd as ds
>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((100, 20))
>>> y = X @ np.repeat([0.0, 3.0], 10)
>>> problem = ds.Problem(X, y, loss=ds.Squared(), regularizer=ds.FusedLasso(0.5))
>>> ds.solve(problem, tol=1e-8).x.round(2)[[0, 9, 10, 19]]
array([0.03, 0.03, 2.98, 2.98])
"""

from typing import TYPE_CHECKING, Any

from . import theory
from ._monitor import Checkup
from ._terms import prox
from ._trials import check_regularizer
from .algorithms import ALGORITHMS
from .checkpoints import Checkpoint
from .errors import (
    CheckpointError,
    ClusterError,
    CompilationError,
    DapsgdError,
    DivergenceError,
    FileFormatError,
    NumbersTooLargeError,
    OutOfMemoryError,
)
from .losses import LOSSES, Huber, Logistic, Multinomial, Poisson, Squared, SquaredHinge
from .partitions import Partitions
from .path import Path, path
from .problem import Problem
from .regularizers import (
    L1,
    REGULARIZERS,
    Box,
    ElasticNet,
    FusedLasso,
    GroupLasso,
    NonNegative,
    NuclearNorm,
    Slope,
    SparseGroupLasso,
    Zero,
)
from .result import Result, Schedule, Trace
from .runtimes import (
    ClusterStatistics,
    Exponential,
    Fixed,
    HeavyTailed,
    Ray,
    Recorded,
    Replay,
    Serial,
    Simulated,
    Straggler,
    Threads,
)
from .solve import solve
from .steps import Constant, DelayAdaptive, InverseTime, Theorem1, Theorem2

if TYPE_CHECKING:
    from . import callbacks, io, models
    from .estimators import DAPClassifier, DAPClassifierCV, DAPRegressor, DAPRegressorCV

__version__ = "0.1.0"

__all__ = [
    "ALGORITHMS",
    "L1",
    "LOSSES",
    "REGULARIZERS",
    "Box",
    "Checkpoint",
    "CheckpointError",
    "Checkup",
    "ClusterError",
    "ClusterStatistics",
    "CompilationError",
    "Constant",
    "DAPClassifier",
    "DAPClassifierCV",
    "DAPRegressor",
    "DAPRegressorCV",
    "DapsgdError",
    "DelayAdaptive",
    "DivergenceError",
    "ElasticNet",
    "Exponential",
    "FileFormatError",
    "Fixed",
    "FusedLasso",
    "GroupLasso",
    "HeavyTailed",
    "Huber",
    "InverseTime",
    "Logistic",
    "Multinomial",
    "NonNegative",
    "NuclearNorm",
    "NumbersTooLargeError",
    "OutOfMemoryError",
    "Partitions",
    "Path",
    "Poisson",
    "Problem",
    "Ray",
    "Recorded",
    "Replay",
    "Result",
    "Schedule",
    "Serial",
    "Simulated",
    "Slope",
    "SparseGroupLasso",
    "Squared",
    "SquaredHinge",
    "Straggler",
    "Theorem1",
    "Theorem2",
    "Threads",
    "Trace",
    "Zero",
    "callbacks",
    "check_regularizer",
    "io",
    "models",
    "path",
    "prox",
    "solve",
    "theory",
]

_MODULES = ("callbacks", "io", "models")
_ESTIMATORS = ("DAPClassifier", "DAPClassifierCV", "DAPRegressor", "DAPRegressorCV")


def __getattr__(name: str) -> Any:
    """Import the estimators and files when one is asked for: scikit-learn takes longer to import than all the rest."""
    if name in _MODULES:
        from importlib import import_module

        return import_module(f".{name}", __name__)
    if name in _ESTIMATORS:
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, which are what a shell offers to complete."""
    return sorted([*__all__, "__doc__", "__version__"])
