import numpy as np
import pytest
import torch

from twoscale import Darcy, Grid, PatchLayout, Poisson
from twoscale.fields.measures import (
    ACCURACY,
    TRACES,
    Batch,
    mean_absolute_error,
    mean_squared_error,
    measure_all,
    median_sample,
    normal_derivative_trace,
    radial_spectrum,
    relative_l2,
    seam_measures,
    spectral_error,
    ssim,
    structural_similarity,
    value_trace,
)
from twoscale.problems.measures import residual_measures

SEAMS = ([4, 8], [3, 7, 11])


@pytest.fixture
def pair(generator):
    """A prediction and a truth (6, 12, 14), float64."""
    truth = torch.randn(6, 12, 14, dtype=torch.float64, generator=generator).cumsum(1).cumsum(2)
    noise = torch.randn(6, 12, 14, dtype=torch.float64, generator=generator)
    return truth + 0.1 * noise, truth


@pytest.fixture
def batch(pair):
    return Batch(*pair)


def all_measures():
    measures = dict(ACCURACY)
    measures |= seam_measures(SEAMS)
    measures |= residual_measures(Poisson())
    return measures


# Accuracy

TINY = Batch(
    prediction=torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [1.0, 0.0]]]),
    truth=torch.tensor([[[1.0, 0.0], [3.0, 3.0]], [[0.0, 1.0], [1.0, 2.0]]]),
)
"""Errors 0, 2, 0, 1 and 0, -1, 0, -2: sum of squares 10; of the truth 19 + 6 = 25."""


def test_relative_l2_by_hand():
    assert float(relative_l2(TINY)) == pytest.approx((10 / 25) ** 0.5)


def test_mean_errors_by_hand():
    assert float(mean_squared_error(TINY)) == pytest.approx(10 / 8)
    assert float(mean_absolute_error(TINY)) == pytest.approx(6 / 8)


def test_relative_l2_is_one_ratio_and_not_a_mean_of_ratios():
    ratios = [(5 / 19) ** 0.5, (5 / 6) ** 0.5]
    assert float(relative_l2(TINY)) != pytest.approx(np.mean(ratios), rel=0.01)
    batches = [
        Batch(TINY.prediction[:1], TINY.truth[:1]),
        Batch(TINY.prediction[1:], TINY.truth[1:]),
    ]
    assert measure_all({"mre": relative_l2}, batches)["mre"] == pytest.approx((10 / 25) ** 0.5)


def test_the_error_is_prediction_minus_truth():
    assert torch.equal(TINY.error, TINY.prediction - TINY.truth)


# Structural similarity


def skimage_ssim(prediction, truth):
    metrics = pytest.importorskip("skimage.metrics")
    return [
        metrics.structural_similarity(t, p, data_range=t.max() - t.min())
        for p, t in zip(prediction.numpy(), truth.numpy(), strict=True)
    ]


@pytest.mark.parametrize("shape", [(8, 8), (12, 14), (33, 20)])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_structural_similarity_is_that_of_scikit_image(shape, noise, generator):
    truth = torch.randn(4, *shape, dtype=torch.float64, generator=generator).cumsum(1)
    prediction = truth + noise * torch.randn(truth.shape, dtype=torch.float64, generator=generator)
    expected = skimage_ssim(prediction, truth)
    got = structural_similarity(prediction, truth)
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-10)
    assert float(ssim(Batch(prediction, truth))) == pytest.approx(np.mean(expected), abs=1e-10)


def test_small_smooth_fields_are_compared_as_well():
    """Fields as small as solutions of Poisson's equation, stored in float32."""
    problem = Poisson()
    truth = problem.solve(problem.sample(Grid.square(24), range(3), seed=0)).float()
    prediction = truth * 1.01
    expected = skimage_ssim(prediction.double(), truth.double())
    got = structural_similarity(prediction, truth)
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-10)


def test_a_field_is_perfectly_similar_to_itself(pair):
    _, truth = pair
    similarity = structural_similarity(truth, truth)
    torch.testing.assert_close(similarity, torch.ones_like(similarity))


