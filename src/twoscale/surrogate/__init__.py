"""Operators from field to field, the methods that build them, and the surrogate people use."""

from twoscale.surrogate.methods import METHODS, Method
from twoscale.surrogate.surrogate import Surrogate

__all__ = ["METHODS", "Method", "Surrogate"]
