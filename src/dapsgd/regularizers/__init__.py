"""Regularisers: one a file; this is the registry.

A regulariser is a ``typing.NamedTuple`` with plain methods ``value(self, w)`` and ``prox(self, v, step, out)``, which
writes the minimiser over u of ``||u - v||^2 / (2 step) + h(u)`` to ``out``. ``v`` and ``out`` are C-contiguous arrays of
shape (p,) or (p, q) that share no memory, unless the term says that it is ``in_place``. A prox has no hidden state: many
threads call it at once.

Optional, for what only Python calls:

- ``bind(self, shape)``: another term, in the form that is compiled, for a parameter of this shape;
- ``lam_max(self, gradient)``: the smallest strength at which the regulariser alone decides the answer, given the gradient
  of the smooth part there;
- ``subgradient_bound(self, shape)``: the largest Euclidean norm of a subgradient;
- ``elementwise``: a property that says that every coordinate is treated alike and on its own, so that ``prox`` of a slice
  is the slice of ``prox``. TAP-SGD then parallelises over coordinates;
- ``in_place``: a property that says that ``out`` may be ``v`` itself, as it then is in DAP-SGD: an array less.
"""

from .box import Box
from .elastic_net import ElasticNet
from .fused_lasso import FusedLasso
from .group_lasso import GroupLasso
from .l1 import L1
from .non_negative import NonNegative
from .nuclear_norm import NuclearNorm
from .slope import Slope
from .sparse_group_lasso import SparseGroupLasso
from .zero import Zero

__all__ = [
    "ELSEWHERE",
    "L1",
    "REGULARIZERS",
    "Box",
    "ElasticNet",
    "FusedLasso",
    "GroupLasso",
    "NonNegative",
    "NuclearNorm",
    "Slope",
    "SparseGroupLasso",
    "Zero",
]

REGULARIZERS: dict[str, type] = {
    "zero": Zero,
    "l1": L1,
    "elastic_net": ElasticNet,
    "group_lasso": GroupLasso,
    "sparse_group_lasso": SparseGroupLasso,
    "fused_lasso": FusedLasso,
    "nuclear": NuclearNorm,
    "slope": Slope,
    "box": Box,
    "non_negative": NonNegative,
}

# What other packages and papers call them: what to write here instead.
ELSEWHERE = {
    "enet": "'elastic_net'",
    "elasticnet": "'elastic_net'",
    "glasso": "'group_lasso'",
    "group": "'group_lasso'",
    "l2": "'zero', with l2",
    "lasso": "'l1'",
    "low_rank": "'nuclear'",
    "none": "'zero'",
    "positive": "'non_negative'",
    "ridge": "'zero', with l2",
    "sgl": "'sparse_group_lasso'",
    "total_variation": "'fused_lasso'",
    "trace": "'nuclear'",
    "tv": "'fused_lasso'",
}
