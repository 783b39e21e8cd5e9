"""Every kind of chart, drawn from made-up records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.colors import to_rgb

from tests.lab.study.synthetic import make_record, write_record
from twoscale.errors import TwoscaleError
from twoscale.report.axes import log_axis, panels
from twoscale.report.picture import save_figure
from twoscale_lab.names import STUDIES
from twoscale_lab.report.charts import KINDS, check_kind, draw, error_time_chart
from twoscale_lab.report.charts.cases import styles
from twoscale_lab.report.results import read_study
from twoscale_lab.study.catalogue import load_study

METHODS = ("global", "local", "overlap", "refinement", "fno", "two-scale", "two-scale+A3")

CASES = {
    "methods": [f"poisson-128 {method}" for method in METHODS],
    "grids": [
        f"poisson-{size} {m}" for size in (64, 128, 256) for m in METHODS if m != "refinement"
    ],
    "ranks": [
        f"poisson-128 two-scale coarse_components={rank} residual_variance=0.99"
        for rank in (5, 10, 20)
    ],
    "mechanism": [f"poisson-128 {m}{o}" for m in ("local", "two-scale") for o in ("", "+A3")],
    "ladder": [f"poisson-{n} two-scale{o}" for n in (64, 128) for o in ("", "+A1", "+A2", "+A3")],
    "solvers": [
        f"poisson-128 {method} solver={solver}"
        for method in ("local", "two-scale")
        for solver in ("full", "randomized")
    ],
    "sizes": [
        f"poisson-128 {m} training={k}" for m in ("overlap", "two-scale") for k in (1250, 4000)
    ],
}

DRAWN = [
    ("quality-cost", "methods", {}),
    ("quality-cost", "grids", {"joined": True}),
    ("pareto", "ladder", {"x": "normal_derivative_jump", "y": "mre"}),
    ("frontier", "ranks", {}),
    ("stage-costs", "grids", {}),
    ("pca-breakdown", "methods", {}),
    ("bars", "methods", {"quantities": ["mre", "ssim", "oracle_mre", "value_jump"]}),
    ("common-seams", "methods", {}),
    ("effects", "mechanism", {"base": {"objective": None}}),
    ("effects", "mechanism", {"base": {"method": "local"}}),
    ("speed-ups", "solvers", {"base": {"solver": "full"}}),
    ("loss-weights", "ladder", {}),
    ("oracle-learned", "methods", {}),
    ("interaction", "mechanism", {}),
    ("paired-seeds", "solvers", {}),
    ("equivalence", "solvers", {"base": {"solver": "full"}}),
    ("curves", "grids", {"quantities": ["mre", "total"], "oracle": True}),
    ("curves", "sizes", {"x": "training"}),
    ("trainability", "ranks", {"x": ["coarse_components"]}),
    ("ladder", "ladder", {}),
    ("time-projection", "grids", {"to": [512]}),
    ("qualitative", "mechanism", {"place": "poisson-128"}),
    ("leaderboard", "methods", {}),
]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Give a made-up study by its name, read back from its record."""
    folder = tmp_path_factory.mktemp("records")

    def read(name, seeds=(0, 1, 2)):
        path = folder / f"{name}.json"
        if not path.exists():
            write_record(folder, make_record(name, CASES[name], seeds=seeds))
        return read_study(path)

    return read


def drawn(kind, study, options):
    return draw(kind, study, options).figure


@pytest.mark.parametrize(("kind", "name", "options"), DRAWN)
def test_every_kind_is_drawn_and_has_its_numbers(kind, name, options, study, tmp_path):
    chart = draw(kind, study(name), options)
    save_figure(chart.figure, tmp_path / "a", kind="svg" if KINDS[kind].vector else "png")
    assert (tmp_path / "a").stat().st_size > 5000
    numbers = chart.values.table
    assert numbers.rows
    assert {len(row) for row in numbers.rows} == {len(numbers.header)}


