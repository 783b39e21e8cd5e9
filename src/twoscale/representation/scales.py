"""The chains of a coarse PCA and PCAs of patches: the paper's two scales, and three."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from twoscale.math.pca import RankRule
from twoscale.representation.as_method import CODES, AsMethod, CodeGrowth, coarse_code
from twoscale.representation.base import CodeSize, FewFeatures, Patches, Solver
from twoscale.representation.chain import Chain, stage_rule, stage_solvers
from twoscale.representation.field_pca import PatchPCA, RestrictedPCA
from twoscale.settings import pair, share, whole

CoarseFactor = Annotated[int, whole("nodes per side of a cell of the coarse grid")]
CoarseComponents = Annotated[int | None, whole("coarse modes kept; with coarse_variance, at most")]
CoarseVariance = Annotated[
    float | None, share("share of variance kept by the coarse modes, or none")
]
ResidualVariance = Annotated[float, share("share of variance kept by each residual patch")]


class TwoScale(Chain):
    """The paper's representation: one coarse global PCA, then local PCAs of the residual.

    Parameters
    ----------
    patches
        Patches per axis (rows, columns) of the residual, (4, 4) by default.
    coarse_factor
        Nodes per side of a cell of the coarse grid, 4 by default.
    coarse_components, coarse_variance
        Modes kept on the coarse grid, 10 by default, and the share of variance they should reach,
        none by default. With both, as many as the variance needs, and at most `coarse_components`.
    few_features
        Whether the coarse grid must have fewer values than there are training fields: the paper's
        rule, and the default.
    residual_variance
        Share of the residual's variance that each patch keeps, 0.995 by default.
    solver
        PCA algorithm of all stages: "randomized" (default), "covariance", "full", or "hybrid":
        "randomized" on the coarse grid and "full" on patches.
    code_size
        Modes kept in all. The patches share what the coarse modes leave of it, and
        `residual_variance` has no effect. None, the default, keeps variances.

    Attributes
    ----------
    stages
        The fitted PCAs by name: "coarse" and "residual".
    space, layout, ranks, code_size, explained_variance
        The space of the fields, the patches, the modes kept by each stage, their number, and the
        share of variance that each stage keeps.

    Examples
    --------
    >>> TwoScale(coarse_components=12, patches=(2, 2))
    TwoScale(patches=(2, 2), coarse_components=12)
    """

    name = "two-scale"
    title = "coarse PCA, then a PCA per patch"
    as_method = AsMethod(
        "Two-scale",
        CodeGrowth(
            sized=False,
            settings=lambda code, outputs, patches: {
                **coarse_code(code, outputs),
                "residual_variance": CODES[code][1],
            },
        ),
        colour="#009E73",
        marker="o",
        order=1,
    )
    stage_titles: ClassVar[Mapping[str, str]] = {"coarse": "coarse", "residual": "residual"}

    def __init__(
        self,
        *,
        patches: Patches = (4, 4),
        coarse_factor: CoarseFactor = 4,
        coarse_components: CoarseComponents = 10,
        coarse_variance: CoarseVariance = None,
        few_features: FewFeatures = True,
        residual_variance: ResidualVariance = 0.995,
        solver: Solver = "randomized",
        code_size: CodeSize = None,
    ) -> None:
        kept = RankRule(variance=coarse_variance, components=coarse_components)
        stages = {
            "coarse": _coarse_stage(kept, coarse_factor, few_features, solver),
            "residual": _patch_stage(residual_variance, patches, solver, code_size),
        }
        super().__init__(stages, code_size=code_size)


class ThreeScale(Chain):
    """A level between the two of `TwoScale`: PCAs of what the coarse one leaves on larger patches.

    Parameters
    ----------
    patches
        Patches per axis (rows, columns) of the residual, (4, 4) by default.
    coarse_factor
        Nodes per side of a cell of the coarse grid, 4 by default.
    coarse_components, coarse_variance
        Modes kept on the coarse grid, 10 by default, and the share of variance they should reach,
        none by default. With both, as many as the variance needs, and at most `coarse_components`.
    few_features
        Whether the coarse grid must have fewer values than there are training fields: the paper's
        rule, and the default.
    middle_patches
        Larger patches per axis (rows, columns), (2, 2) by default.
    middle_variance
        Share of variance that each larger patch keeps, 0.99 by default.
    residual_variance
        Share of the remaining variance that each patch keeps, 0.8 by default: less than in
        `TwoScale`, because the larger patches leave little.
    solver
        PCA algorithm of all stages: "randomized" (default), "covariance", "full", or "hybrid":
        "randomized" on the coarse grid and "full" on patches.
    code_size
        Modes kept in all. The patches of both sizes share what the coarse modes leave of it, and
        their variances have no effect. None, the default, keeps variances.

    Attributes
    ----------
    stages
        The fitted PCAs by name: "coarse", "middle" and "residual".
    space, layout, ranks, code_size, explained_variance
        The space of the fields, the patches, the modes kept by each stage, their number, and the
        share of variance that each stage keeps.

    Examples
    --------
    >>> list(ThreeScale(patches=(8, 8), middle_patches=(4, 4)).stages)
    ['coarse', 'middle', 'residual']
    """

    name = "three-scale"
    title = "coarse PCA, then a PCA per large patch, then a PCA per patch"
    as_method = AsMethod(
        "Three-scale",
        CodeGrowth(
            patch_factor=4,
            settings=lambda code, outputs, patches: {
                **coarse_code(code, outputs),
                "middle_patches": (-(-patches[0] // 2), -(-patches[1] // 2)),
            },
        ),
        colour="#882255",
        marker="<",
        order=2,
    )
    stage_titles: ClassVar[Mapping[str, str]] = {
        "coarse": "coarse",
        "middle": "middle",
        "residual": "residual",
    }

    def __init__(
        self,
        *,
        patches: Patches = (4, 4),
        coarse_factor: CoarseFactor = 4,
        coarse_components: CoarseComponents = 10,
        coarse_variance: CoarseVariance = None,
        few_features: FewFeatures = True,
        middle_patches: Annotated[
            tuple[int, int], pair("larger patches of the stage in between, 2 or 2x2")
        ] = (2, 2),
        middle_variance: Annotated[
            float, share("share of variance kept by each larger patch")
        ] = 0.99,
        residual_variance: ResidualVariance = 0.8,
        solver: Solver = "randomized",
        code_size: CodeSize = None,
    ) -> None:
        kept = RankRule(variance=coarse_variance, components=coarse_components)
        stages = {
            "coarse": _coarse_stage(kept, coarse_factor, few_features, solver),
            "middle": _patch_stage(middle_variance, middle_patches, solver, code_size),
            "residual": _patch_stage(residual_variance, patches, solver, code_size),
        }
        super().__init__(stages, code_size=code_size)


def _coarse_stage(rule: RankRule, factor: int, few_features: bool, solver: str) -> RestrictedPCA:
    return RestrictedPCA(
        rule, factor=factor, few_features=few_features, solver=stage_solvers(solver)[0]
    )


def _patch_stage(
    variance: float, patches: tuple[int, int], solver: str, code_size: int | None
) -> PatchPCA:
    rule = stage_rule(variance, code_size)
    return PatchPCA(rule, patches=patches, solver=stage_solvers(solver)[1])
