"""More than one machine: the parameter server of the paper on Ray, with as many masters as asked for.

Ray itself is imported only when a run starts.
"""

from .config import Ray
from .statistics import ClusterStatistics

__all__ = ["ClusterStatistics", "Ray"]