@pytest.mark.parametrize("vector", [True, False])
def test_a_figure_is_the_same_every_time(vector, study, tmp_path):
    kind, name, options = next(one for one in DRAWN if KINDS[one[0]].vector is vector)
    for attempt in "ab":
        figure = drawn(kind, study(name), options)
        save_figure(figure, tmp_path / attempt, kind="svg" if vector else "png")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_error_against_time_has_a_panel_for_each_place_and_names_the_best(study):
    figure = error_time_chart([study("grids")]).figure
    assert [axis.get_title() for axis in figure.axes] == ["Poisson 128²", "Poisson 256²"]
    assert [axis.get_xscale() for axis in figure.axes] == ["log", "log"]
    names = [text.get_text() for text in figure.axes[0].texts]
    assert "FNO" in names
    assert "Two-scale" in names
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries[-1] == "best trade-offs"
    assert "Two-scale, fine-tuned" in entries
    (one,) = error_time_chart([study("grids")], places=["poisson-64"]).figure.axes
    assert one.get_title() == "Poisson 64²"
    assert error_time_chart([study("grids")], columns=1).figure.get_figwidth() < 5
    with pytest.raises(TwoscaleError, match="no problem that three methods solved"):
        error_time_chart([study("solvers")])


def test_all_kinds_are_tried_and_say_what_they_show():
    assert {kind for kind, _, _ in DRAWN} == set(KINDS)
    assert all(kind.caption.endswith(".") for kind in KINDS.values())


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_of_every_study_is_of_a_known_kind(name):
    for scale in ("paper", "small"):
        for figure in load_study(name).at(scale).figures:
            check_kind(figure.kind, figure.options)


def test_an_unknown_kind_or_option_is_refused(study):
    with pytest.raises(TwoscaleError, match=r"kind 'pie'.*quality-cost"):
        drawn("pie", study("methods"), {})
    with pytest.raises(TwoscaleError, match="take no 'colour': they take"):
        drawn("bars", study("methods"), {"colour": "red"})


def test_cases_and_fields_that_are_not_there(study):
    assert draw("bars", study("methods"), {"rows": ["darcy-256 *"]}) is None
    with pytest.raises(TwoscaleError, match=r"no fields of poisson-64.*methods\.npz"):
        drawn("qualitative", study("methods"), {"place": "poisson-64"})


def test_methods_look_different_and_each_the_same_in_every_chart(study):
    found = styles(study("methods").cases)
    assert len({style.colour for style in found.values()}) == len(found)
    assert len({style.marker for style in found.values()}) == len(found)
    tuned, base = (found[f"poisson-128 two-scale{o}"] for o in ("+A3", ""))
    assert tuned.hatch != base.hatch
    assert sum(to_rgb(tuned.colour)) < 0.8 * sum(to_rgb(base.colour))
    assert styles(study("mechanism").cases)["poisson-128 two-scale"] == base


def test_errors_share_a_scale_and_show_the_seams(study):
    figure = drawn("qualitative", study("mechanism"), {})
    errors = [axis for axis in figure.get_axes() if axis.get_title().startswith("error")]
    assert len(errors) == 4
    assert len({axis.images[0].get_clim() for axis in errors}) == 1
    assert [len(axis.lines) for axis in errors] == [6] * 4  # four patches each way


def test_what_is_projected_is_dashed_hollow_and_shaded_from_a_methods_own_last_grid(study):
    measured = study("grids").where(lambda case: case.method != "fno" or case.resolution < 256)
    (axis,) = drawn("time-projection", measured, {"to": [512, 1024]}).get_axes()
    lines = [line for line in axis.lines if len(line.get_xdata())]
    solid, shaded, dashed, hollow = (lines[k::4] for k in range(4))
    labels = [line.get_label().partition(":")[0] for line in solid]
    last = [128 if label == "FNO" else 256 for label in labels]
    assert 128 in last
    assert [max(line.get_xdata()) for line in solid] == last
    assert [min(line.get_xdata()) for line in dashed] == last
    assert [min(line.get_xdata()) for line in shaded] == last
    assert [min(line.get_xdata()) for line in hollow] == [2 * grid for grid in last]
    assert {line.get_linestyle() for line in dashed} == {"--"}
    assert {line.get_markerfacecolor() for line in hollow} == {"white"}
    assert all(line.get_alpha() < 0.5 for line in shaded)


def trained_together(study, number):
    """Return a study of whose cases `number` says how many networks were trained at once."""
    cases = []
    for case in study.cases:
        many = {"trained_together": number(case)}
        cells = [cell | {"metrics": cell["metrics"] | many} for cell in case.cells]
        cases.append(replace(case, cells=tuple(cells)))
    return replace(study, cases=tuple(cases))


