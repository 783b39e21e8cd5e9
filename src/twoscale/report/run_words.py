"""A run in sentences: what was fitted on what, its error and time, and what limits it."""

from __future__ import annotations

import numpy as np

from twoscale.report.run_record import RunRecord
from twoscale.runtime.texts import duration_text, percent, short_duration_text
from twoscale.search.findings import shares_text


def result_sentences(run: RunRecord) -> list[str]:
    """Return what was fitted on what, how well, and in which time."""
    inputs, outputs = run.surrogate.input_space_, run.surrogate.output_space_
    fitted = (
        f"{run.title} was fitted on {run.config['training_samples']} samples of "
        f"{run.dataset_path.name} ({inputs.contents} to {outputs.contents})."
    )
    tested = f"{run.metrics.get('samples')} {run.judged_by}"
    error = (
        f"Its mean relative L2 error on {tested} is {percent(run.error)}; that of all of them "
        f"together (MRE) is {percent(run.metrics['mre'])}."
    )
    seconds = duration_text(run.fit_seconds)
    time = f"A search of {seconds} chose it" if run.search else f"The fit took {seconds}"
    if run.prediction_seconds is not None:
        time += f", and a prediction takes {short_duration_text(run.prediction_seconds)}"
    return [fitted, error, f"{time}."]


def limits_text(run: RunRecord) -> str:
    """Return what limits the error: the representation, the predictor or the data."""
    found = run.findings
    if found is None:
        return ""
    errors = []
    if found.oracle is not None:
        errors.append(f"the representation alone (oracle) has {percent(found.oracle)}")
    if found.training_error is not None:
        errors.append(f"the error on training samples is {percent(found.training_error)}")
    first = f"{_capital(' and '.join(errors))}. " if errors else ""
    return first + shares_text(found.shares)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def used_text(run: RunRecord) -> str:
    """Return how many samples the pictures show, and the range of their errors."""
    samples = run.samples
    if samples is None or not len(samples.finite):
        return ""
    used, tested = len(samples.errors), samples.tested
    of = f"all {used}" if used == tested else f"the first {used} of {tested}"
    low, middle, high = np.quantile(samples.finite, (0.0, 0.5, 1.0))
    return (
        f"Pictures show {of} samples. Their errors range from {percent(low)} to {percent(high)}; "
        f"the median is {percent(middle)}."
    )
