"""The paper's experiments, and some beyond it: what ``dapsgd reproduce`` runs."""

from ._tasks import Claim, Settings
from .reproduce import PARTS, reproduce

__all__ = ["PARTS", "Claim", "Settings", "reproduce"]
