"""Maps from input codes to output codes: the only thing that is learned."""

from twoscale.predictors.affine import AffineFit, CodePairs, fit_affine
from twoscale.predictors.kernel import KERNELS, KernelRegression, fit_kernel

__all__ = [
    "KERNELS",
    "AffineFit",
    "CodePairs",
    "KernelRegression",
    "fit_affine",
    "fit_kernel",
]
