"""Fields to codes and back: affine, fitted once, frozen."""

from twoscale.representation.as_method import AsMethod, CodeGrowth
from twoscale.representation.base import Representation
from twoscale.representation.block_pca import BlockPCA
from twoscale.representation.chain import Chain, known_stages, pca_stages, single_solver, stage_rule
from twoscale.representation.conforming import BubblePCA, Conforming, SkeletonPCA
from twoscale.representation.field_pca import GlobalPCA, PatchPCA, RestrictedPCA
from twoscale.representation.parameter_scale import ParameterScale
from twoscale.representation.scales import ThreeScale, TwoScale
from twoscale.representation.transformed import TRANSFORMS, Transformed, read_transform
from twoscale.representation.whole_field import NoFields, Normaliser, WholeField

__all__ = [
    "TRANSFORMS",
    "AsMethod",
    "BlockPCA",
    "BubblePCA",
    "Chain",
    "CodeGrowth",
    "Conforming",
    "GlobalPCA",
    "NoFields",
    "Normaliser",
    "ParameterScale",
    "PatchPCA",
    "Representation",
    "RestrictedPCA",
    "SkeletonPCA",
    "ThreeScale",
    "Transformed",
    "TwoScale",
    "WholeField",
    "known_stages",
    "pca_stages",
    "read_transform",
    "single_solver",
    "stage_rule",
]
