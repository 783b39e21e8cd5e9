"""Benchmarks: our time and that of a named peer on the same data, in the same process."""

from twoscale_lab.bench.measure import Comparison, Setup, run_benchmarks
from twoscale_lab.names import BENCHMARKS

__all__ = ["BENCHMARKS", "Comparison", "Setup", "run_benchmarks"]
