"""Verdicts on made-up records beside made-up tables, checked by hand."""

import json
import math

import pytest

from twoscale_lab.study.paper.comparison import agreement, by_study, compare, tally
from twoscale_lab.study.paper.published import Explanation, PaperTable, paper_tables

BASE, TUNED = "poisson-64 two-scale", "poisson-64 two-scale+A3"


def cell(case, seed, mre, *, total=1.0, **metrics):
    timings = {"total": total, "pca_input": total / 2}
    objective = "A3" if case.endswith("+A3") else None
    return {
        "case": case,
        "seed": seed,
        "objective": objective,
        "metrics": {"mre": mre, "timings": timings, **metrics},
    }


def record(*cells, study="made", scale="paper"):
    return {"format": 1, "study": study, "scale": scale, "cells": list(cells), "failed": []}


def table(*cells, **more):
    content = {"label": "t", "study": "made", "caption": "made up", "cells": list(cells)} | more
    return PaperTable.model_validate(content)


def of(case, *, seeds=3, against=None, change=None, audit=None, **values):
    more = {"audit": audit} if audit else {}
    change = {"against": against, "change": change} if against else {}
    return {"case": case, "seeds": seeds, "values": values, **change, **more}


def only(records, *cells, explanations=(), **more):
    (row,) = compare(records, tables=[table(*cells, **more)], explanations=explanations)
    return row


def test_a_row_says_everything():
    records = [record(cell(BASE, 0, 0.10), cell(BASE, 1, 0.12), cell(TUNED, 0, 5.0))]
    row = only(records, of(BASE, mre=(0.1, 0.02)))
    assert row.as_dict() == {
        "study": "made",
        "table": "t",
        "cell": BASE,
        "metric": "mre",
        "paper": 0.1,
        "paper_sd": 0.02,
        "sd_derived": False,
        "paper_seeds": 3,
        "ours": pytest.approx(0.11),
        "ours_sd": pytest.approx(math.sqrt(2) * 0.01),
        "seeds": 2,
        "difference_in_sd": pytest.approx(0.5),
        "relative_difference": pytest.approx(0.1),
        "verdict": "match",
        "only_derived": False,
        "explanation": None,
    }
    assert json.loads(json.dumps(row.as_dict()))["verdict"] == "match"


@pytest.mark.parametrize(
    ("ours", "deviation", "verdict"),
    [
        (1.04, None, "match"),
        (1.05, None, "match"),  # the edge belongs to it
        (1.06, None, "off"),
        (0.94, 0.0, "off"),
        (1.06, 0.03, "match"),
        (1.07, 0.03, "off"),
        (0.96, 0.001, "match"),  # the larger of the two counts
    ],
)
def test_two_deviations_or_five_percent(ours, deviation, verdict):
    row = only([record(cell(BASE, 0, ours))], of(BASE, mre=(1.0, deviation)))
    assert row.verdict == verdict
    assert (row.difference_in_sd is None) == (not deviation)


def test_times_are_not_judged():
    row = only([record(cell(BASE, 0, 0.1, total=9.0))], of(BASE, total=(200.0, 1.0)))
    assert (row.verdict, row.ours) == (None, 9.0)
    fast = [record(cell(BASE, 0, 0.1, total=2.0), cell(TUNED, 0, 0.1, total=6.0))]
    row = only(fast, of(BASE, against=TUNED, change="speed_up", pca_fit=(2.0, None)))
    assert (row.verdict, row.ours) == (None, 3.0)
    assert only([], of(BASE, total=(200.0, 1.0))).verdict is None


@pytest.mark.parametrize(
    "records",
    [
        [],
        [record()],
        [record(cell(BASE, 0, 0.1), study="another")],
        [record(cell(BASE, 0, 0.1), scale="small")],
        [record(cell(TUNED, 0, 0.1))],
        [record(cell(BASE, 0, None))],
        [record(cell(BASE, 0, math.nan))],
    ],
)
def test_what_was_not_measured_is_missing(records):
    row = only(records, of(BASE, mre=(0.1, None)))
    assert row.verdict == "missing"
    assert (row.ours, row.ours_sd, row.seeds, row.difference_in_sd) == (None, None, 0, None)


