import pytest

from twoscale import Darcy, Poisson, Problem, TwoscaleError
from twoscale.errors import TwoscaleWarning
from twoscale.parts import Registry
from twoscale.problems import (
    GaussianRandomField,
    get_problem,
    make_problem,
    problem_from,
    register,
    registry,
)


class Mine(Poisson):
    name = "mine"


class Abstract(Problem):
    name = "abstract"
    boundary = "none"
    solver = "none"


class Silent(Problem):
    name = "silent"


instance = Mine(forcing=GaussianRandomField(alpha=4.0))


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """A table of problems that may be changed, with no entry points loaded."""
    ours = Registry("problems")
    ours.update({name: registry.PROBLEMS[name] for name in ("poisson", "darcy")})
    monkeypatch.setattr(registry, "PROBLEMS", ours)
    monkeypatch.setattr(registry, "_NUMBERS", {1: "poisson", 2: "darcy"})
    return ours


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that makes a package with entry points look installed."""

    def installed(**entries):
        folder = tmp_path / "plugin-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
        lines = [f"{name} = {place}" for name, place in entries.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[twoscale.problems]", *lines]))
        monkeypatch.syspath_prepend(str(tmp_path))

    return installed


# By name


@pytest.mark.parametrize("problem", [Mine, Mine(), instance, Darcy(high=100.0)])
def test_a_problem_of_ones_own_can_be_registered_and_again(problem):
    register(Mine)
    assert register(problem) is problem
    made = problem() if problem is Mine else problem
    assert get_problem(problem.name) == made
    assert get_problem("poisson") == Poisson()


def test_an_unknown_name_is_told_with_those_that_are_known():
    with pytest.raises(TwoscaleError, match="'burgers': known are poisson, d"):
        get_problem("burgers")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "subclass of Problem or an instance, got 3"),
        (int, "subclass of Problem or an instance"),
        (Silent, "Silent needs a text `boundary`"),
        (Abstract, "Abstract cannot be made without arguments"),
        (type("Spaced", (Poisson,), {"name": "a b"}), "got 'a b'"),
        (type("Impostor", (Poisson,), {"name": "darcy"}), "'darcy' is one of twoscale's own"),
        (type("Twin", (Poisson,), {"name": "twin", "number": 2}), "twin has the number 2 of darcy"),
    ],
)
def test_what_is_no_problem_is_refused(given, words):
    with pytest.raises(TwoscaleError, match=words):
        register(given)


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


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("no_such_module:Problem", "No module named 'no_such_module'"),
        ("tests.problems.test_registry:Missing", "has no attribute 'Missing'"),
        ("tests.problems.test_registry:Abstract", "defines nothing with the name 'broken'"),
    ],
)
def test_a_broken_entry_point_is_left_out_with_a_warning(install, table, place, reason):
    install(broken=place)
    with pytest.warns(TwoscaleWarning, match="is left out") as caught:
        known = list(table)
    assert reason in str(caught[0].message)
    assert known[:2] == ["poisson", "darcy"]
    assert "broken" not in known


def test_packages_are_searched_only_when_needed(table, monkeypatch):
    calls = []
    monkeypatch.setattr(table, "_load", lambda: calls.append(1))
    get_problem("darcy")
    assert problem_from(None) is None
    assert calls == []
    with pytest.warns(TwoscaleWarning, match="'other' is not known"):
        assert problem_from({"name": "other", "parameters": {}}) is None
    assert calls
