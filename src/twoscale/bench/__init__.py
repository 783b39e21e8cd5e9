"""Speed, as ratios: ours and a named peer on the same data, in the same process, in one run."""

from twoscale.bench.measure import Comparison, Setup
from twoscale.bench.registry import BENCHMARKS, run_benchmarks

__all__ = ["BENCHMARKS", "Comparison", "Setup", "run_benchmarks"]
