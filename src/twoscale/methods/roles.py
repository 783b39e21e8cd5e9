"""The parts that methods play in the paper, for sentences and pictures that speak of them."""

PROPOSED = "two-scale"
"""The method that the paper proposes."""

PLAIN_PATCHES = "local"
"""The method whose seams it removes. Its median error chooses the field that pictures show."""

IDEA = (
    "A plain patch-wise PCA-Net decodes each patch by itself, and neighbouring patches disagree. "
    "The two-scale representation writes one coarse field over the whole domain first and leaves "
    "only small residuals to the patches."
)
"""How the proposed method differs from plain patches, in two sentences."""

WHOLE_FIELDS = "global"
"""One PCA of whole fields."""

EXCEPTION = "For FNO on Darcy-256 the paper uses `batch_size=4` and `evaluation_batch=8`."
"""Where the paper's settings are not the defaults."""

PREDICTOR = "mlp"
"""The predictor of all of the paper's methods on codes."""

SEARCH = "search"
"""The method of a case whose surrogate is searched for; its only setting is `budget`."""
