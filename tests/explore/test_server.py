"""The server: predictions for its own page, on this machine only."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from threading import Thread

import numpy as np
import pytest
import torch

from twoscale.errors import TwoscaleError
from twoscale.explore.server import PageServer, field_parts
from twoscale.explore.tensors import Packer, unpacked


@pytest.fixture(scope="module")
def server(written):
    text = written.path.read_text(encoding="utf-8")
    with PageServer(text, written.runs) as opened:
        thread = Thread(target=opened.serve_forever, daemon=True)
        thread.start()
        yield opened
        opened.shutdown()


def ask(server, method="POST", path="/predict", body=b"", host=None):
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request(method, path, body, {"Host": host} if host else {})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def field(side, positive=False):
    values = np.random.default_rng(0).standard_normal((1, side, side)).cumsum(1).cumsum(2)
    return (np.where(values > 0, 12.0, 4.0) if positive else 0.01 * values).astype(np.float32)


@pytest.mark.parametrize(("place", "side"), [(0, 24), (2, 20), (3, 24)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_it_predicts_solves_and_assesses(server, written, place, side):
    surrogate = list(written.runs.values())[place].surrogate
    x = field(side, positive=place == 2)
    asked = {"run": place, "input": Packer().single(x), "wants": ["truth", "trust"]}
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
    x = torch.from_numpy(field(24))[None]
    parts = field_parts(surrogate, x)
    assert len(parts) == 2
    assert torch.allclose(sum(parts), surrogate.predict_fields(x), rtol=1e-4, atol=1e-7)


def test_bad_requests_are_refused(server):
    good = {"run": 0, "input": Packer().single(field(24))}
    cases = [
        b"",
        b"{",
        b"{}",
        json.dumps(good | {"run": 99}),
        json.dumps(good | {"parameters": [1]}),
    ]
    cases.append(json.dumps(good | {"input": Packer().single(field(20))}))
    for body in cases:
        status, answer = ask(server, body=body)
        assert (status, "error" in json.loads(answer)) == (400, True)
    assert ask(server, "GET", "/other")[0] == 404
    assert ask(server, "POST", "/other", b"{}")[0] == 404
    assert ask(server, "GET", "/", host="evil.example")[0] == 403
    assert ask(server, "POST", "/predict", json.dumps(good), host="evil.example")[0] == 403


def test_a_taken_port_is_explained(server, written):
    with pytest.raises(TwoscaleError, match="cannot be used"):
        PageServer("", written.runs, port=server.server_port)


def test_the_served_page_predicts_with_any_run(browser, server):
    tab = browser.new_page()
    tab.goto(server.address)
    for _ in range(100):
        tab.wait_for_timeout(50)
        if tab.evaluate("typeof Main !== 'undefined' && Compute.result.frames > 1"):
            break
    tab.get_by_role("radio", name="network").click()
    tab.locator("#panel-input canvas >> nth=0").click(position={"x": 50, "y": 50})
    for _ in range(100):
        tab.wait_for_timeout(50)
        if tab.evaluate("Compute.result.server?.version === Compute.result.version"):
            break
    assert tab.evaluate("State.state.strokes.length") == 1
    assert tab.evaluate("Compute.result.shown.length") == 24 * 24
    assert tab.locator("#needs").is_hidden()
    assert "≤" in tab.locator("#cards").inner_text()
    tab.close()
