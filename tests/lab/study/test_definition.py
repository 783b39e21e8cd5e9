"""Studies as data: what comes with the library is the paper's; what is wrong is told."""

import json
import textwrap
from pathlib import Path

import pytest

from tests.lab.study.tiny import TEXT, tiny_study
from twoscale import Surrogate, TwoscaleError
from twoscale.domain.space import Space
from twoscale_lab.names import SCALES, STUDIES
from twoscale_lab.study.catalogue import (
    asked_cells,
    load_study,
    own_definition,
    parse_study,
    recorded_study,
)
from twoscale_lab.study.paper.published import paper_tables

CELLS = {  # the paper's number of runs, but for fewer seeds of the Fourier networks and of Darcy
    "headline": 35 - 2,
    "mechanism": 25,
    "resolution": 54,
    "darcy": 5 * 3 + 1,
    "coarse-design": (9 + 8) * 3,
    "latent-objective": 12,
    "loss-ladder": 36,
    "sample-efficiency": 48,
    "svd-solver": 35,
}


def test_the_studies_are_listed_in_the_papers_order():
    assert list(STUDIES) == [*CELLS, "frontier", "beyond", "leaderboard"]


@pytest.mark.parametrize("name", STUDIES)
def test_each_cell_is_there_once_at_both_scales(name):
    study = load_study(name)
    for scale in SCALES:
        cells = study.at(scale).cells()
        assert len({cell.key for cell in cells}) == len(cells)
    assert len(study.at("small").rows()) == len(study.rows())


@pytest.mark.parametrize(("name", "cells"), CELLS.items())
def test_the_studies_have_the_papers_cells(name, cells):
    assert len(load_study(name).cells()) == cells


@pytest.mark.parametrize("name", CELLS)
def test_every_row_of_the_papers_tables_is_a_case(name):
    study = load_study(name)
    cases = {row.case.id for row in study.rows()}
    tables = {label: table for label, table in paper_tables().items() if table.study == name}
    for table in tables.values():
        for cell in table.cells:
            assert {cell.case, cell.against} - {None} <= cases
    assert set(study.compare.paper) == set(tables)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", STUDIES)
def test_every_case_can_be_fitted(name, scale):
    """The grids, ranks and numbers of samples are legal."""
    for cell in {cell.case: cell for cell in load_study(name).at(scale).cells()}.values():
        problem, sides = cell.data.make_problem(), 2 * [cell.case.resolution]
        space = Space(problem.grid(*sides))
        for data in cell.tests:
            data.make_problem().check_grid(space.grid)
        if cell.searches:
            continue
        surrogate = Surrogate(cell.case.method, problem=problem, **cell.settings)
        training = cell.training - cell.training // 10 if cell.tests else cell.training
        surrogate.parts.operator().check(space, space, training)


def test_the_small_scale_names_its_own_cases():
    tables = load_study("loss-ladder").at("small").tables
    assert tables[0].rows == ["poisson-32 *"]
    assert tables[0].title == "Error and seams on Poisson 32²"
    assert load_study("loss-ladder").tables[0].rows == ["poisson-128 *"]


def test_the_same_cells_of_different_studies_are_the_same():
    keys = {name: {cell.key for cell in load_study(name).cells()} for name in STUDIES}
    assert len(keys["headline"] & keys["mechanism"]) == 20  # local, overlap, two-scale, + A3
    assert len(keys["headline"] & keys["svd-solver"]) == 15
    assert len(keys["sample-efficiency"] & keys["resolution"]) == 12


def test_steps_are_held_fixed():
    cells = load_study("sample-efficiency").cells(seeds=[0], only=["two-scale"])
    steps = {cell.training * cell.settings["epochs"] for cell in cells}
    assert steps == {8000 * 500}
    patience = {cell.training: cell.settings["patience"] for cell in cells}
    assert patience == {1250: 192, 2000: 120, 4000: 60, 8000: 30}
    tuned = {cell.training: cell.finetuning for cell in cells if cell.finetuning}
    assert [tuned[1250][name] for name in ("epochs", "warm_up", "ramp")] == [320, 32, 64]


def test_lists_are_multiplied_out():
    study = tiny_study(
        TEXT.replace(
            "- {method: local}",
            "- {method: [local, global], problem: [poisson, darcy], training: [40, null],"
            " settings: {output_variance: [0.9, 0.95]}, label: 'at {output_variance}'}",
        )
    )
    rows = study.rows()[:-2]
    assert len(rows) == len({row.case for row in rows}) == 16
    assert rows[0].case.id == "poisson-16 local output_variance=0.9 training=40"
    assert rows[0].label == "at 0.9"
    assert rows[0].seeds == (0, 1)


def test_a_case_that_comes_twice_is_one():
    study = tiny_study(
        TEXT.replace("- {method: local}", "- {method: local}\n  - {method: local, seeds: [1, 5]}")
    )
    assert study.rows()[0].seeds == (0, 1, 5)
    assert len(study.rows()) == 3


