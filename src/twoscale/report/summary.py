"""What matters in the records of studies, in sentences and few numbers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from twoscale.report.audits import agreement, study_audits
from twoscale.report.display import ABSENT, number, with_spread
from twoscale.report.page import Cell, Row, Table, Tile
from twoscale.report.related import Curve, curves
from twoscale.report.results import CaseResult, place_title
from twoscale.report.studies import Studies
from twoscale.report.study_tables import case_title
from twoscale.study.comparison import Tally, by_study, tally
from twoscale.study.statistics import crossovers
from twoscale.surrogate.methods import METHODS

_PLAIN = "local"  # what the two-scale representation is to improve on
_NETWORK = "mlp"  # the paper's predictor
_FEW = 3  # methods that make a comparison worth a sentence


def sentences(studies: Studies) -> list[str]:
    """Return the summary: best methods, where one overtakes another, agreement, what failed."""
    found = [*_best(studies), *_beyond(studies), *_crossings(studies), *_gaps(studies)]
    found += [*_agreement(studies), *_audits(studies)]
    failed = sum(len(study.failed) for study in studies.results)
    if failed:
        found.append(f"{failed} runs failed; they are named in their studies.")
    return found


def tiles(studies: Studies) -> list[Tile]:
    """Return the numbers to be seen first."""
    shown = [
        Tile(str(len(studies.results)), "studies" if len(studies.results) > 1 else "study"),
        Tile(f"{_runs(studies):,}", "fitted and evaluated surrogates"),
    ]
    counts = tally(studies.compared)
    if counts.agreement is not None:
        judged = counts.match + counts.off
        shown.append(Tile(f"{_percent(counts)} %", f"of {judged:,} values agree with the paper"))
    for case in _two_scale(studies)[:2]:
        words = f"{case.title}'s error, {place_title(case.place)}"
        shown.append(Tile(f"{number(case.mean('mre'), 'percent')} %", words))
    return shown


def _two_scale(studies: Studies) -> list[CaseResult]:
    """Return the two-scale case of each problem, where it is compared with most other methods."""
    found: dict[str, tuple[int, CaseResult]] = {}
    for cases in _usual_cases(studies).values():
        for case in cases:
            rivals = len({other.title for other in cases})
            best = found.get(case.problem, (0, case))[0]
            if case.title == METHODS["two-scale"].title and rivals > best:
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


def _usual_cases(studies: Studies) -> dict[str, list[CaseResult]]:
    """Return the methods as they are meant to be used, by place: no variants, all data.

    Of a case that several studies share, the one with most seeds counts.
    """
    places: dict[str, dict[str, CaseResult]] = {}
    for study in studies.results:
        for case in study.cases:
            if case.design or case.id.partition("training=")[1] or case.mean("mre") is None:
                continue
            known = places.setdefault(case.place, {})
            if case.id not in known or len(case.cells) > len(known[case.id].cells):
                known[case.id] = case
    problems = list(dict.fromkeys(place.rpartition("-")[0] for place in places))
    ordered = sorted(
        places, key=lambda place: (problems.index(place.rpartition("-")[0]), _grid(place))
    )
    return {place: list(places[place].values()) for place in ordered}


def _grid(place: str) -> int:
    return int(place.rpartition("-")[2])


def _best(studies: Studies) -> list[str]:
    """Return a sentence for each problem and grid on which several methods were compared."""
    found = []
    for place, cases in _usual_cases(studies).items():
        if len(cases) < _FEW:
            continue
        ranked = sorted(cases, key=_error)
        best = ranked[0]
        missing = _not_measured(studies, place)
        so_far = "of what was measured " if missing else ""
        words = f"{place_title(place)}: {so_far}{best.title} has the lowest error, {_spread(best)}"
        words += f", in {_seconds(best)}"
        coded = [case for case in ranked if case.mean("oracle_mre") is not None]
        if coded and coded[0] is not best:
            words += f"; of the PCA-Nets {coded[0].title}, {_spread(coded[0])}"
            words += f", in {_seconds(coded[0])}"
            best = coded[0]
        plain = [case for case in cases if case.method == _PLAIN and not case.objective]
        if plain and plain[0] is not best:
            factor = _error(plain[0]) / _error(best)
            words += f", {factor:.1f} times below plain patches ({_spread(plain[0])})"
        if missing:
            words += f"; not measured yet: {', '.join(missing)}"
        found.append(words + ".")
    return found


def _beyond(studies: Studies) -> list[str]:
    """Return a sentence for each place at which another predictor comes below all usual methods."""
    found = []
    for place, usual in _usual_cases(studies).items():
        others = [
            case
            for study in studies.results
            for case in study.cases
            if case.place == place
            and case.settings.get("predictor", _NETWORK) != _NETWORK
            and not case.id.partition("training=")[1]
            and case.mean("mre") is not None
        ]
        rival = min(usual, key=_error)
        best = min(others, key=_error, default=rival)
        if _error(best) < _error(rival):
            found.append(
                f"{place_title(place)}: beyond the paper's protocol, {best.label} has "
                f"{_spread(best)} in {_seconds(best)}, "
                f"{_error(rival) / _error(best):.1f} times below {rival.title}."
            )
    return found


def _not_measured(studies: Studies, place: str) -> list[str]:
    """Return the methods that the paper has at a place, as they are meant to be used, and we not.

    A case of the paper is missing if no study has measured it.
    """
    measured = {(case.place, case.title) for study in studies.results for case in study.cases}
    missing = [
        case_title(row.cell)
        for row in studies.compared
        if row.verdict == "missing" and not row.is_change and row.cell.startswith(f"{place} ")
    ]
    usual = [name for name in dict.fromkeys(missing) if "," not in name]  # no variants
    return [name for name in usual if (place, name) not in measured]


def _crossings(studies: Studies) -> list[str]:
    """Return a sentence for each number of training fields at which a method overtakes another."""
    found = []
    for study in studies.results:
        along = [curve for curve in curves(study, "training") if len(curve.at) > 1]
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
            f"{place_title(one.cases[0].place)}: {lower.label} has a lower error than "
            f"{higher.label} from about {round(crossing.at, -1):,.0f} training fields on."
        )
    return found


def _gaps(studies: Studies) -> list[str]:
    """Return a sentence on how far learning stays behind the representation, where it does most."""
    gaps = [
        (ratio, case)
        for cases in _usual_cases(studies).values()
        for case in cases
        if not case.objective and (ratio := case.mean("learned_to_oracle")) is not None
    ]
    if len(gaps) < _FEW:
        return []
    ratio, case = max(gaps, key=lambda gap: gap[0])
    oracle = number(case.mean("oracle_mre"), "percent")
    return [
        f"The widest gap between learning and representation is {case.title}'s on "
        f"{place_title(case.place)}: its learned error is {ratio:.1f} times that of its "
        f"representation alone ({oracle} %)."
    ]


def _agreement(studies: Studies) -> list[str]:
    counts = tally(studies.compared)
    if counts.agreement is None:
        return []
    judged = counts.match + counts.off
    words = (
        f"Of {judged + counts.missing:,} accuracies in the paper's tables of these studies "
        f"{judged:,} were measured; {counts.match:,} of them ({_percent(counts)} %) are within two "
        "of the paper's standard deviations or 5 %."
    )
    if counts.off:
        explained = counts.off - counts.unexplained
        words += f" Of the {counts.off} others {explained} are explained."
    return [words]


def _audits(studies: Studies) -> list[str]:
    """Return a sentence for each study whose equivalence audit the paper has as well."""
    found = []
    for study in studies.results:
        definition = studies.definitions.get(study.name)
        same, judged = agreement(study_audits(study, definition))
        if definition and judged:
            found.append(
                f"{definition.title}: {same} of {judged} decisions of the paper's equivalence "
                "audit, times aside, come out the same here."
            )
    return found


def agreement_table(studies: Studies) -> Table:
    """Return the verdicts counted by study."""
    counted = by_study(studies.compared)
    rows = [
        _counts(studies.definitions[study.name].title, counted[study.name])
        for study in studies.results
        if study.name in counted
    ]
    rows.append(_counts("All studies", tally(studies.compared)))
    header = ["study", "agree", "match", "off", "unexplained", "missing", "times"]
    note = (
        "match: within two of the paper's standard deviations or 5 %, whichever is larger; off: "
        "further apart; unexplained: off without a reason given; missing: in the paper, not "
        "measured here; times are listed and not judged. Of a change between two cases the paper "
        "prints no deviation: it is taken to follow from those of the two values, as if these were "
        f"independent, which is generous. {_both_kinds(studies)}"
    )
    return Table(header, rows, "Agreement with the paper, by study", note)


def _both_kinds(studies: Studies) -> str:
    """Return how many values and how many changes match, in a sentence."""
    kinds = [tally(row for row in studies.compared if row.is_change == change) for change in (0, 1)]
    values, changes = (f"{one.match:,} of {one.match + one.off:,}" for one in kinds)
    return f"Without changes {values} match; of the changes {changes}."


def _counts(name: str, counts: Tally) -> Row:
    shown = (counts.match, counts.off, counts.unexplained, counts.missing, counts.time)
    agree = ABSENT if counts.agreement is None else f"{_percent(counts)} %"
    return Row([Cell(name), Cell(agree, counts.agreement), *_numbers(shown)])


def _numbers(values: Iterable[int]) -> list[Cell]:
    return [Cell(f"{value:,}", value) for value in values]


def _percent(counts: Tally) -> str:
    return f"{100 * (counts.agreement or 0.0):.0f}"


def _error(case: CaseResult) -> float:
    return case.mean("mre") or 0.0


def _spread(case: CaseResult) -> str:
    spread = case.spread("mre")
    assert spread is not None
    return with_spread(spread.mean, spread.deviation, "percent") + " %"


def _seconds(case: CaseResult) -> str:
    share = " (its share of a joint training)" if case.is_share("total") else ""
    return f"{number(case.mean('total'), 'seconds')} s{share}"
