"""How files become fields: which arrays, in which order of axes, which part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from twoscale.data.axes import AxesOrder, is_order
from twoscale.data.sections import Times, parse_select
from twoscale.errors import TwoscaleError

Keys = str | Sequence[str] | None


@dataclass(frozen=True)
class Reading:
    """How files become fields.

    Parameters
    ----------
    inputs, outputs, parameters
        Names of arrays. Several are channels, in this order. Without any, arrays whose names leave
        no doubt are taken, such as `a` and `u`.
    axes
        Orders of axes such as "nhwc" or "a=hwn,u=nhw", where files do not name them.
    select
        A part of the samples such as "0:1000", or of any axis: "sample=0:1000,height=::2".
    time
        The times that are inputs and those that are outputs, such as "0/-1" or "0:10/10:20".
    periodic
        Whether rows and columns wrap; by default as the file says, or not at all.
    known
        Orders of axes found earlier in a file of the same layout, by the arrays' names.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    axes: str | None = None
    select: str | None = None
    time: str | None = None
    periodic: tuple[bool, bool] | None = None
    known: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        AxesOrder.parse(self.axes), parse_select(self.select), Times.parse(self.time)  # may raise

    @classmethod
    def of(
        cls,
        *,
        inputs: Keys = None,
        outputs: Keys = None,
        parameters: Keys = None,
        axes: str | None = None,
        select: str | slice | None = None,
        time: str | None = None,
        periodic: tuple[bool, bool] | None = None,
    ) -> Reading:
        """Return the reading that is asked for; names of arrays are one text or a list."""
        if isinstance(select, slice):
            bounds = (select.start, select.stop, select.step)
            select = ":".join("" if one is None else str(one) for one in bounds)
        return cls(
            _listed(inputs),
            _listed(outputs),
            _listed(parameters),
            axes or None,
            select or None,
            time or None,
            periodic,
        )

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """Return the names of arrays by role."""
        return {"input": self.inputs, "output": self.outputs, "parameters": self.parameters}

    def for_other(self, given: Reading) -> Reading:
        """Return the reading of another file of the same layout; what is `given` comes first.

        A selection of samples is one of the first file only. The orders of axes are `known`: they
        hold where the other file does not name its axes.
        """
        kept = [
            f"{axis}={part.start or ''}:{part.stop or ''}:{part.step or 1}"
            for axis, part in parse_select(self.select).items()
            if axis != "n"
        ]
        base = replace(self, axes=None, select=",".join(kept) or None)
        asked = {name: value for name, value in vars(given).items() if value}
        return replace(base, **asked)

    def as_dict(self) -> dict[str, Any]:
        """Return the reading as JSON would hold it, for `from_dict`."""
        plain = asdict(self) | {"known": dict(self.known)}
        return {key: list(one) if isinstance(one, tuple) else one for key, one in plain.items()}

    @classmethod
    def from_dict(cls, stored: Any) -> Reading:
        """Return a stored reading, or raise a TwoscaleError."""
        if not _is_reading(stored):
            raise TwoscaleError("it has no proper record of how its files are read")
        lists = ("inputs", "outputs", "parameters", "periodic")
        tuples = {name: stored[name] and tuple(stored[name]) for name in lists}
        empty = {name: () for name in lists[:3] if not stored[name]}
        return cls(**(stored | tuples | empty))

    @classmethod
    def recorded_in(cls, described: Mapping[str, Any]) -> Reading:
        """Return how the files were read that a dataset is made of; empty if that is unknown."""
        stored = described.get("reading")
        return cls() if stored is None else cls.from_dict(stored)


def _listed(keys: Keys) -> tuple[str, ...]:
    listed = [keys] if isinstance(keys, str) else list(keys or ())
    twice = sorted({key for key in listed if listed.count(key) > 1})
    if twice:
        raise TwoscaleError(f"an array is one channel only, got '{twice[0]}' twice")
    return tuple(listed)


def _is_reading(stored: Any) -> bool:
    names = {"inputs", "outputs", "parameters", "axes", "select", "time", "periodic", "known"}
    if not isinstance(stored, dict) or set(stored) != names:
        return False
    texts = (stored[name] for name in ("axes", "select", "time"))
    lists = (stored[name] for name in ("inputs", "outputs", "parameters"))
    known, periodic = stored["known"], stored["periodic"]
    return (
        all(one is None or isinstance(one, str) for one in texts)
        and all(isinstance(one, list) and all(isinstance(key, str) for key in one) for one in lists)
        and isinstance(known, dict)
        and all(is_order(order) for order in known.values())
        and (periodic is None or (isinstance(periodic, list) and len(periodic) == 2))
    )