def test_seeds_and_methods_can_be_chosen():
    study = tiny_study()
    assert {cell.seed for cell in study.cells(seeds=[7])} == {7}
    assert {cell.case.method for cell in study.cells(only=["local"])} == {"local"}
    tuned = study.cells(only=["two-scale+A1"])
    assert {cell.case.objective for cell in tuned} == {"A1"}
    assert len(study.cells(only=["two-scale"])) == 4
    with pytest.raises(TwoscaleError, match=r"no method 'fno': it has local, two-scale"):
        study.cells(only=["fno"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: Tiny", "title: [", "is not YAML"),
        ("title: Tiny", "tilte: Tiny", "wrong at title: Field required"),
        ("seeds: [0, 1]", "seeds: [0, 1]\ncolour: red", "wrong at colour: Extra inputs"),
        ("seeds: [0, 1]", "seeds: []", "wrong at seeds"),
        ("method: local}", "method: magic}", "no method is called 'magic'"),
        ("method: local}", "method: local, settings: {modes: 3}}", "no setting 'modes'"),
        ("objective: [null, A1]", "objective: A9", "no objective is called 'A9'"),
        ("method: local}", "method: local, label: '{colour}'}", "may hold only .names. of"),
        ("samples: 100", "samples: many", "wrong at samples"),
        (
            "columns: [mre]",
            "columns: [mer]",
            "wrong at tables.0.columns.0: .*no quantity is called",
        ),
        ("title: Tiny", "title: Tiny\nname: ../tiny", "wrong at name"),
        ("title: Tiny", f"title: Tiny\nname: {'x' * 51}", "wrong at name: .* at most 50"),
        ("seeds: [0, 1]", "seeds: [-1]", "wrong at seeds.0: .* greater than or equal to 0"),
        ("samples: 100", "samples: 0", "wrong at samples"),
        ("resolution: 16", f"resolution: {10**12}", "wrong at resolution"),
        ("seeds: [0, 1]", f"seeds: {list(range(4000))}", "over 10,000 cells: give fewer"),
        (
            "method: local}",
            f"method: local, settings: {{epochs: {list(range(1, 99))}, patience: "
            f"{list(range(1, 99))}, batch_size: {list(range(1, 99))}}}}}",
            "over 10,000 cells: give fewer",
        ),
        ("method: local}", "method: local, settings: {epochs: .inf}}", "epochs must be a whole"),
        ("local: {epochs: 2}", "local: 3", "wrong at protocol.settings.local"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(old, new, message):
    with pytest.raises(TwoscaleError, match=message) as told:
        tiny_study(TEXT.replace(old, new, 1))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "label",
    [
        "{method.__class__}",
        "{method[0]}",
        "{method!r}",
        "{0}",
        "{}",
        "{epochs:999999999d}",
        "{epochs:>99}",
        "{epochs:{epochs}}",
        "{method:.1%}",
        "{training:d}",
        "open {",
        "{{epochs}}",
    ],
)
def test_a_label_holds_names_only(label):
    text = TEXT.replace("{method: local}", f"{{method: local, label: {label!r}}}")
    with pytest.raises(TwoscaleError, match=r"of poisson-16 local may hold only \{names\} of"):
        tiny_study(text)


def test_labels_write_numbers_in_short_formats():
    label = "{title} on {resolution}: {output_variance:.1%}, {epochs:,d}, {learning_rate:.1e}"
    study = tiny_study(TEXT.replace("{method: local}", f"{{method: local, label: '{label}'}}"))
    assert study.rows()[0].label == "Plain L2L on 16: 99.0%, 500, 1.0e-03"


def test_a_text_that_is_no_mapping_is_refused():
    with pytest.raises(TwoscaleError, match="should be a YAML mapping"):
        parse_study("- a\n- b", name="mine")


def test_a_study_of_ones_own_is_read_from_its_file(tmp_path):
    (tmp_path / "mine.yaml").write_text(TEXT)
    assert load_study(str(tmp_path / "mine.yaml")).name == "mine"
    with pytest.raises(TwoscaleError, match="does not exist"):
        load_study(str(tmp_path / "other.yaml"))
    with pytest.raises(TwoscaleError, match="no study is called 'mine': known are headline"):
        load_study("mine")
    (tmp_path / "headline.yaml").write_text(TEXT)
    with pytest.raises(TwoscaleError, match="has the name of the study headline: give it another"):
        load_study(str(tmp_path / "headline.yaml"))
    (tmp_path / "latin.yaml").write_bytes("title: Größe".encode("latin-1"))
    with pytest.raises(TwoscaleError, match=r"latin\.yaml is damaged"):
        load_study(str(tmp_path / "latin.yaml"))


def test_a_record_holds_the_definition_of_a_study_of_ones_own():
    study = tiny_study()
    record = {"study": "tiny", "scale": "paper", **own_definition(study)}
    assert recorded_study(json.loads(json.dumps(record))) == study
    assert own_definition(load_study("headline")) == {}
    small = recorded_study({"study": "headline", "scale": "small"})
    assert small == load_study("headline").at("small")
    assert recorded_study({"study": "tiny", "scale": "paper"}) is None
    with pytest.raises(TwoscaleError, match="in the record of tiny is wrong at name: Field requi"):
        recorded_study({"study": "tiny", "scale": "paper", "definition": {"title": 3}})


def test_not_every_study_needs_to_have_what_is_asked_for():
    studies = [tiny_study(), tiny_study(TEXT.replace("{method: local}", "{method: global}"))]
    asked = asked_cells(studies, "paper", seeds=[0], only=["local"])
    assert [[cell.case.id for cell in cells] for cells in asked] == [["poisson-16 local"], []]
    with pytest.raises(TwoscaleError, match="no method 'fno'"):
        asked_cells(studies, "paper", only=["fno"])


def test_the_documented_study_is_one():
    page = (Path(__file__).parents[3] / "docs/reference/studies.md").read_text(encoding="utf-8")
    example = page.partition("## Your own study\n")[2].partition("\n`protocol`")[0]
    study = parse_study(textwrap.dedent(example), name="documented")
    assert [row.label for row in study.rows()][::2] == ["rank 5", "rank 10", "rank 20", None]
    assert len(study.cells()) == 3 * 2 * 3 + 1