def test_shares_of_a_time_are_not_projected(study):
    shared = trained_together(study("grids"), lambda case: 12 if case.resolution == 64 else 1)
    (axis,) = drawn("time-projection", shared, {}).get_axes()
    assert min(min(line.get_xdata(), default=128) for line in axis.lines) == 128


def test_a_share_of_a_time_is_not_held_against_the_time_of_one_alone(study):
    full = trained_together(study("solvers"), lambda case: 5 if "full" in case.id else 1)
    fit, total = drawn("speed-ups", full, {"base": {"solver": "full"}}).get_axes()
    assert len(fit.patches) == 2  # of which no part is training
    assert not total.patches
    assert [text.get_text() for text in total.texts] == ["not measured alike"] * 2


def test_a_step_of_a_ladder_is_left_out_where_its_time_is_a_share(study):
    steps = study("ladder").select(properties={"resolution": 64})
    shared = trained_together(steps, lambda case: 5 if case.objective == "A2" else 1)
    errors, times = drawn("ladder", shared, {"quantities": ["mre", "total"]}).get_axes()
    for axis, names in ((errors, ["A0", "A1", "A2", "A3"]), (times, ["A0", "A1", "A3"])):
        assert [label.get_text() for label in axis.get_xticklabels()] == names


def test_shares_of_a_time_are_marked_in_figures(study):
    shared = trained_together(study("sizes"), lambda case: 5 if case.training == 1250 else 1)
    (axis,) = drawn("stage-costs", shared, {}).get_axes()
    assert [text.get_text().endswith("†") for text in axis.texts] == [True, False] * 2
    errors, times = drawn("curves", shared, {"x": "training", "quantities": ["mre", "total"]}).axes
    for axis, hollow in ((errors, set()), (times, {1250})):
        lines = [line for line in axis.lines if line.get_markerfacecolor() == "white"]
        assert {at for line in lines for at in line.get_xdata()} == hollow


@pytest.mark.parametrize(("kind", "options"), [("curves", {}), ("quality-cost", {"joined": True})])
def test_no_line_joins_a_share_of_a_time_with_the_time_of_one_alone(kind, options, study):
    part = study("grids").select(properties={"method": "local"})
    shared = trained_together(part, lambda case: 12 if case.resolution == 64 else 1)
    if kind == "curves":
        options = {"quantities": ["mre", "total"]}
    axis = drawn(kind, shared, options).get_axes()[-1]
    joined = [len(line.get_xdata()) for line in axis.lines if line.get_linestyle() == "-"]
    assert sorted(joined) == [1, 2]
    (legend,) = axis.figure.legends
    assert sum(text.get_text() == "Plain L2L" for text in legend.get_texts()) == 1


def test_a_breakdown_shows_the_stages_of_every_chain(study):
    stages = ("middle", "skeleton", "bubbles")
    part = study("methods").select(properties={"method": "two-scale", "objective": None})
    (case,) = part.cases
    spent = {f"pca_{stage}": 2.0 for stage in stages}
    cells = tuple(
        cell | {"metrics": cell["metrics"] | {"timings": cell["metrics"]["timings"] | spent}}
        for cell in case.cells
    )
    figure = drawn("pca-breakdown", replace(part, cases=(replace(case, cells=cells),)), {})
    (axis,) = figure.get_axes()
    handles, labels = axis.get_legend_handles_labels()
    assert {f"{stage} PCA" for stage in stages} <= set(labels)
    assert len({to_rgb(bars[0].get_facecolor()[:3]) for bars in handles}) == len(labels)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.7, 1.9], ["0.7", "1", "1.5"]),
        ([1.2e-5, 3.5e-5], ["1.5e-5", "2e-5", "3e-5"]),
        ([0.1, 30.0], ["0.1", "0.3", "1", "3", "10", "30"]),
    ],
)
def test_a_logarithmic_axis_has_several_numbers(values, labels):
    _, (axis,) = panels(1)
    axis.plot([0, 1], values)
    log_axis(axis, "y", values)
    low, high = min(values), max(values)
    shown = [at for at in axis.yaxis.get_majorticklocs() if low <= at <= high * (1 + 1e-9)]
    assert [axis.yaxis.get_major_formatter()(at, 0) for at in shown] == labels


