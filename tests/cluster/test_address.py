import pytest

from twoscale.cluster import Address
from twoscale.errors import TwoscaleError


@pytest.mark.parametrize("text", ["local:1", "local:16", "tcp://10.0.0.1:8786", "tls://host:1"])
def test_an_address_is_what_was_written(text):
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "local", "local:0", "local:-1", "local:two", "host:8786", "tcp://host", "4"]
)
def test_other_texts_are_refused_with_an_example(text):
    with pytest.raises(TwoscaleError, match=r"local:4 .* tcp://host:8786, got"):
        Address.parse(text)
