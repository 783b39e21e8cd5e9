"""The server: predictions for its own page, on this machine only."""

from __future__ import annotations

import json
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import httpx
import numpy as np
import pytest
import torch

import twoscale.explore.server as server_module
from tests.explore.conftest import wait_for
from twoscale.explore.server import PageService, field_parts
from twoscale.explore.tensors import ArrayPacker, unpacked
from twoscale.fields.source import Batch
from twoscale.serve.server import HttpServer


@pytest.fixture(scope="module")
def server(written):
    text = written.path.read_text(encoding="utf-8")
    surrogates = [run.surrogate for run in written.runs.values()]
    with HttpServer(PageService(text, surrogates), port=0) as opened:
        yield opened


def ask(server, method="POST", path="/predict", body=b"", **headers):
    answer = httpx.request(method, server.url + path, content=body, headers=headers, timeout=20)
    return answer.status_code, answer.content


def field(side, positive=False):
    values = np.random.default_rng(0).standard_normal((1, side, side)).cumsum(1).cumsum(2)
    return (np.where(values > 0, 12.0, 4.0) if positive else 0.01 * values).astype(np.float32)


@pytest.mark.parametrize(("place", "side"), [(0, 24), (2, 20), (3, 24)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_it_predicts_solves_and_assesses(server, written, place, side):
    surrogate = list(written.runs.values())[place].surrogate
    x = field(side, positive=place == 2)
    asked = {"run": place, "input": ArrayPacker()(x), "wants": ["truth", "trust"]}
    status, body = ask(server, body=json.dumps(asked))
    found = json.loads(body)
    assert status == 200
    total = np.sum([unpacked(one) for one in found["parts"]], axis=0)
    assert np.allclose(
        total, surrogate.predict(x[None])[0], rtol=1e-4, atol=1e-6 * np.abs(total).max()
    )
    truth = surrogate.problem.solve(torch.from_numpy(x[None]))[0]
    assert np.allclose(unpacked(found["truth"]), truth, rtol=1e-5, atol=1e-7)
    wanted = surrogate.assess(x[None], level=found["trust"]["level"])
    assert found["trust"]["radius"] == pytest.approx(wanted.radius[0], rel=1e-4)
    upper = found["trust"]["certificate"]["energy_error_upper"]
    assert upper == pytest.approx(wanted.certificate.energy_error_upper[0], rel=1e-3)


def test_parts_add_up(written):
    surrogate = next(iter(written.runs.values())).surrogate
    x = Batch.of(torch.from_numpy(field(24))[None])
    parts = field_parts(surrogate, x)
    assert len(parts) == 2
    assert torch.allclose(sum(parts), surrogate.predict_batch(x), rtol=1e-4, atol=1e-7)


GOOD = {"run": 0, "input": ArrayPacker()(field(24))}
BAD_BODIES = {
    "empty": b"",
    "cut": b"{",
    "deep": b"[" * 200_000,
    "bytes": b"\xff\xfe",
    "list": b"[]",
    "none": b"{}",
    "huge": b'{"run":1e999}',
    "nan": b'{"run":NaN}',
    **{
        str(change): json.dumps(GOOD | change)
        for change in (
            {"run": 99},
            {"run": -1},
            {"run": True},
            {"run": 0.5},
            {"run": "0"},
            {"parameters": [1]},
            {"parameters": "ab"},
            {"parameters": [None]},
            {"modes": -1},
            {"modes": "all"},
            {"level": "high"},
            {"level": 1},
            {"wants": 3},
            {"wants": [[]]},
            {"input": None},
            {"input": 7},
            {"input": {"shape": [1, 24, 24], "type": "O", "data": ""}},
            {"input": {"shape": [1, 24, 24], "type": "f4", "data": "AAAA"}},
            {"input": {"shape": [1, 24, -1], "type": "f4", "data": "AAAA"}},
        )
    },
    "small": json.dumps(GOOD | {"input": ArrayPacker()(field(20))}),
    "infinite": json.dumps(GOOD | {"input": ArrayPacker()(field(24) * np.float32(np.inf))}),
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_requests_get_one_sentence(server, name):
    status, answer = ask(server, body=BAD_BODIES[name])
    sentence = json.loads(answer)["error"]["message"]
    assert status == 400
    assert len(sentence) > 15
    assert "\n" not in sentence


def test_others_are_refused_before_any_work(server, monkeypatch):
    worked = []
    monkeypatch.setattr("twoscale.explore.server.answer", lambda *_: worked.append(1) or {})
    body = json.dumps(GOOD)
    assert ask(server, "GET", "/other")[0] == 404
    assert ask(server, "POST", "/other", b"{}")[0] == 404
    assert ask(server, "GET", "/", Host="evil.example")[0] == 403
    assert ask(server, body=body, Host="evil.example")[0] == 403
    for origin in ("http://evil.example", "null"):
        assert ask(server, body=body, Origin=origin)[0] == 403
    assert worked == []
    assert ask(server, body=body, Origin=server.url)[0] == 200


READY = "typeof Main !== 'undefined' && Compute.result.frames > 1"
ANSWERED = "!Main.pending() && !Compute.computing(3)"


@pytest.fixture
def tab(browser, server):
    opened = browser.new_page()
    opened.goto(server.url)
    wait_for(opened, READY)
    yield opened
    opened.close()


def test_the_served_page_predicts_with_any_run(tab):
    tab.get_by_role("radio", name="network").click()
    tab.locator("#panel-input canvas >> nth=0").click(position={"x": 50, "y": 50})
    wait_for(tab, ANSWERED)
    assert tab.evaluate("State.state.strokes.length") == 1
    assert tab.evaluate("Compute.result.shown.length") == 24 * 24
    assert tab.locator("#needs").is_hidden()
    assert "≤" in tab.locator("#cards").inner_text()


def test_the_radius_is_of_the_whole_prediction_only(tab):
    tab.get_by_role("radio", name="network").click()
    wait_for(tab, ANSWERED)
    assert tab.evaluate("Compute.trust().radius") > 0
    tab.evaluate("State.state.hidden = [0]")
    found = tab.evaluate("Compute.trust()")
    assert (found["radius"], found["width"], found["certificate"]) == (None, None, None)
    assert "switch all parts" in found["why"]


def test_an_earlier_prediction_has_no_error(tab, server, monkeypatch):
    """While the server computes, what it said of the input before is shown as such."""
    tab.get_by_role("radio", name="network").click()
    wait_for(tab, ANSWERED)
    go_on = Event()
    real = server_module.answer
    monkeypatch.setattr(server_module, "answer", lambda *asked: go_on.wait(20) and real(*asked))
    tab.locator("#panel-input canvas >> nth=0").click(position={"x": 50, "y": 50})
    wait_for(tab, "!Main.pending() && Compute.fresh()")
    assert tab.evaluate("[Compute.result.shown, Compute.error(Compute.result.shown)]") == [None] * 2
    assert tab.locator("#panel-prediction.dim").count() == 1
    assert tab.locator("#panel-prediction .note").inner_text() == "computing…"
    go_on.set()
    wait_for(tab, ANSWERED)
    wait_for(tab, "document.querySelectorAll('#panel-prediction.dim').length === 0")
    assert tab.evaluate("Compute.error(Compute.result.shown) !== null")


def test_compared_runs_are_asked_for(tab):
    tab.locator("#panel-input canvas >> nth=0").click(position={"x": 50, "y": 50})
    tab.locator("#compare").check()
    wait_for(tab, ANSWERED)
    wait_for(tab, "document.querySelectorAll('#panel-prediction-3:not(.empty)').length === 1")
    assert "serve" not in tab.locator("#panel-prediction-3 .note").inner_text()
    wait_for(tab, "document.querySelectorAll('#panel-error-3:not(.empty)').length === 1")


def test_a_page_on_another_web_server_asks_for_nothing(browser, written):
    """It shows stored predictions, as the same page from a file does."""
    posted = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=str(written.path.parent))

        def do_POST(self):
            posted.append(self.path)
            self.send_error(501)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        tab = browser.new_page()
        tab.goto(f"http://127.0.0.1:{other.server_port}/{written.path.name}")
        wait_for(tab, READY)
        tab.get_by_role("radio", name="network").click()
        wait_for(tab, "!Main.pending()")
        assert tab.evaluate("Compute.result.shown.length") == 24 * 24
        assert "--serve" in tab.locator("#needs").inner_text()
        tab.close()
        other.shutdown()
    assert posted == []
