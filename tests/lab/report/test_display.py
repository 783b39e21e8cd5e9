"""Every quantity of a study has words, and every stage a look of its own."""

from typing import ClassVar

import pytest

from twoscale.report import display
from twoscale.report.axes import GREY, stage_look
from twoscale.representation import Chain, pca_stages
from twoscale_lab.names import STUDIES
from twoscale_lab.study.catalogue import load_study
from twoscale_lab.study.quantities import TIMED, check_quantity, quantity


@pytest.mark.parametrize("study", STUDIES)
def test_every_column_of_every_study_has_words_of_its_own(study):
    for table in load_study(study).tables:
        for name in table.columns:
            check_quantity(name)
            assert "_" not in display.display(name).heading


@pytest.mark.parametrize("stage", [*TIMED, *pca_stages()])
def test_every_stage_is_a_quantity_with_words_and_a_look(stage):
    check_quantity(stage)
    assert display.display(stage).unit == "s"
    assert "_" not in display.display(stage).heading
    assert stage_look(stage)[0] != GREY


def test_stages_that_are_drawn_together_look_different():
    for stages in (TIMED, pca_stages()):
        assert len({stage_look(stage) for stage in stages}) == len(stages)


def test_the_stages_of_a_chain_of_ones_own_are_quantities(own_parts):
    class Layers(Chain):
        name = "layers"
        stage_titles: ClassVar = {"upper": "upper", "lower_half": "lower half"}

    cell = {
        "metrics": {"timings": {"pca_upper": 2.0, "pca_lower_half": 1.0}},
        "retained": {"output": {"ranks": {"lower_half": [3, 4]}}},
    }
    assert quantity(cell, "pca_fit") == 3.0
    assert quantity(cell, "pca_lower_half") == 1.0
    assert quantity(cell, "lower_half_code") == 7
    assert display.display("pca_lower_half").heading == "lower half PCA s"
    assert display.display("lower_half_code").words == "lower half coordinates"
