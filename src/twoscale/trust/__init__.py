"""Trust: how wrong predictions can be, which inputs are known, and how to be less wrong."""

from twoscale.trust.band import NODES
from twoscale.trust.certificate import Certificate, certify
from twoscale.trust.coverage import LEVEL, Coverage
from twoscale.trust.difficulty import is_elliptic
from twoscale.trust.input_range import InputRange
from twoscale.trust.polish import Polished, polish
from twoscale.trust.statistics import set_apart
from twoscale.trust.trust import Trust

__all__ = [
    "LEVEL",
    "NODES",
    "Certificate",
    "Coverage",
    "InputRange",
    "Polished",
    "Trust",
    "certify",
    "is_elliptic",
    "polish",
    "set_apart",
]
