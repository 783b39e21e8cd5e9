"""The protocol of UM-Bridge, asked by its own Python client."""

import httpx
import numpy as np
import pytest
import torch
import umbridge

from tests.serve.conftest import WAIT
from twoscale.fields.source import Batch
from twoscale.serve.mappings import Points, lattice

RNG = np.random.default_rng(0)
WEIGHTS = RNG.standard_normal(12).tolist()


@pytest.fixture(scope="module")
def model(several):
    return umbridge.HTTPModel(several.url, "poisson")


def call(server, endpoint, **content):
    return httpx.post(f"{server.url}/{endpoint}", json=content, timeout=WAIT)


def error_of(answer, status=400):
    assert answer.status_code == status, answer.text
    return answer.json()["error"]["type"], answer.json()["error"]["message"]


def test_the_models_are_listed(several, server):
    assert umbridge.supported_models(several.url) == ["poisson", "jump", "smooth"]
    assert umbridge.supported_models(server.url) == ["forward"]
    assert httpx.get(server.url + "/Info").json() == {
        "protocolVersion": 1.0,
        "models": ["forward"],
    }


def test_sizes_and_support(several, server, model):
    assert model.get_input_sizes() == [12]
    assert model.get_output_sizes() == [12]
    assert model.get_output_sizes({"points": [[0.5, 0.5]]}) == [1]
    whole = umbridge.HTTPModel(server.url, "forward")
    assert whole.get_input_sizes() == whole.get_output_sizes() == [256]
    assert whole.supports_evaluate()
    assert whole.supports_gradient()
    assert whole.supports_apply_jacobian()
    assert whole.supports_apply_hessian()
    assert umbridge.HTTPModel(several.url, "smooth").supports_gradient()
    jump = umbridge.HTTPModel(several.url, "jump")
    assert jump.supports_evaluate()
    assert not jump.supports_gradient()


def test_whole_fields_are_what_predict_gives(server, surrogate, arrays):
    model = umbridge.HTTPModel(server.url, "forward")
    for x in arrays[2][:2]:
        (output,) = model([x.flatten().tolist()])
        expected = surrogate.predict(x)
        np.testing.assert_allclose(np.reshape(output, (16, 16)), expected, rtol=1e-4, atol=1e-7)


def test_coefficients_and_points_are_what_predict_gives(several, surrogate, model):
    service = several.service.models["poisson"]
    field = np.tensordot(WEIGHTS, service.input_map.modes, 1)
    predicted = surrogate.predict(field.astype(np.float32))
    points = Points.on(surrogate.output_space_.grid, lattice(3, 4))
    expected = points(service.surrogate.predict_batch(Batch.of(_batch(field))))[0]
    np.testing.assert_allclose(model([WEIGHTS])[0], expected, rtol=1e-4, atol=1e-7)
    middle = model([WEIGHTS], {"points": [[5 / 15, 9 / 15]]})
    np.testing.assert_allclose(middle[0], [predicted[5, 9]], rtol=1e-4, atol=1e-7)


def _batch(field):
    return torch.as_tensor(field, dtype=torch.float32)[None, None]


def test_a_medium_that_jumps_is_what_predict_gives(several, darcy):
    service = several.service.models["jump"]
    weights = RNG.standard_normal(10)
    medium = darcy.problem.inputs_of(service.input_map.modes.new_tensor(weights) @ _flat(service))
    (output,) = umbridge.HTTPModel(several.url, "jump")([weights.tolist()])
    expected = darcy.predict(medium.reshape(12, 12).numpy())
    np.testing.assert_allclose(np.reshape(output, (12, 12)), expected, rtol=1e-4, atol=1e-7)


def _flat(service):
    return service.input_map.modes.flatten(1)


