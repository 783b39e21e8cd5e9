"""The summary of studies: a few sentences and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, groupby

from twoscale.methods.roles import PLAIN_PATCHES, PROPOSED
from twoscale.report.display import number
from twoscale.report.method_looks import method_title
from twoscale.report.page import Tile
from twoscale_lab.report.audits import same_decisions, study_audits
from twoscale_lab.report.charts.error_time import error_time_cases, main_places
from twoscale_lab.report.related import Curve, curves
from twoscale_lab.report.results import CaseResult, Studies, cases_by_place, place_title
from twoscale_lab.report.tables import case_title, percent
from twoscale_lab.study.paper.comparison import tally
from twoscale_lab.study.statistics import crossovers

_FEW = 3  # cases: a comparison of fewer gets no sentence
_WHOLE_FIELDS = "global"  # the method of one PCA of whole fields


def sentences(studies: Studies) -> list[str]:
    """Return the summary: best methods, where one overtakes another, agreement, what failed."""
    found = [*_best(studies), *_beyond(studies), *_crossings(studies), *_gaps(studies)]
    found += [*_global_wins(studies), *_values(studies), *_audits(studies)]
    failed = sum(len(study.failed) for study in studies.results)
    if failed:
        found.append(f"{failed} {'run' if failed == 1 else 'runs'} failed. The studies name them.")
    return found


def tiles(studies: Studies) -> list[Tile]:
    """Return the numbers at the top of the page."""
    shown = [
        Tile(str(len(studies.results)), "studies" if len(studies.results) > 1 else "study"),
        Tile(f"{_runs(studies):,}", "fitted and evaluated surrogates"),
    ]
    counts = tally(studies.compared)
    if counts.agreement is not None:
        words = f"of {counts.judged:,} values agree with the paper"
        shown.append(Tile(f"{percent(counts)} %", words))
    for case in _proposed(studies)[:2]:
        words = f"error of {case.title} on {case.place_title}"
        shown.append(Tile(f"{number(case.mean('mre'), 'percent')} %", words))
    return shown


def _proposed(studies: Studies) -> list[CaseResult]:
    """Return the paper's own method on each problem, where most others were measured as well."""
    found: dict[str, tuple[int, CaseResult]] = {}
    for cases in _default_cases(studies).values():
        for case in cases:
            rivals = len({other.title for other in cases})
            best = found.get(case.problem, (0, case))[0]
            if case.title == method_title(PROPOSED) and rivals > best:
                found[case.problem] = (rivals, case)
    return [case for _, case in found.values()]


def _runs(studies: Studies) -> int:
    """Return how many different cells there are; studies share some."""
    keys = {
        cell.get("key") or (case.id, cell["seed"])
        for study in studies.results
        for case in study.cases
        for cell in case.cells
    }
    return len(keys)


def _default_cases(studies: Studies) -> dict[str, list[CaseResult]]:
    """Return the cases with default settings and all training data, by place.

    Of a case in several studies, the one with most seeds counts.
    """
    places = cases_by_place(
        studies.results, lambda case: not case.design and case.mean("mre") is not None
    )
    problems = list(dict.fromkeys(cases[0].problem for cases in places.values()))
    order = {
        place: (problems.index(own[0].problem), own[0].resolution) for place, own in places.items()
    }
    return {place: places[place] for place in sorted(places, key=lambda place: order[place])}


def _best(studies: Studies) -> list[str]:
    """Return a sentence for each problem and grid on which three or more methods were measured.

    Cases with other settings, which may be better, are left out.
    """
    found = []
    for place, cases in _default_cases(studies).items():
        if len(cases) < _FEW:
            continue
        ranked = sorted(cases, key=_error)
        best = ranked[0]
        missing = _not_measured(studies, place)
        words = f"{place_title(place)}: with default settings, {best.title} has the lowest error, "
        words += f"{_spread(best)} in {_seconds(best)}."
        coded = [case for case in ranked if case.mean("oracle_mre") is not None]
        if coded and coded[0] is not best:
            best = coded[0]
            words += f" The best PCA-Net is {best.title}, {_spread(best)} in {_seconds(best)}."
        plain = [case for case in cases if case.method == PLAIN_PATCHES and not case.objective]
        if plain and plain[0] is not best and _error(best) > 0:
            factor = _error(plain[0]) / _error(best)
            words += f" {plain[0].title} has {factor:.1f} times that error ({_spread(plain[0])})."
        if missing:
            words += f" Not measured yet: {', '.join(missing)}."
        found.append(words)
    return found


