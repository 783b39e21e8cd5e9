"""Trust: proven bounds of a prediction's error, and steps of the solver that make it smaller."""

from twoscale.trust.certificate import Certificate, certify
from twoscale.trust.polish import Polished, polish

__all__ = ["Certificate", "Polished", "certify", "polish"]