def test_a_ring_marks_the_lowest_learned_error(study):
    case = study("ranks")
    errors = [one.mean("mre") for one in case.cases]
    (axis,) = drawn("trainability", case, {"x": ["coarse_components"]}).get_axes()
    (ring,) = (line for line in axis.lines if line.get_markersize() == 13)
    assert ring.get_xdata()[0] == errors.index(min(errors))


def test_effects_are_paired_changes_from_the_base_and_the_numbers_are_what_is_drawn(study):
    mechanism = study("mechanism")
    case, base = (mechanism.case(f"poisson-128 local{o}") for o in ("+A3", ""))
    pairs = zip(case.values("mre").values(), base.values("mre").values(), strict=True)
    changes = [100 * (value / start - 1) for value, start in pairs]
    chart = draw("effects", mechanism, {"base": {"objective": None}, "quantities": ["mre"]})
    numbers = chart.values.table
    assert numbers.header == ["case", "grid", "base", "quantity", "value", "sd"]
    assert [row[:3] for row in numbers.rows] == [  # the bases themselves are not drawn
        ["Plain L2L + A3", "Poisson 128²", "Plain L2L"],
        ["Two-scale + A3", "Poisson 128²", "Two-scale"],
    ]
    (axis,) = chart.figure.axes
    drawn = [bar.get_width() for bar in axis.patches]
    assert [row[4] for row in numbers.rows] == pytest.approx(drawn, rel=1e-3)
    assert drawn[0] == pytest.approx(sum(changes) / 3)


def test_bars_become_dots_where_zero_is_not_on_the_axis(study):
    quantities = ["mre", "ssim", "total"]
    local = {"quantities": quantities, "where": {"method": ["local", "overlap"]}}
    mre, ssim, total = drawn("bars", study("methods"), local).get_axes()
    assert mre.get_xlim()[0] == total.get_xlim()[0] == 0
    assert len(mre.patches) == 2
    assert not ssim.patches
    seams = drawn("common-seams", study("methods"), {}).get_axes()
    assert all(axis.get_xscale() == "log" and not axis.patches for axis in seams)


def test_one_seed_is_enough_for_a_chart(tmp_path):
    path = write_record(tmp_path, make_record("one", CASES["solvers"], seeds=(0,)), fields=False)
    for kind in ("equivalence", "effects"):
        assert draw(kind, read_study(path), {"base": {"solver": "full"}}) is not None
    for kind in ("bars", "oracle-learned", "quality-cost"):
        assert draw(kind, read_study(path), {}) is not None


@pytest.mark.parametrize(("count", "numbered"), [(10, False), (11, True)])
def test_many_points_have_numbers_and_their_names_beside(count, numbered, tmp_path):
    cases = [f"poisson-64 two-scale coarse_components={size}" for size in range(1, count + 1)]
    path = write_record(tmp_path, make_record("many", cases), fields=False)
    study = read_study(path)
    (axis,) = drawn("quality-cost", study, {}).axes
    names = [text.get_text() for text in axis.texts]
    labels = [case.label for case in study.cases]
    if numbered:
        assert names == [str(number) for number in range(1, count + 1)]
        entries = [text.get_text() for text in axis.get_legend().get_texts()]
        assert entries == [f"{number}  {label}" for number, label in enumerate(labels, 1)]
    else:
        assert names == labels
        assert axis.get_legend() is None


def test_entries_look_like_their_points_where_a_case_is_not_drawn(tmp_path):
    cases = [f"poisson-64 two-scale coarse_components={size}" for size in range(1, 13)]
    record = make_record("many", cases, seeds=(0,))
    del record["cells"][2]["metrics"]["oracle_mre"]
    path = write_record(tmp_path, record, fields=False)
    (axis,) = drawn("quality-cost", read_study(path), {"y": "oracle_mre"}).axes
    points = [bars[0] for bars in axis.containers]
    entries = axis.get_legend().legend_handles
    assert len(points) == len(entries) == 11
    for point, entry in zip(points, entries, strict=True):
        assert (point.get_color(), point.get_marker()) == (entry.get_color(), entry.get_marker())
