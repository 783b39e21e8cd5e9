"""Maps from input codes to output codes: the only thing that is learned."""

from twoscale.predictors.affine import AffineFit, fit_affine
from twoscale.predictors.base import CodePredictor, get_predictor, predictors
from twoscale.predictors.closed_form import Affine, AffineMLP, Kernel
from twoscale.predictors.cost import PredictorCost, Probe, Sizes
from twoscale.predictors.encoder import Encoder
from twoscale.predictors.kernel import KERNELS, KernelRegression, fit_kernel
from twoscale.predictors.mlp import MLP
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
