"""Load studies: from the YAML files of the library, from a file of the user, or from a record."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError, unknown_name
from twoscale.files import read_text
from twoscale_lab.names import SCALES, STUDIES
from twoscale_lab.study.cells import Cell
from twoscale_lab.study.definition import Scale, Study
from twoscale_lab.study.validation import ValidationError, first_problem, parse_yaml, yaml

_PACKAGED = files("twoscale_lab.study") / "definitions"
_SMALL = files("twoscale_lab.study") / "small.yaml"


def load_study(name: str) -> Study:
    """Return the study of a name, or of a YAML file of one's own."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return _own_study(path)
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES, also="; or give a YAML file")
    return parse_study((_PACKAGED / f"{name}.yaml").read_text(encoding="utf-8"), name=name)


def _own_study(path: Path) -> Study:
    study = parse_study(read_text(path), name=path.stem)
    if study.name in STUDIES:  # its record would pass for that study's
        raise TwoscaleError(
            f"{path} has the name of the study {study.name}: give it another one, such as "
            f"'name: my-{study.name}'"
        )
    return study


def own_definition(study: Study) -> dict[str, Any]:
    """Return the entry `definition` of a record, which only a user's own study needs."""
    return {} if study.name in STUDIES else {"definition": study.model_dump(mode="json")}


def recorded_study(record: Mapping[str, Any]) -> Study | None:
    """Return the study of a record, at its scale; None if its definition is not known."""
    if record["study"] in STUDIES:
        return load_study(record["study"]).at("small" if record["scale"] == "small" else "paper")
    if "definition" not in record:
        return None
    return _validated(record["definition"], f"the definition in the record of {record['study']}")


def asked_cells(
    studies: Sequence[Study],
    scale: Scale,
    *,
    seeds: Sequence[int] | None = None,
    only: Collection[str] = (),
) -> list[list[Cell]]:
    """Return the cells of each study; a name in `only` has to be in one of them at least."""
    scaled = [study.at(scale) for study in studies]
    found = []
    for study in scaled:
        mine = [
            name for name in only if study.has(name) or not any(one.has(name) for one in scaled)
        ]
        found.append([] if only and not mine else study.cells(seeds=seeds, only=mine))
    return found


def parse_study(text: str, *, name: str) -> Study:
    """Return the study that a YAML text defines, with the small scale's defaults filled in."""
    source = f"the study {name}"
    content = parse_yaml(text, source=source)
    if not isinstance(content, dict):
        raise TwoscaleError(f"{source} should be a YAML mapping of title, cases, ...")
    small = _merged(_small_defaults(), content.get("small") or {})
    return _validated({"name": name, **content, "small": small}, source, scales=SCALES)


@cache
def _small_defaults() -> dict[str, Any]:
    """Return what the small scale of every study has; not to be changed."""
    return yaml.safe_load(_SMALL.read_text(encoding="utf-8"))


def _validated(content: Any, source: str, *, scales: Sequence[Scale] = ("paper",)) -> Study:
    """Return the validated study; all of its cells at the given scales are valid, too."""
    try:
        study = Study.model_validate(content)
        for scale in scales:
            study.at(scale).cells()
    except ValidationError as error:
        raise TwoscaleError(f"{source} is wrong at {first_problem(error)}") from error
    except TwoscaleError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise TwoscaleError(f"{source} is wrong: {' '.join(str(error).split())}") from error
    return study


def _merged(defaults: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Return `defaults` updated with `given`; mappings inside are merged the same way."""
    if not isinstance(given, dict):
        return given
    both = {
        name: _merged(defaults[name], value) if isinstance(defaults.get(name), dict) else value
        for name, value in given.items()
    }
    return {**defaults, **both}
