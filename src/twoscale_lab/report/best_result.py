"""The best result of some studies in words, for the top of a page."""

from __future__ import annotations

from collections.abc import Sequence

from twoscale.report.display import number
from twoscale_lab.report.charts.error_time import error_time_cases, main_places
from twoscale_lab.report.results import CaseResult, place_title
from twoscale_lab.report.studies import Studies


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
    place, device = place_title(cases[0].place), _devices(studies, cases)
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
    names = set()
    for study in studies.results:
        for case in cases:
            known = study.case(case.id)
            for cell in known.cells if known else ():
                index = cell.get("environment")
                if isinstance(index, int) and 0 <= index < len(study.environments):
                    names.add(str(study.environments[index].get("device_name") or ""))
    (name,) = names if len(names) == 1 else ("",)
    return f" on one {name}" if name else ""


def _error(case: CaseResult) -> float:
    return case.mean("mre") or 0.0