def test_similarity_to_a_constant_truth_is_finite():
    truth = torch.full((2, 9, 9), 0.3)
    assert bool(torch.isfinite(structural_similarity(truth + 0.1, truth)).all())
    torch.testing.assert_close(
        structural_similarity(truth, truth), torch.ones(2, dtype=torch.float64)
    )


# Spectra


def slow_spectrum(field):
    """Radial mean of |FFT|^2, mode by mode."""
    height, width = field.shape
    energy = np.abs(np.fft.fft2(field)) ** 2
    sums, counts = {}, {}
    for i in range(height):
        for j in range(width):
            k = i if i <= (height - 1) // 2 else i - height
            m = j if j <= (width - 1) // 2 else j - width
            ring = round(float(np.hypot(k, m)))
            sums[ring] = sums.get(ring, 0.0) + energy[i, j]
            counts[ring] = counts.get(ring, 0) + 1
    rings = range(max(sums) + 1)
    return np.array([sums[r] / counts[r] for r in rings]), np.array([counts[r] for r in rings])


@pytest.mark.parametrize("shape", [(8, 8), (9, 9), (12, 15)])
def test_the_spectrum_is_the_radial_mean(shape, generator):
    fields = torch.randn(3, *shape, dtype=torch.float64, generator=generator)
    for field, spectrum in zip(fields.numpy(), radial_spectrum(fields).numpy(), strict=True):
        np.testing.assert_allclose(spectrum, slow_spectrum(field)[0], rtol=1e-10)


@pytest.mark.parametrize("shape", [(8, 8), (12, 15)])
def test_the_rings_hold_all_the_energy(shape, generator):
    """Parseval: the sum over rings is the number of nodes times the sum of squares."""
    fields = torch.randn(3, *shape, dtype=torch.float64, generator=generator)
    counts = torch.from_numpy(slow_spectrum(fields[0].numpy())[1])
    energy = (radial_spectrum(fields) * counts).sum(1)
    expected = shape[0] * shape[1] * fields.square().sum((1, 2))
    torch.testing.assert_close(energy, expected)


def test_a_single_wave_lies_in_a_single_ring():
    x = torch.arange(16, dtype=torch.float64) / 16
    field = torch.sin(2 * torch.pi * 3 * x)[:, None] * torch.cos(2 * torch.pi * 4 * x)
    spectrum = radial_spectrum(field[None])[0]
    assert int(spectrum.argmax()) == 5
    assert float(spectrum.sum() - spectrum[5]) < 1e-20 * float(spectrum[5])


def test_the_spectral_error_compares_mean_spectra(pair):
    prediction, truth = pair
    means = [
        np.mean([slow_spectrum(field)[0] for field in fields.numpy()], axis=0)
        for fields in (prediction, truth)
    ]
    expected = np.linalg.norm(means[0] - means[1]) / np.linalg.norm(means[1])
    assert float(spectral_error(Batch(prediction, truth))) == pytest.approx(expected, rel=1e-10)


def test_the_spectral_error_does_not_see_a_shift(pair):
    _, truth = pair
    assert float(spectral_error(Batch(truth.roll((3, 5), (1, 2)), truth))) < 1e-12


# Seams


def test_value_traces_by_explicit_indexing(pair):
    fields, _ = pair
    rows = [fields[:, b, :] - fields[:, b - 1, :] for b in SEAMS[0]]
    columns = [fields[:, :, b] - fields[:, :, b - 1] for b in SEAMS[1]]
    got = value_trace(fields, SEAMS)
    assert got.shape == (6, 2 * 14 + 3 * 12)
    expected = torch.cat([part.flatten(1) for part in (*rows, *columns)], 1)
    torch.testing.assert_close(got.sort(1).values, expected.sort(1).values)


def test_normal_derivative_traces_by_explicit_indexing(pair):
    fields, _ = pair
    h_row, h_column = 1 / 11, 1 / 13
    rows = [
        (fields[:, b + 1] - fields[:, b]) / h_row - (fields[:, b] - fields[:, b - 1]) / h_row
        for b in SEAMS[0]
    ]
    columns = [
        (fields[:, :, b + 1] - fields[:, :, b]) / h_column
        - (fields[:, :, b] - fields[:, :, b - 1]) / h_column
        for b in SEAMS[1]
    ]
    expected = torch.cat([part.flatten(1) for part in (*rows, *columns)], 1)
    got = normal_derivative_trace(fields, SEAMS)
    torch.testing.assert_close(got.sort(1).values, expected.sort(1).values)


