from dataclasses import replace

import pytest

from tests.search.fake import FakeFitter, curved
from twoscale.search.candidates import Space
from twoscale.search.kinds import KINDS, Sizes, work
from twoscale.search.policy import search
from twoscale.search.timing import expected_seconds

SPACE = Space((64, 64), 1600, "square")


def test_expected_time_grows_with_the_work():
    fitter = FakeFitter(curved)
    found = search(SPACE, fitter, budget=1.0, clock=fitter.clock)
    best = found.trials[0].candidate
    same = expected_seconds(best, found, SPACE, 200)
    assert 0 < same <= 1.2, "representations that are fitted already cost nothing"
    for change in ({"symmetries": "square"}, {"code": 2}, {"input_variance": 0.999}):
        assert expected_seconds(replace(best, **change), found, SPACE, 200) > same


@pytest.mark.parametrize("predictor", KINDS)
def test_work_grows_with_every_size(predictor):
    sizes = {
        "samples": 100,
        "images": 1,
        "learned": 100,
        "validation": 20,
        "nodes": 1024,
        "patch_nodes": 64,
        "coarse_nodes": 256,
        "input_code": 50,
        "output_code": 60,
    }
    once = work(predictor, Sizes(**sizes))
    for name in ("samples", "nodes", "patch_nodes", "coarse_nodes", "input_code", "output_code"):
        assert work(predictor, Sizes(**{**sizes, name: 2 * sizes[name]})) > once
    assert work(predictor, Sizes(**sizes, new_input=False, new_output=False)) < once


def test_a_kernel_that_is_tuned_is_less_work():
    sizes = Sizes(1600, 8, 1600, 200, 4096, 256, 1024, 1000, 1000)
    tuned = Sizes(**{**vars(sizes), "tuned": True})
    assert work("kernel", tuned) < 0.5 * work("kernel", sizes)
