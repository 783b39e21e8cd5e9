"""The models of a server with their queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.serve.batching import Batcher
from twoscale.serve.http import HttpService
from twoscale.serve.limits import Limits, Refusal
from twoscale.serve.model import ServedModel


class ModelService(HttpService):
    """What the endpoints for models share.

    Parameters
    ----------
    models
        The models, of different names.
    limits
        What is accepted at most.
    """

    def __init__(self, models: Sequence[ServedModel], limits: Limits) -> None:
        super().__init__(limits)
        self.models = {model.name: model for model in models}
        if not models or len(self.models) != len(models):
            raise TwoscaleError("a server needs models of different names, and at least one")
        self.batcher = Batcher(limits)

    def start(self) -> None:
        self.batcher.start()

    def stop(self) -> None:
        self.batcher.stop()

    def model(self, name: Any) -> ServedModel:
        """Return a model by its name; without one, the only model."""
        known = ", ".join(self.models)
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if name is None:
            raise TwoscaleError(f"name a model: there are {known}")
        if not isinstance(name, str) or name not in self.models:
            hint = did_you_mean(name, self.models) if isinstance(name, str) else ""
            sentence = f"no model is called {name!r:.80}{hint}: there are {known}"
            raise Refusal(404, sentence, kind="ModelNotFound")
        return self.models[name]
