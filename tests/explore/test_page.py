"""The page in a real browser: painting, files, runs, parts, links, keys, and phones."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from tests.browser import SIZES
from tests.explore.conftest import wait_for
from twoscale import Darcy, Poisson
from twoscale.data import generate
from twoscale.explore.page import write_page
from twoscale.run import fit_run
from twoscale.surrogate import Surrogate

SHOWN = "[...Compute.result.shown]"


@pytest.fixture(scope="module")
def opened(browser, written):
    """A tab, and whatever it says or asks for; it must stay silent."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.set_default_timeout(10_000)
    troubles = []
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("console", lambda one: troubles.append(one.text))
    tab.on("request", lambda one: troubles.append(one.url) if "http" in one.url[:4] else None)
    yield tab, troubles
    tab.close()


@pytest.fixture
def page(opened, written):
    """The page, opened anew at the size of a desk."""
    tab, troubles = opened
    tab.set_viewport_size({"width": 1280, "height": 900})
    open_at(tab, written.path)
    yield tab
    assert troubles == []


def open_at(tab, path, link=""):
    tab.goto("about:blank")
    tab.goto(f"{path.as_uri()}{link}")
    settle(tab)


def drawn(tab):
    """Wait until everything that was done so far is drawn."""
    wait_for(tab, "!Main.pending()")


def settle(tab):
    """Wait until the prediction and the solution of the input are there."""
    wait_for(tab, "typeof Main !== 'undefined' && Compute.result.frames > 0")
    drawn(tab)
    wait_for(
        tab, "!Compute.solvable() || !Compute.result.shown || Compute.trust().certificate !== null"
    )


def relative(found, wanted):
    found, wanted = (np.asarray(one, float).ravel() for one in (found, wanted))
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def drag(tab, selector, *places):
    """Drag over a panel; places are shares of its sides."""
    box = tab.locator(selector).bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in places]
    tab.mouse.move(*points[0])
    tab.mouse.down()
    for point in points[1:]:
        tab.mouse.move(*point, steps=4)
    tab.mouse.up()
    settle(tab)


INPUT = "#panel-input canvas >> nth=0"
PREDICTION = "#panel-prediction canvas >> nth=0"


def predicted(folder, run, tab):
    """Return the prediction of the page's input by the run itself."""
    shape = tab.evaluate("State.inputs().shape")
    field = np.array(tab.evaluate("[...Compute.result.input]"), np.float32).reshape(shape)
    return Surrogate.load(folder / run, device="cpu").predict(field[None])[0]


def test_a_sample_is_shown_with_its_truth(page, folder):
    assert page.locator("#panel-prediction h3").inner_text() == "Prediction"
    assert relative(page.evaluate(SHOWN), predicted(folder, "smooth", page)) <= 1e-5
    titles = page.locator("#panels h3").all_inner_texts()
    assert titles[:5] == ["Prediction", "Truth", "Error", "Part: coarse", "Part: residual"]
    cards = page.locator("#cards li").all_inner_texts()
    assert [text.split("\n")[0] for text in cards] == ["Error", "Radius", "Input", "Certificate"]
    assert "known" in cards[2]
    assert all("\u2013" not in text for text in cards)


@pytest.mark.parametrize("run", ["smooth", "media"])
def test_painting_changes_the_prediction(page, folder, run):
    page.get_by_role("radio", name=run).click()
    settle(page)
    before = page.evaluate(SHOWN)
    drag(page, INPUT, (0.3, 0.3), (0.6, 0.7))
    assert page.evaluate("State.state.strokes.length") == 1
    after = page.evaluate(SHOWN)
    assert relative(after, before) > 1e-3
    assert relative(after, predicted(folder, run, page)) <= 1e-5
    surrogate = Surrogate.load(folder / run, device="cpu")
    field = np.array(page.evaluate("[...Compute.result.input]"))
    truth = surrogate.problem.solve(
        torch.from_numpy(field).reshape(1, *page.evaluate("State.inputs().shape"))
    )
    assert relative(page.evaluate("[...Compute.result.truth]"), truth) <= 1e-5
    page.locator("#undo").click()
    drawn(page)
    assert page.evaluate(SHOWN) == before


