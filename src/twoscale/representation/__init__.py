"""Fields to codes and back: affine, fitted once, frozen."""

from twoscale.representation.base import Representation
from twoscale.representation.block_pca import BlockPCA
from twoscale.representation.chain import Chain, ThreeScale, TwoScale
from twoscale.representation.conforming import BubblePCA, Conforming, SkeletonPCA
from twoscale.representation.field_pca import GlobalPCA, PatchPCA, RestrictedPCA

__all__ = [
    "BlockPCA",
    "BubblePCA",
    "Chain",
    "Conforming",
    "GlobalPCA",
    "PatchPCA",
    "Representation",
    "RestrictedPCA",
    "SkeletonPCA",
    "ThreeScale",
    "TwoScale",
]
