"""Fields to codes and back: affine, fitted once, frozen."""

from twoscale.representation.base import Representation
from twoscale.representation.block_pca import BlockPCA, GlobalPCA, PatchPCA, RestrictedPCA
from twoscale.representation.chain import Chain, ThreeScale, TwoScale

__all__ = [
    "BlockPCA",
    "Chain",
    "GlobalPCA",
    "PatchPCA",
    "Representation",
    "RestrictedPCA",
    "ThreeScale",
    "TwoScale",
]
