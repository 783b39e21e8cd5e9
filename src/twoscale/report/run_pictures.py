"""The pictures of a run with their captions and numbers, and the sections on its errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from twoscale.errors import TwoscaleError
from twoscale.report import run_fields, run_figures, run_numbers, trust_figures
from twoscale.report.display import METRIC_NOTE, metric_cells, metric_header
from twoscale.report.figures import channel_names
from twoscale.report.method_looks import colour
from twoscale.report.page import ChartTable, PageTable, Picture, Section
from twoscale.report.picture import reporting_errors
from twoscale.report.run_record import RunRecord
from twoscale.report.run_samples import RunSamples, Shown
from twoscale.report.run_trust import Radii, TrustSamples
from twoscale.report.trust_words import break_even_text, trust_text
from twoscale.runtime.texts import percent, short_duration_text


class Drawings:
    """The pictures of a run; one that cannot be drawn is a remark in its place.

    `prefix` keeps the names of several runs' pictures apart.
    """

    def __init__(self, run: RunRecord, prefix: str = "") -> None:
        self.run = run
        self.prefix = prefix
        self.names = channel_names(run.surrogate.output_space_)
        space = run.surrogate.input_space_
        self.inputs = space.names or ()
        self.remarks: list[str] = []

    def picture(
        self,
        name: str,
        title: str,
        caption: str,
        draw: Callable[[], Figure | None],
        numbers: ChartTable | None = None,
        *,
        vector: bool = True,
        narrow: Callable[[], Figure] | None = None,
    ) -> list[Picture]:
        """Return a picture in a list; an empty one if there is none, or if it fails."""
        try:
            with reporting_errors({}), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # letters that the font lacks, empty axes
                figure = draw()
                if figure is None:
                    return []
                small = narrow() if narrow else None
                made = Picture(
                    f"{self.prefix}{name}", title, caption, figure, vector, numbers, small
                )
                _ = made.source
        except TwoscaleError as error:
            self.remarks.append(f"Not drawn: {title} ({error}).")
            return []
        return [made]

    def take_remarks(self) -> list[str]:
        """Return the remarks since the last time."""
        found, self.remarks = self.remarks, []
        return found

    def first(self) -> Picture | None:
        """Return the picture of the median sample, as the page begins."""
        samples = self.run.samples
        if samples is None or samples.median is None:
            return None
        return next(iter(self._sample("median", "The median sample", samples.median, 4)), None)

    def _sample(self, name: str, title: str, shown: Shown, columns: int = 2) -> list[Picture]:
        samples = self.run.samples
        assert samples is not None

        def draw(across: int) -> Figure:
            return run_fields.sample_strip(
                shown, self.names, self.inputs, samples.seams, columns=across
            )

        lines = ", with patch borders" if samples.seams is not None else ""
        seconds = self.run.prediction_seconds
        time = f" A prediction takes {short_duration_text(seconds)}." if seconds else ""
        channels = len(shown.truth)
        drawn = run_fields.shown_channels(channels)
        few = f" The first {drawn} of {channels} channels are shown." if channels > drawn else ""
        return self.picture(
            name,
            title,
            f"Sample {shown.number} of the data: input, truth, prediction, and error{lines}. Its "
            f"error is {percent(shown.error)}.{time} Truth and prediction share a scale.{few}",
            lambda: draw(columns),
            vector=False,
            narrow=(lambda: draw(2)) if columns > 2 and channels == 1 else None,
        )

    def sections(self) -> Iterator[Section]:
        """Yield the sections on errors: samples, channels, places, scales, seams, trust."""
        samples = self.run.samples
        if samples is None or samples.best is None or samples.worst is None:
            return
        pictures = self._sample("best", "The best sample", samples.best)
        pictures += self._sample("worst", "The worst sample", samples.worst)
        yield Section(
            "Best and worst sample",
            "Does the worst input look unusual, or does the error sit in one place?",
            pictures=pictures,
            remarks=self.take_remarks(),
            anchor=f"{self.prefix}samples",
        )
        yield self._errors()
        yield self._places()
        if samples.jumps:
            yield self._seams()
        if samples.trust is not None:
            yield self._trust(samples, samples.trust)

    def _errors(self) -> Section:
        run, samples = self.run, self.run.samples
        assert samples is not None
        channels: Mapping[str, Any] = run.metrics.get("channels", {})
        method = run.surrogate.method
        pictures = self.picture(
            "histogram",
            "Errors of single samples",
            "Each sample's relative error. A long tail to the right means that a few inputs are "
            "much harder than the rest.",
            lambda: run_figures.histogram({method: samples.errors}, {method: colour(method)}),
            run_numbers.sample_numbers(samples, list(channels)),
        )
        if findings := run.findings:
            pictures += self.picture(
                "shares",
                "What limits the error",
                "Shares of the squared error: what the code cannot express (representation), what "
                "was not learned (predictor), what was learned on training samples only (data).",
                lambda: run_figures.share_bar(findings.shares),
                run_numbers.share_numbers(findings.shares),
            )
        if channels:
            pictures += self.picture(
                "channels",
                "Errors of the channels",
                "Each channel's relative error, and that of its representation alone.",
                lambda: run_figures.channel_bars(channels),
                run_numbers.channel_numbers(channels),
            )
        rows = [[run.title, *metric_cells(run.metrics)]]
        rows += [[f"channel {name}", *metric_cells(values)] for name, values in channels.items()]
        return Section(
            "How large the error is",
            tables=[PageTable(metric_header(), rows, note=METRIC_NOTE)],
            pictures=pictures,
            remarks=self.take_remarks(),
            anchor=f"{self.prefix}errors",
        )

    def _places(self) -> Section:
        samples = self.run.samples
        assert samples is not None
        lines = " Thin lines are patch borders." if samples.seams is not None else ""
        pictures = self.picture(
            "map",
            "Where the error sits",
            "Root mean square error at each node, in percent of the root mean square of the true "
            f"values.{lines}",
            lambda: run_fields.error_map(samples, self.names),
            run_numbers.map_numbers(samples),
            vector=False,
        )
        pictures += self.picture(
            "spectra",
            "Which scales are wrong",
            "Mean energy of truth, prediction and error at each wave number. Where the error "
            "reaches the truth, that scale is not predicted.",
            lambda: run_figures.spectra(samples, self.names),
            run_numbers.spectrum_numbers(samples, self.run.surrogate.output_space_.channel_names),
        )
        return Section(
            "Where the error is",
            pictures=pictures,
            remarks=self.take_remarks(),
            anchor=f"{self.prefix}places",
        )

    def _seams(self) -> Section:
        samples = self.run.samples
        assert samples is not None
        ratio = samples.seam_ratio
        lead = "Patches meet at borders. A jump of the error there is a seam."
        if ratio is not None:
            times = f"{ratio:.2g} times as large" if abs(ratio - 1) > 0.15 else "about as large"
            lead += f" Jumps in the slope of the error are {times} there as inside patches."
        pictures = self.picture(
            "seams",
            "Jumps at patch borders and inside of patches",
            "Mean jump of the error between neighbouring nodes, in value and in slope.",
            lambda: run_figures.seam_bars(samples.jumps),
            run_numbers.seam_numbers(samples.jumps),
        )
        return Section(
            "Seams",
            lead,
            pictures=pictures,
            remarks=self.take_remarks(),
            anchor=f"{self.prefix}seams",
        )

    def _trust(self, samples: RunSamples, trust: TrustSamples) -> Section:
        pictures = []
        if (radii := trust.radii) is not None:
            outside = trust.outside[: len(radii.errors)]
            pictures += self._radii(samples.numbers, radii, outside)
        if (proofs := trust.proofs) is not None:
            pictures += self.picture(
                "certificates",
                "Proven bounds and true errors",
                "Bounds of each sample's relative error in the energy norm, which follow from the "
                "equation alone, against the true error. True errors lie on the dashed line.",
                lambda: trust_figures.certificates(proofs),
                run_numbers.proof_numbers(samples.numbers, proofs),
            )
        pictures += self.picture(
            "distances",
            "Which inputs are known",
            "How far each input is from the training inputs: the largest of its distances in "
            "roughness, coarse shape and range of values. Beyond the limit an input is outside, "
            f"and nothing is promised for it: {int(trust.outside.sum())} of {len(trust.outside)}.",
            lambda: trust_figures.distances(trust),
            run_numbers.distance_numbers(samples.numbers, trust),
        )
        return Section(
            "How far to trust it",
            " ".join(
                filter(None, (trust_text(self.run.metrics), break_even_text(self.run.metrics)))
            ),
            pictures=pictures,
            remarks=self.take_remarks(),
            anchor=f"{self.prefix}trust",
        )

    def _radii(self, numbers: np.ndarray, radii: Radii, outside: np.ndarray) -> list[Picture]:
        found = self.picture(
            "reliability",
            "How often radii hold",
            "Share of samples whose error is within its radius, at each level. On the dashed line "
            "radii hold as often as they promise. Grey is what chance allows with "
            f"{radii.calibrated} calibration and {len(radii.errors)} test samples.",
            lambda: trust_figures.reliability(radii),
            run_numbers.reliability_numbers(radii),
        )
        return found + self.picture(
            "radii",
            "Errors and radii",
            "Each sample's error against its radius, which is known without the truth. Above the "
            f"dashed line the radius did not hold: {int((~radii.held).sum())} of "
            f"{len(radii.errors)}. The more radii differ, the more they tell which samples are "
            "difficult.",
            lambda: trust_figures.errors_and_radii(radii, outside),
            run_numbers.radius_numbers(numbers, radii, outside),
        )
