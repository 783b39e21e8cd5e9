"""Operators from field to field, the methods that build them, and the surrogate people use."""

from twoscale.surrogate.methods import METHODS, Method
from twoscale.surrogate.surrogate import Surrogate
from twoscale.surrogate.together import fit_together

__all__ = ["METHODS", "Method", "Surrogate", "fit_together"]
