"""States of long work, saved now and then, so that a killed command can go on."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from twoscale.errors import TwoscaleWarning
from twoscale.files.checksums import content_digest, tensor_digests
from twoscale.files.moves import replace_file

# Saving begins after two seconds. From then on at most a twentieth of the work is at risk, unless
# saving is so slow that it would take more than a fortieth of the time.
_FIRST_SECONDS = 2.0
_SHARE_AT_RISK = 0.05
_COST_LIMIT = 40


class State(NamedTuple):
    """What was saved: tensors on the CPU, and facts that JSON can hold."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


class Checkpoints:
    """The saved states in a folder, by name; the folder is made when the first one is saved."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.clock = clock

    def named(self, name: str) -> Checkpoint:
        """Return the checkpoint of some work."""
        digest = hashlib.blake2b(name.encode(), digest_size=12).hexdigest()
        return Checkpoint(self.folder / f"{digest}.safetensors", self.clock)


class Checkpoint:
    """The saved state of one piece of work: a file that is complete or absent.

    The clock starts when the object is made. `earlier` is the time that the work took in the
    processes before this one.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.clock = clock
        self.earlier = 0.0
        self._start = self._latest = clock()
        self._cost = 0.0
        self._possible = True

    @property
    def seconds(self) -> float:
        """Return the time that the work has taken so far, in all processes."""
        return self.earlier + self.clock() - self._start

    def load(self) -> State | None:
        """Return the saved state, or None if there is none that is whole."""
        try:
            with safe_open(self.path, framework="pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if facts.pop("checksum") != _digest(facts, tensors):
                return None
            self.earlier = float(facts.pop("seconds"))
        except (OSError, SafetensorError, ValueError, KeyError, AttributeError, TypeError):
            return None
        return State(tensors, facts)

    def due(self) -> bool:
        """Say whether so much was done since the last time that it should be saved."""
        interval = max(_FIRST_SECONDS, _SHARE_AT_RISK * self.seconds, _COST_LIMIT * self._cost)
        return self._possible and self.clock() - self._latest >= interval

    def worthwhile(self) -> bool:
        """Say whether the work was so long that its end should be saved."""
        return self._possible and self.seconds >= _FIRST_SECONDS

    def save(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Save a state in place of the last one; a failure of the disk ends the saving only."""
        began = self.clock()
        saved = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        described = json.loads(json.dumps({**facts, "seconds": self.seconds}))
        described["checksum"] = _digest(described, saved)
        prepared = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(exist_ok=True)
            save_file(saved, prepared, metadata={"facts": json.dumps(described)})
            replace_file(prepared, self.path)
        except (OSError, SafetensorError) as error:
            self._possible = False
            prepared.unlink(missing_ok=True)
            warnings.warn(
                f"no checkpoint can be saved, so that this work could not go on if it were "
                f"stopped: {error}",
                TwoscaleWarning,
                stacklevel=2,
            )
        self._latest = self.clock()
        self._cost = self._latest - began


def _digest(facts: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    return content_digest({"facts": facts, "tensors": tensor_digests(tensors)})
