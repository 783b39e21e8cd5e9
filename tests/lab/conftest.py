"""Fixtures of the library's tests that commands of studies need too."""

from tests.cli.conftest import data, run_folder
from tests.cluster.conftest import workers

__all__ = ["data", "run_folder", "workers"]
