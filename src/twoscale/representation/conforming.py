"""Representations whose decoded fields are continuous across patch borders by construction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from twoscale.domain.grid import Grid, as_planes, is_planar
from twoscale.domain.patches import PatchLayout, as_pair
from twoscale.domain.space import Domain, Space
from twoscale.math.pca import Statistics
from twoscale.representation.as_method import AsMethod, CodeGrowth
from twoscale.representation.base import CodeSize, Patches, Representation, Rule, Solver
from twoscale.representation.block_pca import BlockPCA
from twoscale.representation.chain import Chain, stage_rule, stage_solvers
from twoscale.representation.skeleton import SeamNorm, Skeleton
from twoscale.runtime.threads import one_thread
from twoscale.settings import real, share

# Edges beside lines weigh 5 on a 128 x 128 grid: with about 700 codes of Poisson fields the errors
# at seams fall by three tenths, the whole error rises by a twentieth. Chosen on that case only.
_SEAM_WIDTH = 0.0135

SeamWidth = Annotated[
    float,
    real(
        "width next to patch borders in which slopes count, as a share of the side; 0: plain L2",
        0.0,
        1.0,
        "a part of the domain's side, 0 to 1",
    ),
]


class _SkeletonBound(BlockPCA):
    """A PCA that knows the skeleton of its patches and works in its norm.

    `_split` gives coordinates in which the norm is Euclidean, and the features have one common
    scale per channel: components maximise the variance in that norm, added up over channels.
    """

    skeleton: Skeleton

    def __init__(
        self,
        rule: Rule,
        *,
        patches: Patches = (4, 4),
        seam_width: SeamWidth = _SEAM_WIDTH,
        solver: Solver = "randomized",
    ) -> None:
        super().__init__(rule, solver=solver, standardised=False)
        self.patches = as_pair(patches)
        self.seam_width = seam_width

    def supports(self, domain: Domain) -> bool:
        return is_planar(domain)

    def check(self, space: Space, samples: int) -> None:
        super().check(space, samples)
        Skeleton.of_grid(self._layout_for(space.grid).plane)  # raises

    def _layout_for(self, grid: Grid) -> PatchLayout:
        return grid.partition(self.patches, smallest=3)  # two lines, and one inside

    def _prepare(self, space: Space, device: torch.device) -> None:
        self._layout = self._layout_for(space.grid)
        skeleton = Skeleton.of_grid(self._layout.plane)
        self._use_norm(SeamNorm(skeleton, self.seam_width), device)
        self.skeleton = skeleton.float().to(device)

    @abstractmethod
    def _use_norm(self, norm: SeamNorm, device: torch.device) -> None:
        """Set the buffers that make the norm Euclidean."""

    def energies(self, unit: Tensor) -> Tensor:
        """Return the energy (blocks, largest rank) of each mode in the norm that sees seams.

        It is float64, and zero beyond a block's rank. Channels are measured in a `unit`
        (channels, 1, ...): stages can be compared in the same unit only.
        """
        scales, shares = self.channel_scales, self._channel_shares()
        scales = scales / unit.flatten().to(scales)
        shares = shares / shares.sum(1, keepdim=True).clamp_min(1e-30)  # 1 for a single channel
        return self.variances.double() * (shares * scales.square()[:, None]).sum(1)

    @property
    def channel_scales(self) -> Tensor:
        """Return the common scale (channels,) of each channel's features, float64."""
        self._require_fit()
        return self.scale[0].unflatten(0, (self.space.channels, -1))[:, 0].double()

    def _channel_shares(self) -> Tensor:
        """Return the squared norm (blocks, channels, rank) of each channel's part of a mode."""
        parts = self.vectors.square().unflatten(1, (self.space.channels, -1))
        return parts.sum(2).double()


