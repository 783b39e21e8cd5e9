"""Two-scale localised PCA-Net: fast surrogates of PDE solution operators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from twoscale._version import __version__
from twoscale.errors import TwoscaleError, TwoscaleWarning

if TYPE_CHECKING:
    from twoscale.domain.grid import Grid
    from twoscale.domain.patches import PatchLayout
    from twoscale.domain.space import Space
    from twoscale.math.pca import RankRule
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
        SpectralFilter,
        register_predictor,
    )
    from twoscale.problems import (
        CNOPoisson,
        CNOWave,
        Darcy,
        DarcyFNO,
        DiffusionProblem,
        Helmholtz,
        NavierStokes,
        Poisson,
        Problem,
    )
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
        Transformed,
        TwoScale,
        WholeField,
        register_representation,
    )
    from twoscale.search import fit_auto
    from twoscale.surrogate import Assessment, Flags, Surrogate, fit_together
    from twoscale.trust import Certificate, Polished, certify, polish

_MODULES = {
    "domain.cuts": ("Axis",),
    "domain.grid": ("Grid",),
    "domain.space": ("Space",),
    "domain.patches": ("PatchLayout",),
    "math.pca": ("RankRule",),
    "methods.recipes": ("METHODS",),
    "predictors": (
        "FNO",
        "MLP",
        "Affine",
        "AffineMLP",
        "CodePredictor",
        "Encoder",
        "Kernel",
        "Refinement",
        "SpectralFilter",
        "register_predictor",
    ),
    "problems": (
        "CNOPoisson",
        "CNOWave",
        "Darcy",
        "DarcyFNO",
        "DiffusionProblem",
        "Helmholtz",
        "NavierStokes",
        "Poisson",
        "Problem",
    ),
    "representation": (
        "BubblePCA",
        "Chain",
        "Conforming",
        "GlobalPCA",
        "PatchPCA",
        "Representation",
        "RestrictedPCA",
        "SkeletonPCA",
        "ThreeScale",
        "Transformed",
        "TwoScale",
        "WholeField",
        "register_representation",
    ),
    "search": ("fit_auto",),
    "surrogate": ("Assessment", "Flags", "Surrogate", "fit_together"),
    "trust": ("Certificate", "Polished", "certify", "polish"),
}
"""Where the public names are. A module is imported when one of its names is first used."""

_WHERE = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "FNO",
    "METHODS",
    "MLP",
    "Affine",
    "AffineMLP",
    "Assessment",
    "BubblePCA",
    "CNOPoisson",
    "CNOWave",
    "Certificate",
    "Chain",
    "CodePredictor",
    "Conforming",
    "Darcy",
    "DarcyFNO",
    "DiffusionProblem",
    "Encoder",
    "Flags",
    "GlobalPCA",
    "Grid",
    "Helmholtz",
    "Kernel",
    "NavierStokes",
    "PatchLayout",
    "PatchPCA",
    "Poisson",
    "Polished",
    "Problem",
    "RankRule",
    "Refinement",
    "Representation",
    "RestrictedPCA",
    "SkeletonPCA",
    "Space",
    "SpectralFilter",
    "Surrogate",
    "ThreeScale",
    "Transformed",
    "TwoScale",
    "TwoscaleError",
    "TwoscaleWarning",
    "WholeField",
    "__version__",
    "certify",
    "fit_auto",
    "fit_together",
    "polish",
    "register_predictor",
    "register_representation",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'twoscale' has no attribute '{name}'")
    value = getattr(import_module(f"twoscale.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
