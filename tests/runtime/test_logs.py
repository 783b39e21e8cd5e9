import logging

import numpy as np

from twoscale import Surrogate


def fields():
    x = np.random.default_rng(0).standard_normal((40, 8, 8))
    return x, x.cumsum(axis=2)


def test_a_fit_tells_its_stages(caplog):
    caplog.set_level(logging.DEBUG, "twoscale")
    surrogate = Surrogate("global", device="cpu", epochs=2, code_size=3).fit(*fields())
    surrogate.evaluate(*fields())
    told, details = (
        [one.getMessage() for one in caplog.records if one.levelno == level]
        for level in (logging.INFO, logging.DEBUG)
    )
    keys = ["36 pairs", "input rep", "3 numbers", "training: 2 epochs", "fitted in", "40 pairs"]
    assert all(key in message for key, message in zip(keys, told, strict=True))
    assert any(text.startswith("pca_input: ") for text in details)
    assert any("epoch 2 of 2: validation loss" in text for text in details)


def test_nothing_is_shown_by_itself():
    assert any(
        isinstance(one, logging.NullHandler) for one in logging.getLogger("twoscale").handlers
    )
