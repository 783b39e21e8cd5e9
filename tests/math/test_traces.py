import pytest
import torch

from twoscale.domain.cuts import Axis
from twoscale.domain.grid import Grid
from twoscale.domain.patches import Seams
from twoscale.math.measures import Compared, seam_measures
from twoscale.math.traces import TRACES, flux_trace, normal_derivative_trace, value_trace

GRID = Grid((12, 14))
SEAMS = Seams(((4, 8), (3, 7, 11)), GRID.axes)
PERIODIC = Grid((12, 14), periodic=(True, False))
WRAPPED = Seams(((0, 6, 11), (7, 13)), PERIODIC.axes)


@pytest.fixture
def fields(generator):
    """Fields (6, 2, 12, 14), float64."""
    return torch.randn(6, 2, 12, 14, dtype=torch.float64, generator=generator).cumsum(2).cumsum(3)


def same_values(got, parts):
    expected = torch.cat([part.flatten(2) for part in parts], 2)
    assert got.shape == expected.shape
    torch.testing.assert_close(got.sort(2).values, expected.sort(2).values)


def second_differences(fields, rows, columns, spacing):
    """Jumps of the normal derivative; numbers of lines wrap."""
    height, width = fields.shape[2:]
    for b in rows:
        after, before = fields[:, :, (b + 1) % height], fields[:, :, b - 1]
        yield (after - 2 * fields[:, :, b] + before) / spacing[0]
    for b in columns:
        after, before = fields[..., (b + 1) % width], fields[..., b - 1]
        yield (after - 2 * fields[..., b] + before) / spacing[1]


def test_a_linear_field_has_no_normal_derivative_jump():
    y, x = torch.meshgrid(
        torch.linspace(0, 1, 12, dtype=torch.float64),
        torch.linspace(0, 1, 14, dtype=torch.float64),
        indexing="ij",
    )
    field = (3 * y - 2 * x)[None, None]
    assert float(normal_derivative_trace(field, SEAMS).abs().max()) < 1e-12
    values = value_trace(field, SEAMS).abs().unique().tolist()
    assert min(values) == pytest.approx(2 / 13)
    assert max(values) == pytest.approx(3 / 11)


@pytest.mark.parametrize(
    ("seams", "derivative_columns", "spacing"),
    [(SEAMS, (3, 7, 11), (1 / 11, 1 / 13)), (WRAPPED, (7,), (1 / 12, 1 / 13))],
    ids=["ordinary", "periodic"],
)
def test_traces_by_explicit_indexing(fields, seams, derivative_columns, spacing):
    """Rows 0 and 11 of a periodic axis have neighbours across the wrap; column 13 has no next."""
    rows = [fields[:, :, b] - fields[:, :, b - 1] for b in seams.rows]
    columns = [fields[..., b] - fields[..., b - 1] for b in seams.columns]
    same_values(value_trace(fields, seams), [*rows, *columns])
    parts = second_differences(fields, seams.rows, derivative_columns, spacing)
    same_values(normal_derivative_trace(fields, seams), list(parts))


@pytest.mark.parametrize("seams", [SEAMS, WRAPPED], ids=["ordinary", "periodic"])
def test_the_flux_of_a_constant_coefficient_is_the_normal_derivative(fields, seams):
    coefficient = torch.full((6, 1, 12, 14), 3.0, dtype=torch.float64)
    torch.testing.assert_close(
        flux_trace(fields, coefficient, seams), 3 * normal_derivative_trace(fields, seams)
    )


def test_seam_measures_are_means_of_absolute_traces(fields):
    prediction, truth = fields, fields.flip(0)
    batch = Compared(prediction, truth)
    measures = seam_measures(WRAPPED)
    assert set(measures) == {
        "value_jump",
        "value_trace_error",
        "normal_derivative_jump",
        "normal_derivative_trace_error",
    }
    for name, trace in TRACES.items():
        jump = trace(prediction, WRAPPED).abs().mean()
        error = (trace(prediction, WRAPPED) - trace(truth, WRAPPED)).abs().mean()
        torch.testing.assert_close(measures[f"{name}_jump"](batch), jump)
        torch.testing.assert_close(measures[f"{name}_trace_error"](batch), error)


def test_a_line_has_seams_along_its_length():
    seams = Grid((1, 16)).partition((4, 4)).seams
    line = torch.arange(16.0).square().reshape(1, 1, 1, 16)
    assert value_trace(line, seams).tolist() == [[[7.0, 15.0, 23.0]]]
    jumps = normal_derivative_trace(line, seams)
    torch.testing.assert_close(jumps, torch.full((1, 1, 3), 30.0))


def test_without_seams_there_is_nothing_to_measure(fields):
    seams = GRID.partition((1, 1)).seams
    assert value_trace(fields, seams).shape == (6, 2, 0)
    batch = Compared(fields, fields)
    assert all(bool(measure(batch).isnan()) for measure in seam_measures(seams).values())


def test_a_seam_at_the_last_line_has_no_second_difference():
    """Patches at stride one stop beside the border, where only the value trace exists."""
    fields = torch.arange(12.0).square().expand(1, 1, 12, 12)
    seams = Seams((tuple(range(1, 12)), ()), (Axis(12), Axis(12)))
    assert (seams.rows, seams.columns) == (tuple(range(1, 12)), ())
    assert value_trace(fields, seams).shape == (1, 1, 11 * 12)
    assert normal_derivative_trace(fields, seams).shape == (1, 1, 10 * 12)