class SkeletonPCA(_SkeletonBound):
    """One PCA of the traces on the skeleton, in the norm of their harmonic extensions.

    The traces of all channels are one block.

    With g = T u, M = L L^T the metric |E g|^2 = g^T M g, and y = L^T g: z = V^T (y - mean) / s,
    and the decoded field is E L^-T (mean + s V z). The columns of V are the eigenvectors of
    L^T C L, C the covariance of the traces.

    Parameters
    ----------
    rule
        What to keep: a share of variance (0.99), a number of modes (12), or a `RankRule`.
    patches
        Patches per axis (rows, columns), (4, 4) by default. Each side has at least 3 nodes, and an
        axis of a single node is not cut.
    seam_width
        Width beside patch borders in which derivatives count in the norm, as a share of the
        domain's side, 0.0135 by default; 0 is plain L2.
    solver
        PCA algorithm, one of `SOLVERS`: "randomized" (default), "covariance" or "full".

    Attributes
    ----------
    skeleton, layout
        The lines between the patches of the fitted grid, and the patches.
    space, ranks, code_size, explained_variance
        The space of the fields, the modes kept, their number, and the share of variance they hold.

    Examples
    --------
    >>> lines = SkeletonPCA(5, patches=(2, 2)).fit(torch.randn(20, 1, 9, 9))
    >>> lines.decode(torch.zeros(1, 5)).shape
    torch.Size([1, 1, 9, 9])
    """

    name = "skeleton-pca"
    title = "PCA of the lines between patches"

    factor: Tensor  # (size, size): L
    inverse_factor: Tensor  # (size, size): L^-1

    def _use_norm(self, norm: SeamNorm, device: torch.device) -> None:
        with one_thread():  # on more of them the last digits are others
            factor = torch.linalg.cholesky(norm.trace_metric())
            identity = torch.eye(len(factor), dtype=torch.float64)
            inverse = torch.linalg.solve_triangular(factor, identity, upper=False)
        self.register_buffer("factor", factor.float().to(device), persistent=False)
        self.register_buffer("inverse_factor", inverse.float().to(device), persistent=False)

    def _split(self, fields: Tensor) -> Tensor:
        traces = self.skeleton.trace(
            as_planes(fields).to(self.factor.dtype)
        )  # (batch, channels, size)
        return (traces @ self.factor).flatten(1)[:, None]

    def _join(self, blocks: Tensor) -> Tensor:
        traces = blocks[:, 0].unflatten(1, (-1, self.skeleton.size))
        extended = self.skeleton.extend(traces @ self.inverse_factor)
        return extended.reshape(-1, *self.space.shape)


class BubblePCA(_SkeletonBound):
    """An independent PCA of the bubble u - E T u inside each patch, all channels together.

    Decoded fields vanish on the skeleton, whatever the code.

    Parameters
    ----------
    rule
        What each patch keeps: a share of variance (0.99), a number of modes (12), or a `RankRule`.
    patches
        Patches per axis (rows, columns), (4, 4) by default. Each side has at least 3 nodes, and an
        axis of a single node is not cut.
    seam_width
        Width beside patch borders in which derivatives count in the norm, as a share of the
        domain's side, 0.0135 by default; 0 is plain L2.
    solver
        PCA algorithm, one of `SOLVERS`: "randomized" (default), "covariance" or "full".

    Attributes
    ----------
    skeleton, layout
        The lines between the patches of the fitted grid, and the patches.
    space, ranks, code_size, explained_variance
        The space of the fields, the modes kept, their number, and the share of variance they hold.

    Examples
    --------
    >>> bubbles = BubblePCA(3, patches=(2, 2)).fit(torch.randn(20, 1, 9, 9))
    >>> bool((bubbles.decode(torch.randn(1, 12))[..., 0, :] == 0).all())
    True
    """

    name = "bubble-pca"
    title = "PCA per patch of fields that vanish on its border"

    _guides: Sequence[SkeletonPCA] = ()

    weights: Tensor  # (patches, 1, n, m): roots of the norm's weights, of any channel

    def block_count(self, grid: Grid) -> int:
        return self._layout_for(grid).count

    def unaffected_by(self, earlier: Representation) -> bool:
        """Return true for a skeleton's PCA: a harmonic extension has no bubbles."""
        return isinstance(earlier, SkeletonPCA) and earlier.patches == self.patches

    def scale_channels_as(self, skeleton: SkeletonPCA) -> None:
        """Divide channels by scales no smaller than those of a skeleton's PCA, fitted before.

        A channel's bubbles may be nothing but rounding errors, as those of a linear field. Divided
        by a scale of their own they would count as much as any other channel.
        """
        self._guides = [skeleton]  # in a list: it is not a module of this one

    def _common_scale(self, statistics: Statistics) -> Statistics:
        own = super()._common_scale(statistics)
        channels = self.space.channels
        if channels == 1 or not self._guides:
            return own
        guide = self._guides[0]
        varying = guide._channel_shares().sum((0, 2)) > 0
        guiding = torch.where(varying, guide.channel_scales, 0.0)
        scales = own.scale[0].unflatten(0, (channels, -1))[:, 0]
        return statistics.with_channel_scales(torch.maximum(guiding, scales))

    def _use_norm(self, norm: SeamNorm, device: torch.device) -> None:
        weights = norm.bubble_weights()[:, None].sqrt().float().to(device)
        self.register_buffer("weights", weights, persistent=False)

    def _split(self, fields: Tensor) -> Tensor:
        bubbles = self.skeleton.bubbles(as_planes(fields).to(self.weights.dtype))
        return (self.skeleton.tiles(bubbles) * self.weights).flatten(2)

    def _join(self, blocks: Tensor) -> Tensor:
        tiles = blocks.unflatten(2, (-1, *self.weights.shape[2:]))
        return self.skeleton.join(tiles / self.weights).reshape(-1, *self.space.shape)


