"""The logger of the library.

Stages of a fit are logged at INFO with their times, details at DEBUG. Nothing is shown unless the
user configures `logging`: `logging.basicConfig(level="INFO")`.
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("twoscale")
LOGGER.addHandler(logging.NullHandler())
