"""Maps from input codes to output codes: the only thing that is learned."""

from twoscale.predictors.affine import AffineFit, CodePairs, fit_affine
from twoscale.predictors.encoder import FieldEncoder
from twoscale.predictors.kernel import KERNELS, KernelRegression, fit_kernel
from twoscale.predictors.mlp import MLP, count_parameters

__all__ = [
    "KERNELS",
    "MLP",
    "AffineFit",
    "CodePairs",
    "FieldEncoder",
    "KernelRegression",
    "count_parameters",
    "fit_affine",
    "fit_kernel",
]
