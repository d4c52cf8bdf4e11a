"""No regulariser."""

from typing import Any, NamedTuple

import numpy as np

from .._loops import copy


class Zero(NamedTuple):
    """No regulariser: :math:`h = 0`. The prox is the identity.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.Zero(), [1.0, -2.0], step=1.0)
    array([ 1., -2.])
    """

    lam: float = 0.0

    @property
    def elementwise(self) -> bool:
        """Every coordinate is treated alike and on its own."""
        return True

    @property
    def in_place(self) -> bool:
        """The prox may overwrite its argument."""
        return True

    def value(self, w: np.ndarray[Any, Any]) -> float:
        """Return 0."""
        return 0.0

    def prox(self, v: np.ndarray[Any, Any], step: float, out: np.ndarray[Any, Any]) -> None:
        """Copy ``v`` to ``out``."""
        copy(v, out)

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        """Return 0, the norm of the only subgradient."""
        return 0.0
