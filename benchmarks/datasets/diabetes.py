from benchopt import BaseDataset
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, scale


class Dataset(BaseDataset):
    """The diabetes data of scikit-learn, with all products: 442 rows, 65 columns. It comes with the package."""

    name = "diabetes"
    requirements = ["scikit-learn"]  # noqa: RUF012

    def get_data(self):
        """Read."""
        X, y = load_diabetes(return_X_y=True)
        return {"X": scale(PolynomialFeatures(2, include_bias=False).fit_transform(X)), "y": scale(y), "size": 5}
