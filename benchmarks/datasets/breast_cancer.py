import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale


class Dataset(BaseDataset):
    """The breast cancer data of scikit-learn: 569 rows, 30 columns in three groups, two classes. It comes with the package."""

    name = "breast cancer"
    requirements = ["scikit-learn"]  # noqa: RUF012

    def get_data(self):
        """Read."""
        X, y = load_breast_cancer(return_X_y=True)
        return {"X": scale(X), "y": np.where(y == 1, 1.0, -1.0), "size": 10}
