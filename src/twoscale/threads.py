"""One thread for small work: handing it to others costs more than doing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch's CPU work on one thread inside the block.

    Small factorisations and training steps meet at a barrier every few microseconds; with several
    threads on a busy machine each barrier can cost a scheduling slice, a thousandfold slowdown.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
