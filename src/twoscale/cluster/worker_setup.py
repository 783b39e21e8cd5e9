"""What a worker process of this machine does first; Dask imports this module there."""

from __future__ import annotations

import logging
import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C to the command, which ends its workers; keep Dask's log off the terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silence_dask()


def silence_dask() -> None:
    """Keep Dask's log off the terminal: what matters of it is said in our errors."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
