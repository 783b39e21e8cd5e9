"""A fitted surrogate as a folder: `manifest.json` and `weights.safetensors`."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from twoscale import _version
from twoscale.errors import TwoscaleError
from twoscale.files import complete, read_json, target, write_json

FORMAT = "twoscale-surrogate"
FORMAT_VERSION = 1


def is_surrogate(path: Path) -> bool:
    """Say whether a folder is a saved surrogate or run."""
    try:
        return read_json(path / "manifest.json").get("format") == FORMAT
    except TwoscaleError:
        return False


def check_surrogate_folder(path: str | Path, *, overwrite: bool = False) -> Path:
    """Return where a surrogate will lie; raise if it must not be written there."""
    return target(path, overwrite=overwrite, ours=is_surrogate)


@contextmanager
def surrogate_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a folder to write a surrogate in; it appears at `path` complete or not at all."""
    with complete(check_surrogate_folder(path, overwrite=overwrite)) as prepared:
        prepared.mkdir()
        yield prepared


def write_artifact(folder: Path, manifest: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write both files into an existing folder."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(weights, folder / "weights.safetensors")
    except SafetensorError as error:
        raise TwoscaleError(f"cannot write the weights: {error}") from error
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
    """Return the software and hardware a result was made with.

    TWOSCALE_PROCESSES, where it is set, says how many processes share the device.
    """
    shared = os.environ.get("TWOSCALE_PROCESSES")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "twoscale": _version.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "device": device.type,
        "device_name": name,
        "threads": torch.get_num_threads(),
        "tf32_convolutions": device.type == "cuda" and torch.backends.cudnn.allow_tf32,
        **({"processes": int(shared)} if shared else {}),
    }


def _commit() -> str | None:
    """Return the source commit: TWOSCALE_COMMIT if set, else git's answer for this checkout."""
    if told := os.environ.get("TWOSCALE_COMMIT"):
        return told
    # A copy installed inside somebody else's repository is not tracked there.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def _git(*arguments: str) -> str | None:
    """Return what git says of this file's folder, or None if it cannot say."""
    try:
        answer = subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
