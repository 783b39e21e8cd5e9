"""The predictors by name: twoscale's own, and those that users register."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.parts import PARTS, register
from twoscale.predictors.base import CodePredictor
from twoscale.predictors.closed_form import Affine, AffineMLP, Kernel
from twoscale.predictors.encoder import Encoder
from twoscale.predictors.mlp import MLP
from twoscale.predictors.paper_networks import FNO
from twoscale.predictors.spectral_filter import SpectralFilter

PREDICTORS: dict[str, type[CodePredictor]] = {
    one.name: one for one in (MLP, Affine, AffineMLP, Kernel, Encoder, FNO, SpectralFilter)
}

_BUILT_IN = tuple(PREDICTORS)
_RESERVED = {"method", "seed", "device", "problem", "inputs", "outputs", "predictor", "correction"}


_signature = cache(inspect.signature)  # studies ask for the same ones thousands of times


def defaults_of(maker: Callable[..., Any], *names: str) -> dict[str, Any]:
    """Return the default arguments of a constructor by name; of all arguments, if none is named."""
    arguments = _signature(maker).parameters
    return {name: arguments[name].default for name in names or arguments}


def get_predictor(name: str) -> type[CodePredictor]:
    """Return the predictor of that name."""
    if name not in PREDICTORS:
        raise TwoscaleError(
            f"predictor must be one of {', '.join(PREDICTORS)}, got '{name}'"
            f"{did_you_mean(name, PREDICTORS)}: one of your own has to be made known first, by "
            "twoscale.register_predictor"
        )
    return PREDICTORS[name]


def register_predictor(name: str, predictor: type[CodePredictor], *, title: str = "") -> None:
    """Make a predictor of your own known: `Surrogate(predictor=name)` then uses it.

    Parameters
    ----------
    name
        What it is called in settings and in saved surrogates. A saved surrogate can be loaded only
        where a predictor of that name is registered.
    predictor
        A subclass of `CodePredictor`. The arguments of its constructor are its settings; each
        needs a default.
    title
        What it is called in tables; by default the class's title, or its name.

    Examples
    --------
    >>> class Zero(CodePredictor):
    ...     def prepare(self, training, validation, decoder, seed):
    ...         self.register_buffer("code", 0 * training.targets[0])
    ...     def restore(self, tensors):
    ...         self.register_buffer("code", tensors["code"])
    ...         return self
    ...     def forward(self, codes):
    ...         return self.code.expand(len(codes), -1)
    >>> register_predictor("zero", Zero)  # doctest: +SKIP
    """
    if not (isinstance(predictor, type) and issubclass(predictor, CodePredictor)):
        raise TwoscaleError(f"a predictor is a subclass of CodePredictor, got {predictor!r}")
    if missing := sorted(getattr(predictor, "__abstractmethods__", ())):
        raise TwoscaleError(f"{predictor.__name__} lacks {', '.join(missing)}: see CodePredictor")
    if name in _BUILT_IN:
        raise TwoscaleError(f"'{name}' is one of twoscale's own predictors: take another name")
    settings = defaults_of(predictor)
    if reserved := settings.keys() & _RESERVED:
        raise TwoscaleError(
            f"{', '.join(sorted(reserved))} of {predictor.__name__} would be taken for that of the "
            "surrogate: name the argument otherwise"
        )
    if bare := [key for key, value in settings.items() if value is inspect.Parameter.empty]:
        raise TwoscaleError(
            f"the arguments of {predictor.__name__} are settings and need defaults: "
            f"give one to {', '.join(bare)}"
        )
    if is_own(name):
        del PARTS[name]  # one's own may be registered anew, as when a notebook is run again
    predictor.name, predictor.title = name, title or predictor.title or name
    PREDICTORS[name] = register(predictor)


def is_own(name: str) -> bool:
    """Say whether a predictor is registered by the user, not one of twoscale's own."""
    return name in PREDICTORS and name not in _BUILT_IN
