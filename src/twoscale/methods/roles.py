"""The parts that methods play in the paper, for sentences and pictures that speak of them."""

PROPOSED = "two-scale"
"""The method that the paper proposes."""

PLAIN_PATCHES = "local"
"""The method whose seams it removes. Its median error chooses the field that pictures show."""

SEARCH = "search"
"""The method of a case whose surrogate is searched for; its only setting is `budget`."""
