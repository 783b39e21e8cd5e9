"""The names that help shows are those of the library."""

from dataclasses import asdict

from twoscale.cli import names
from twoscale.finetuning.finetune import OBJECTIVES, FinetunePlan
from twoscale.methods.recipes import METHODS, every_setting
from twoscale.parts import is_ours
from twoscale.predictors import predictors
from twoscale.problems import PROBLEMS
from twoscale.search import DEFAULT_BUDGET


def test_names_are_those_of_the_library(own_parts):
    assert set(METHODS) == set(names.METHODS)
    assert {name for name, one in PROBLEMS.items() if is_ours(one)} == set(names.PROBLEMS)
    assert {name for name, one in predictors().items() if is_ours(one)} == set(names.PREDICTORS)
    assert tuple(OBJECTIVES) == names.OBJECTIVES
    assert set(every_setting()) == set(names.settings())


def test_defaults_are_those_of_the_library():
    assert asdict(FinetunePlan()) == names.FINETUNING
    assert names.SEARCH_SECONDS == DEFAULT_BUDGET
