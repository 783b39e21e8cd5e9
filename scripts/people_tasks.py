"""Do what people do in their first ten minutes, with the commands they would type.

    python scripts/people_tasks.py --json results/people_tasks.json

A new virtual environment is made, the project is installed into it as the README says, and five
tasks follow: the demo; predictions from an npz file; one row of the paper's first table at small
scale; an equation of one's own; the reason of a large error. Each takes minutes at most.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
Run = Callable[..., str]  # runs a command of twoscale and returns what it prints


def install_and_demo(run: Run, folder: Path) -> dict[str, Any]:
    """See what the project does."""
    shown = run("demo", "--out", folder / "demo")
    assert (folder / "demo/report.html").stat().st_size > 10_000
    return {"last line": shown.strip().splitlines()[-1]}


def heat_pairs(samples: int, side: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return smooth heat sources `a` and temperatures `u` after a while, on a square."""
    waves = np.arange(1, 9)
    shapes = np.sin(np.pi * np.outer(np.linspace(0, 1, side), waves))
    square = waves[:, None] ** 2 + waves**2
    weights = np.random.default_rng(seed).standard_normal((samples, 8, 8)) / square
    decay = np.exp(-0.05 * square)
    a, u = (shapes @ some @ shapes.T for some in (weights, weights * decay))
    return {"a": a, "u": u + 0.1 * u**2}


def own_npz_to_predictions(
    run: Run, folder: Path, samples: int = 400, budget: str = "15s", largest: float = 0.02
) -> dict[str, Any]:
    """Go from a file of one's own to predictions in a file."""
    pairs, new = heat_pairs(samples, 40), heat_pairs(50, 40, seed=1)
    np.savez(folder / "pairs.npz", **pairs)
    np.savez(folder / "new.npz", a=new["a"])
    run("fit", folder / "pairs.npz", "--budget", budget, "--out", folder / "mine")
    run("predict", folder / "mine", folder / "new.npz", "--out", folder / "predicted.npy")
    predicted = np.load(folder / "predicted.npy")
    error = np.linalg.norm(predicted - new["u"]) / np.linalg.norm(new["u"])
    assert error < largest, error
    return {"relative error": float(error)}


def one_row_of_the_first_table(run: Run, folder: Path) -> dict[str, Any]:
    """Repeat the two-scale row of the paper's first table, smaller."""
    only = ("--only", "two-scale", "--seeds", "0")
    run("study", "run", "headline", "--scale", "small", *only, "--out", folder / "studies")
    run("study", "report", folder / "studies", "--out", folder / "study.html")
    assert (folder / "study.html").exists()
    found = json.loads(run("study", "compare", folder / "studies", "--json"))
    return {"compared values": len(found["cells"])}


def add_an_equation(
    run: Run, folder: Path, samples: int = 400, fit: tuple[str, ...] = ("--budget", "15s")
) -> dict[str, Any]:
    """Generate, fit and measure an equation that another package defines."""
    recipe = ("--resolution", 24, "--samples", samples, "--set", "diffusivity=0.2")
    data, mine = folder / "tracer.zarr", folder / "tracer"
    run("generate", "advection-diffusion", *recipe, "--out", data)
    run("fit", data, *fit, "--out", mine)
    metrics = json.loads(run("evaluate", mine, "--json"))
    assert metrics["mre"] < 0.5
    assert metrics["residual_rms"] > 0
    return {"relative error": metrics["mre"]}


def find_out_why_the_error_is_large(
    run: Run, folder: Path, samples: int = 400, epochs: int = 30, resolution: int = 32
) -> dict[str, Any]:
    """Read what limits the error, do what is advised, and have a smaller error."""
    data, first, better = folder / "darcy.zarr", folder / "first", folder / "better"
    size = ("--resolution", resolution, "--samples", samples)
    run("generate", "darcy", *size, "--out", data)
    method = ("--method", "two-scale", "--set", f"epochs={epochs}")
    printed = run("fit", data, *method, "--out", first)
    page = (first / "report.html").read_text(encoding="utf-8")
    assert "What to do next" in page
    *_, advised = printed.rstrip().splitlines()  # the last of the commands after "Next:"
    words = shlex.split(advised)
    assert words[:2] == ["twoscale", "fit"], advised
    words[words.index("--out") + 1] = str(better)
    run(*words[1:])
    before, after = (
        json.loads((run_folder / "metrics.json").read_text())["mre"]
        for run_folder in (first, better)
    )
    assert after < before, (before, after)
    return {"advice": advised.strip(), "error before": before, "error after": after}


TASKS = (
    install_and_demo,
    own_npz_to_predictions,
    one_row_of_the_first_table,
    add_an_equation,
    find_out_why_the_error_is_large,
)


def _installed(folder: Path) -> Path:
    """Return the folder of commands of a new environment with the project in it."""
    commands = folder / "venv/bin"
    subprocess.run([sys.executable, "-m", "venv", commands.parent], check=True)
    install = [commands / "python", "-m", "pip", "install", "--quiet"]
    install += ["--constraint", ROOT / "constraints.txt"]
    for package in (f"{ROOT}[cli]", ROOT / "examples/advection_diffusion"):
        subprocess.run([*install, package], check=True)
    return commands


def main() -> None:
    """Install, do the tasks one after the other, and print or write what came of each."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--json", type=Path, help="where the record goes")
    path = parser.parse_args().json
    done: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        start = time.perf_counter()
        commands = _installed(Path(place))
        print(f"installed in {time.perf_counter() - start:.0f} s")

        def run(*arguments: object) -> str:
            command = [str(commands / "twoscale"), *map(str, arguments)]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, f"{' '.join(command)}: {ended.stderr}"
            return ended.stdout

        for task in TASKS:
            folder = Path(place) / task.__name__
            folder.mkdir()
            start = time.perf_counter()
            found = task(run, folder)
            seconds = round(time.perf_counter() - start, 1)
            said = json.dumps(found).replace(place + "/", "")
            done.append({"task": task.__name__, "seconds": seconds, "found": json.loads(said)})
            print(f"{task.__name__}: {seconds:.0f} s, {said}")
    if path:
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        record = {"commit": commit, "device": f"{os.cpu_count()} CPU cores", "tasks": done}
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
