"""The paper's tables as data: complete, in the project's words, equal to the paper."""

from fnmatch import fnmatchcase

import pytest

from twoscale.errors import TwoscaleError
from twoscale_lab.study.cells import parse_case
from twoscale_lab.study.paper.published import (
    Explanation,
    PaperTable,
    known_explanations,
    paper_tables,
    parse,
)

# Study: how many tables repeat it, and how many cells and values they have.
COUNTS = {
    "headline": (4, 19, 69),
    "mechanism": (4, 19, 89),
    "resolution": (2, 27, 69),
    "darcy": (5, 24, 117),
    "coarse-design": (4, 44, 265),
    "latent-objective": (3, 26, 75),
    "loss-ladder": (5, 52, 314),
    "sample-efficiency": (7, 76, 377),
    "svd-solver": (6, 54, 296),
}

REFERENCE = "residual_variance=0.99"
A0 = "poisson-256 two-scale"
ADAPTIVE = f"coarse_components=20 coarse_variance=0.99 {REFERENCE}"

# As the paper prints them, but as fractions: table, cell, metric, mean, deviation.
SPOTS = f"""
poisson128-headline; poisson-128 two-scale; mre; 0.01149; 0.00022
poisson128-headline; poisson-128 fno; total; 725.4; 4.0
poisson128-headline; poisson-128 refinement; ssim; 0.9747; 0.0006
poisson128-additional-metrics; poisson-128 local; mse; 4.1e-8; 3.9e-10
poisson128-common-seam; poisson-128 overlap; common_seams.value_trace_error; 8.54e-6; -
mechanism-ablation-main; poisson-128 local+A3; spectral_error; 4.058e-3; 2.9e-4
mechanism-paired-effects; poisson-128 local+A3 against poisson-128 local; total; 0.866; -
mechanism-common-seams; poisson-128 two-scale+A3; common_seams.value_jump; 9.201e-5; -
resolution-sweep-main; poisson-256 fno; mre; 0.00262; 0.00001
resolution-sweep-main; poisson-64 two-scale+A3; ssim; 0.9973; 0.0003
darcy-main; darcy-256 fno batch_size=4 evaluation_batch=8; normal_derivative_jump; 4.269e-4; -
darcy-main; darcy-256 two-scale; mre; 0.02952; 0.00033
darcy-pca-breakdown; darcy-256 global; pca_input; 270.02; 7.67
coarse-quality-128; poisson-128 two-scale coarse_factor=2 {REFERENCE}; mre; 0.0105; 0.0005
coarse-quality-256; poisson-256 two-scale; value_jump; 5.835e-5; 3.4e-7
coarse-costs; poisson-128 two-scale {ADAPTIVE}; residual_code; 127.3; 1.5
latent-objective-selection; darcy-256 two-scale {ADAPTIVE}; mre; 0.03349; -
latent-objective-capacity; darcy-128 two-scale {ADAPTIVE}; parameters; 965298; -
physics-ladder-128; poisson-128 two-scale+A5; normal_derivative_jump; 2.385e-3; 1.1e-3
physics-ladder-256; poisson-256 two-scale; residual_rms; 0.6112; 0.01083
physics-ladder-relative-effects; {A0} against {A0}+A1; mre; 0.081; -
physics-ladder-weights; poisson-256 two-scale+A5; weights.residual; 2.083e-4; 1.5e-5
physics-ladder-stage-costs; poisson-128 two-scale+A3; invocation_train; 142.1; 5.0
sample-efficiency-crossover; poisson-128 two-scale+A3 training=2000; mre; 0.02012; 0.00061
sample-efficiency-full; poisson-128 overlap; value_trace_error; 8.207e-6; 3.9e-8
sample-efficiency-costs; poisson-128 two-scale+A3 training=1250; invocation_total; 215.3; 9.2
sample-efficiency-pca-breakdown; poisson-128 two-scale; pca_coarse; 0.365673; 0.116292
svd-quality; poisson-128 two-scale solver=hybrid; mre; 0.01171; 0.00084
svd-pca-diagnostics; poisson-128 overlap; input_code; 487.6; -
svd-full-metrics; poisson-128 local solver=full; mae; 1.293e-4; 4.8e-7
"""


def value(table, cell, metric, *, change=None):
    (found,) = (
        one.values[metric]
        for one in paper_tables()[table].cells
        if one.name == cell and metric in one.values and change in (None, one.change)
    )
    return found


