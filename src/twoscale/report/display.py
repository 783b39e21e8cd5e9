"""The names of quantities, the format of their numbers, and the table of a run's metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from twoscale.representation import known_stages
from twoscale.runtime.stages import PCA, STAGES
from twoscale.runtime.texts import short_number

ABSENT = "\N{EN DASH}"
_FORMATS = {
    "percent": "{:.3f}",
    "plain": "{:.4f}",
    "power": "{:.2e}",
    "short": "{:.3g}",
    "ratio": "{:.2f}",
    "relative": "{:+.2f} %",
    "absolute": "{:+.5f}",
    "speed_up": "{:.2f} \N{MULTIPLICATION SIGN}",
}
_HUNDREDFOLD = ("percent", "relative")
_CHANGES = ("relative", "absolute", "speed_up")


@dataclass(frozen=True)
class Display:
    """A quantity's heading in tables, what and where it is, and how its numbers are written."""

    heading: str
    quantity: str
    kind: str
    unit: str = ""
    higher_is_better: bool = False
    where: str = ""

    @property
    def words(self) -> str:
        """Return the quantity in words, as on an axis."""
        return self.quantity + self.where

    @property
    def axis(self) -> str:
        """Return the label of an axis: words and unit."""
        return f"{self.words} ({self.unit})" if self.unit else self.words

    @property
    def scale(self) -> float:
        """Return the factor from stored to shown numbers."""
        return _scale(self.kind)


_SEAMS = " at seams"


def _seconds(heading: str, words: str) -> Display:
    return Display(heading, words, "seconds", "s")


_KNOWN = {
    "mre": Display("MRE %", "relative error", "percent", "%"),
    "mean_relative_l2": Display("mean L2 %", "mean relative L2 error", "percent", "%"),
    "median_relative_l1": Display("median L1 %", "median relative L1 error", "percent", "%"),
    "oracle_mre": Display("oracle MRE %", "oracle error", "percent", "%"),
    "learned_to_oracle": Display("learned / oracle", "learned error over oracle error", "ratio"),
    "ssim": Display("SSIM", "SSIM", "plain", higher_is_better=True),
    "mse": Display("MSE", "mean squared error", "power"),
    "mae": Display("MAE", "mean absolute error", "power"),
    "spectral_error": Display("spectral", "spectral error", "plain"),
    "value_jump": Display("value jump", "jump in value", "power"),
    "normal_derivative_jump": Display("slope jump", "jump in slope", "power"),
    "value_trace_error": Display("seam value", "error of value", "power", where=_SEAMS),
    "normal_derivative_trace_error": Display("seam slope", "error of slope", "power", where=_SEAMS),
    "residual_rms": Display("residual RMS", "PDE residual, RMS", "short"),
    "residual_mean_abs": Display("residual mean", "PDE residual, mean", "short"),
    "flux_jump": Display("flux jump", "jump in flux", "power"),
    "flux_trace_error": Display("seam flux", "error of flux", "power", where=_SEAMS),
    "input_code": Display("input code", "input coordinates", "count"),
    "output_code": Display("output code", "output coordinates", "count"),
    "parameters": Display("parameters", "trainable parameters", "count"),
    "model_megabytes": Display("model MB", "size of the surrogate", "short", "MB"),
    "peak_device_gigabytes": Display("memory GB", "peak GPU memory", "short", "GB"),
    "pca_fit": _seconds("PCA s", "PCA fit"),
    "pca_input": _seconds("input PCA s", "input PCA"),
    "pca_output": _seconds("output PCA s", "output PCA"),
    "pca_overhead": _seconds("PCA overhead s", "PCA overhead"),
    "pca_solve": _seconds("PCA solve s", "PCA without overhead"),
    "train": _seconds("training s", "all training"),
    "total": _seconds("total s", "total time"),
    "data_seconds": _seconds("data s", "generation of the training fields"),
    "fit_seconds": _seconds("fit s", "fit, of all candidates of a search"),
    "field_seconds": Display("one field s", "prediction of one field", "power", "s"),
    "invocation_train": _seconds("own training s", "training, base excluded"),
    "invocation_total": _seconds("own total s", "time, base excluded"),
    "training_samples": Display("training fields", "training fields", "count"),
    **{name: _seconds(f"{stage.column} s", stage.title) for name, stage in STAGES.items()},
}

METRIC_COLUMNS = {
    "mean_relative_l2": "mean %",
    "mre": "MRE %",
    "oracle_mre": "oracle",
    "ssim": "SSIM",
    "value_trace_error": "seam u",
    "normal_derivative_trace_error": "seam du",
    "residual_rms": "residual",
    "output_code": "code",
    "total": "s",
}
"""Metric and heading, which is short enough for a terminal."""

