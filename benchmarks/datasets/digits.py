import numpy as np
from benchopt import BaseDataset
from sklearn.datasets import load_digits


class Dataset(BaseDataset):
    """The digits of scikit-learn: 1797 images of 8 x 8; even against odd, or all ten as targets. They come with the package."""

    name = "digits"
    requirements = ["scikit-learn"]  # noqa: RUF012
    parameters = {"targets": ["parity", "all"]}  # noqa: RUF012

    def get_data(self):
        """Read."""
        X, digit = load_digits(return_X_y=True)
        X = X / 16.0 - (X / 16.0).mean(axis=0)
        y = np.where(digit % 2 == 0, 1.0, -1.0) if self.targets == "parity" else np.eye(10)[digit] - 0.1
        return {"X": X, "y": y, "size": 8}