def _beyond(studies: Studies) -> list[str]:
    """Return a sentence for each place at which another predictor beats all default methods."""
    found = []
    for place, usual in _default_cases(studies).items():
        others = [
            case
            for study in studies.results
            for case in study.cases
            if case.place == place
            and case.predictor
            and case.has_all_data
            and case.mean("mre") is not None
        ]
        rival = min(usual, key=_error)
        best = min(others, key=_error, default=rival)
        if 0 < _error(best) < _error(rival):
            factor = _error(rival) / _error(best)
            found.append(
                f"{place_title(place)}: the best case beyond the paper is {best.label}, with "
                f"{_spread(best)} in {_seconds(best)}. {rival.title} has {factor:.1f} times that "
                "error."
            )
    return found


def _not_measured(studies: Studies, place: str) -> list[str]:
    """Return the methods that the paper has at a place with default settings, and no study has."""
    measured = {(case.place, case.title) for study in studies.results for case in study.cases}
    missing = [
        case_title(row.cell)
        for row in studies.compared
        if row.ours is None and not row.is_change and row.cell.startswith(f"{place} ")
    ]
    usual = [name for name in dict.fromkeys(missing) if "," not in name]  # no variants
    return [name for name in usual if (place, name) not in measured]


def _crossings(studies: Studies) -> list[str]:
    """Return a sentence for each number of training fields at which a method overtakes another."""
    found = []
    for study in studies.results:
        learned = study.where(lambda case: _error(case) > 0)
        along = [curve for curve in curves(learned, "training") if len(curve.at) > 1]
        for pair in combinations(along, 2):
            if len({curve.cases[0].place for curve in pair}) == 1:
                found += _overtakings(*pair)
    return found


def _overtakings(one: Curve, other: Curve) -> list[str]:
    errors = [dict(zip(curve.at, map(_error, curve.cases), strict=True)) for curve in (one, other)]
    found = []
    for crossing in crossovers(*errors):
        lower, higher = (one, other) if crossing.below else (other, one)
        found.append(
            f"{one.cases[0].place_title}: {lower.label} has a lower error than "
            f"{higher.label} from about {round(crossing.at, -1):,.0f} training fields on."
        )
    return found


def _gaps(studies: Studies) -> list[str]:
    """Return a sentence on the case with the largest ratio of learned to oracle error."""
    gaps = [
        (ratio, case)
        for cases in _default_cases(studies).values()
        for case in cases
        if not case.objective and (ratio := case.mean("learned_to_oracle")) is not None
    ]
    if len(gaps) < _FEW:
        return []
    ratio, case = max(gaps, key=lambda gap: gap[0])
    oracle = number(case.mean("oracle_mre"), "percent")
    return [
        f"The widest gap between learning and representation is that of {case.title} on "
        f"{case.place_title}. With default settings its learned error is {ratio:.1f} times "
        f"the error of its representation alone ({oracle} %)."
    ]


def _global_wins(studies: Studies) -> list[str]:
    """Return a sentence for each problem of the study `frontier`: where global PCA is best."""
    frontier = studies.result("frontier")
    found = []
    for place in frontier.places if frontier else ():
        cases = [
            case
            for study in studies.results
            for case in study.places.get(place, ())
            if case.has_all_data and case.mean("oracle_mre") and case.mean("output_code")
        ]
        if len({case.method for case in cases}) < 2:
            continue
        ranges = _winning_sizes(cases, _WHOLE_FIELDS)
        sizes = f"codes of {' and of '.join(ranges)}" if ranges else "no size of the code"
        least, most = (number(one(map(_size, cases)), "count") for one in (min, max))
        found.append(
            f"{place_title(place)}: global PCA has the smallest oracle error for {sizes}. It is "
            "compared with all representations of at most the same size. Measured were "
            f"{least} to {most} numbers."
        )
    return found


