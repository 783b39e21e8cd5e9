"""A fitted surrogate as a folder: `manifest.json` and `weights.safetensors`."""

from __future__ import annotations

import os
import platform
import subprocess
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
from twoscale.files import SUMS, content_digest, open_file, plain_json, read_json, write_json
from twoscale.files.checksums import tensor_digests
from twoscale.surrogate.options import declared_processes

FORMAT = "twoscale-surrogate"
FORMAT_VERSION = 4
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
PAGE = "report.html"
"""The page that shows a run. It follows from the other files, and has no checksum."""
_RUN_FILES = {
    f"{name}.json" for name in ("config", "split", "history", "metrics", "environment", "search")
}


def is_surrogate(path: Path) -> bool:
    """Say whether a folder is a saved surrogate or run."""
    try:
        return read_json(path / MANIFEST).get("format") == FORMAT
    except TwoscaleError:
        return False


def is_replaceable(path: Path) -> bool:
    """Say whether a folder is a saved surrogate or run, and holds no other files."""
    if not is_surrogate(path):
        return False
    held = {str(one.relative_to(path)) for one in path.rglob("*")}
    return held <= {MANIFEST, WEIGHTS, *_RUN_FILES, SUMS, PAGE}


def write_artifact(folder: Path, manifest: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write manifest and weights into an existing folder; the manifest has the checksums."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    head = {"format": FORMAT, "format_version": FORMAT_VERSION}
    sums = {"tensors": tensor_digests(weights)}
    content = plain_json(head | manifest | sums)
    write_json(folder / MANIFEST, content | {"checksum": content_digest(content)})
    try:
        save_file(weights, folder / WEIGHTS)
    except SafetensorError as error:
        raise TwoscaleError(f"cannot write the weights: {error}") from error
    # safetensors lets nobody but the owner read; the manifest follows the user's rules.
    (folder / WEIGHTS).chmod((folder / MANIFEST).stat().st_mode)


def read_artifact(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the manifest and the tensors of a saved surrogate; both match their checksums."""
    if not folder.is_dir():
        raise TwoscaleError(f"{folder} is not a folder: expected a saved surrogate or run")
    if not os.path.lexists(folder / MANIFEST):
        raise TwoscaleError(
            f"{folder} has no {MANIFEST}: expected a saved surrogate or run, which has one"
        )
    manifest = read_json(folder / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise TwoscaleError(f"{folder / MANIFEST} is not a twoscale surrogate's manifest")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise TwoscaleError(
            f"{folder} has format version {manifest.get('format_version')}; this twoscale reads "
            f"version {FORMAT_VERSION}: use a matching release"
        )
    if manifest.get("checksum") != content_digest(manifest, but="checksum"):
        raise TwoscaleError(f"{folder / MANIFEST} is damaged: it has changed since it was written")
    tensors = _read_weights(folder / WEIGHTS)
    if any(tensor.is_complex() for tensor in tensors.values()):
        raise TwoscaleError(f"{folder / WEIGHTS} is damaged: it holds complex numbers")
    if tensor_digests(tensors) != manifest.get("tensors"):
        raise TwoscaleError(
            f"{folder / WEIGHTS} is damaged, or belongs to another surrogate: its numbers do not "
            f"match their checksums in {MANIFEST}"
        )
    return manifest, tensors


def _read_weights(path: Path) -> dict[str, Tensor]:
    open_file(path).close()  # raises if there is no such file
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise TwoscaleError(f"{path} is damaged: {error}") from error


def environment(device: torch.device) -> dict[str, Any]:
    """Return the software and hardware that a result comes from.

    If TWOSCALE_PROCESSES is set, it is the number of processes that share the device.
    """
    shared = declared_processes()
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
        **({"processes": shared} if shared else {}),
    }


def _commit() -> str | None:
    """Return the source commit: TWOSCALE_COMMIT if it is set, or that of this checkout."""
    if told := os.environ.get("TWOSCALE_COMMIT"):
        return told
    # A copy installed inside somebody else's repository is not tracked there.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


def _git(*arguments: str) -> str | None:
    """Return the output of a git command in this file's folder, or None if it fails."""
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
