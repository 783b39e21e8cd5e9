"""Benchmarks: our time and that of a named peer on the same data, in the same process."""

from twoscale_lab.bench.measure import Comparison, Setup
from twoscale_lab.bench.registry import BENCHMARKS, run_benchmarks

__all__ = ["BENCHMARKS", "Comparison", "Setup", "run_benchmarks"]
