import json
import re
from types import SimpleNamespace

import pytest

from tests.browser import BROWSER, SIZES, open_page
from tests.cli.outcome import contents, refused
from twoscale import TwoscaleError
from twoscale.cli import demo_parts
from twoscale.data import generate
from twoscale.files import WorkFolder, working

SMALL = ("--resolution", 16, "--samples", 100, "--budget", "0.1s", "--epochs", 1)
RUNS = ["search", "local", "overlap", "two-scale"]
PICTURES = {"median", "error-time", "errors", "zoom", "profile", "seams"}


@pytest.mark.usefixtures("drawn_figures")
def test_demo_makes_table_runs_and_page(twoscale, tmp_path, request):
    """The second command goes on where the first was stopped, with nothing made twice."""
    out = tmp_path / "demo"
    command = ("demo", "--out", out, *SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twoscale.training.loop.mean_loss", interrupt)
        assert twoscale(*command).status == 130
    assert {path.name for path in out.iterdir()} == {"demo.json", "poisson-16.zarr", "runs"}
    before = contents(out / "runs" / "search") | contents(out / "poisson-16.zarr")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twoscale.cli.demo_parts.auto_run", interrupt)
        patch.setattr("twoscale.cli.demo_parts.generate", interrupt)
        outcome = twoscale(*command)
    assert outcome.status == 0, outcome.err
    assert contents(out / "runs" / "search") | contents(out / "poisson-16.zarr") == before
    check_words(outcome, out)
    check_files(out)
    if BROWSER is not None:
        check_page(request.getfixturevalue("browser"), out / "report.html")
    before = contents(out)
    refused(twoscale(*command), "exists already", "overwrite")
    assert contents(out) == before
    (out / "figures" / "mine.png").write_bytes(b"mine")
    refused(twoscale(*command, "--overwrite"), "figures is not the figures of report.html alone")
    assert contents(out) == before | {"figures/mine.png": b"mine"}


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


def check_words(outcome, out):
    """Parts are counted on stderr; the table names the search first; commands follow."""
    parts = re.findall(r"^(\d) of 4: ", outcome.err, re.MULTILINE)
    assert parts == ["1", "2", "3", "3", "3", "4"]
    rows = re.findall(r"^ ?(Search \(|Plain L2L|L2L \+ overlap|Two-scale)", outcome.out, re.M)
    assert rows == ["Search (", "Plain L2L", "L2L + overlap", "Two-scale"]
    assert max(map(len, outcome.out.splitlines())) <= max(80, len(str(out)) + 40)
    assert str(out / "report.html") in outcome.out
    assert re.findall(r"^  twoscale (\w+)", outcome.out, re.M) == ["fit", "predict", "report"]


def check_files(out):
    """The folder holds the data, four runs, and a page that needs no other file."""
    assert sorted(path.name for path in (out / "runs").iterdir()) == sorted(RUNS)
    metrics = json.loads((out / "runs" / "search" / "metrics.json").read_text())
    assert metrics["samples"] == 10
    page = (out / "report.html").read_text()
    assert page.count('<img src="data:image') == len(PICTURES)
    assert re.search(r"Search \(\S+ \+ affine\) predicts 10 test fields", page)
    assert not re.search(r"https?:(?!//www\.w3\.org/)", page)
    drawn = {path.stem for path in (out / "figures").glob("*.png")}
    assert drawn == PICTURES


def check_page(browser, path):
    """Nothing scrolls sideways but tables; every picture fits, on a phone too."""
    for size in SIZES.values():
        with open_page(browser, path, size) as page:
            root = "document.documentElement"
            assert page.evaluate(f"{root}.scrollWidth") == page.evaluate(f"{root}.clientWidth")
            for picture in page.locator("main img").all():
                picture.scroll_into_view_if_needed()
                page.wait_for_function("(one) => one.complete", arg=picture.element_handle())
                assert picture.evaluate("(one) => one.naturalWidth") > 100
                assert picture.evaluate("(one) => one.width <= one.closest('figure').clientWidth")


@pytest.fixture
def made(monkeypatch):
    """The names of the parts that a demo makes; nothing is computed."""
    parts = []

    def make(name):
        parts.append(name)
        return SimpleNamespace(metrics={"mre": 0.5}, search=None)

    monkeypatch.setattr(demo_parts, "generate", lambda problem, path, **_: parts.append(path.name))
    monkeypatch.setattr(demo_parts, "auto_run", lambda data, path, **_: make(path.name))
    monkeypatch.setattr(demo_parts, "fit_run", lambda data, path, **_: make(path.name))
    monkeypatch.setattr(
        demo_parts, "write_demo_page", lambda page, *_, **__: parts.append(page.name)
    )
    return parts


ALL = ["poisson-64.zarr", *RUNS, "report.html"]


def test_demo_is_made_anew_on_request(twoscale, tmp_path, made):
    for extra in ((), ("--overwrite",)):
        assert twoscale("demo", "--out", tmp_path / "demo", "--json", *extra).status == 0
    assert made == [*ALL, *ALL]


def test_a_demo_of_other_options_takes_nothing_over(twoscale, tmp_path, made, monkeypatch):
    command = ("demo", "--out", tmp_path / "demo", "--json")
    with monkeypatch.context() as patch:
        patch.setattr(demo_parts, "write_demo_page", interrupt)
        assert twoscale(*command).status == 130
    assert made == ALL[:-1]
    made.clear()
    assert twoscale(*command, "--seed", 1).status == 0
    assert made == ALL


def test_a_demo_whose_data_lack_a_file_begins_anew(twoscale, tmp_path, made, monkeypatch):
    out = tmp_path / "demo"
    command = ("demo", "--out", out, "--json")
    with monkeypatch.context() as patch:
        patch.setattr(demo_parts, "write_demo_page", interrupt)
        patch.setattr(demo_parts, "generate", lambda problem, path, **_: generate(
            problem, path, resolution=8, samples=20
        ))  # fmt: skip
        assert twoscale(*command).status == 130
    (shard,) = out.glob("poisson-64.zarr/output/c/0/0/0")
    shard.unlink()
    made.clear()
    assert twoscale(*command).status == 0
    assert made == ALL


def test_an_interrupted_search_stops_the_demo(twoscale, tmp_path, made, monkeypatch):
    """The best surrogate so far would be too early a result; the next command searches again."""
    found = SimpleNamespace(metrics={}, search={"stopped": "interrupted"})
    command = ("demo", "--out", tmp_path / "demo", "--json")
    with monkeypatch.context() as patch:
        patch.setattr(demo_parts, "auto_run", lambda *_, **__: found)
        assert twoscale(*command).status == 130
    assert twoscale(*command).status == 0
    assert made.count("search") == 1


def test_demo_does_not_touch_other_folders(twoscale, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    outcome = twoscale("demo", "--out", tmp_path)
    assert outcome.status == 2
    assert "holds something else" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_two_demos_do_not_share_a_folder(twoscale, tmp_path):
    out = tmp_path / "demo"
    with working(out / "demo"):
        refused(twoscale("demo", "--out", out), "another command is making a demo")
    assert not (out / "demo.json").exists()


def test_a_demo_killed_at_its_very_beginning_can_be_run_again(tmp_path):
    """What it leaves is a work folder; somebody's own folder of that kind of name is another."""
    out = tmp_path / "demo"
    WorkFolder(out / "demo").release()
    demo_parts._check_folder(out, overwrite=False)
    (out / ".mine.twoscale-work").mkdir()
    (out / ".mine.twoscale-work" / "thesis.txt").write_text("keep")
    with pytest.raises(TwoscaleError, match="holds something else"):
        demo_parts._check_folder(out, overwrite=True)