METRIC_NOTE = (
    "mean: mean of the test samples' relative L2 errors. MRE: relative L2 error of all test "
    "samples together. oracle: MRE of the representation alone. "
    "seam u, seam du: mean error of the jump in value and in slope across the borders of "
    "non-overlapping patches. residual: root mean square of the discrete PDE residual. code: "
    "numbers in the output code. s: seconds of fit, training and inference."
)

# What is added to the heading and to the words of a quantity, by the start of its name.
_GROUPS = {
    "common_seams.": ("common seams", ", common seams"),
    "oracle_seams.": ("oracle", ", representation alone"),
    "outside.": ("outside", ", out of distribution"),
    "validation.": ("validation", ", validation fields"),
}
_HUGE = 1e9  # from here on numbers are written with an exponent
_MANY = 1000  # a mean count from here on is shown without decimals


def display(name: str) -> Display:
    """Return how a quantity is shown; an unknown one by its own name.

    >>> display("common_seams.value_jump").heading
    'value jump, common seams'
    >>> display("common_seams.value_trace_error").words
    'error of value at common seams'
    """
    for group, (heading, where) in _GROUPS.items():
        if name.startswith(group):
            known = display(name.removeprefix(group))
            at_common = group == "common_seams." and known.where == _SEAMS
            where = " at common seams" if at_common else known.where + where
            return replace(known, heading=f"{known.heading}, {heading}", where=where)
    short = name.removeprefix("timings.")
    words = short.replace("_", " ").replace(".", " ")
    return _KNOWN.get(short) or _of_chain_stage(short) or Display(words, words, "short")


def _of_chain_stage(name: str) -> Display | None:
    """Return how the code or the PCA of a chain's stage is shown, if a quantity is one of them."""
    titles = known_stages()
    if title := titles.get(name.removesuffix("_code")):
        return Display(f"{title} code", f"{title} coordinates", "count")
    if title := titles.get(name.removeprefix(PCA)):
        return _seconds(f"{title} PCA s", f"{title} PCA")
    return None


def number(value: float | None, kind: str) -> str:
    """Return a number as text: percent, plain, power, short, seconds, ratio or count.

    Changes are written by their kind: relative, absolute or speed_up. A number that is huge, or
    so small that no digit would show, is written with three digits.

    >>> number(1.2e28, "percent"), number(2e-8, "percent"), number(0.0123, "percent")
    ('1.2e+30', '0.000002', '1.230')
    """
    if value is None or value != value:
        return ABSENT
    shown = _scale(kind) * value
    text = _fixed(value, kind)
    hidden = kind not in _CHANGES and shown and not any(digit in text for digit in "123456789")
    return short_number(shown) if abs(shown) >= _HUGE or hidden else text


def _scale(kind: str) -> float:
    return 100.0 if kind in _HUNDREDFOLD else 1.0


def _fixed(value: float, kind: str) -> str:
    """Return a number with the decimals of its kind."""
    if kind == "count":
        return f"{value:.0f}" if value == round(value) or value >= _MANY else f"{value:.1f}"
    if kind == "seconds":
        return f"{value:.{_decimals(value)}f}"
    return _FORMATS[kind].format(_scale(kind) * value)


def with_spread(mean: float | None, deviation: float | None, kind: str) -> str:
    """Return a mean with its standard deviation, if there is one.

    >>> with_spread(0.0123, 0.0004, "percent"), with_spread(3.21e-7, 1e-9, "percent")
    ('1.230 ± 0.040', '0.0000321 ± 0.0000001')
    """
    text = number(mean, kind)
    if deviation is None or text == ABSENT or (kind == "count" and deviation == 0):
        return text
    assert mean is not None
    if kind == "power" and mean:
        digits, _, exponent = text.partition("e")
        return f"({digits} ± {deviation / 10 ** int(exponent):.2f})e{exponent}"
    if kind in ("seconds", "short") and "e" not in text:
        return f"{text} ± {deviation:.{len(text.partition('.')[2])}f}"
    if text != _fixed(mean, kind):
        return f"{text} ± {short_number(_scale(kind) * deviation, 1)}"
    return f"{text} ± {_fixed(deviation, kind)}"


def _decimals(seconds: float) -> int:
    """Return the decimals of a time: three digits in all, and three decimals below a second."""
    return next((k for k, least in enumerate((100, 10, 1)) if seconds >= least), 3)


def metric_header(columns: Iterable[str] = METRIC_COLUMNS) -> list[str]:
    """Return the headings, of all columns by default."""
    return ["method", *(METRIC_COLUMNS[name] for name in columns)]


def metric_cells(metrics: Mapping[str, Any], columns: Iterable[str] = METRIC_COLUMNS) -> list[str]:
    """Return the cells of one row, without its name; seams are the common ones."""
    total = metrics.get("timings", {}).get("total")
    flat = {**metrics, **metrics.get("common_seams", {}), "total": total}
    return [number(flat.get(key), display(key).kind) for key in columns]
