"""A fitted surrogate as a folder: `manifest.json` and `weights.safetensors`."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from twoscale import _version
from twoscale.errors import TwoscaleError

FORMAT = "twoscale-surrogate"
FORMAT_VERSION = 1


@contextmanager
def complete_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a scratch folder beside `path` that becomes `path` only if all goes well."""
    if path.exists() and not overwrite:
        raise TwoscaleError(f"{path} exists already: choose another --out or pass --overwrite")
    scratch = path.with_name(path.name + ".partial")
    shutil.rmtree(scratch, ignore_errors=True)
    made = [parent for parent in scratch.parents if not parent.exists()]
    try:
        scratch.mkdir(parents=True)
    except OSError as error:
        raise TwoscaleError(f"cannot create {path}: {error.strerror}") from error
    try:
        yield scratch
        replace(path, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        for parent in made:
            with suppress(OSError):  # not empty: it holds the result, or someone else's
                parent.rmdir()


def replace(path: Path, scratch: Path) -> None:
    """Put a finished file or folder in the place of whatever is at `path`."""
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    scratch.rename(path)


def to_json(content: Any) -> str:
    """Return readable JSON; numbers that JSON has no word for become null."""
    return json.dumps(_plain(content), indent=2, allow_nan=False)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    path.write_text(to_json(content) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_json(path: Path, *, require: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the object a JSON file holds, which must have the keys `require`."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise TwoscaleError(f"{path} does not exist") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TwoscaleError(f"{path} is damaged or not JSON: {error}") from error
    if not isinstance(content, dict):
        raise TwoscaleError(f"{path} should hold a JSON object")
    missing = [key for key in require if key not in content]
    if missing:
        raise TwoscaleError(f"{path} is damaged: it lacks {', '.join(missing)}")
    return content


def write_artifact(folder: Path, manifest: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write both files into an existing folder."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(weights, folder / "weights.safetensors")
    head = {"format": FORMAT, "format_version": FORMAT_VERSION}
    write_json(folder / "manifest.json", head | manifest)


def read_artifact(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the manifest and the tensors of a saved surrogate."""
    if not folder.is_dir():
        raise TwoscaleError(f"{folder} is not a folder: expected a saved surrogate or run")
    manifest = read_json(folder / "manifest.json")
    if manifest.get("format") != FORMAT:
        raise TwoscaleError(f"{folder / 'manifest.json'} is not a twoscale surrogate's manifest")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise TwoscaleError(
            f"{folder} has format version {manifest.get('format_version')}; this twoscale reads "
            f"version {FORMAT_VERSION}: use a matching release"
        )
    try:
        return manifest, load_file(folder / "weights.safetensors")
    except FileNotFoundError as error:
        raise TwoscaleError(f"{folder / 'weights.safetensors'} does not exist") from error
    except (OSError, SafetensorError) as error:
        raise TwoscaleError(f"{folder / 'weights.safetensors'} is damaged: {error}") from error


def environment(device: torch.device) -> dict[str, Any]:
    """Return the software and hardware a result was made with."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "twoscale": _version.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": device.type,
        "device_name": name,
        "threads": torch.get_num_threads(),
    }


def _commit() -> str | None:
    """Return the source commit: TWOSCALE_COMMIT if set, else git's answer for this checkout."""
    if told := os.environ.get("TWOSCALE_COMMIT"):
        return told
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None
