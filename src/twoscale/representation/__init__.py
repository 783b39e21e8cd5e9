"""Fields to codes and back: affine, fitted once, frozen."""

from twoscale.representation.base import Representation, register_representation
from twoscale.representation.block_pca import BlockPCA
from twoscale.representation.chain import Chain, known_stages, single_solver, stage_rule
from twoscale.representation.conforming import BubblePCA, Conforming, SkeletonPCA
from twoscale.representation.field_pca import GlobalPCA, PatchPCA, RestrictedPCA
from twoscale.representation.scales import ThreeScale, TwoScale
from twoscale.representation.whole_field import Normaliser, WholeField
from twoscale.representation.with_parameters import WithParameters

__all__ = [
    "BlockPCA",
    "BubblePCA",
    "Chain",
    "Conforming",
    "GlobalPCA",
    "Normaliser",
    "PatchPCA",
    "Representation",
    "RestrictedPCA",
    "SkeletonPCA",
    "ThreeScale",
    "TwoScale",
    "WholeField",
    "WithParameters",
    "known_stages",
    "register_representation",
    "single_solver",
    "stage_rule",
]
