"""Maps from input codes to output codes: the only thing that is learned."""

from twoscale.predictors.affine import Affine, AffineFit, fit_affine
from twoscale.predictors.base import (
    CodePredictor,
    PredictorCost,
    Probe,
    Sizes,
    get_predictor,
    predictors,
)
from twoscale.predictors.encoder import Encoder
from twoscale.predictors.kernel import KERNELS, Kernel, KernelRegression, fit_kernel
from twoscale.predictors.mlp import MLP, AffineMLP
from twoscale.predictors.paper_networks import FNO, Refinement
from twoscale.predictors.spectral_filter import SpectralFilter

__all__ = [
    "FNO",
    "KERNELS",
    "MLP",
    "Affine",
    "AffineFit",
    "AffineMLP",
    "CodePredictor",
    "Encoder",
    "Kernel",
    "KernelRegression",
    "PredictorCost",
    "Probe",
    "Refinement",
    "Sizes",
    "SpectralFilter",
    "fit_affine",
    "fit_kernel",
    "get_predictor",
    "predictors",
]