def test_every_table_is_there():
    for study, counts in COUNTS.items():
        tables = [table for table in paper_tables().values() if table.study == study]
        cells = [cell for table in tables for cell in table.cells]
        assert (len(tables), len(cells), sum(len(cell.values) for cell in cells)) == counts
    assert {table.study for table in paper_tables().values()} == COUNTS.keys()
    assert all(label == table.label for label, table in paper_tables().items())


@pytest.mark.parametrize("line", SPOTS.strip().splitlines())
def test_spot_values(line):
    table, cell, metric, mean, deviation = line.split("; ")
    expected = (float(mean), None if deviation == "-" else float(deviation))
    assert value(table, cell, metric) == expected


def test_no_cell_of_a_table_stands_twice():
    for table in paper_tables().values():
        named = [(cell.name, cell.change) for cell in table.cells]
        assert len(set(named)) == len(named), table.label


def test_errors_are_fractions():
    for table in paper_tables().values():
        for cell in table.cells:
            for metric in cell.values.keys() & {"mre", "oracle_mre", "ssim"}:
                limit = 10 if cell.against else 1
                assert abs(cell.values[metric][0]) <= limit, (table.label, cell.name)


def test_printed_changes_are_those_of_the_printed_means():
    """The signs, above all: the paper does not give all changes with the same one."""
    means = {
        (table.study, cell.case, metric): mean
        for table in paper_tables().values()
        for cell in table.cells
        if cell.against is None
        for metric, (mean, _) in cell.values.items()
    }
    compared = 0
    for table in paper_tables().values():
        for cell in table.cells:
            for metric, (change, _) in cell.values.items():
                ends = [(table.study, name, metric) for name in (cell.case, cell.against)]
                if cell.change != "of_means" or not all(end in means for end in ends):
                    continue
                of_means = means[ends[0]] / means[ends[1]] - 1
                within = table.printed_to["of_means"]  # and the means are rounded, too
                assert change == pytest.approx(of_means, abs=2 * within, rel=0.006)
                compared += 1
    assert compared > 150


def test_the_darcy_tables_column_is_the_jump():
    """It is headed as a trace; the audit on common seams, which has both, tells."""
    for case in ("darcy-256 fno batch_size=4 evaluation_batch=8", "darcy-256 global"):
        column, _ = value("darcy-main", case, "normal_derivative_jump")
        jump, error = (
            value("darcy-common-seams", case, f"common_seams.normal_derivative_{kind}")[0]
            for kind in ("jump", "trace_error")
        )
        assert column == pytest.approx(jump, rel=0.01)
        assert column != pytest.approx(error, rel=0.1)


def test_the_solver_audit_has_intervals_margins_and_decisions():
    audits = paper_tables()["svd-equivalence"].cells
    assert all(cell.audit.keys() == cell.values.keys() for cell in audits)
    decisions = [one.decision for cell in audits for one in cell.audit.values()]
    assert decisions.count("equivalent") == 30
    assert decisions.count("inconclusive") == 11
    assert decisions.count("pass") == 4


def test_every_explanation_speaks_of_the_paper():
    for one in known_explanations():
        assert isinstance(one, Explanation)
        assert any(
            fnmatchcase(label, one.table)
            and fnmatchcase(cell.name, one.cell)
            and fnmatchcase(metric, one.metric)
            for label, table in paper_tables().items()
            for cell in table.cells
            for metric in cell.values
        ), one


GOOD = """
label: x
study: headline
caption: something
cells:
  - case: poisson-64 local
    seeds: 3
    values: {mre: [0.1, null]}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("label: x", "label: x\ncolour: red", "colour"),
        ("poisson-64 local", "poisson-64 local epochs=500", "is written 'poisson-64 local'"),
        ("poisson-64 local", "poisson-64 nothing", "no method is called"),
        ("mre:", "mres:", "no quantity is called 'mres'"),
        ("[0.1, null]", "[0.1, -1.0]", "greater than or equal to 0"),
        ("[0.1, null]", "0.1", "valid tuple"),
        ("seeds: 3", "seeds: 3\n    against: poisson-64 global", "go together"),
        ("seeds: 3", "seeds: 0", "greater than or equal to 1"),
        ("cells:", "cells: [", "not proper YAML"),
    ],
)
def test_a_wrong_table_is_told(right, wrong, message):
    assert (
        parse(GOOD, PaperTable, source="x.yaml").cells[0].case == parse_case("poisson-64 local").id
    )
    with pytest.raises(TwoscaleError, match=message):
        parse(GOOD.replace(right, wrong), PaperTable, source="x.yaml")
