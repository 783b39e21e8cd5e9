"""What a search knows of a predictor: how much work a fit is, and after what it is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

EIGEN = 25  # times n^3: an eigendecomposition, whose products are slower than others


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