def test_several_records_of_a_study_add_up():
    records = [record(cell(BASE, 0, 1.0)), record(cell(BASE, 1, 3.0))]
    assert only(records, of(BASE, mre=(2.0, None))).seeds == 2


PAIRS = [
    record(
        cell(BASE, 0, 1.0),
        cell(BASE, 1, 4.0),
        cell(BASE, 2, 9.0),  # has no partner
        cell(TUNED, 0, 0.5),
        cell(TUNED, 1, 3.0),
    )
]


@pytest.mark.parametrize(
    ("change", "ours", "deviation"),
    [
        ("relative", (-0.5 - 0.25) / 2, math.sqrt(2) * 0.125),
        ("of_means", 3.5 / 5 - 1, None),
        ("absolute", -0.75, math.sqrt(2) * 0.25),
        ("speed_up", (2 + 4 / 3) / 2, math.sqrt(2) / 3),
    ],
)
def test_changes_are_taken_over_common_seeds(change, ours, deviation):
    row = only(PAIRS, of(TUNED, against=BASE, change=change, mre=(-0.4, None)))
    assert row.cell == f"{TUNED} against {BASE}"
    assert row.ours == pytest.approx(ours)
    assert row.ours_sd == (None if deviation is None else pytest.approx(deviation))
    assert row.seeds == 2


def test_a_change_has_the_spread_of_the_values_that_the_paper_prints():
    printed = [of(BASE, mre=(2.0, 0.06)), of(TUNED, mre=(1.0, 0.04))]
    change = of(TUNED, against=BASE, change="relative", mre=(-0.5, None))
    *_, row = compare(PAIRS, tables=[table(*printed, change)], explanations=[])
    assert row.paper_sd == pytest.approx(0.5 * 0.05)  # 3 % and 4 % make 5 %
    assert (row.verdict, row.sd_derived) == ("off", True)
    *_, alone = compare(PAIRS, tables=[table(printed[0], change)], explanations=[])
    assert (alone.paper_sd, alone.sd_derived) == (None, False)


@pytest.mark.parametrize(
    ("ours", "verdict", "only_derived"),
    [(0.51, "match", False), (0.54, "match", True), (0.56, "off", False)],
)
def test_what_matches_by_a_derived_deviation_alone_is_told(ours, verdict, only_derived):
    printed = [of(BASE, mre=(2.0, 0.06)), of(TUNED, mre=(1.0, 0.04))]
    change = of(TUNED, against=BASE, change="relative", mre=(-0.5, None))
    records = [record(cell(BASE, 0, 2.0), cell(TUNED, 0, 2.0 * ours))]
    *_, row = compare(records, tables=[table(*printed, change)], explanations=[])
    assert (row.verdict, row.only_derived) == (verdict, only_derived)


def test_a_value_without_spread_has_that_of_the_studys_other_tables():
    tables = [
        table(of(BASE, mre=(2.0, None))),
        table(of(BASE, mre=(2.0, 0.5))),
        table(of(BASE, mre=(2.0, None)), study="other"),
    ]
    found = [row.paper_sd for row in compare([], tables=tables, explanations=[])]
    assert found == [0.5, 0.5, None]


def test_an_audited_change_has_the_spread_behind_its_interval():
    audit = {"mre": {"interval": (-0.1, 0.3), "margin": 0.05, "decision": "inconclusive"}}
    given = of(TUNED, seeds=2, against=BASE, change="relative", audit=audit, mre=(0.1, None))
    row = only(PAIRS, given)
    assert row.paper_sd == pytest.approx(0.2 * math.sqrt(2) / 6.3138, rel=1e-4)
    assert not row.sd_derived  # the paper prints the interval


