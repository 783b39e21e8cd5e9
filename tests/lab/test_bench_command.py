"""`twoscale bench` at the command line."""

import json

from tests.cli.outcome import refused


def test_json_lists_results_with_name_peer_and_ratio(twoscale):
    outcome = twoscale("bench", "pca", "--scale", "small", "--device", "cpu", "--json")
    assert outcome.status == 0
    found = json.loads(outcome.out)
    (result,) = found["results"]
    assert {"name", "peer", "ratio", "spread", "seconds", "agreement"} <= set(result)
    assert found["environment"]["device"] == "cpu"


def test_the_table_has_a_row_per_result(twoscale):
    outcome = twoscale("bench", "pca", "--scale", "small", "--device", "cpu")
    assert outcome.status == 0
    assert all(word in outcome.out for word in ("benchmark", "peer", "ratio", "pca"))


def test_bad_names(twoscale):
    refused(twoscale("bench", "speed"), "no benchmark is called 'speed'")
    refused(twoscale("bench", "pca", "--scale", "big"), "the scale is small or paper")
