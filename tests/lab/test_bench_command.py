"""`twoscale bench` at the command line."""

import json

from tests.cli.outcome import refused


def test_a_result_has_name_peer_and_ratio(twoscale):
    command = ("bench", "pca", "--scale", "small", "--device", "cpu")
    found = json.loads(twoscale(*command, "--json").out)
    (result,) = found["results"]
    assert {"name", "peer", "ratio", "spread", "seconds", "agreement"} <= set(result)
    assert found["environment"]["device"] == "cpu"
    assert all(word in twoscale(*command).out for word in ("benchmark", "peer", "ratio", "pca"))


def test_bad_names(twoscale):
    refused(twoscale("bench", "speed"), "no benchmark is called 'speed'")
    refused(twoscale("bench", "pca", "--scale", "big"), "--scale", "not one of")