@pytest.mark.parametrize("name", ["poisson", "smooth"])
def test_derivatives_are_those_of_the_model(several, name):
    client, served = umbridge.HTTPModel(several.url, name), several.service.models[name]
    (n,), (m,) = client.get_input_sizes(), client.get_output_sizes()
    at, direction, sens = (RNG.standard_normal((1, size)) for size in (n, n, m))
    lists = [one[0].tolist() for one in (at, sens, direction)]

    def expected(operation, *vectors, places):
        tensors = [torch.from_numpy(one) for one in vectors]
        call = served.vector_call(operation, tensors, served.points, places)
        return call.work(call.arguments)[0][0]

    x, weights, along = lists
    np.testing.assert_allclose(
        client.gradient(0, 0, [x], weights), expected("Gradient", at, sens, places=[0])
    )
    np.testing.assert_allclose(
        client.apply_jacobian(0, 0, [x], along),
        expected("ApplyJacobian", at, direction, places=[0]),
    )
    np.testing.assert_allclose(
        client.apply_hessian(0, 0, 0, [x], weights, along),
        expected("ApplyHessian", at, sens, direction, places=[0, 0]),
    )


VECTOR = [WEIGHTS]
WRT = {"outWrt": 0, "inWrt": 0}
BOTH = {"outWrt": 0, "inWrt1": 0, "inWrt2": 0}


@pytest.mark.parametrize(
    ("endpoint", "content", "words"),
    [
        ("Evaluate", {}, "input must be a list of 1 lists"),
        ("Evaluate", {"input": [WEIGHTS, WEIGHTS]}, "input must be a list of 1 lists"),
        ("Evaluate", {"input": [WEIGHTS[:5]]}, "12 numbers here, got 5 values"),
        ("Evaluate", {"input": [["a"] * 12]}, "input"),
        ("Evaluate", {"input": [[True] * 12]}, "input"),
        ("Evaluate", {"input": [[True, *WEIGHTS[1:]]]}, "input"),
        ("Evaluate", {"input": [[10**400, *WEIGHTS[1:]]]}, "a whole number has 401 digits"),
        ("Evaluate", {"input": VECTOR, "config": 3}, "config must be"),
        ("Evaluate", {"input": VECTOR, "config": {"point": []}}, "did you mean points?"),
        ("Evaluate", {"input": VECTOR, "config": {"points": [[2, 0]]}}, "from 0 to 1"),
        ("OutputSizes", {"config": {"points": [0.5]}}, "points are 1 to"),
        ("Gradient", {"input": VECTOR, "sens": WEIGHTS}, "outWrt must be"),
        ("Gradient", {"input": VECTOR, "sens": WEIGHTS, "outWrt": 0}, "inWrt must be"),
        ("Gradient", {"input": VECTOR, "sens": WEIGHTS, "outWrt": 0, "inWrt": 1.0}, "inWrt"),
        ("Gradient", {"input": VECTOR, **WRT}, "sens must be"),
        ("ApplyJacobian", {"input": VECTOR, **WRT, "vec": [1.0]}, "vec must be a list of 12"),
        ("ApplyHessian", {"input": VECTOR, **BOTH, "vec": WEIGHTS}, "sens must be a list of 12"),
    ],
)
def test_wrong_requests(several, endpoint, content, words):
    kind, message = error_of(call(several, endpoint, name="poisson", **content))
    assert kind == "InvalidInput"
    assert words in message


@pytest.mark.parametrize(
    "endpoint", ["Evaluate", "Gradient", "InputSizes", "OutputSizes", "ModelInfo"]
)
def test_unknown_models(several, endpoint):
    for name in ("posson", None, 3):
        kind, message = error_of(call(several, endpoint, name=name, input=[[1.0]]))
        assert kind == "ModelNotFound"
        assert "there are poisson, jump, smooth" in message
    assert error_of(call(several, endpoint))[0] == "ModelNotFound"


def test_derivatives_of_a_jump_are_unsupported(several):
    content = {"name": "jump", "input": [WEIGHTS[:10]], "sens": [1.0] * 144, **WRT}
    kind, message = error_of(call(several, "Gradient", **content))
    assert kind == "UnsupportedFeature"
    assert "width" in message


def test_too_many_points_are_refused(several):
    points = {"points": [[0.5, 0.5]] * 10_001}
    answer = call(several, "Evaluate", name="poisson", input=VECTOR, config=points)
    kind, message = error_of(answer, 413)
    assert (kind, message) == ("TooLarge", "a request names 10000 points at most, got 10001")


def test_an_output_that_is_not_finite(server):
    huge = [1e308, -1e308] * 128
    kind, message = error_of(call(server, "Evaluate", name="forward", input=[huge]), 500)
    assert kind == "InvalidOutput"
    assert "not finite" in message
