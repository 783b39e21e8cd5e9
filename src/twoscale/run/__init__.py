"""A run: a surrogate fitted on a stored dataset, with everything needed to trust and repeat it."""

from twoscale.run.finetuning import finetune_run
from twoscale.run.fitting import RunRequest, fit_run, fit_runs
from twoscale.run.folder import Run
from twoscale.run.searching import auto_run

__all__ = ["Run", "RunRequest", "auto_run", "finetune_run", "fit_run", "fit_runs"]
