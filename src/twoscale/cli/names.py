"""Names and defaults of the library that help and completion show.

Help must not wait for torch, so that they are written down here. `tests/cli/test_names.py` compares
them with the library.
"""

from __future__ import annotations

from typing import NamedTuple

METHODS = (
    "global",
    "local",
    "overlap",
    "refinement",
    "fno",
    "two-scale",
    "three-scale",
    "conforming",
    "whole-field",
)

SETTINGS = (
    "patches",
    "input_transform",
    "input_variance",
    "output_variance",
    "coarse_factor",
    "coarse_components",
    "coarse_variance",
    "middle_patches",
    "middle_variance",
    "residual_variance",
    "variance",
    "code_size",
    "seam_width",
    "few_features",
    "solver",
    "symmetries",
    "average_symmetries",
    "predictor",
    "ridge",
    "kernel",
    "length_scale",
    "kernel_samples",
    "objective",
    "hidden_layers",
    "hidden_width",
    "epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "patience",
    "early_stop",
    "base",
    "refinement_epochs",
    "refinement_batch_size",
    "refinement_learning_rate",
    "refinement_weight_decay",
    "refinement_patience",
    "channels",
    "layers",
    "width",
    "blocks",
    "cycles",
    "members",
    "cut",
    "optimiser",
    "clip",
    "modes",
    "padding",
    "evaluation_batch",
)

PROBLEMS = (
    "poisson",
    "darcy",
    "helmholtz",
    "navier-stokes",
    "darcy-fno",
    "cno-poisson",
    "cno-wave",
)

OBJECTIVES = ("A1", "A2", "A3", "A4", "A5", "flux")

DEVICES = ("auto", "cpu", "cuda")

SEARCH_SECONDS = 120.0
"""The budget of a search that is given none."""


class Finetuning(NamedTuple):
    """The options of a fine-tuning that is given none."""

    objective: str = "A3"
    epochs: int = 50
    warm_up: int = 5
    ramp: int = 10