def test_media_keep_two_values(page):
    page.get_by_role("radio", name="media").click()
    page.get_by_role("radio", name="Paint low").click()
    drag(page, INPUT, (0.2, 0.2), (0.8, 0.5))
    page.locator("#random").click()
    page.locator("#mean").fill("0.5")
    drawn(page)
    assert page.evaluate("[...new Set(Compute.result.input)].sort()") == [12, 4]
    assert "Paint high" in page.locator("#brush").inner_text()


def test_parts_and_modes_are_left_out(page):
    whole = page.evaluate(SHOWN)
    parts = page.evaluate("Compute.result.parts.map((part) => [...part])")
    assert relative(np.sum(parts, 0), whole) < 1e-12
    page.get_by_role("checkbox", name="residual").uncheck()
    drawn(page)
    assert page.evaluate(SHOWN) == parts[0]
    assert "switch all parts" in page.locator("#cards").inner_text()
    page.get_by_role("checkbox", name="residual").check()
    page.locator("#modes").fill("0")
    drawn(page)
    assert relative(page.evaluate(SHOWN), whole) > 0.1
    page.locator("#seams").check()
    drawn(page)
    assert "largest jump" in page.locator("#panel-prediction .note").inner_text()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return {
        "name": "field.npy",
        "mimeType": "application/octet-stream",
        "buffer": buffer.getvalue(),
    }


