"""The names that help shows are those of the lab."""

from twoscale_lab.bench import BENCHMARKS
from twoscale_lab.cli import names
from twoscale_lab.study.catalogue import study_names
from twoscale_lab.study.definition import SCALES


def test_names_are_those_of_the_lab():
    assert tuple(BENCHMARKS) == names.BENCHMARKS
    assert tuple(study_names()) == names.STUDIES
    assert tuple(SCALES) == names.SCALES
