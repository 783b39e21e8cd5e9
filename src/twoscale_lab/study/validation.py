"""Checked content of YAML texts and records: pydantic's models, and YAML of unknown origin."""

from __future__ import annotations

from typing import Annotated, Any

from twoscale.errors import TwoscaleError, missing_extra

try:
    import yaml
    from pydantic import (
        AfterValidator,
        BaseModel,
        ConfigDict,
        Field,
        ValidationError,
        model_validator,
    )
except ImportError as error:
    raise missing_extra(error.name or "pydantic", "lab") from error

__all__ = [
    "AfterValidator",
    "BaseModel",
    "ConfigDict",
    "Field",
    "Seed",
    "Size",
    "Strict",
    "ValidationError",
    "first_problem",
    "model_validator",
    "parse_yaml",
    "yaml",
]

# Of a text with all its aliases written out; our largest study has 700 values, 6 levels deep.
_VALUES = 100_000
_DEPTH = 30

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Size = Annotated[int, Field(ge=1, le=10**9)]


class Strict(BaseModel):
    """A part of a definition, which holds nothing but what is named."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def first_problem(error: ValidationError) -> str:
    """Return the first thing that is wrong, and where it stands."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def parse_yaml(text: str, *, source: str) -> Any:
    """Return what a YAML text holds; `source` is named when it is wrong.

    With aliases, a few lines can stand for billions of values. The nodes are counted, aliases
    included, before any value is constructed.
    """
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            _check_size(node, source)
            return None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise TwoscaleError(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise TwoscaleError(f"{source} is nested too deeply") from error
    except TwoscaleError:
        raise
    except (ValueError, OverflowError, TypeError) as error:  # numbers and dates that cannot be
        raise TwoscaleError(f"{source} holds a wrong value: {error}") from error


def _check_size(node: yaml.Node | None, source: str) -> None:
    """Raise if a text is too large or nested too deeply, aliases written out."""
    waiting = [] if node is None else [(node, 1)]
    count = 0
    while waiting:
        one, depth = waiting.pop()
        count += 1
        if depth > _DEPTH:
            raise TwoscaleError(f"{source} is nested too deeply: {_DEPTH} levels are the most")
        if count > _VALUES:
            raise TwoscaleError(f"{source} is too large: it stands for over {_VALUES:,} values")
        if isinstance(one, yaml.SequenceNode):
            waiting += [(value, depth + 1) for value in one.value]
        elif isinstance(one, yaml.MappingNode):
            waiting += [(value, depth + 1) for pair in one.value for value in pair]