DROP = """([bytes, name]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([new Uint8Array(bytes)], name));
  document.getElementById("drop").dispatchEvent(
    new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


def test_a_file_is_dropped(page, folder):
    field = np.random.default_rng(0).standard_normal((24, 24)).cumsum(0).cumsum(1)
    page.evaluate(DROP, [list(npy(field)["buffer"]), "field.npy"])
    wait_for(page, "State.state.base.kind === 'data'")
    settle(page)
    assert page.evaluate("[...Compute.result.input]") == field.ravel().tolist()
    assert relative(page.evaluate(SHOWN), predicted(folder, "smooth", page)) <= 1e-5
    assert page.locator("#cards .warning").count() == 1  # far from the training inputs
    before = page.evaluate("Compute.result.version")
    page.locator("#file").set_input_files(npy(field[None].astype(np.float32)))
    wait_for(page, f"Compute.result.version > {before}")
    assert page.locator("#message").inner_text() == ""


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((24, 23)), "24 x 24 or 1 x 24 x 24; this file has 24 x 23"),
        (np.zeros((2, 24, 24)), "this file has 2 x 24 x 24"),
        (np.zeros((24, 24), ">f8"), "little endian; this file has '>f8'"),
        (np.zeros((24, 24), int), "float32 or float64"),
        (np.full((24, 24), np.nan), "NaN"),
        (np.asfortranarray(np.random.rand(24, 24)), "ascontiguousarray"),  # noqa: NPY002
        (b"not an array", "not an .npy file"),
        (npy(np.zeros((24, 24)))["buffer"][:-9], "ends too early"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_a_bad_file_is_explained(page, array, words):
    before = page.evaluate(SHOWN)
    given = npy(array) if isinstance(array, np.ndarray) else npy(np.zeros(1)) | {"buffer": array}
    page.locator("#file").set_input_files(given)
    wait_for(page, "document.getElementById('message').textContent !== ''")
    assert words in page.locator("#message").inner_text()
    assert page.evaluate(SHOWN) == before


def test_a_link_restores_everything(page, written):
    page.get_by_role("radio", name="seamless").click()
    page.locator("#samples button").nth(2).click()
    drag(page, INPUT, (0.3, 0.3), (0.5, 0.7))
    page.get_by_role("checkbox", name="bubbles").uncheck()
    page.locator("#modes").fill("3")
    page.locator("#level").select_option(index=0)
    page.locator("#zoom-in").click()
    drag(page, PREDICTION, (0.3, 0.3), (0.4, 0.45))
    seen = "({...State.state, tool: null, size: 0})"
    drawn(page)
    before, shown = page.evaluate(seen), page.evaluate(SHOWN)
    assert before["level"] != 0.95
    link = page.evaluate("Links.write()")
    open_at(page, written.path, f"#{link}")
    after = page.evaluate(seen)
    views = [np.array(state.pop("view")) for state in (before, after)]
    profiles = [np.array(state.pop("profile")) for state in (before, after)]
    assert after == before
    assert np.allclose(*views, atol=1e-3)
    assert np.allclose(*profiles, atol=1e-3)
    assert relative(page.evaluate(SHOWN), shown) < 1e-12


def test_a_link_holds_the_values_of_a_file(page, written):
    field = np.random.default_rng(0).standard_normal((24, 24))
    page.locator("#file").set_input_files(npy(field))
    wait_for(page, "State.state.base.kind === 'data'")
    link = page.evaluate("Links.write()")
    open_at(page, written.path, f"#{link}")
    found = np.array(page.evaluate("[...Compute.result.input]")).reshape(field.shape)
    assert np.abs(found - field).max() < 1e-4 * np.ptp(field)


BAD_PARTS = [
    "input=data.1_2_%%%",
    "input=random.NaN_0_0",
    "input=random.1_0_1e9",
    "input=sample.99",
    "input=other",
    "strokes=_",
    "strokes=0_0_0.1_aabb",  # media only are painted high
    "strokes=0_2_0.1_aab",
    "channel=9",
    "modes=abc",
    "without=7",
    "parameters=1",
    "level=2",
    "view=0_0_0_0",
    "profile=0_0_1_Infinity",
    "other=1",
]


@pytest.mark.parametrize("given", BAD_PARTS)
def test_a_bad_part_of_a_link_is_ignored(page, given):
    """The other parts are followed, in a page that stays alive."""
    before = page.evaluate("JSON.stringify(State.startOf(1))")
    rest = "" if given.startswith("input=") else "&input=sample.0"
    page.evaluate(f"location.hash = 'run=seamless{rest}&{given}'")
    wait_for(page, "document.getElementById('message').textContent !== ''")
    settle(page)
    assert given.partition("=")[0] in page.locator("#message").inner_text()
    assert page.evaluate("State.state.run") == 1
    found = "(({base, strokes, parameters}) => ({base, strokes, parameters}))(State.state)"
    assert page.evaluate(f"JSON.stringify({found})") == before
    assert page.evaluate("Compute.result.shown.every(Number.isFinite)")


def test_a_broken_link_does_not_stop_the_start(page, written):
    open_at(page, written.path, "#run=smooth&input=data.1_2_%%%&strokes=_&channel=9")
    assert page.evaluate("State.state.base.kind") == "sample"
    assert "input, strokes, channel" in page.locator("#message").inner_text()
    open_at(page, written.path, "#run=gone&input=flat")
    assert "no run" in page.locator("#message").inner_text()


def test_a_random_field_is_of_its_own_dataset(page, folder, tmp_path):
    """Another dataset on the same grid lends nothing to it."""
    names = {"poisson": Poisson(), "darcy": Darcy()}
    for name, problem in names.items():
        data = generate(problem, tmp_path / f"{name}.zarr", resolution=12, samples=60, seed=0)
        fit_run(data, tmp_path / name, method="global", settings={"predictor": "affine"})
    written = write_page([tmp_path / name for name in names], tmp_path / "page.html")
    open_at(page, written.path)
    sizes = page.evaluate("""Array.from({ length: 24 }, (_, seed) => {
      Object.assign(State.state, { base: { kind: "random", seed, mean: 0, roughness: 0 } });
      Compute.rebuild();
      return Math.max(...Compute.result.input.map(Math.abs));
    })""")
    high = page.evaluate("Math.max(...State.inputs().channels.map(({ high }) => high))")
    assert max(sizes) < 2 * high


def test_runs_are_compared(page):
    page.locator("#compare").check()
    wait_for(page, "document.querySelectorAll('#panels .panel').length === 7")
    titles = page.locator("#panels .panel h3").all_inner_texts()
    assert titles[:5] == ["Truth", "smooth", "Error of smooth", "seamless", "Error of seamless"]
    assert "in L2" in page.locator("#panel-error-1 .note").inner_text()
    assert "prediction" not in page.locator("#legend").inner_text()


def test_a_run_that_needs_the_server_says_so(page, folder):
    page.get_by_role("radio", name="network").click()
    drawn(page)
    assert "--serve" in page.locator("#needs").inner_text()
    assert relative(page.evaluate(SHOWN), predicted(folder, "network", page)) <= 1e-6
    drag(page, INPUT, (0.3, 0.3), (0.5, 0.7))
    assert page.evaluate("Compute.result.shown") is None
    assert page.locator("#panel-prediction.empty").count() == 1


def test_everything_works_by_keyboard(page):
    page.keyboard.press("Tab")
    reached = set()
    for _ in range(60):
        reached.add(page.evaluate("document.activeElement.closest('[id]')?.id"))
        page.keyboard.press("Tab")
    wanted = {"runs", "compare", "link", "help-button", "panel-input", "brush", "size", "flat"}
    wanted |= {"samples", "random", "mean", "file", "parts", "modes", "seams", "level"}
    assert wanted | {"zoom-in", "panel-prediction"} <= reached
    page.locator(INPUT).focus()
    before = page.evaluate(SHOWN)
    page.keyboard.down(" ")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.keyboard.up(" ")
    drawn(page)
    assert relative(page.evaluate(SHOWN), before) > 1e-4
    assert page.evaluate("State.state.strokes.length") == 1
    page.keyboard.press("u")
    page.keyboard.press("r")
    assert page.evaluate("State.state.run") == 1
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    assert page.evaluate("State.state.base.sample") == 2
    page.locator(PREDICTION).focus()
    line = page.evaluate("State.state.profile")
    page.keyboard.press("Shift+ArrowDown")
    assert page.evaluate("State.state.profile")[1] > line[1]
    page.keyboard.press("+")
    assert page.evaluate("State.state.view[2] - State.state.view[0]") < 1


def test_the_cursor_and_the_line_are_shared(page):
    page.locator(PREDICTION).hover(position={"x": 40, "y": 40})
    assert len([text for text in page.locator("#panels .value").all_inner_texts() if text]) == 5
    drag(page, PREDICTION, (0.08, 0.5), (0.3, 0.2))
    x, y, *rest = page.evaluate("State.state.profile")
    assert (x, y) == pytest.approx((0.3, 0.2), abs=0.02)
    assert rest == pytest.approx([0.92, 0.5])


def test_a_run_of_another_dataset_starts_from_its_own_sample(page):
    drag(page, INPUT, (0.3, 0.3), (0.5, 0.7))
    page.get_by_role("radio", name="media").click()
    drawn(page)
    assert page.evaluate("[State.state.strokes.length, State.inputs().shape[1]]") == [0, 20]
    assert page.evaluate("State.run().samples.includes(State.state.base.sample)")


def test_channels_and_parameters_are_changed(page, many):
    open_at(page, many.path)
    page.get_by_role("radio", name="a[1]").click()
    drag(page, INPUT, (0.3, 0.3), (0.5, 0.7))
    page.locator("#parameters input").first.fill("0.25")
    page.get_by_role("radio", name="u[2]").click()
    drawn(page)
    field = np.array(page.evaluate("[...Compute.result.input]"), np.float32).reshape(1, 2, 14, 18)
    scalars = np.array([page.evaluate("State.state.parameters")], np.float32)
    (run,) = many.runs.values()
    wanted = run.surrogate.predict(field, parameters=scalars)[0]
    assert relative(page.evaluate(SHOWN), wanted) <= 1e-5
    shown = page.evaluate("[...Specs.ofRun()[0].values]")
    assert relative(shown, wanted[2]) <= 1e-5
    assert page.evaluate("Compute.error(Compute.result.shown)") is None  # its truth is not known


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_without_scrolling_sideways(page, written, scheme):
    width, height = SIZES["phone"]
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": height})
    open_at(page, written.path)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("#input-place .panel").count() == 2
    page.emulate_media(color_scheme="light")


def test_touch_paints(browser, written):
    width, height = SIZES["phone"]
    context = browser.new_context(viewport={"width": width, "height": height}, has_touch=True)
    tab = context.new_page()
    open_at(tab, written.path)
    tab.locator(INPUT).tap(position={"x": 60, "y": 60})
    assert tab.evaluate("State.state.strokes.length") == 1
    context.close()
