"""The energy norm of a diffusion equation, and proven bounds of its dual norm.

The bounds hold for the numbers as they are stored: what rounding can have changed is added to upper
bounds and taken from lower ones.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from twoscale.problems.diffusion import (
    DiffusionSystem,
    Faces,
    divergence,
    fluxes,
    laplacian_eigenvalues,
    solve_laplace,
    with_boundary,
)

_EPS = torch.finfo(torch.float64).eps
_TINY = torch.finfo(torch.float64).tiny
_NODE_ROUNDING = 8 * _EPS  # f - A u takes ten roundings at a node: 5 eps of the terms' sizes


class Bounds(NamedTuple):
    """A lower and an upper bound of a number of each sample, (batch,) each."""

    lower: Tensor
    upper: Tensor


class Functional(NamedTuple):
    """What is applied to fields as h^2 r'v: r at interior nodes, and how far rounding moved it."""

    values: Tensor  # (batch, rows, columns)
    rounding: Tensor  # (batch,), a bound of the dual norm of the rounding error


class EnergyNorm:
    """The norm ||v|| = h sqrt(v'Av) of interior values v, (batch, rows, columns), and its dual.

    h^2 is the area of a cell. The dual norm ||r||_* is the largest h^2 r'v / ||v|| of all v, and
    equals the norm of A^-1 r.
    """

    def __init__(self, system: DiffusionSystem) -> None:
        self._system = system
        rows, columns = system.grid.spacing
        self._area = rows * columns
        self._weights = (columns / rows, rows / columns)  # area by squared spacing, of each axis
        self._slack = _EPS * (2 * system.grid.nodes + 16)  # relative, of a sum over all faces
        self._least = self._largest = torch.ones_like(system.right_side[:, 0, 0])
        if system.faces is not None:
            faces = torch.cat([face.flatten(1) for face in system.faces], 1)
            self._least, self._largest = faces.aminmax(dim=1)
        eigenvalue = laplacian_eigenvalues(system.grid, self._least.device)[0, 0].abs()
        self._poincare = (self._area / (eigenvalue * self._least)).sqrt()  # ||r||_* <= this |r|

    def __call__(self, interior: Tensor) -> Tensor:
        """Return ||v||."""
        differences = _differences(interior)
        return self._product(differences, self._weighted(differences)).sqrt()

    @property
    def right_side(self) -> Functional:
        """Return f, whose dual norm is that of the solution."""
        values = self._system.right_side
        return Functional(values, torch.zeros_like(self._least))

    def residual(self, interior: Tensor) -> Functional:
        """Return r = f - A v, whose dual norm is that of the error of v."""
        differences, right_side = _differences(interior), self._system.right_side
        flux = self._weighted(differences)
        size = self._product(differences, flux).sqrt()
        return Functional(right_side + divergence(flux), self.rounding(size, right_side))

    def rounding(self, flux_norm: Tensor, values: Tensor) -> Tensor:
        """Return a bound of the dual norm of the rounding error of r + div(s).

        At a node it is a few eps times |r| and the |s| at four faces. A face has two nodes, so that
        the latter are at most twice the sums of s^2, which s^2 / a and the largest a bound.
        """
        largest = (sum(self._weights) * self._largest).sqrt()
        sizes = 2 * largest * flux_norm / self._area + _length(values)
        return (1 + self._slack) * _NODE_ROUNDING * self._poincare * sizes

    def inner(self, values: Tensor, interior: Tensor) -> Tensor:
        """Return h^2 r'v, with rounding errors."""
        return self._area * _dot(values, interior)

    def applied(self, functional: Functional, interior: Tensor, size: Tensor) -> Bounds:
        """Return bounds of h^2 r'v, as rounding allows them; `size` is ||v||."""
        values, rounding = functional
        product = self.inner(values, interior)
        sums = self._slack * self._area * _length(values) * _length(interior)
        error = (1 + self._slack) * (sums + rounding * size)
        return Bounds(product - error, product + error)

    def gradient_bound(self, preconditioned: Tensor) -> Tensor:
        """Return the first upper bound of ||r||_* from L z = r; rounding is left out."""
        return self._flux_norm(_differences(preconditioned))

    def dual_norm(self, functional: Functional) -> Bounds:
        """Return bounds of ||r||_*.

        Any flux s with -div(s) = r gives the upper bound (sum s^2 / a)^(1/2), any field v the lower
        bound h^2 r'v / ||v||. With L z = r these are s = D z, D being differences across faces, and
        v = z. With L w = A z the flux a D z - D w has no divergence: as much of it as shortens s is
        added. The second v is the best combination of z and w.
        """
        values, error = functional
        z = solve_laplace(-values)
        flux = _differences(z)
        image = self._weighted(flux)
        lower = self._tested(functional, z, self._product(flux, image).sqrt())
        if self._system.faces is not None:
            w = solve_laplace(divergence(image))
            second = _differences(w)
            combined = self._combined(values, (z, w), (flux, second), image)
            lower = lower.fmax(self._tested(functional, combined, self(combined)))
            flux = self._shortened(flux, _plus(image, -1.0, second))
        size = self._flux_norm(flux)
        missing = self._poincare * _length(values + divergence(flux))
        upper = size + missing + self.rounding(size, values) + error
        return Bounds(lower.clamp_min(0.0), (1 + self._slack) * upper)

    def solution_norm(self, interior: Tensor, residual: Functional, error: Bounds) -> Bounds:
        """Return bounds of ||u|| from those of ||u - v||, r = f - A v being the residual of v.

        ||u||^2 = h^2 (f + r)'v + ||u - v||^2. Where v is so far off that this says little, ||u|| is
        bounded as the dual norm of f.
        """
        both = residual._replace(values=self._system.right_side + residual.values)
        known = self.applied(both, interior, self(interior))
        lower = (known.lower + error.lower.square()).clamp_min(0.0).sqrt() * (1 - self._slack)
        upper = (known.upper + error.upper.square()).clamp_min(0.0).sqrt() * (1 + self._slack)
        vague = upper > 1.5 * lower
        if bool(vague.any()):
            other = self.dual_norm(self.right_side)
            lower = torch.where(vague, lower.maximum(other.lower), lower)
            upper = torch.where(vague, upper.minimum(other.upper), upper)
        return Bounds(lower, upper)

    def _tested(self, functional: Functional, interior: Tensor, size: Tensor) -> Tensor:
        """Return the lower bound h^2 r'v / ||v|| of ||r||_*."""
        surely = (1 - self._slack) * self.applied(functional, interior, size).lower
        return torch.where(size > _TINY, surely / size.clamp_min(_TINY), 0.0)

    def _combined(
        self,
        values: Tensor,
        fields: tuple[Tensor, Tensor],
        differences: tuple[Faces, Faces],
        image: Faces,
    ) -> Tensor:
        """Return the combination of two fields with the largest r'v / ||v||, up to a factor.

        `image` is a times the differences of the first.
        """
        (z, w), (dz, dw) = fields, differences
        zz, zw = self._product(image, dz), self._product(image, dw)
        ww = self._product(dw, self._weighted(dw))
        rz, rw = _dot(values, z), _dot(values, w)
        one, other = rz * ww - rw * zw, rw * zz - rz * zw
        largest = one.abs().maximum(other.abs()).clamp_min(_TINY)
        return _each(one / largest) * z + _each(other / largest) * w

    def _shortened(self, flux: Faces, circulation: Faces) -> Faces:
        """Return the flux plus a multiple of one without divergence, of the least norm.

        The multiple is kept in [0, 1 / least a], where that of a conjugate gradient step lies: a
        circulation that is but rounding error then does no harm.
        """
        across = self._unweighted(circulation)
        size = self._product(circulation, across).clamp_min(_TINY)
        share = (-self._product(flux, across) / size).clamp_min(0.0).minimum(1 / self._least)
        return _plus(flux, _each(share), circulation)

    def _flux_norm(self, flux: Faces) -> Tensor:
        """Return (sum s^2 / a)^(1/2); for s = a D v this is ||v||."""
        return self._product(flux, self._unweighted(flux)).sqrt()

    def _weighted(self, differences: Faces) -> Faces:
        a = self._system.faces
        return differences if a is None else (differences[0] * a[0], differences[1] * a[1])

    def _unweighted(self, flux: Faces) -> Faces:
        a = self._system.faces
        return flux if a is None else (flux[0] / a[0], flux[1] / a[1])

    def _product(self, one: Faces, other: Faces) -> Tensor:
        """Return the sum over faces, in units in which h^2 v'Lv is that of D v with itself."""
        rows, columns = self._weights
        return rows * _dot(one[0], other[0]) + columns * _dot(one[1], other[1])


def _differences(interior: Tensor) -> Faces:
    """Return D v: the differences across all faces of interior nodes."""
    return fluxes(with_boundary(interior))


def _plus(one: Faces, share: Tensor | float, other: Faces) -> Faces:
    return one[0] + share * other[0], one[1] + share * other[1]


def _each(values: Tensor) -> Tensor:
    """Return numbers (batch,) as factors of fields."""
    return values[:, None, None]


def _dot(one: Tensor, other: Tensor) -> Tensor:
    return torch.linalg.vecdot(one.flatten(1), other.flatten(1))


def _length(values: Tensor) -> Tensor:
    return torch.linalg.vector_norm(values.flatten(1), dim=1)