@pytest.mark.parametrize("axis", [0, 1])
def test_each_axis_has_its_own_seams(axis):
    """A step at one seam is seen there and nowhere else."""
    field = torch.zeros(1, 12, 14, dtype=torch.float64)
    field.narrow(axis + 1, 8, field.shape[axis + 1] - 8).fill_(2.0)
    at, elsewhere = ([8], []), ([4], [])
    if axis == 1:
        at, elsewhere = at[::-1], elsewhere[::-1]
    assert value_trace(field, at).unique().tolist() == [2.0]
    assert value_trace(field, elsewhere).unique().tolist() == [0.0]
    spacing = 1 / (field.shape[axis + 1] - 1)
    assert normal_derivative_trace(field, at).unique().tolist() == pytest.approx([-2.0 / spacing])


def test_a_linear_field_has_no_normal_derivative_jump():
    y, x = torch.meshgrid(
        torch.linspace(0, 1, 12, dtype=torch.float64),
        torch.linspace(0, 1, 14, dtype=torch.float64),
        indexing="ij",
    )
    field = (3 * y - 2 * x)[None]
    assert float(normal_derivative_trace(field, SEAMS).abs().max()) < 1e-12
    values = value_trace(field, SEAMS).abs().unique().tolist()
    assert min(values) == pytest.approx(2 / 13)
    assert max(values) == pytest.approx(3 / 11)


def test_seam_measures_are_means_of_absolute_traces(pair, batch):
    prediction, truth = pair
    measures = seam_measures(SEAMS)
    assert set(measures) == {
        "value_jump",
        "value_trace_error",
        "normal_derivative_jump",
        "normal_derivative_trace_error",
    }
    for name, trace in TRACES.items():
        jump = trace(prediction, SEAMS).abs().mean()
        error = (trace(prediction, SEAMS) - trace(truth, SEAMS)).abs().mean()
        torch.testing.assert_close(measures[f"{name}_jump"](batch), jump)
        torch.testing.assert_close(measures[f"{name}_trace_error"](batch), error)


def test_a_perfect_prediction_has_jumps_but_no_trace_errors(pair):
    _, truth = pair
    values = {name: float(m(Batch(truth, truth))) for name, m in seam_measures(SEAMS).items()}
    assert values["value_jump"] > 0
    assert values["normal_derivative_jump"] > 0
    assert values["value_trace_error"] == values["normal_derivative_trace_error"] == 0


def test_traces_of_one_axis_only(pair):
    fields, _ = pair
    assert value_trace(fields, ([], [7])).shape == (6, 12)
    assert value_trace(fields, ([4], [])).shape == (6, 14)


def test_without_seams_there_is_nothing_to_measure(batch):
    seams = PatchLayout.tiling((12, 14), (1, 1)).seams
    assert value_trace(batch.prediction, seams).shape == (6, 0)
    assert all(bool(measure(batch).isnan()) for measure in seam_measures(seams).values())


def test_a_seam_at_the_last_line_has_no_second_difference():
    """Patches at stride one stop beside the border, where only the value trace exists."""
    fields = torch.arange(12.0).square().expand(1, 12, 12)
    seams = PatchLayout((12, 12), (4, 12), (1, 12)).seams
    assert seams == (list(range(1, 12)), [])
    assert value_trace(fields, seams).shape == (1, 11 * 12)
    assert normal_derivative_trace(fields, seams).shape == (1, 10 * 12)


# Physics


@pytest.mark.parametrize("problem", [Poisson(), Darcy()], ids=lambda p: p.name)
def test_residual_measures_vanish_at_the_solution(problem):
    inputs = problem.sample(Grid(16, 20), range(3), seed=0)
    solution = problem.solve(inputs)
    measures = residual_measures(problem)
    for name in ("residual_rms", "residual_mean_abs"):
        assert float(measures[name](Batch(solution, solution, inputs))) < 1e-8
        assert float(measures[name](Batch(1.1 * solution, solution, inputs))) > 1e-3


