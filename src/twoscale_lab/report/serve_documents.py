"""Sentences of recorded loads and inversions, for the pages on serving and inverting."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from typing import Any

from twoscale.files import read_json
from twoscale_lab.report.study_documents import markdown

LOAD, INVERSION, LOW_NOISE = "serve.json", "inversion.json", "inversion-low-noise.json"


def load_sentences(results: Path) -> str:
    """Return what many clients at once have measured."""
    record = read_json(results / LOAD, require={"answers": int, "errors": dict, "clients": int})
    return (
        f"Measured: {record['clients']} clients asked for {record['seconds']:.0f} s, for "
        f"{record['grid']} fields by JSON, npy and UM-Bridge. There were {record['answers']:,} "
        f"answers, {record['requests_per_second']:.0f} a second. Wrong answers: "
        f"{record['wrong_answers']}; errors: {sum(record['errors'].values())}. The largest "
        f"relative difference from `predict` was {record['largest_relative_difference']:.0e}. "
        f"The server's memory was {record['memory_before_mb']:.0f} MB before and "
        f"{record['memory_after_mb']:.0f} MB after. "
        f"It took {record['server_cpu_seconds']:.0f} s of processor time. "
        "The machine has two cores, and its load average was "
        f"{record['load_before']:.1f} before, by other work. Record: `results/{LOAD}`, made by "
        f"`scripts/serve_load.py`, commit {record['environment']['commit']}."
    )


def inversion_text(results: Path) -> str:
    """Return what an inversion found, and how many solves it saved."""
    record = read_json(results / INVERSION, require={"chains": dict, "saved": dict, "setup": dict})
    setup, saved, agreement = record["setup"], record["saved"], record["agreement"]
    surrogate, best = record["surrogate"], record["map"]
    chance = sqrt(sum(1 / one["effective_samples"] for one in record["chains"].values()))
    rows = [
        _chain_row("exact solver alone", record["chains"]["exact"], setup["steps"]),
        _chain_row("delayed acceptance", record["chains"]["delayed"], setup["steps"]),
    ]
    header = ["chain", "steps", "exact solves", "accepted %", "effective samples", "seconds"]
    return "\n".join(
        [
            f"{setup['side']} x {setup['side']} nodes, {setup['coefficients']} unknowns, "
            f"{record['observations']} values with noise of {100 * setup['noise']:g} %. The "
            f"surrogate was fitted on {surrogate['training']:,} media; its mean error on others is "
            f"{100 * surrogate['mean_relative_l2']:.2f} %. The most probable medium took "
            f"{best['gradients']} gradients, and is {100 * best['medium_error']:.1f} % from the "
            f"truth (relative L2). The posterior mean is "
            f"{100 * agreement['mean_error_of_medium']:.1f} % from it.",
            "",
            *markdown(header, rows),
            "",
            f"*Effective samples* are the independent samples that a chain is worth. The exact "
            f"solver alone would need {saved['needed_without_surrogate']:,.0f} solves for as many "
            f"as delayed acceptance has; this took {saved['used']:,}. So "
            f"{saved['saved']:,.0f} solves were saved. The training had cost "
            f"{saved['training']:,} solves, once; a second inversion needs no new ones.",
            "",
            f"The posterior means of both chains differ by "
            f"{agreement['mean_difference_in_sd']:.2f} posterior standard deviations, and their "
            f"standard deviations by {100 * agreement['sd_difference']:.0f} %. By chance alone, so "
            f"few effective samples differ by about {chance:.2f} standard deviations. Seconds are "
            "those of a machine that was busy with other work.",
            "",
            _other_noise(record, read_json(results / LOW_NOISE, require={"chains": dict})),
            "",
            f"Records: `results/{INVERSION}` and `results/{LOW_NOISE}`, commit "
            f"{record['environment']['commit']}.",
        ]
    )


def _other_noise(record: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return what less noise changes: the surrogate's error counts for more."""
    noise, less = (100 * one["setup"]["noise"] for one in (record, other))
    yes, fewer = (100 * one["chains"]["delayed"]["accepted"] for one in (record, other))
    return (
        f"The gain depends on the noise. Here delayed acceptance needs {_gain(record):.1f} times "
        f"fewer solves for an effective sample, and the solver accepts {yes:.0f} % of the moves. "
        f"With noise of {less:g} % instead of {noise:g} % it needs {_gain(other):.1f} times fewer, "
        f"and {fewer:.0f} % are accepted. The surrogate's error should be well below the noise."
    )


def _gain(record: Mapping[str, Any]) -> float:
    """Return the ratio of exact solves for an effective sample, without and with a surrogate."""
    exact, delayed = (record["chains"][name] for name in ("exact", "delayed"))
    return exact["solves_per_effective_sample"] / delayed["solves_per_effective_sample"]


def _chain_row(name: str, chain: Mapping[str, Any], steps: int) -> list[str]:
    return [
        name,
        f"{steps:,}",
        f"{chain['exact_solves']:,}",
        f"{100 * chain['accepted']:.0f}",
        f"{chain['effective_samples']:.0f}",
        f"{chain['seconds']:.0f}",
    ]
