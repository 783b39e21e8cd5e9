import logging

import numpy as np

from twoscale import Surrogate


def fields():
    x = np.random.default_rng(0).standard_normal((40, 8, 8))
    return x, x.cumsum(axis=2)


def test_a_fit_tells_its_stages(caplog):
    caplog.set_level(logging.INFO, "twoscale")
    surrogate = Surrogate("global", device="cpu", epochs=2, code_size=3).fit(*fields())
    surrogate.evaluate(*fields())
    messages = [record.getMessage() for record in caplog.records]
    start = "fitting Surrogate('global', code_size=3, epochs=2) on cpu, 36 pairs"
    assert messages[0] == start
    for place, words in enumerate(["input rep", "output representation: 3 numbers per field"], 1):
        assert messages[place].startswith(words)
    assert messages[3].startswith("training: 2 epochs in ")
    assert messages[4].startswith("fitted in ")
    assert messages[5].startswith("evaluated on 40 pairs: mean_relative_l2 0.")


def test_details_are_for_debugging(caplog):
    caplog.set_level(logging.DEBUG, "twoscale")
    Surrogate("global", device="cpu", epochs=2).fit(*fields())
    details = [one.getMessage() for one in caplog.records if one.levelno == logging.DEBUG]
    assert any(text.startswith("pca_input: ") for text in details)
    assert any(text.startswith("training, epoch 2 of 2: validation loss") for text in details)


def test_nothing_is_shown_by_itself():
    assert any(
        isinstance(one, logging.NullHandler) for one in logging.getLogger("twoscale").handlers
    )