def _winning_sizes(cases: Iterable[CaseResult], method: str) -> list[str]:
    """Return the ranges of sizes in which the best code of at most that size is the method's."""
    improving: list[CaseResult] = []  # by growing size, each better than all before
    for case in sorted(cases, key=lambda case: (_size(case), _oracle(case))):
        if not improving or _oracle(case) < _oracle(improving[-1]):
            improving.append(case)
    turns = [
        (wins, number(_size(next(found)), "count"))
        for wins, found in groupby(improving, key=lambda case: case.method == method)
    ]
    ends = [*(f"to below {size}" for _, size in turns[1:]), "or more"]
    return [f"{size} {end}" for (wins, size), end in zip(turns, ends, strict=True) if wins]


def _values(studies: Studies) -> list[str]:
    """Return how many values agree with the paper, if any was measured."""
    counts = tally(studies.compared)
    if counts.agreement is None:
        return []
    words = (
        f"The paper's tables of these studies have {counts.judged + counts.missing:,} values "
        f"besides times. {counts.judged:,} of them were measured here, and {counts.match:,} "
        f"({percent(counts)} %) agree: they differ by at most two of the paper's standard "
        "deviations or 5 %."
    )
    if counts.off:
        explained = counts.off - counts.unexplained
        words += f" The other {counts.off} differ; {explained} of these have an explanation."
    return [words]


def _audits(studies: Studies) -> list[str]:
    """Return a sentence for each study whose equivalence audit the paper has as well."""
    found = []
    for study in studies.results:
        same, judged = same_decisions(study_audits(study, studies.definitions.get(study.name)))
        if judged:
            found.append(
                f"{studies.title(study)}: {same} of {judged} decisions of the paper's equivalence "
                "audit are the same here. Times are not counted."
            )
    return found


def best_result(studies: Studies) -> list[str]:
    """Return the best result on the finest grid of each main problem.

    They name the best of the methods with default settings. If predictors beyond the paper have a
    lower error, the fastest such case comes first.
    """
    finest: dict[str, Sequence[CaseResult]] = {}
    for cases in main_places(error_time_cases(studies.results)).values():
        finest[cases[0].problem] = cases  # grids come from coarse to fine
    found = [_place_result(studies, cases) for cases in finest.values()]
    return [words for words in found if words]


def _place_result(studies: Studies, cases: Sequence[CaseResult]) -> str:
    usual = [case for case in cases if not case.predictor]
    if not usual:
        return ""
    rival = min(usual, key=_error)
    place, device = cases[0].place_title, _devices(studies, cases)
    better = [case for case in cases if case.predictor and _error(case) < _error(rival)]
    if not better:
        return f"On {place}, {rival.title} has the lowest error: {_words(rival)}{device}."
    best = min(better, key=lambda case: case.mean("total") or 0.0)
    return (
        f"On {place}, {best.family} has an error of {_words(best)}{device}. "
        f"{rival.title} has {_words(rival)}."
    )


def _words(case: CaseResult) -> str:
    share = " (a shared time)" if case.is_shared_time("total") else ""
    error, seconds = number(case.mean("mre"), "percent"), number(case.mean("total"), "seconds")
    return f"{error} % after {seconds} s{share}"


def _devices(studies: Studies, cases: Sequence[CaseResult]) -> str:
    """Return the name of the device, if all cells of the cases ran on the same one."""
    names = {
        study.where_run(cell.get("environment"))[1]
        for study in studies.results
        for case in cases
        if (known := study.case(case.id)) is not None
        for cell in known.cells
    }
    (name,) = names if len(names) == 1 else ("",)
    return f" on one {name}" if name else ""


def _error(case: CaseResult) -> float:
    return case.mean("mre") or 0.0


def _oracle(case: CaseResult) -> float:
    return case.mean("oracle_mre") or 0.0


def _size(case: CaseResult) -> float:
    return case.mean("output_code") or 0.0


def _spread(case: CaseResult) -> str:
    return f"{case.text('mre')} %"


def _seconds(case: CaseResult) -> str:
    share = " (shared)" if case.is_shared_time("total") else ""
    return f"{number(case.mean('total'), 'seconds')} s{share}"
