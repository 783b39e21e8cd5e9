"""Two-scale localised PCA-Net: fast surrogates of PDE solution operators."""

from twoscale._version import __version__
from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.fields.grid import Grid, Space
from twoscale.fields.patches import PatchLayout
from twoscale.linalg.pca import RankRule
from twoscale.methods.recipes import METHODS
from twoscale.predictors import (
    FNO,
    MLP,
    Affine,
    AffineMLP,
    CodePredictor,
    Encoder,
    Kernel,
    Refinement,
    register_predictor,
)
from twoscale.problems import Darcy, DiffusionProblem, Poisson, Problem
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
    WholeField,
    register_representation,
)
from twoscale.search import fit_auto
from twoscale.surrogate import Surrogate, fit_together

__all__ = [
    "FNO",
    "METHODS",
    "MLP",
    "Affine",
    "AffineMLP",
    "BubblePCA",
    "Chain",
    "CodePredictor",
    "Conforming",
    "Darcy",
    "DiffusionProblem",
    "Encoder",
    "GlobalPCA",
    "Grid",
    "Kernel",
    "PatchLayout",
    "PatchPCA",
    "Poisson",
    "Problem",
    "RankRule",
    "Refinement",
    "Representation",
    "RestrictedPCA",
    "SkeletonPCA",
    "Space",
    "Surrogate",
    "ThreeScale",
    "TwoScale",
    "TwoscaleError",
    "TwoscaleWarning",
    "WholeField",
    "__version__",
    "fit_auto",
    "fit_together",
    "register_predictor",
    "register_representation",
]
