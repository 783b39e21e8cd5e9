"""All checks of a dataset, and those of the dataset as a whole: storage, samples, equation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twoscale.data.check import fields
from twoscale.data.check.finding import Finding, some
from twoscale.data.check.fingerprints import Fingerprints
from twoscale.data.check.statistics import DatasetStatistics, four_axes
from twoscale.data.split import largest_training, split_samples
from twoscale.data.store import Dataset
from twoscale.domain.symmetries import SYMMETRIES, symmetry_group
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.predictors.symmetry_evidence import SymmetryEvidence
from twoscale.runtime.progress import Progress

_EACH = 3  # training samples for each number of a code, at least
_LEAVE_OUT = "leave them out, they add nothing and may be in training and test"
_SOLUTION_TOLERANCE = 1e-4
_TURNS = (
    *("square", "rotations", "mirrors", "mirror-rows"),
    *("mirror-columns", "transpose", "half-turn"),
)
"""From many images to few: the first that the data allow is reported."""


def check_dataset(
    dataset: Dataset, *, test: Dataset | None = None, progress: Progress | None = None
) -> list[Finding]:
    """Return the findings on a dataset; every stored byte is read once, a chunk at a time.

    With a dataset `test`, its samples are looked for in the first one.
    """
    statistics = DatasetStatistics(dataset, progress)
    findings = [finding for check in CHECKS for finding in check(statistics)]
    if test is not None:
        findings.append(_leakage(statistics.fingerprints, dataset, test))
    return findings


def _summary(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield what the dataset is, and that its problem is not known here."""
    dataset = statistics.dataset
    yield Finding("ok", "summary", f"{dataset.samples} pairs of {dataset.layout}, {dataset.dtype}")
    described = dataset.metadata["problem"]
    if described and statistics.problem is None:
        seen = f"the problem '{described['name']}' is not known here: solutions are not checked"
        yield Finding("warning", "problem", seen, "install the package that defines it")


def _layout(statistics: DatasetStatistics) -> Iterator[Finding]:
    return fields.layout_findings(statistics.dataset)