def test_a_change_printed_as_zero_matches_within_its_last_digit():
    records = [record(cell(BASE, 0, 1.0), cell(TUNED, 0, 1.0004))]
    given = of(TUNED, against=BASE, change="relative", mre=(0.0, None))
    assert only(records, given).verdict == "off"
    assert only(records, given, printed_to={"relative": 0.001}).verdict == "match"
    assert only(records, given, printed_to={"relative": 0.001}).relative_difference is None


def test_the_first_fitting_explanation_stands_beside_what_is_off():
    known = [
        Explanation(table="other*", because="no"),
        Explanation(cell="darcy-*", because="no"),
        Explanation(verdict="missing", because="not run"),
        Explanation(cell="poisson-* two-scale", metric="m*", because="yes"),
        Explanation(because="too late"),
    ]
    records = [record(cell(BASE, 0, 0.1))]
    assert only(records, of(BASE, mre=(0.5, None)), explanations=known).explanation == "yes"
    assert only(records, of(BASE, mre=(0.1, None)), explanations=known).explanation is None
    assert only(records, of(TUNED, mre=(0.1, None)), explanations=known).explanation == "not run"


def test_verdicts_are_counted():
    records = [record(cell(BASE, 0, 0.1, ssim=0.9))]
    given = [
        of(BASE, mre=(0.1, None), ssim=(0.5, None), total=(3.0, None)),
        of(TUNED, mre=(0.1, None), total=(3.0, None)),
    ]
    rows = compare(records, tables=[table(*given)], explanations=[])
    counts = tally(rows)
    assert (counts.match, counts.off, counts.missing, counts.times) == (1, 1, 1, 1)
    assert (counts.unexplained, counts.agreement) == (1, 0.5)
    assert by_study(rows) == {"made": counts}
    assert tally([]).agreement is None


def test_values_and_changes_are_counted_apart_and_without_derived_deviations():
    printed = [of(BASE, mre=(2.0, 0.06)), of(TUNED, mre=(1.0, 0.06), total=(3.0, None))]
    change = of(TUNED, against=BASE, change="relative", mre=(-0.5, None))
    records = [record(cell(BASE, 0, 2.0), cell(TUNED, 0, 1.1))]
    rows = compare(records, tables=[table(*printed, change)], explanations=[])
    assert agreement(rows) == (
        "3 of 3 match (100.0 %), 2 of them without derived deviations. "
        "Plain values: 2 of 2 match (100.0 %). "
        "Changes: 1 of 1 match (100.0 %), 0 of them without derived deviations."
    )
    assert agreement([]) == (
        "none was measured. Plain values: none was measured. Changes: none was measured."
    )


def test_the_papers_own_numbers_match_themselves():
    """One seed of the printed values: every value that is not a change must match."""
    cells, studies = {}, {}
    for paper in paper_tables().values():
        for one in paper.cells:
            if one.against is None:
                found = cells.setdefault((paper.study, one.case), cell(one.case, 0, None))
                studies[paper.study] = None
                for metric, (value, _) in one.values.items():
                    _put(found, metric, value)
    records = [
        record(*(made for (study, _), made in cells.items() if study == name), study=name)
        for name in studies
    ]
    rows = [row for row in compare(records) if " against " not in row.cell]
    assert len(rows) > 1300
    assert {row.verdict for row in rows if row.metric not in DERIVED} == {"match", None}


DERIVED = {"learned_to_oracle", "pca_fit", "pca_solve", "train"}
DERIVED |= {"invocation_train", "invocation_total"}


def _put(found, metric, value):
    """Write a value where its quantity is read."""
    group, dot, name = metric.partition(".")
    metrics = found["metrics"]
    if dot:
        place = found if group == "weights" else metrics
        place.setdefault(group, {})[name] = value
    elif metric.endswith("_code") and metric.split("_")[0] in ("coarse", "residual"):
        ranks = found.setdefault("retained", {}).setdefault("output", {}).setdefault("ranks", {})
        ranks[metric.split("_")[0]] = [value]
    elif metric.startswith("pca_") or metric in ("transform", "inference", "total"):
        metrics["timings"][metric] = value
    else:
        metrics[metric] = value
