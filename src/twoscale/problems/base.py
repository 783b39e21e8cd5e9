"""What a problem is, and the problems that are known by name."""

from __future__ import annotations

import hashlib
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.domain.symmetries import Group, symmetry_group
from twoscale.errors import TwoscaleError, TwoscaleWarning, unknown_name
from twoscale.fields.source import slices
from twoscale.parts import Registry
from twoscale.problems.parameters import build, plain, with_settings

PROBLEMS: Registry[type[Problem]] = Registry("problems")
"""All problems by name."""

_NUMBERS: dict[int, str] = {}  # the problem that draws its samples with each number


class Problem(ABC):
    """An equation on a grid: input fields in, solution fields out.

    Everything that states the equation, its sign included, is here: `sample`, `solve`,
    `residual`, where there is one. The last two axes of a tensor are height and width. Fields of
    one channel may leave the channel axis out: what comes as (batch, height, width) leaves as such.

    A problem with parameters is a dataclass; its fields are stored with datasets and surrogates.
    All of them need defaults. A subclass with a `name` of its own is known by it.
    """

    name: ClassVar[str]
    boundary: ClassVar[str]  # the boundary condition in words
    solver: ClassVar[str]  # how solutions are computed, in words
    number: ClassVar[int]  # part of the random seed, so that problems never share samples
    channels: ClassVar[tuple[int, int]] = (1, 1)  # of inputs and of outputs
    periodic: ClassVar[tuple[bool, bool]] = (False, False)  # which axes of its grid wrap
    fewest_nodes: ClassVar[int] = 1  # per side of its grid
    resolution: ClassVar[int] = 64  # nodes per side of generated fields, by default
    symmetric_under: ClassVar[str] = "none"  # the name of a group of symmetries
    thresholded: ClassVar[bool] = False  # inputs are phases of a Gaussian random field
    fixed_operator: ClassVar[bool] = False  # what is applied to u does not depend on the input

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" in vars(cls):
            _register(cls)

    @property
    @abstractmethod
    def distribution(self) -> dict[str, Any]:
        """Return the distribution of the input field in plain values, for the record."""

    @abstractmethod
    def sample(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> Tensor:
        """Return the input fields of the samples `indices`, float64.

        (batch, height, width) for one channel, else (batch, channels, height, width). Sample i
        depends on (problem, grid, seed, i) only.
        """

    @abstractmethod
    def solve(self, inputs: Tensor) -> Tensor:
        """Return the solutions of `inputs`, in float64, with as many axes."""

    def pairs(
        self, grid: Grid, indices: Sequence[int], *, seed: int, device: torch.device | str = "cpu"
    ) -> tuple[Tensor, Tensor]:
        """Return the input fields and the solutions of the samples `indices`, float64."""
        inputs = self.sample(grid, indices, seed=seed, device=device)
        return inputs, self.solve(inputs)

    def level_modes(self, grid: Grid, count: int) -> Tensor:
        """Return the first modes (count, height, width) of the Gaussian field behind the inputs.

        The field is their sum with standard normal coefficients; see `inputs_of`. A problem whose
        inputs are not made from a Gaussian random field leaves this out.
        """
        raise TwoscaleError(f"the inputs of {self.name} are not made from a Gaussian random field")

    def inputs_of(self, level: Tensor, *, width: float = 0.0) -> Tensor:
        """Return the inputs that are made from Gaussian fields `level`, of the same shape.

        A problem that is `thresholded` has two phases with a jump where the field is zero. A
        positive `width`, in units of the field, makes the jump a smooth step; see `Darcy`.
        """
        raise TwoscaleError(f"the inputs of {self.name} are not made from a Gaussian random field")

    def solves(self, grid: Grid) -> bool:
        """Say whether outputs on this grid are `solve` of their inputs."""
        return True

    def residual(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Return the discrete residual (batch, ...) at the nodes where the equation holds.

        A problem whose output satisfies no equation of its own, such as a field at a later time,
        leaves this out.
        """
        raise TwoscaleError(f"{self.name} has no residual")

    def has_residual(self, grid: Grid) -> bool:
        """Say whether outputs on this grid have a residual."""
        return type(self).residual is not Problem.residual

    def symmetries(self, grid: Grid) -> Group:
        """Return the maps of the grid onto itself that take solutions to solutions."""
        return symmetry_group(self.symmetric_under, grid)

    def entropy(self, grid: Grid, seed: int) -> tuple[int, ...]:
        """Return the numbers that seed a sample, together with its index."""
        return (seed, self.number, grid.shape[0], grid.shape[1])

    def grid(self, height: int, width: int) -> Grid:
        """Return the equation's grid with height x width nodes."""
        grid = Grid((height, width), periodic=self.periodic)
        self.check_grid(grid)
        return grid

    def check_grid(self, grid: Grid) -> None:
        """Raise if the equation cannot be stated on this grid."""
        if grid.periodic != self.periodic:
            raise TwoscaleError(
                f"{self.name} needs a grid with periodic={self.periodic}, got {grid.periodic}"
            )
        if min(grid.shape) < self.fewest_nodes:
            raise TwoscaleError(
                f"{self.name} needs at least {self.fewest_nodes} nodes per side, got {grid}"
            )

    def check_spaces(self, inputs: Space, outputs: Space) -> None:
        """Raise if fields of these spaces cannot be inputs and solutions of the equation.

        Scalar parameters may come beside the fields; the equation does not see them.
        """
        channels = (inputs.channels, outputs.channels)
        if channels != self.channels or inputs.grid != outputs.grid:
            raise TwoscaleError(
                f"{self.name} has {self.channels[0]} input and {self.channels[1]} output channels "
                f"on one grid, got {channels[0]} on {inputs.grid} and {channels[1]} on "
                f"{outputs.grid}: leave the problem out, or give its own fields"
            )
        self.check_grid(outputs.grid)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON knows them, for `from_parameters`: a dataclass's fields."""
        return plain(self, self.name) if is_dataclass(self) else {}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the problem with these parameters; those that are not named keep defaults."""
        if is_dataclass(cls):
            return build(cls, parameters, cls.name)
        if parameters:
            raise TwoscaleError(f"{cls.name} has no parameters, got {dict(parameters)}")
        return cls()


def in_parts(
    solve: Callable[[Tensor], Tensor], inputs: Tensor, *, values: int, cpu: int, cuda: int
) -> Tensor:
    """Return solve(inputs), computed for some samples after the other.

    A sample takes `values` numbers; there is room for `cpu` of them at a time, on a GPU for `cuda`.
    """
    length = max(1, (cuda if inputs.is_cuda else cpu) // values)
    return torch.cat([solve(inputs[part]) for part in slices(len(inputs), length)])


def number_of(name: str) -> int:
    """Return the number of a problem that gives itself none: from 2^63 on, far above ours."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) | 2**63


def _register(kind: type[Problem]) -> None:
    """Make a class known, once it says what a problem must say and draws samples of its own."""
    for attribute in ("name", "boundary", "solver"):
        if not isinstance(getattr(kind, attribute, None), str):
            raise TwoscaleError(f"the problem {kind.__name__} needs a text `{attribute}`")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", kind.name):
        raise TwoscaleError(
            f"the name of a problem has letters, digits, - and _ only, got '{kind.name}'"
        )
    if "number" not in vars(kind):
        kind.number = number_of(kind.name)
    other = _NUMBERS.setdefault(kind.number, kind.name)
    if other != kind.name:
        raise TwoscaleError(
            f"{kind.name} has the number {kind.number} of {other}, so that both would draw the "
            "same samples: leave the number out, and it follows from the name"
        )
    PROBLEMS[kind.name] = kind


def get_problem(name: str) -> Problem:
    """Return the problem of that name, with default parameters."""
    kind = PROBLEMS.get(name)
    if kind is None:
        raise unknown_name("problem", name, PROBLEMS)
    try:
        return kind()
    except TypeError as error:
        raise TwoscaleError(
            f"the problem {kind.__name__} cannot be made without arguments ({error}): give all "
            "parameters defaults and write all methods"
        ) from error


def make_problem(name: str, settings: Mapping[str, Any] | None = None) -> Problem:
    """Return the problem of that name with some parameters set; texts are read as values.

    >>> from twoscale.problems import make_problem
    >>> problem = make_problem("darcy", {"high": "100", "low": 1, "medium.alpha": "3"})
    >>> problem.high, problem.low, problem.medium.alpha
    (100.0, 1.0, 3.0)
    """
    problem = get_problem(name)
    if not settings:
        return problem
    return problem.from_parameters(with_settings(problem.parameters(), settings, name))


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Return the problem's name and parameters in plain values, for `problem_from`."""
    return {"name": problem.name, "parameters": problem.parameters()}


def problem_from(description: Any) -> Problem | None:
    """Return the problem that `describe_problem` described; None if its name is not known.

    None describes no problem, and gives None.
    """
    if description is None:
        return None
    fits = isinstance(description, Mapping) and set(description) == {"name", "parameters"}
    if not fits or not isinstance(description["name"], str):
        raise TwoscaleError(
            f"a problem is described by its name and its parameters, got {description!r}"
        )
    known, parameters = PROBLEMS.get(description["name"]), description["parameters"]
    if known is None:
        warnings.warn(
            f"the problem '{description['name']}' is not known here, so there are no residuals: "
            "install the package that defines it",
            TwoscaleWarning,
            stacklevel=2,
        )
        return None
    if not isinstance(parameters, Mapping):
        raise TwoscaleError(f"{known.name} needs a dictionary of parameters, got {parameters!r}")
    return known.from_parameters(parameters)
