"""A run: a surrogate fitted on a stored dataset, with everything needed to trust and repeat it."""

from twoscale.run.finetuning import finetune_run
from twoscale.run.fitting import Request, fit_run
from twoscale.run.folder import Run
from twoscale.run.searching import auto_run
from twoscale.run.several import fit_requests, fit_runs

__all__ = ["Request", "Run", "auto_run", "finetune_run", "fit_requests", "fit_run", "fit_runs"]