def test_residual_measures_by_hand():
    """The zero field leaves minus the forcing over, at interior nodes only."""
    inputs = torch.full((2, 8, 8), 3.0)
    inputs[1] = -4.0
    inputs[:, 0] = 100.0
    nothing = torch.zeros_like(inputs)
    measures = residual_measures(Poisson())
    batch = Batch(nothing, nothing, inputs)
    assert float(measures["residual_mean_abs"](batch)) == pytest.approx(3.5)
    assert float(measures["residual_rms"](batch)) == pytest.approx(12.5**0.5)


# Batches, gradients, purity


@pytest.mark.parametrize("cuts", [[6], [1, 5], [2, 2, 2], [1, 1, 1, 1, 1, 1]], ids=str)
def test_batches_add_up(pair, cuts):
    prediction, truth = pair
    inputs = torch.ones_like(truth)
    batches = [
        Batch(*parts)
        for parts in zip(prediction.split(cuts), truth.split(cuts), inputs.split(cuts), strict=True)
    ]
    whole = Batch(prediction, truth, inputs)
    values = measure_all(all_measures(), batches)
    for name, measure in all_measures().items():
        assert values[name] == pytest.approx(float(measure(whole)), rel=1e-12), name


@pytest.mark.parametrize("name", [*all_measures()])
def test_every_measure_is_a_loss(pair, name):
    prediction, truth = pair
    leaf = prediction[:2].clone().requires_grad_()
    measure = all_measures()[name]
    inputs = torch.ones_like(truth[:2])
    value = measure(Batch(leaf, truth[:2], inputs))
    assert value.shape == ()
    value.backward()
    assert bool(torch.isfinite(leaf.grad).all())
    assert bool((leaf.grad != 0).any())


@pytest.mark.parametrize("measure", [relative_l2, spectral_error, ssim], ids=["l2", "f", "s"])
def test_gradients_agree_with_differences(measure, pair):
    prediction, truth = pair
    leaf = prediction[:1, :8, :8].clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda p: measure(Batch(p, truth[:1, :8, :8])), leaf, fast_mode=True
    )


@pytest.mark.parametrize("name", [*all_measures()])
def test_arguments_are_left_unchanged(pair, name):
    prediction, truth = pair
    inputs = torch.ones_like(truth)
    before = prediction.clone(), truth.clone(), inputs.clone()
    all_measures()[name](Batch(prediction, truth, inputs))
    assert torch.equal(prediction, before[0])
    assert torch.equal(truth, before[1])
    assert torch.equal(inputs, before[2])


@pytest.mark.parametrize("name", [*all_measures()])
def test_float32_fields_lose_little(pair, name):
    prediction, truth = pair
    inputs = torch.ones_like(truth)
    measure = all_measures()[name]
    single = float(measure(Batch(prediction.float(), truth.float(), inputs.float())))
    assert single == pytest.approx(float(measure(Batch(prediction, truth, inputs))), rel=1e-3)


def test_sums_over_many_float32_values_stay_accurate():
    """Sums without gradient are kept in float64."""
    truth = torch.full((64, 256, 256), 0.1)
    value = measure_all({"mae": mean_absolute_error}, [Batch(truth, torch.zeros_like(truth))])
    assert value["mae"] == pytest.approx(float(torch.tensor(0.1)), rel=1e-9)


def test_the_accuracy_measures_have_the_names_of_the_record():
    assert list(ACCURACY) == ["mre", "mse", "mae", "ssim", "spectral_error"]


def test_median_sample_is_the_middle_one():
    truth = torch.ones(3, 4, 4)
    prediction = truth * torch.tensor([1.0, 1.5, 1.1])[:, None, None]
    assert median_sample(prediction, truth) == 2


def test_the_median_sample_of_fields_whose_squares_are_infinite(generator):
    truth = torch.rand(3, 8, 8, generator=generator)
    prediction = truth * torch.tensor([1.3, 1.1, 1.2])[:, None, None]
    for size in (1e-30, 1.0, 1e30):
        assert median_sample(prediction * size, truth * size) == 2
