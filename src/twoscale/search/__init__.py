"""The search for a surrogate within a time budget: `fit_auto` and what it tells."""

from twoscale.search.auto import Found, fit_auto
from twoscale.search.policy import DEFAULT_BUDGET

__all__ = ["DEFAULT_BUDGET", "Found", "fit_auto"]
