"""The surrogate that users hold: fit, predict, evaluate, save, load."""

from twoscale.methods.recipes import METHODS, Method
from twoscale.predictors.base import CodePredictor
from twoscale.surrogate.assessment import Assessment, Flags
from twoscale.surrogate.surrogate import Surrogate
from twoscale.surrogate.together import fit_together

__all__ = [
    "METHODS",
    "Assessment",
    "CodePredictor",
    "Flags",
    "Method",
    "Surrogate",
    "fit_together",
]
