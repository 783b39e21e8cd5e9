"""Settings that several predictors have: how errors are weighed, and how a network is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

from twoscale.settings import RATE, choice, real, whole
from twoscale.training import Plan
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


def plan_of(arguments: Mapping[str, Any], **fixed: Any) -> Plan:
    """Return the plan of a training: those of a constructor's arguments that it has, and others."""
    own = {one.name: arguments[one.name] for one in fields(Plan) if one.name in arguments}
    return Plan(**own, **fixed)
