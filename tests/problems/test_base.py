from twoscale import Darcy, Grid, Poisson, Problem
from twoscale.problems import DiffusionProblem
from twoscale.problems.base import number_of


def test_the_entropy_names_everything_a_sample_depends_on():
    assert Poisson().entropy(Grid((9, 12)), 5) == (5, 1, 9, 12)
    assert Darcy().entropy(Grid((9, 12)), 5) == (5, 2, 9, 12)


def test_a_problem_demands_only_what_every_equation_has():
    demanded = {"distribution", "sample", "solve"}
    assert Problem.__abstractmethods__ == demanded
    assert DiffusionProblem.__abstractmethods__ == demanded | {"coefficient", "right_side"}
    assert not Problem.fixed_operator
    assert (Problem.channels, Problem.periodic) == ((1, 1), (False, False))


def test_a_number_follows_from_a_new_name():
    class Mine(Poisson):
        name = "mine"

    class Numbered(Poisson):
        name = "numbered"
        number = 77

    class Renamed(Numbered):
        name = "renamed"

    class Same(Poisson):
        symmetric_under = "none"

    assert Mine.number == number_of("mine") == 13822397466621731249
    assert Renamed.number == number_of("renamed") >= 2**63
    assert (Numbered.number, Same.number) == (77, 1)
