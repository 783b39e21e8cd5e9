"""The parts that methods play in the paper, for sentences and pictures that speak of them."""

PROPOSED = "two-scale"
"""The method that the paper proposes."""

PLAIN_PATCHES = "local"
"""The method whose seams it removes. Its median error chooses the field that pictures show."""

WHOLE_FIELDS = "global"
"""One PCA of whole fields."""

PREDICTOR = "mlp"
"""The predictor of all of the paper's methods on codes."""
