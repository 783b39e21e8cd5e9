"""Maps from input codes to output codes: the only thing that is learned."""

from twoscale.predictors.affine import AffineFit, CodePairs, fit_affine
from twoscale.predictors.base import CodePredictor, ImagePairs
from twoscale.predictors.closed_form import Affine, AffineMLP, Kernel
from twoscale.predictors.encoder import Encoder
from twoscale.predictors.kernel import KERNELS, KernelRegression, fit_kernel
from twoscale.predictors.mlp import MLP
from twoscale.predictors.paper_networks import FNO, Refinement
from twoscale.predictors.registry import PREDICTORS, get_predictor, register_predictor
from twoscale.predictors.spectral_filter import SpectralFilter

__all__ = [
    "FNO",
    "KERNELS",
    "MLP",
    "PREDICTORS",
    "Affine",
    "AffineFit",
    "AffineMLP",
    "CodePairs",
    "CodePredictor",
    "Encoder",
    "ImagePairs",
    "Kernel",
    "KernelRegression",
    "Refinement",
    "SpectralFilter",
    "fit_affine",
    "fit_kernel",
    "get_predictor",
    "register_predictor",
]