class Conforming(Chain):
    """Global modes from the traces on the patch skeleton, then bubbles inside the patches.

    Neighbouring patches share the values on the lines between them. So the decoded field of any
    code has no jump there.

    Parameters
    ----------
    patches
        Patches per axis (rows, columns), (4, 4) by default. Each side has at least 3 nodes, and an
        axis of a single node is not cut.
    code_size
        Modes kept in all, 160 by default: those of the largest energy in the norm that sees seams.
        With None each block keeps a share of its variance.
    variance
        Share of variance that each block keeps with `code_size=None`, 0.999 by default.
    seam_width
        Width beside patch borders in which derivatives count in the norm, as a share of the
        domain's side, 0.0135 by default; 0 is plain L2.
    solver
        PCA algorithm of both stages: "randomized" (default), "covariance", "full", or "hybrid":
        "randomized" for the skeleton and "full" for the bubbles.

    Attributes
    ----------
    stages
        The fitted PCAs by name: "skeleton" and "bubbles".
    space, layout, ranks, code_size, explained_variance
        The space of the fields, the patches, the modes kept by each stage, their number, and the
        share of variance that each stage keeps.

    Examples
    --------
    >>> Conforming(code_size=40).fit(torch.randn(50, 2, 17, 23)).code_size
    40
    """

    name = "conforming"
    title = "PCA of the lines between patches, then a PCA per patch"
    as_method = AsMethod("Conforming", CodeGrowth(), colour="#999999", marker="v", order=3)
    stage_titles: ClassVar[Mapping[str, str]] = {"skeleton": "skeleton", "bubbles": "bubbles"}

    def __init__(
        self,
        *,
        patches: Patches = (4, 4),
        code_size: CodeSize = 160,
        variance: Annotated[
            float, share("share of variance kept by each block; unused with code_size")
        ] = 0.999,
        seam_width: SeamWidth = _SEAM_WIDTH,
        solver: Solver = "randomized",
    ) -> None:
        rule = stage_rule(variance, code_size)
        skeleton_solver, bubble_solver = stage_solvers(solver)
        skeleton = SkeletonPCA(rule, patches=patches, seam_width=seam_width, solver=skeleton_solver)
        bubbles = BubblePCA(rule, patches=patches, seam_width=seam_width, solver=bubble_solver)
        bubbles.scale_channels_as(skeleton)
        super().__init__({"skeleton": skeleton, "bubbles": bubbles}, code_size=code_size)
