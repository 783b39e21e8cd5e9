"""Two-scale localised PCA-Net: fast surrogates of PDE solution operators."""

from twoscale._version import __version__
from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.fields.patches import PatchLayout
from twoscale.linalg.pca import RankRule
from twoscale.problems import Darcy, Poisson, Problem
from twoscale.representation import (
    BubblePCA,
    Chain,
    Conforming,
    GlobalPCA,
    PatchPCA,
    Representation,
    RestrictedPCA,
    SkeletonPCA,
    ThreeScale,
    TwoScale,
)
from twoscale.search import fit_auto
from twoscale.surrogate import (
    METHODS,
    CodePredictor,
    Surrogate,
    fit_together,
    register_predictor,
)

__all__ = [
    "METHODS",
    "BubblePCA",
    "Chain",
    "CodePredictor",
    "Conforming",
    "Darcy",
    "GlobalPCA",
    "Grid",
    "PatchLayout",
    "PatchPCA",
    "Poisson",
    "Problem",
    "RankRule",
    "Representation",
    "RestrictedPCA",
    "SkeletonPCA",
    "Surrogate",
    "ThreeScale",
    "TwoScale",
    "TwoscaleError",
    "__version__",
    "fit_auto",
    "fit_together",
    "register_predictor",
]
