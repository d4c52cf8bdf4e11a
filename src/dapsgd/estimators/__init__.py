"""The scikit-learn classes: they translate, and leave the work to :func:`dapsgd.solve` and :func:`dapsgd.path`."""

from .classifier import DAPClassifier
from .cv import DAPClassifierCV, DAPRegressorCV
from .regressor import DAPRegressor

__all__ = ["DAPClassifier", "DAPClassifierCV", "DAPRegressor", "DAPRegressorCV"]
