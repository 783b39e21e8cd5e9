from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from twoscale import Darcy, Poisson, Problem, TwoscaleError
from twoscale.errors import TwoscaleWarning
from twoscale.parts import Registry
from twoscale.problems import GaussianRandomField, base, get_problem, make_problem, problem_from


class Nameless(Problem):
    pass


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """A table of problems that may be changed, with no entry points loaded."""
    ours = Registry("problems")
    ours.update({"poisson": Poisson, "darcy": Darcy})
    monkeypatch.setattr(base, "PROBLEMS", ours)
    monkeypatch.setattr(base, "_NUMBERS", {1: "poisson", 2: "darcy"})
    return ours


# By name


def test_an_unknown_name_is_told_with_those_that_are_known():
    with pytest.raises(TwoscaleError, match="'burgers': known are poisson, d"):
        get_problem("burgers")


def test_a_problem_of_ones_own_is_known_by_its_name_and_may_be_defined_again():
    for alpha in (3.0, 4.0):

        @dataclass(frozen=True)
        class Mine(Poisson):
            forcing: GaussianRandomField = field(default=GaussianRandomField(alpha))

            name: ClassVar[str] = "mine"

        assert get_problem("mine") == Mine(GaussianRandomField(alpha))


def define(kind=Poisson, **body):
    return type("Mine", (kind,), body)


@pytest.mark.parametrize(
    ("kind", "names", "words"),
    [
        (Poisson, {"name": "darcy"}, "'darcy' is one of twoscale's own"),
        (Problem, {"name": "silent"}, "Mine needs a text `boundary`"),
        (Poisson, {"name": 3}, "Mine needs a text `name`"),
        (Poisson, {"name": "twin", "number": 2}, "twin has the number 2 of darcy"),
        (Poisson, {"name": "a b"}, "got 'a b'"),
    ],
)
def test_what_is_no_problem_is_refused(kind, names, words):
    with pytest.raises(TwoscaleError, match=words):
        define(kind, **names)


def test_a_problem_that_lacks_a_method_cannot_be_made():
    define(Problem, name="abstract", boundary="none", solver="none")
    with pytest.raises(TwoscaleError, match="cannot be made without arguments"):
        get_problem("abstract")


# With settings


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"high": "100", "low": 1}, Darcy(high=100.0, low=1.0)),
        ({"medium.alpha": "3"}, Darcy(medium=GaussianRandomField(alpha=3.0))),
        ({"tau": 5.5}, Darcy(medium=GaussianRandomField(tau=5.5))),
        ({"medium": {"tau": 5.5}}, Darcy(medium=GaussianRandomField(tau=5.5))),
        ({"medium": GaussianRandomField(1.0, 2.0)}, Darcy(medium=GaussianRandomField(1.0, 2.0))),
    ],
)
def test_settings_are_read_and_set(settings, expected):
    assert make_problem("darcy", settings) == expected
    assert get_problem("darcy") == Darcy()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hihg": 1}, r"'hihg' \(did you mean high\?\)"),
        ({"medium": 3}, r"'medium' \(did you mean medium\.tau\?\)"),
        ({"high": "much"}, r"darcy\.high .* got 'much'"),
        ({"high": "nan"}, r"darcy\.high .* got nan"),
        ({"alpha": "[1, 2]"}, r"darcy\.medium\.alpha .* got \[1, 2\]"),
        ({"low": "-1"}, "low .* got -1"),
        ({"low": object}, r"darcy\.low .* stored"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, words):
    with pytest.raises(TwoscaleError, match=words):
        make_problem("darcy", settings)


# From descriptions


@pytest.mark.parametrize(
    ("description", "words"),
    [
        *((text, "its name") for text in ("darcy", {"name": "darcy"})),
        ({"name": 3, "parameters": {}}, "its name"),
        ({"name": "darcy", "parameters": [1]}, r"got \[1\]"),
        ({"name": "darcy", "parameters": {"high": -1}}, "high must be a positive"),
        ({"name": "darcy", "parameters": {"medium": {"beta": 2}}}, "'beta': it has alpha, tau"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(description, words):
    with pytest.raises(TwoscaleError, match=words):
        problem_from(description)


# From installed packages


def test_packages_are_searched_only_when_needed(table, monkeypatch):
    calls = []
    monkeypatch.setattr(table, "_load", lambda: calls.append(1))
    get_problem("darcy")
    assert problem_from(None) is None
    assert calls == []
    with pytest.warns(TwoscaleWarning, match="'other' is not known"):
        assert problem_from({"name": "other", "parameters": {}}) is None
    assert calls


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("no_such_module:Problem", "No module named 'no_such_module'"),
        ("tests.problems.test_registry:Missing", "has no attribute 'Missing'"),
        ("tests.problems.test_registry:Nameless", "defines nothing with the name 'broken'"),
    ],
)
def test_a_broken_entry_point_is_left_out_with_a_warning(
    table, place, reason, tmp_path, monkeypatch
):
    folder = tmp_path / "plugin-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[twoscale.problems]\nbroken = {place}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(TwoscaleWarning, match=f"left out.*{reason}|{reason}.*left out"):
        known = list(table)
    assert known[:2] == ["poisson", "darcy"]
    assert "broken" not in known
