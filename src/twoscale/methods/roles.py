"""The parts that methods play in the paper, for sentences and pictures that speak of them."""

PROPOSED = "two-scale"
"""The method that the paper proposes."""

PLAIN_PATCHES = "local"
"""The method whose seams it removes. Its median error chooses the field that pictures show."""

WHOLE_FIELDS = "global"
"""One PCA of whole fields."""

EXCEPTION = "For FNO on Darcy-256 the paper uses `batch_size=4` and `evaluation_batch=8`."
"""Where the paper's settings are not the defaults."""

SEARCH = "search"
"""The method of a case whose surrogate is searched for; its only setting is `budget`."""
