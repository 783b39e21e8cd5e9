"""Trust: how wrong predictions can be, and which inputs a surrogate knows."""

from twoscale.trust.band import NODES
from twoscale.trust.conformal import check_level
from twoscale.trust.coverage import LEVEL, Coverage
from twoscale.trust.trust import Trust

__all__ = ["LEVEL", "NODES", "Coverage", "Trust", "check_level"]