def _storage(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield whether all stored bytes can be read as they were written."""
    damaged, has_checksums = statistics.damaged, statistics.dataset.has_checksums
    if damaged and not has_checksums:
        seen = f"values cannot be read in {some(damaged)}"
        advice = "the file may be damaged; get or write it again"
        yield Finding("error", "unreadable", seen, advice)
    elif damaged:
        seen = f"stored bytes do not match their checksums in {some(damaged)}"
        yield Finding("error", "checksums", seen, "generate or import the dataset again")
    elif has_checksums:
        yield Finding("ok", "checksums", "stored bytes match their checksums")


def _repetitions(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield the inputs that occur twice, and those with different outputs."""
    prints = statistics.fingerprints
    repeats, close = [repeat for _, repeat in prints.repeats], prints.close
    what = "field" if "input" in statistics.channels else "parameter set"
    if repeats:
        seen = f"input: repetitions of earlier {what}s in {some(repeats, 'sample')}"
        yield Finding("warning", "duplicates", seen, _LEAVE_OUT)
    if close:
        those = some(sorted({repeat for _, repeat in close}), "sample")
        seen = f"input: {what}s that repeat earlier ones up to rounding in {those}"
        yield Finding("warning", "near_duplicates", seen, _LEAVE_OUT)
    if not repeats and not close:
        yield Finding("ok", "duplicates", f"input: no {what} occurs twice")
    if prints.contradictions:
        seen = f"equal inputs have different outputs in {some(prints.contradictions, 'sample')}"
        advice = "give what differs between them as another input channel or parameter"
        yield Finding("warning", "contradictions", seen, advice)


def _leakage_within(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield the test samples of the usual split that also occur in its training samples."""
    if statistics.dataset.samples < 10:
        return
    split = split_samples(statistics.dataset.samples, seed=0)
    training, test = set(split.training.tolist()), set(split.test.tolist())
    pairs = statistics.fingerprints.repeats + statistics.fingerprints.close
    both_ways = [*pairs, *((other, one) for one, other in pairs)]
    leaked = sorted({other for one, other in both_ways if one in training and other in test})
    if leaked:
        tests = some(leaked, "test sample")
        seen = f"{tests} of the default split with seed 0 also occur in the training samples"
        advice = "the test error is too small then; leave the repetitions out before you fit"
        yield Finding("warning", "leakage", seen, advice)


def _leakage(fingerprints: Fingerprints, dataset: Dataset, test: Dataset) -> Finding:
    """Return whether samples of a test set are in the dataset."""
    if test.input_space.shape != dataset.input_space.shape:
        inputs, tests = dataset.input_space.contents, test.input_space.contents
        seen = f"inputs are {inputs}, those of the test set {tests}"
        return Finding("error", "test_set", seen, "training and test data must agree")
    tested = Fingerprints()
    for part in slices(test.samples, test.chunk):
        values = {name: test.read(name, part.start, part.stop) for name in test.arrays}
        arrays = {name: four_axes(test, name, one) for name, one in values.items()}
        tested.see(part.start, arrays)
    shared = fingerprints.shared_with(tested)
    if not shared:
        seen = f"no input of the {test.samples} test samples is in the data"
        return Finding("ok", "leakage", seen)
    seen = (
        f"inputs of {some(shared, 'test sample')} are also in the data, exactly or up to rounding"
    )
    advice = "the test error is too small then; leave them out of one of the two"
    return Finding("warning", "leakage", seen, advice)


def _variety(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield whether there are enough samples for the variety of the outputs."""
    numbers = statistics.variety.numbers
    if numbers is None:
        return
    training = largest_training(statistics.dataset.samples)
    least = "at least " if numbers > len(statistics.variety.rows) / 2 else ""
    seen = f"{least}{numbers} numbers hold 99 % of the outputs' variance, and {training} samples"
    level, advice = "ok", ""
    if training < _EACH * numbers:
        fewer = f"fewer than {_EACH} samples for each number"
        level, advice = "warning", f"{fewer}: expect the error to fall with more samples"
    yield Finding(level, "samples", f"{seen} train", advice)


def _symmetries(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield whether the data allow turns, mirrorings and shifts, or speak against them.

    What a known equation declares is tested. Others are suggested for unknown equations only.
    """
    dataset, problem = statistics.dataset, statistics.problem
    unsound = statistics.damaged or any(one.bad for one in statistics.every)
    if unsound or "input" not in dataset.arrays:
        return
    every = range(dataset.samples)
    pairs = (dataset.fields("input", every), dataset.fields("output", every))
    evidence = SymmetryEvidence(pairs, (dataset.input_space, dataset.output_space))
    if not evidence.enough:
        return
    if problem is None:
        for names in (_TURNS, ("shifts",)):
            yield from _possible(evidence, names)
    elif problem.symmetric_under != "none":
        yield _declared(evidence, problem.symmetric_under)


def _declared(evidence: SymmetryEvidence, name: str) -> Finding:
    """Return whether the data allow the symmetries of their equation."""
    against = evidence.against(name)
    if not against:
        seen = f"nothing in the data speaks against {SYMMETRIES[name]}, as the equation says"
        return Finding("ok", "symmetries", seen)
    seen = f"the equation is symmetric under {SYMMETRIES[name]}, but {against}"
    advice = "fit with symmetries=none, or look for a mistake in the data"
    return Finding("warning", "symmetries", seen, advice)


def _possible(evidence: SymmetryEvidence, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the first symmetry that the data allow, or that there is none of them."""
    refuted = ""
    for name in names:
        if not _applies(name, evidence):
            continue
        against = evidence.against(name)
        if not against:
            seen = f"nothing in the data speaks against {SYMMETRIES[name]}"
            fit = f"if your equation is symmetric too, fit with symmetries={name}"
            yield Finding("note", "symmetries", seen, f"{fit}: every sample then counts as several")
            return
        refuted = f"not symmetric under {SYMMETRIES[name]}: {against}"
    if refuted:
        yield Finding("ok", "symmetries", refuted)


def _applies(name: str, evidence: SymmetryEvidence) -> bool:
    """Say whether the grids have all symmetries of a name."""
    try:
        group = symmetry_group(name, *(space.grid for space in evidence.spaces))
    except TwoscaleError:
        return False
    return name == "shifts" or group == symmetry_group(name)


def _solution(statistics: DatasetStatistics) -> Iterator[Finding]:
    """Yield whether the outputs of the spot checks solve the equation."""
    problem, distance = statistics.solved, statistics.distance
    if problem is None or statistics.damaged:
        return
    if distance > _SOLUTION_TOLERANCE:
        seen = f"outputs do not solve {problem.name}: {distance:.0e} off"
        advice = "import again without the problem, or with the right fields"
        yield Finding("error", "solution", seen, advice)
    else:
        spot_checks = f"spot checks agree with fresh solutions to {distance:.0e}"
        yield Finding("ok", "solution", f"outputs solve {problem.name}: {spot_checks}")


CHECKS: tuple[Callable[[DatasetStatistics], Iterator[Finding]], ...] = (
    *(_summary, _layout, _storage),
    *(fields.finite_values, fields.constant_fields, fields.lost_digits, fields.constant_nodes),
    *(fields.logarithm, fields.scales),
    *(_repetitions, _leakage_within, _variety),
    *(fields.sample_order, fields.transposed, fields.periodic_axes, _symmetries, fields.boundary),
    _solution,
)
"""All checks, in the order in which their findings are told."""
