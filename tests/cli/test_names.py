"""The names that help shows are those of the library."""

from dataclasses import fields

from twoscale.cli import names
from twoscale.finetuning.finetune import OBJECTIVES, FinetunePlan
from twoscale.methods.recipes import METHODS
from twoscale.methods.settings import SETTINGS
from twoscale.problems import PROBLEMS
from twoscale.search import DEFAULT_BUDGET


def ours(table):
    """The names that other tests did not register."""
    return tuple(
        name for name, one in table.items() if type(one).__module__.startswith("twoscale.")
    )


def test_names_are_those_of_the_library():
    assert tuple(METHODS) == names.METHODS
    assert tuple(SETTINGS) == names.SETTINGS
    assert sorted(ours(PROBLEMS)) == sorted(names.PROBLEMS)
    assert tuple(OBJECTIVES) == names.OBJECTIVES


def test_defaults_are_those_of_the_library():
    shown = names.Finetuning()._asdict()
    plan = {field.name: field.default for field in fields(FinetunePlan)}
    assert {name: plan[name] for name in shown} == shown
    assert names.SEARCH_SECONDS == DEFAULT_BUDGET
