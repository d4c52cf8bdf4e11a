"""The scikit-learn classes: they translate, and leave the work to :func:`dapsgd.solve` and :func:`dapsgd.path`."""

from .._imports import put_off, without_collection

# All of SciPy's statistics for one function, which scikit-learn calls if it has to find the most frequent value.
with without_collection(), put_off("scipy.stats"):
    from .classifier import DAPClassifier
    from .cv import DAPClassifierCV, DAPRegressorCV
    from .regressor import DAPRegressor

__all__ = ["DAPClassifier", "DAPClassifierCV", "DAPRegressor", "DAPRegressorCV"]
