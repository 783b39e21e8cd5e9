"""The benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from twoscale.errors import TwoscaleError, unknown_name
from twoscale_lab.bench import exported, fitting, training, using
from twoscale_lab.bench.measure import Comparison, Setup
from twoscale_lab.bench.scaling import scaling

BENCHMARKS: dict[str, Callable[[Setup], Iterator[Comparison]]] = {
    "generate": fitting.generate,
    "pca": fitting.pca,
    "train": training.train,
    "finetune": training.finetune,
    "inference": using.inference,
    "single": exported.single,
    "end-to-end": fitting.end_to_end,
    "scaling": scaling,
    "memory": using.memory,
}

SHARED = "scaling"
"""The benchmark that workers can share."""


def run_benchmarks(names: Sequence[str], setup: Setup) -> Iterator[Comparison]:
    """Run some benchmarks, all of them if none is named."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise unknown_name("benchmark", unknown[0], BENCHMARKS)
    if setup.scale not in ("small", "paper"):
        raise TwoscaleError(f"the scale is small or paper, got '{setup.scale}'")
    chosen = list(names) or list(BENCHMARKS)
    if setup.workers is not None and chosen != [SHARED]:
        raise TwoscaleError(f"workers share the benchmark {SHARED} only: twoscale bench {SHARED}")
    for done, name in enumerate(chosen):
        setup.report("benchmarks", done, len(chosen), name)
        yield from BENCHMARKS[name](setup)
    setup.report("benchmarks", len(chosen), len(chosen))
