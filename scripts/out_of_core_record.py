"""Peak memory of fits on many small samples: within `--memory`, beside the same fits in memory.

python scripts/out_of_core_record.py --out results/out-of-core.json
python scripts/out_of_core_record.py --resolution 32 --samples 1000000 --memory 2GB \
    --fits "long codes" --out results/out-of-core-million.json

With --fits only these are done, and not in memory as well. The codes of "long codes" are those of
the paper's prototypes with a small error: of a million samples they take more than 2 GB.
What counts is anonymous memory, which is read every few milliseconds. Pages of mapped scratch files
are resident too, but the system takes them back whenever it needs memory; they are in
`peak_resident_megabytes`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from records import write_record

from twoscale.data import Dataset

LONG = "long codes"
LONG_CODES = "--set input_variance=0.999 --set coarse_components=40 --set residual_variance=0.9995"
FITS = {
    "two-scale, affine": "--method two-scale --set predictor=affine",
    "two-scale, network, 2 epochs": "--method two-scale --set epochs=2 --set batch_size=256",
    "encoder, 1 epoch": "--method whole-field --set predictor=encoder --set width=8 "
    "--set blocks=1 --set epochs=1 --set batch_size=256",
}
CHOSEN = {LONG: f"--method two-scale --set predictor=affine {LONG_CODES}", **FITS}
PLENTY = "1TB"
MEGABYTE = 10**6

CHILD = """
import json, runpy, sys, threading, time
from twoscale.runtime.memory import anonymous_memory, peak_memory
before = peak = anonymous_memory()
ended = threading.Event()
def watch():
    global peak
    while not ended.wait(0.005):
        peak = max(peak, anonymous_memory())
watcher = threading.Thread(target=watch)
watcher.start()
start = time.perf_counter()
sys.argv = ["twoscale", *sys.argv[1:]]
try:
    runpy.run_module("twoscale", run_name="__main__")
finally:
    ended.set()
    watcher.join()
    seconds = time.perf_counter() - start
    print("measured", json.dumps([before, peak, peak_memory(), seconds]), file=sys.stderr)
"""


def fit(data: Path, options: str, memory: str, out: Path) -> dict[str, Any]:
    """Fit in a process of its own; return its peaks of memory, its time and its error."""
    arguments = ["fit", str(data), *options.split(), "--device", "cpu", "--memory", memory]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments, "--out", str(out)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    before, anonymous, resident, seconds = json.loads(done.stderr.rsplit("measured", 1)[1])
    metrics = json.loads((out / "metrics.json").read_text())
    return {
        "memory": memory,
        "anonymous_megabytes_before": round(before / MEGABYTE),
        "peak_anonymous_megabytes": round(anonymous / MEGABYTE),
        "peak_resident_megabytes": round(resident / MEGABYTE),
        "seconds": round(seconds, 1),
        "stages": {name: round(one, 1) for name, one in metrics["timings"].items()},
        "mre": metrics["mre"],
        "codes": [metrics["input_code"], metrics["output_code"]],
    }


def measure(resolution: int, samples: int, memory: str, names: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data.zarr"
        made = ["--resolution", str(resolution), "--samples", str(samples), "--out", str(data)]
        subprocess.run([sys.executable, "-m", "twoscale", "generate", "poisson", *made], check=True)
        fits: dict[str, dict[str, Any]] = {}
        for number, label in enumerate(names or FITS):
            options = CHOSEN[label]
            stored = fit(data, options, memory, folder / f"{number}-stored")
            fits[label] = {"options": options, "out of core": stored}
            if not names:
                fits[label]["in memory"] = fit(data, options, PLENTY, folder / f"{number}-loaded")
            print(label, json.dumps(fits[label], indent=1), flush=True)
        fields = round(Dataset(data).nbytes / MEGABYTE)
        return {"samples": samples, "fields_megabytes": fields, "fits": fits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolution", type=int, default=16)
    parser.add_argument("--samples", type=int, nargs="+", default=[100_000, 300_000])
    parser.add_argument("--memory", default="200MB")
    parser.add_argument("--fits", nargs="+", choices=CHOSEN, default=[])
    parser.add_argument("--remark", default="", help="what else the machine did")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    record = {
        "problem": "poisson",
        "resolution": given.resolution,
        "sizes": [
            measure(given.resolution, count, given.memory, given.fits) for count in given.samples
        ],
        "remark": given.remark,
    }
    write_record(given.out, record)


if __name__ == "__main__":
    main()
