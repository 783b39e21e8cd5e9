"""YAML of unknown origin: what is too much is refused before it is made."""

import pytest

from twoscale import TwoscaleError
from twoscale_lab.study.validation import parse_yaml

LEVELS = range(1, 12)


def billion(form):
    """Lines of which each names the one before ten times."""
    lines = [form(k, ", ".join([f"*a{k - 1}"] * 10)) for k in LEVELS]
    return "\n".join(["a0: &a0 {x: 1}", *lines])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (billion(lambda k, names: f"a{k}: &a{k} [{names}]"), "stands for over 100,000 values"),
        (billion(lambda k, names: f"a{k}: &a{k} {{<<: [{names}]}}"), "stands for over 100,000"),
        ("&a [*a]", "is nested too deeply"),
        ("[" * 40 + "]" * 40, "nested too deeply: 30 levels"),
        ("[" * 600 + "]" * 600, "is nested too deeply"),
        ("a: " + "9" * 5000, "holds a wrong value: .*4300 digits"),
        ("a: 2020-99-99", "holds a wrong value: month must be"),
        ("a: [", "is not YAML"),
        ("a: 1\n---\nb: 2", "is not YAML: expected a single document"),
        ("a: !!python/object/apply:os.system [ls]", "is not YAML: could not determine a constr"),
        ("? [a]\n: 1", "is not YAML: .*unhashable key"),
        ("a: \x00", "is not YAML"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(text, message):
    with pytest.raises(TwoscaleError, match=f"it .*{message}|it {message}") as told:
        parse_yaml(text, source="it")
    assert "\n" not in str(told.value)


def test_anchors_and_merges_are_read():
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a, *a]"
    both = {"x": 1, "y": 2}
    assert parse_yaml(text, source="it") == {"a": both, "b": {"x": 1, "y": 3}, "c": [both, both]}
    assert parse_yaml("", source="it") is None
