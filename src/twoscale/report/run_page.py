"""The page of one run: what was fitted, its error in words and pictures, and what to do next."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from twoscale._version import __version__
from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.report import run_fields, run_figures, run_numbers, tables
from twoscale.report.display import ABSENT
from twoscale.report.figures import channel_names
from twoscale.report.guard import reporting_errors
from twoscale.report.method_looks import colour
from twoscale.report.page import Numbers, Picture, Section, Step, Table, Tile, page_text
from twoscale.report.run_commands import (
    next_commands,
    python_line,
    repeat_command,
    suggested_command,
)
from twoscale.report.run_record import RunRecord, fresh_run
from twoscale.report.run_samples import Shown
from twoscale.report.run_words import limits_text, result_text, used_text
from twoscale.run.folder import Fitted
from twoscale.runtime.timing import duration_text
from twoscale.search.advice import percent
from twoscale.search.record import HEADINGS, table_rows
from twoscale.study.cases import setting_text
from twoscale.surrogate.artifact import PAGE

FOOTER = f"Made by twoscale {__version__}. The page needs no network."
"""The end of a page; a page that ends so may be replaced."""


def illustrate_run(folder: Path, fitted: Fitted) -> None:
    """Write the report of a run into its unfinished folder; a failure is only warned of."""
    try:
        text = run_page(fresh_run(folder, fitted))
        (folder / PAGE).write_text(text, encoding="utf-8")
    except Exception as error:  # the run is worth more than its pictures
        (folder / PAGE).unlink(missing_ok=True)
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        warnings.warn(f"the run has no report, since {said}", TwoscaleWarning, stacklevel=2)


def run_page(run: RunRecord) -> str:
    """Return the page of one run."""
    drawn = Drawings(run)
    sections = list(run_sections(run, drawn))
    return page_text(
        title=f"{run.name}: {run.title}",
        best=result_text(run),
        first=drawn.first(),
        summary=[one for one in (limits_text(run), used_text(run)) if one],
        tiles=tiles(run),
        sections=sections,
        footer=FOOTER,
    )


def run_sections(run: RunRecord, drawn: Drawings) -> Iterator[Section]:
    """Yield the sections of a run's page; those that do not apply are left out."""
    yield next_section(run)
    yield from drawn.sections()
    if run.search is not None:
        yield _search_section(run.search, drawn)
    yield _training_section(run, drawn)
    yield origin_section(run)


def tiles(run: RunRecord) -> list[Tile]:
    """Return the numbers at the top of the page."""
    metrics = run.metrics
    found = [
        Tile(ABSENT if run.error is None else percent(run.error), "relative error, test samples")
    ]
    if metrics["oracle_mre"] is not None:
        found.append(Tile(percent(metrics["oracle_mre"]), "oracle: the representation alone"))
    found.append(Tile(duration_text(run.fit_seconds), "search" if run.search else "fit"))
    if run.prediction_seconds is not None:
        milliseconds = f"{1e3 * run.prediction_seconds:.2g} ms"
        found.append(Tile(milliseconds, "per prediction, among many"))
    if metrics["output_code"] is not None:
        code = f"{metrics['input_code']} → {metrics['output_code']}"
        found.append(Tile(code, "numbers in the codes"))
    return found


def next_section(run: RunRecord) -> Section:
    """Return what to do next: what would help, then how the run is used."""
    steps = [Step(one.text, suggested_command(run, one)) for one in run.suggestions[:4]]
    steps += [Step(f"{words}.", command) for words, command in next_commands(run)[1:2]]
    steps.append(Step("Use it in Python.", python_line(run)))
    return Section("What to do next", steps=steps, anchor="next")


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
        numbers: Numbers | None = None,
        *,
        vector: bool = True,
        narrow: Callable[[], Figure] | None = None,
    ) -> list[Picture]:
        """Return a picture in a list; an empty one if there is none, or if it fails."""
        try:
            with reporting_errors({}):
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
        time = f" A prediction takes {1e3 * seconds:.2g} ms." if seconds else ""
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
        """Yield the sections on errors: samples, channels, places, scales, seams."""
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
        rows = [[run.title, *tables.cells(run.metrics)]]
        rows += [[f"channel {name}", *tables.cells(values)] for name, values in channels.items()]
        return Section(
            "How large the error is",
            tables=[Table.of_text(tables.header(), rows, note=tables.NOTE)],
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
            lead += f" The slope's error jumps {ratio:.2g} times as much there as inside."
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


def _search_section(search: Mapping[str, Any], drawn: Drawings) -> Section:
    pictures = drawn.picture(
        "candidates",
        "Candidates of the search",
        "Validation error against the time of each candidate. The ring marks the chosen one. A "
        "dashed line joins candidates that no other beats in both; numbers are rows of the table.",
        lambda: run_figures.candidates(search),
        Numbers(HEADINGS, table_rows(search)),
    )
    return Section(
        "The search",
        " ".join(search["explanation"][:1]),
        steps=[Step(sentence) for sentence in search["explanation"][1:]],
        pictures=pictures,
        folded=[
            Table.of_text(
                HEADINGS,
                table_rows(search),
                title=f"All {len(search['trials'])} candidates",
                note="Relative errors of the validation fields in %; * is the chosen one.",
                words=(0, 1),
            )
        ],
        remarks=drawn.take_remarks(),
        anchor=f"{drawn.prefix}search",
    )


def _training_section(run: RunRecord, drawn: Drawings) -> Section:
    timings: Mapping[str, float] = run.metrics["timings"]
    pictures = drawn.picture(
        "timings",
        "Time by stage",
        "Seconds of the fit and of predicting all test samples."
        + (" Of a search: those of the chosen candidate." if run.search else ""),
        lambda: run_figures.timing_bar(timings),
        run_numbers.timing_numbers(timings),
    )
    if run.history:
        pictures += drawn.picture(
            "losses",
            "Loss during training",
            "Training and validation loss of each epoch. If validation stays above training, more "
            "samples help. If both still fall at the end, longer training helps.",
            lambda: run_figures.losses(run.history),
            run_numbers.loss_numbers(run.history),
        )
    return Section(
        "Training and time",
        pictures=pictures,
        remarks=drawn.take_remarks(),
        anchor=f"{drawn.prefix}training",
    )


def origin_section(run: RunRecord, prefix: str = "") -> Section:
    """Return how the run was made: data, device, settings, and the command that repeats it."""
    environment = run.environment
    facts = [
        ("Data", f"{run.dataset_path.name}, {run.config['dataset']['identity']}"),
        ("Training samples", str(run.config["training_samples"])),
        ("Seed", str(run.surrogate.seed)),
        ("Device", f"{environment.get('device')}, {environment.get('device_name')}"),
        ("Threads", str(environment.get("threads"))),
        (
            "twoscale",
            f"{environment.get('twoscale')}, commit {environment.get('commit') or ABSENT}",
        ),
        ("torch", str(environment.get("torch"))),
        ("Configuration", str(run.config["hash"])),
    ]
    settings = [[name, setting_text(one)] for name, one in run.surrogate.settings.items()]
    return Section(
        "How it was made",
        facts=facts,
        steps=[Step("This command makes the same run again.", repeat_command(run))],
        folded=[Table.of_text(["setting", "value"], settings, title="All settings", words=(0, 1))],
        anchor=f"{prefix}origin",
    )
