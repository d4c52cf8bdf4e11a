"""Cross-validation."""

from .classifier import DAPClassifier
from .regressor import DAPRegressor


class DAPRegressorCV(DAPRegressor):
    """To come."""


class DAPClassifierCV(DAPClassifier):
    """To come."""
