"""What every predictor promises: a map from input code to output code, fitted on pairs of codes."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Self

from torch import Tensor, nn

from twoscale.domain.space import Domain, Space
from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.parts import PARTS, Part
from twoscale.representation import Representation
from twoscale.settings import RATE, choice, real, whole
from twoscale.training import CodePairs, Plan, Task
from twoscale.training.task import OBJECTIVES

Objective = Annotated[str, choice("how errors of the code are weighted", OBJECTIVES)]
Epochs = Annotated[int, whole("passes over the training set", schedule=True, passes=True)]
BatchSize = Annotated[int, whole("samples per optimiser step", schedule=True)]
LearningRate = Annotated[float, real("the optimiser's first rate", *RATE)]
WeightDecay = Annotated[float, real("L2 weight decay", 0.0, 10.0, "a number from 0 to 10")]
Patience = Annotated[
    int,
    whole(
        "epochs without a better validation loss before the rate is halved",
        schedule=True,
        passes=True,
    ),
]
EvaluationBatch = Annotated[
    int, whole("fields per step of validation and prediction", schedule=True)
]

_RESERVED = {"method", "seed", "device", "problem", "inputs", "outputs", "predictor", "correction"}

Pack = Callable[..., dict[str, Any]]

EIGEN = 25  # multiplications, times n^3: an eigendecomposition, slower than products


@dataclass(frozen=True)
class Sizes:
    """What the work of a fit depends on. Numbers of nodes count every channel."""

    samples: int
    images: int  # training fields that symmetries make of one
    learned: int  # samples the predictor learns from
    validation: int
    nodes: int  # of an output field
    patch_nodes: int  # of one of its patches
    coarse_nodes: int
    input_code: int
    output_code: int
    input_nodes: int | None = None  # by default those of the output
    input_patch_nodes: int | None = None
    randomized: bool = False  # components of large blocks are iterated, not decomposed
    new_input: bool = True  # the input's representation is not fitted yet
    new_output: bool = True
    tuned: bool = False  # the predictor knows the settings it would choose
    epochs: int = 0  # of a predictor that is probed
    cells: int = 0  # of an encoder's finest level
    width: int = 0  # its channels
    sides: int = 0  # nodes along both axes of an output, added up


@dataclass(frozen=True)
class Probe:
    """A short training that tells how long an epoch takes and how far a long training may lead.

    It has at least `epochs`, or `epochs_alone` if no other predictor is tried. On a GPU it sees
    about `fields` fields, and the network has the `large` settings; on a CPU the `small` ones,
    and larger cells if it has `larger_cells`.
    """

    epochs: int = 3
    epochs_alone: int = 2
    fields: int = 16_000
    small: Mapping[str, Any] = field(default_factory=dict)
    large: Mapping[str, Any] = field(default_factory=dict)
    larger_cells: bool = False


@dataclass(frozen=True)
class PredictorCost:
    """A predictor as a search knows it.

    Parameters
    ----------
    work
        Multiplications of a fit.
    settings
        Settings of every fit that are not the predictor's defaults.
    after
        Predictors it may improve on: it is tried when one of them is the best so far.
    gpu_speed
        How many times faster its multiplications are on a GPU than those of closed forms. It is
        used until a fit has been timed.
    linear
        Whether it is a linear map. One of codes chooses its own regularisation: it gains most from
        more of the input, and nothing from less.
    first_samples, samples_setting
        How many samples its first fit learns from at most, and the setting that says so.
    tuned
        Settings that a fit chooses, and that later fits take over.
    probe
        A short training before a long one, for a network that reads whole fields.
    """

    work: Callable[[Sizes], float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    gpu_speed: float = 1.0
    linear: bool = False
    first_samples: int | None = None
    samples_setting: str = ""
    tuned: tuple[str, ...] = ()
    probe: Probe | None = None


class CodePredictor(Part, nn.Module, ABC):
    """A map from codes (batch, input code) to codes (batch, output code).

    A subclass implements `prepare`, `restore` and `forward`. The arguments of its constructor are
    its settings. The class attributes below are its traits: other packages read them instead of
    keeping lists of names.

    Parameters
    ----------
    objective
        How errors of the code are weighed, one of `OBJECTIVES`. With "field" the predictor learns
        the codes whose fields are nearest to the true fields, not those that `encode` gives. By
        default every stage of the output representation has the same weight.

    Attributes
    ----------
    chosen
        What the fit chose on the validation fields, by name: for people to read, saved in the
        manifest. Empty before the fit.
    """

    closed_form: ClassVar[bool] = False
    """Whether `prepare` fits everything, so that no network is trained."""
    reads_fields: ClassVar[bool] = False
    """Whether it works on fields; it then gets the input field itself by default, not a code."""
    trains_epochs: ClassVar[bool] = False
    """Whether it has the setting `epochs`; follows from the constructor."""
    trains_together: ClassVar[bool] = False
    """Whether its network is a `DenseNetwork` on codes, many of which are trained at once."""
    data_parallel: ClassVar[bool] = False
    """Whether several processes can train it together, each with a shard of the samples."""

    corrects: ClassVar[bool] = False
    """Whether it only corrects a predicted field, so that it is no predictor of its own."""
    cost: ClassVar[PredictorCost | None] = None
    """What a search must know to try it; without it, it is only fitted if it is named."""

    def __init_subclass__(cls, **options: Any) -> None:
        arguments = dict(inspect.signature(cls.__init__).parameters)
        del arguments["self"]
        cls.trains_epochs = "epochs" in arguments
        if reserved := arguments.keys() & _RESERVED:
            raise TwoscaleError(
                f"{', '.join(sorted(reserved))} of {cls.__name__} would be taken for that of the "
                "surrogate: name the argument otherwise"
            )
        bare = [name for name, one in arguments.items() if one.default is one.empty]
        if bare and "name" in vars(cls):
            raise TwoscaleError(
                f"the arguments of {cls.__name__} are settings and need defaults: "
                f"give one to {', '.join(bare)}"
            )
        super().__init_subclass__(**options)

    def __init__(self, *, objective: Objective = "block-balanced") -> None:
        super().__init__()
        self.objective = objective
        self.chosen: dict[str, Any] = {}

    @property
    def targets_nearest_codes(self) -> bool:
        """Say whether it learns the codes of the fields nearest to the true ones."""
        return self.objective == "field"

    @property
    def uses_validation(self) -> bool:
        """Say whether a fit chooses settings or weights on validation samples."""
        return True

    def supports(self, domain: Domain) -> bool:
        """Say whether it works on fields that live there; a map between codes works on any."""
        return True

    def check(self, inputs: Space, outputs: Space) -> None:
        """Raise if the predictor does not map between fields of these spaces."""

    def bind(self, inputs: Representation, outputs: Representation) -> None:
        """Take both fitted representations; called before `prepare` and before `restore`.

        Of transformed inputs it is the representation inside: predictors see transformed values.
        """

    @abstractmethod
    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> Task | None:
        """Fit what has a closed form; return the training that is left, or None.

        The task's network belongs to this predictor: training it in place trains the predictor.
        `decoder` is the output representation, which turns codes into fields.
        """

    def complete(self) -> None:
        """Finish the fit once the network is trained."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from `tensors`, named as in `state_dict`."""

    @property
    def trained(self) -> nn.Module | None:
        """Return the network whose weights training changes, if it has such weights."""
        return None

    def for_page(self, pack: Pack) -> dict[str, Any] | None:
        """Return what the page to explore in computes it from; None if it runs in Python only.

        The page knows the kinds "sum" (of dense networks), "kernel" and "filter". `pack` makes
        text of an array, in the type of numbers that its use needs.
        """
        return None

    @abstractmethod
    def forward(self, codes: Tensor) -> Tensor:
        """Return the output codes (batch, output code) of input codes (batch, input code)."""


