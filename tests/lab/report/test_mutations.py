"""Reports of randomly changed records: written whole, or refused in one sentence."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from tests.lab.study.synthetic import make_record
from tests.lab.study.tiny import TEXT
from tests.mutations import mutated
from twoscale import TwoscaleError
from twoscale_lab.report.study_page import write_report
from twoscale_lab.study.catalogue import own_definition, parse_study

FIGURES = "figures: [{kind: bars, quantities: [mre]}]"
STUDY = parse_study(TEXT.replace(TEXT[TEXT.index("figures:") :], FIGURES), name="mine")
CASES = ["poisson-16 local", "poisson-16 two-scale", "poisson-16 two-scale+A1"]
RECORD = make_record("mine", CASES, seeds=(0,), samples=100) | own_definition(STUDY)


@settings(max_examples=12, derandomize=True, deadline=None)
@given(mutated(RECORD))
def test_a_changed_record_is_reported_or_refused(record):
    with TemporaryDirectory() as folder:
        place = Path(folder) / "in" / "records"
        place.mkdir(parents=True)
        (place / "mine.json").write_text(json.dumps(record))
        try:
            page = write_report(place.parent)
            written = {"figures", "report.html"}
            assert page.read_text(encoding="utf-8").endswith("</html>\n")
        except TwoscaleError:
            written = set()
        assert {path.name for path in place.parent.iterdir()} == {"records"} | written
        assert [path.name for path in Path(folder).iterdir()] == ["in"]
        assert [path.name for path in place.iterdir()] == ["mine.json"]
