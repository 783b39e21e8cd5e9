"""How a surrogate is shown: as the call that makes it, and as a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from twoscale.domain.space import Space
from twoscale.methods.recipes import METHODS, defaults
from twoscale.networks import count_parameters
from twoscale.runtime.texts import duration_text, percent
from twoscale.surrogate.options import COMPOSED, PLACES

# Colours follow the page's own, light or dark: text in its colour, lines in a part of it.
_TIMES = ("inference", "total")  # of the timings, in a notebook
_STYLE = """<style>
.twoscale-card {display: inline-block; font: 0.9em/1.4 system-ui, sans-serif; max-width: 60em;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 6px;
  padding: 0.5em 0.8em; overflow-x: auto}
.twoscale-card table {border: none; margin-top: 0.4em; color: inherit}
.twoscale-card tr, .twoscale-card th, .twoscale-card td {text-align: left; vertical-align: top;
  padding: 0.1em 1em 0.1em 0; border: none; background: none; color: inherit}
</style>"""


def constructor_text(surrogate: Any) -> str:
    """Return the call that makes a surrogate, with the arguments that are not the defaults."""
    shown = _method_text(surrogate)
    shown += [f"seed={surrogate.seed}"] if surrogate.seed else []
    return f"Surrogate({', '.join(shown)})"


def _method_text(surrogate: Any) -> list[str]:
    """Return the arguments that say what a surrogate is made of, as texts."""
    if surrogate.method != COMPOSED:
        return [repr(surrogate.method), *_texts(_own_settings(surrogate))]
    parts = {name: getattr(surrogate.parts, name) for name in PLACES}
    shown = _texts({name: part for name, part in parts.items() if part is not None})
    if surrogate.parts.symmetries != "none":
        shown.append(f"symmetries={surrogate.parts.symmetries!r}")
    return shown


def _own_settings(surrogate: Any) -> dict[str, Any]:
    """Return the settings that differ from those of the method."""
    method, settings = surrogate.method, surrogate.settings
    usual = defaults(method, settings)
    base = {name: settings[name] for name in settings if name == "base"}
    usual |= {"predictor": defaults(method, base)["predictor"]}
    usual |= {name: METHODS[method].defaults[name] for name in base}
    return {name: settings[name] for name in settings if settings[name] != usual.get(name)}


def _texts(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in arguments.items()]


def surrogate_html(surrogate: Any) -> str:
    """Return what a notebook shows of a surrogate: what it is made of, and what a fit has found."""
    return card_html(constructor_text(surrogate), table_html(_rows(surrogate).items()))


def surrogate_text(surrogate: Any) -> str:
    """Return what `print` shows of a surrogate: the same rows as in a notebook."""
    rows = _rows(surrogate)
    width = max(map(len, rows))
    lines = [f"  {name:<{width}}  {text}" for name, text in rows.items()]
    return "\n".join([constructor_text(surrogate), *lines])


def _rows(surrogate: Any) -> dict[str, str]:
    """Return names and texts of what a surrogate is made of, and of what a fit has found."""
    parts = surrogate.parts
    known = METHODS.get(surrogate.method)
    rows = {"method": known.title if known else "composed of parts"}
    rows |= {name: repr(getattr(parts, name)) for name in PLACES if getattr(parts, name)}
    if surrogate.problem is not None:
        rows["problem"] = surrogate.problem.name
    if surrogate.__sklearn_is_fitted__():
        rows |= _fitted_rows(surrogate)
    else:
        rows["fit"] = "not fitted yet"
    return rows


def _fitted_rows(surrogate: Any) -> dict[str, str]:
    """Return the rows of a fitted surrogate: fields, codes, errors and time."""
    code_operator = surrogate.operator_.code_operator
    rows = {
        "fields": f"{_space_text(surrogate.input_space_)} → {_space_text(surrogate.output_space_)}",
        "training": f"{surrogate.training_samples_} samples, in "
        f"{duration_text(sum(surrogate.timings_.values()))}",
        "trained numbers": f"{count_parameters(surrogate.operator_):,}",
    }
    if code_operator.outputs.compresses:
        codes = (
            f"{code_operator.input_code_size} → {code_operator.outputs.code_size} numbers per field"
        )
        rows["codes"] = codes
    for role, error in surrogate.errors_.items():
        rows[f"{role} error"] = percent(error)
    return rows


class Metrics(dict[str, Any]):
    """The metrics of an evaluation by name: a dictionary that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        names = ("pooled_error", "mean_relative_l2", "oracle_mre")
        rows = {name: percent(self[name]) for name in names}
        for channel, errors in self.get("channels", {}).items():
            rows[f"mre of {channel}"] = percent(errors["mre"])
        rows["samples"] = str(self["samples"])
        rows |= {f"{name} time": duration_text(self["timings"][name]) for name in _TIMES}
        title = f"metrics: {len(self)} names, such as 'mse' and 'ssim'"
        return card_html(title, table_html(rows.items()))


def _space_text(space: Space) -> str:
    names = "" if space.names is None else f" ({', '.join(space.names)})"
    return f"{space.contents}{names}"


def card_html(title: str, *contents: str) -> str:
    """Return a box with a title and contents, which are HTML already."""
    inside = f"<code>{escape(title)}</code>{''.join(contents)}"
    return f'{_STYLE}<div class="twoscale-card">{inside}</div>'


def table_html(rows: Iterable[Iterable[str]], headings: Iterable[str] = ()) -> str:
    """Return rows of texts as a table; the first column has the names of the rows."""
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    lines = [f"<tr>{head}</tr>"] if head else []
    for name, *texts in rows:
        cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return f"<table>{''.join(lines)}</table>"