def predictors() -> dict[str, type[CodePredictor]]:
    """Return the predictors by name: twoscale's own, the user's, those of installed packages."""
    named = {name: part for name, part in PARTS.items() if issubclass(part, CodePredictor)}
    return {name: one for name, one in sorted(named.items()) if not one.corrects}


def get_predictor(name: str) -> type[CodePredictor]:
    """Return the predictor of that name."""
    predictor = PARTS.get(name)
    if predictor is None or not issubclass(predictor, CodePredictor) or predictor.corrects:
        known = predictors()
        raise TwoscaleError(
            f"predictor must be one of {', '.join(known)}, got '{name}'{did_you_mean(name, known)}:"
            " the module that defines one of your own has to be imported first"
        )
    return predictor


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load a state dict; raise if names or shapes differ."""
    try:
        module.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise TwoscaleError(f"the weights do not fit the model: {error}".split("\n")[0]) from error


def check_weights(module: nn.Module) -> None:
    """Raise if a fit has left any number that is NaN or infinite."""
    if name := _not_finite(module):
        raise TwoscaleError(
            f"the fit gave {name} values that are NaN or infinite: take a larger ridge (none "
            "chooses one) if it is a closed form, a smaller learning_rate if it was trained"
        )


def check_stored_weights(module: nn.Module) -> None:
    """Raise if any number that was read from an artifact is NaN or infinite."""
    if name := _not_finite(module):
        raise TwoscaleError(f"the weights {name} are NaN or infinite: the artifact is damaged")


def _not_finite(module: nn.Module) -> str | None:
    """Return the name of the first tensor with a value that is NaN or infinite."""
    values = module.state_dict().items()
    return next((name for name, value in values if not bool(value.isfinite().all())), None)


def plan_of(arguments: Mapping[str, Any], **fixed: Any) -> Plan:
    """Return the plan of a training: those of a constructor's arguments that it has, and others."""
    own = {one.name: arguments[one.name] for one in fields(Plan) if one.name in arguments}
    return Plan(**own, **fixed)
