"""Predictions by JSON and npy: equal to `predict`; whatever is wrong is refused in one sentence."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from threading import current_thread

import httpx
import numpy as np
import pytest

from tests.serve.conftest import SHORT, WAIT, npy
from tests.surrogate.tiny import make
from twoscale.serve import Limits, ServedModel, Server
from twoscale.serve.bodies import RequestMemory

JSON, NPY = {"Content-Type": "application/json"}, {"Content-Type": "application/x-npy"}


def post(server, content, headers=JSON, path="/predict", **options):
    body = content if isinstance(content, bytes | str) else json.dumps(content)
    return httpx.post(server.url + path, content=body, headers=headers, timeout=WAIT, **options)


def array(answer):
    return np.load(io.BytesIO(answer.content), allow_pickle=False)


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["type"]
    assert "\n" not in error["message"]
    for word in words:
        assert word in error["message"]


@pytest.fixture(scope="module")
def inputs(arrays):
    return arrays[2][:3]


# What is right


def test_json_is_what_predict_gives(server, surrogate, inputs):
    answer = post(server, {"fields": inputs.tolist()})
    assert answer.status_code == 200
    content = answer.json()
    assert content["shape"] == [3, 16, 16]
    np.testing.assert_array_equal(np.float32(content["fields"]), surrogate.predict(inputs))


def test_npy_is_what_predict_gives(server, surrogate, inputs):
    for given in (inputs, inputs.astype(np.float64), np.asfortranarray(inputs), inputs[0]):
        answer = post(server, npy(given), NPY)
        assert answer.headers["content-type"] == "application/x-npy"
        np.testing.assert_array_equal(array(answer), surrogate.predict(given))


def test_the_client_chooses_the_answer(server, surrogate, inputs):
    expected = surrogate.predict(inputs)
    answer = post(server, {"fields": inputs.tolist()}, JSON | {"Accept": "application/x-npy"})
    np.testing.assert_array_equal(array(answer), expected)
    answer = post(server, npy(inputs), NPY | {"Accept": "text/html, application/json"})
    np.testing.assert_array_equal(np.float32(answer.json()["fields"]), expected)
    refused(post(server, npy(inputs), NPY | {"Accept": "text/html"}), 406, "neither is accepted")


def test_radii_and_flags_are_those_of_assess(server, surrogate, inputs):
    far = np.concatenate([inputs, 100 * inputs[:1]])
    answer = post(server, {"fields": far.tolist(), "assess": True, "level": 0.8}).json()
    with pytest.warns(UserWarning, match="unlike the training inputs"):
        expected = surrogate.assess(far, level=0.8)
    np.testing.assert_allclose(answer["radius"], expected.radius, rtol=1e-5)
    assert answer["outside"] == expected.outside.tolist()
    assert answer["outside"][3]
    assert answer["level"] == 0.8
    np.testing.assert_allclose(answer["fields"], expected.fields, rtol=1e-4, atol=1e-7)


def test_parameters_beside_fields_and_alone():
    rng = np.random.default_rng(0)
    x, p = rng.standard_normal((40, 8, 8)), rng.standard_normal((40, 2))
    u = x.cumsum(2) + p.sum(1)[:, None, None]
    both = make("global", predictor="affine").fit(x, u, parameters=p)
    alone = make("global", predictor="affine").fit(None, u, parameters=p)
    with Server([ServedModel(both, "both"), ServedModel(alone, "alone")], port=0) as server:
        content = {"model": "both", "fields": x[:2].tolist(), "parameters": p[:2].tolist()}
        found = post(server, content).json()["fields"]
        np.testing.assert_allclose(found, both.predict(x[:2], parameters=p[:2]), rtol=1e-5)
        answer = post(server, npy(p[:2]), NPY, "/predict?model=alone")
        np.testing.assert_allclose(array(answer), alone.predict(None, parameters=p[:2]))
        refused(post(server, npy(x[:2]), NPY, "/predict?model=both"), 400, "send application/json")
        refused(post(server, content | {"parameters": [[1.0]] * 2}), 400, "2 parameters", "got 1")
        refused(post(server, {"fields": x[:2].tolist()}), 400, "name a model", "both, alone")
        refused(post(server, content | {"model": "bth"}), 400, "did you mean both?")


def test_fields_on_another_grid(server, surrogate, inputs):
    coarse = inputs[:, ::2, ::2]
    refused(post(server, npy(coarse), NPY), 400, "8x8 fields", "resample")
    expected = surrogate.predict(coarse, resample=True)
    found = array(post(server, npy(coarse), NPY, "/predict?resample=true"))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    asked = {"fields": coarse.tolist()}
    for content, path in [(asked | {"resample": True}, ""), (asked, "?resample=true")]:
        answer = post(server, content, path="/predict" + path).json()
        np.testing.assert_allclose(answer["fields"], expected, rtol=1e-5, atol=1e-7)
    refused(post(server, npy(coarse), NPY, "/predict?resample=1"), 400, "true or false")


def test_values_that_the_surrogate_cannot_read():
    x = np.random.default_rng(0).random((40, 8, 8)) + 0.5
    surrogate = make("global", predictor="affine", input_transform="log")
    with Server([ServedModel(surrogate.fit(x, x.cumsum(1)))], port=0) as server:
        refused(post(server, npy(-x[:1]), NPY), 400, "positive")
        content = {"name": "forward", "input": [(-x[0]).flatten().tolist()]}
        answer = post(server, content, path="/Evaluate")
        refused(answer, 400, "positive")
        assert answer.json()["error"]["type"] == "InvalidInput"
        assert post(server, npy(x[:1]), NPY).status_code == 200


def test_health_and_pages(server):
    health = httpx.get(server.url + "/health").json()
    assert health["status"] == "ok"
    assert health["models"][0]["name"] == "forward"
    assert health["models"][0]["input_shape"] == ["samples", 16, 16]
    for path in ("/", "/docs"):
        page = httpx.get(server.url + path).text
        assert "forward" in page
        assert "http://" not in page.replace(server.url, "")  # nothing of other servers
        assert "https://" not in page
    schema = httpx.get(server.url + "/openapi.json").json()
    assert schema["openapi"].startswith("3.")
    for path, methods in schema["paths"].items():
        for method in methods:
            answer = httpx.request(method, server.url + path, timeout=WAIT)
            assert answer.status_code not in (404, 405), path


# What is wrong


NAN = np.full((1, 16, 16), np.nan)


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        ("", 400, ["not JSON"]),
        ("{", 400, ["not JSON"]),
        ("[1]", 400, ["JSON object"]),
        ("[" * 100_000, 400, ["nested too deeply"]),
        ('{"fields": [[NaN]]}', 400, ["NaN"]),
        ('{"fields": [[1e999]]}', 400, ["beyond all numbers"]),
        ({}, 400, ["give input fields"]),
        ({"field": [[1.0]]}, 400, ["did you mean fields?"]),
        ({"fields": 3}, 400, ["nested lists of numbers"]),
        ({"fields": []}, 400, ["not empty"]),
        ({"fields": [[1.0, 2.0], [3.0]]}, 400, ["differ in shape"]),
        ({"fields": [[True] + [1.0] * 15] * 16}, 400, ["nested lists of numbers"]),
        ({"fields": [[{}] * 16] * 16}, 400, ["nested lists of numbers"]),
        ({"fields": [[1.0] * 15] * 16}, 400, ["16x16 fields", "16x15"]),
        ({"fields": [[[[1.0] * 16] * 16] * 2]}, 400, ["16x16 fields", "2x16x16"]),
        ({"fields": [[1e300] * 16] * 16}, 400, ["NaN or infinite"]),
        ({"fields": [[0.0] * 16] * 16, "parameters": [[1.0]]}, 400, ["no parameters"]),
        ({"fields": [[0.0] * 16] * 16, "assess": 1}, 400, ["true or false"]),
        ({"fields": [[0.0] * 16] * 16, "assess": True, "level": 2}, 400, ["between 0 and 1"]),
        ({"fields": [[0.0] * 16] * 16, "assess": True, "level": 0.9999}, 400, ["calibration"]),
        ({"fields": [[0.0] * 16] * 16, "model": "other"}, 400, ["no model is called 'other'"]),
        ({"fields": [[[0] * 16] * 16] * 41}, 413, ["40 fields at most, got 41"]),
    ],
)
def test_wrong_json(server, content, status, words):
    refused(post(server, content), status, *words)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, ["not an npy file"]),
        (npy(np.zeros((1, 16, 16)))[:-8], 400, ["claims 2048 bytes", "2040 came"]),
        (npy(np.zeros((0, 16, 16))), 400, ["no values"]),
        (npy(np.array([{}], dtype=object)), 400, ["not plain numbers"]),
        (npy(np.zeros((1, 16, 16), dtype=complex)), 400, ["real numbers"]),
        (npy(NAN), 400, ["NaN or infinite"]),
        (npy(np.float64(1.0)), 400, []),
        (npy(np.zeros((1, 15, 16))), 400, ["16x16 fields"]),
    ],
)
def test_wrong_npy(server, body, status, words):
    refused(post(server, body, NPY), status, *words)


def test_other_types_paths_and_methods(server, inputs):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    refused(post(server, "{}", form), 415, "application/json or application/x-npy")
    refused(post(server, "{}", {"Content-Type": ""}), 415, "none")
    refused(post(server, "{}", JSON | {"Content-Encoding": "gzip"}), 415, "compression")
    refused(httpx.get(server.url + "/predict"), 405, "GET /predict")
    refused(httpx.post(server.url + "/health"), 405, "POST /health")
    refused(httpx.get(server.url + "/nothing"), 404, "/nothing")
    refused(httpx.get(server.url + "/health/"), 404, "/health/")
    content = {"fields": inputs.tolist(), "assess": True}
    refused(post(server, content, JSON | {"Accept": "application/x-npy"}), 400, "assess needs")


def test_control_characters_are_escaped_in_the_log(server, caplog):
    refused(httpx.get(server.url + "/a%0a%1b%5b31mb"), 404)
    assert "GET /a\\n\\x1b[31mb: 404" in caplog.text
    assert "\x1b" not in caplog.text


# Memory


SMALL = npy(np.zeros((500, 2, 2), np.float32))  # 8 kB that become 1.5 MB


def test_fields_that_grow_too_large_are_refused_before_they_do(surrogate, monkeypatch):
    monkeypatch.setattr(ServedModel, "read", lambda *given: pytest.fail("it was read"))
    limits = Limits(request_bytes=10_000)
    with Server([ServedModel(surrogate)], port=0, limits=limits) as server:
        answer = post(server, SMALL, NPY, "/predict?resample=true")
        refused(answer, 413, "have 80 kB at most on the model's grid, these have 1.05 MB")


def test_fields_that_grow_are_counted_and_read_in_a_thread(surrogate, monkeypatch):
    usual, threads = ServedModel.read, []

    def read(*given):
        threads.append(current_thread().name)
        return usual(*given)

    monkeypatch.setattr(ServedModel, "read", read)
    limits = Limits(request_bytes=10**6, pending_bytes=10**6)
    with Server([ServedModel(surrogate)], port=0, limits=limits) as server:
        other = RequestMemory(server.service.pending)
        other.add(1000)
        answer = post(server, SMALL, NPY, "/predict?resample=true")
        refused(answer, 503, "requests of 1 kB are waiting already")
        other.release()
        assert not threads
        assert array(post(server, SMALL, NPY, "/predict?resample=true")).shape == (500, 2, 2)
    assert threads[0] != "twoscale-server"


# Many at once


def test_concurrent_requests_are_batched(surrogate, arrays, gate):
    """While the first is computed, eleven others come; they are one batch, or two at most."""
    x = arrays[2]
    with Server([ServedModel(surrogate)], port=0) as server, ThreadPoolExecutor(12) as pool:
        ask = lambda i: array(post(server, npy(x[i : i + 1 + i % 3]), NPY))  # noqa: E731
        first = pool.submit(ask, 0)
        assert gate.started.wait(WAIT)
        others = [pool.submit(ask, i) for i in range(1, 12)]
        while server.service.batcher.waiting < 11:
            assert not any(one.done() for one in others)
        gate.go.set()
        found = [one.result(WAIT) for one in (first, *others)]
    assert len(gate.sizes) == 2
    for i, fields in enumerate(found):
        expected = surrogate.predict(x[i : i + 1 + i % 3])
        np.testing.assert_allclose(fields, expected, rtol=1e-5, atol=1e-7)


def test_a_full_queue_and_a_late_answer_are_told(surrogate, inputs, gate):
    limits = Limits(queue=1, seconds=2.0)
    running = Server([ServedModel(surrogate)], port=0, limits=limits)
    with running as server, ThreadPoolExecutor(2) as pool:
        late = pool.submit(post, server, npy(inputs), NPY)
        assert gate.started.wait(WAIT)
        waiting = pool.submit(post, server, npy(inputs), NPY)
        while not server.service.batcher.waiting:
            assert not waiting.done()
        answer = post(server, npy(inputs), NPY)
        refused(answer, 503, "1 requests are waiting already")
        assert answer.headers["retry-after"] == "1"
        for given_up in (late, waiting):
            refused(given_up.result(WAIT), 504, "within 2 s")
        gate.go.set()
        assert post(server, npy(inputs), NPY).status_code == 200


def test_an_error_of_ours_is_logged_and_told(surrogate, inputs, monkeypatch, caplog):
    def broken(fields):
        raise RuntimeError("secret")

    with Server([ServedModel(surrogate)], port=0, limits=SHORT) as server:
        monkeypatch.setattr(surrogate, "predict_batch", broken)
        answer = post(server, npy(inputs), NPY)
        refused(answer, 500, "unexpected RuntimeError")
        assert "secret" not in answer.text
        assert "secret" in caplog.text
        monkeypatch.undo()
        assert post(server, npy(inputs), NPY).status_code == 200
