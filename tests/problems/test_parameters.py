from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from twoscale import Problem, TwoscaleError
from twoscale.problems.parameters import build, plain, positive, with_settings


@dataclass(frozen=True)
class Inner:
    rate: float = 1.0


@dataclass(frozen=True)
class Everything:
    """One field of each kind that can be stored."""

    count: int
    size: float = 2.0
    wraps: bool = False
    scheme: Literal["upwind", "centred"] = "upwind"
    label: str = "a"
    speed: tuple[float, float] = (1.0, 0.0)
    levels: tuple[int, ...] = ()
    inner: Inner = field(default_factory=Inner)
    second: Inner | None = None
    limit: float | None = None
    free: Any = None
    derived: float = field(default=0.0, init=False)
    shared: ClassVar[int] = 3


OPTIONS = {"count": 3, "size": 0.1, "wraps": True, "scheme": "centred", "label": "100"}
OPTIONS |= {"speed": (0.5, -1.0), "levels": (1, 2, 3), "limit": 1e-300, "free": [1, "b"]}
FULL = Everything(**OPTIONS, inner=Inner(7.0), second=Inner(1 / 3))


@pytest.mark.parametrize("value", [FULL, Everything(count=1)])
def test_every_kind_of_value_comes_back(value):
    stored = plain(value, "it")
    assert "derived" not in stored
    assert "shared" not in stored
    assert build(Everything, stored, "it") == value


def test_what_is_read_has_the_declared_types():
    read = build(Everything, {"count": 1, "size": 3, "limit": 4, "speed": [1, 2]}, "it")
    assert [type(one) for one in (read.size, read.limit, *read.speed)] == [float] * 4


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        *(("count", value, "a whole number") for value in (1.5, True)),
        *(("size", value, "a finite number") for value in ("2", 10**400)),
        ("wraps", 1, "true or false"),
        ("label", 1, "text"),
        ("scheme", "other", "upwind"),
        ("speed", [1.0], "a list of 2"),
        ("speed", 1.0, "a list"),
        ("limit", "x", "a finite number"),
        ("inner", {"speed": 1}, "'speed': it has rate"),
        ("derived", 1.0, "it has count, size"),
    ],
)
def test_values_that_do_not_fit_are_refused(name, value, words):
    with pytest.raises(TwoscaleError, match=f"{name}.*{words}"):
        build(Everything, {"count": 1, name: value}, "it")


@pytest.mark.parametrize(("values", "words"), [({}, "'count'"), (None, "got None")])
def test_parameters_that_are_missing_are_told(values, words):
    with pytest.raises(TwoscaleError, match=words):
        build(Everything, values, "it")


def test_a_refusal_by_the_class_itself_is_told():
    @dataclass
    class Picky:
        size: float

        def __post_init__(self):
            raise ValueError("too large")

    with pytest.raises(TwoscaleError, match=r"\{'size': 1.0\}: too large"):
        build(Picky, {"size": 1.0}, "it")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}, np.ones(2), Inner])
def test_what_cannot_be_stored_is_refused(value):
    with pytest.raises(TwoscaleError, match=r"it\.free must be"):
        plain(Everything(count=1, free=value), "it")


def test_numpy_scalars_are_stored_as_numbers():
    stored = plain([np.float32(0.5), np.int64(3), np.bool_(True)], "it")
    assert stored == [0.5, 3, True]
    assert [type(one) for one in stored] == [float, int, bool]


def test_texts_are_read_as_what_they_replace():
    texts = {
        "count": "4",
        "size": ".5",
        "wraps": "yes",
        "label": "100",
        "speed": "[3, 4]",
        "inner.rate": "9",
        "limit": "2",
    }
    changed = with_settings(plain(Everything(count=1), "it"), texts, "it")
    expected = Everything(4, 0.5, True, "upwind", "100", (3.0, 4.0), inner=Inner(9.0), limit=2.0)
    assert build(Everything, changed, "it") == expected


def test_settings_are_found_by_their_last_name():
    current = {"inner": {"rate": 1.0}, "limit": 1.0}
    changed = with_settings(current, {"rate": 2.0, "limit": "none"}, "it")
    assert changed == {"inner": {"rate": 2.0}, "limit": None}
    assert current == {"inner": {"rate": 1.0}, "limit": 1.0}
    with pytest.raises(TwoscaleError, match=r"'rate': say inner.rate or second"):
        with_settings(plain(FULL, "it"), {"rate": 1}, "it")


def test_a_problem_without_parameters_has_none():
    class Bare(Problem):
        name = boundary = solver = "bare"
        distribution = sample = solve = residual = None

    assert Bare().parameters() == {}
    assert type(Bare.from_parameters({})) is Bare
    with pytest.raises(TwoscaleError, match=r"bare .* got \{'size': 1\}"):
        Bare.from_parameters({"size": 1})


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3)])
def test_positive_numbers_are_floats(value):
    assert type(positive("x", value)) is float
    assert positive("x", value) == value
