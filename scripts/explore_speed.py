"""Frames a second of the page of `twoscale explore` while somebody paints, in a real browser.

python scripts/explore_speed.py results/explore.json

The page shows a two-scale surrogate with an affine predictor, on 128 x 128 nodes. It needs the
package playwright and the browser chromium.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright
from records import write_record

from twoscale import Darcy, Grid, Poisson
from twoscale.data import generate
from twoscale.explore.page import write_page
from twoscale.explore.tensors import ArrayPacker
from twoscale.run import fit_run

SIDE, SAMPLES, SECONDS, REPEATS = 128, 1800, 4, 3

# A pointer goes round in circles, one move per frame of the browser.
PAINT = """async (seconds) => {
  const canvas = document.querySelector("#panel-input canvas");
  const box = canvas.getBoundingClientRect();
  const send = (kind, angle) => canvas.dispatchEvent(new PointerEvent(kind, {
    pointerId: 1, button: 0, bubbles: true,
    clientX: box.left + box.width * (0.5 + 0.3 * Math.cos(angle)),
    clientY: box.top + box.height * (0.5 + 0.3 * Math.sin(angle)),
  }));
  canvas.setPointerCapture = () => {};
  const { result } = Compute;
  const [first, start, times] = [result.frames, performance.now(), []];
  send("pointerdown", 0);
  for (let angle = 0.1; performance.now() - start < 1000 * seconds; angle += 0.1) {
    send("pointermove", angle);
    await new Promise(requestAnimationFrame);
    times.push(result.milliseconds);
  }
  send("pointerup", 0);
  times.sort((a, b) => a - b);
  return {
    frames_per_second: (1000 * (result.frames - first)) / (performance.now() - start),
    prediction_milliseconds: times[Math.floor(times.length / 2)],
  };
}"""

SOLVE = """({name, side, input}) => {
  const values = Float64Array.from(Numerics.unpack(input));
  Solver.solve(name, values, [side, side]);
  const start = performance.now();
  Solver.solve(name, values, [side, side]);
  return performance.now() - start;
}"""


def measure(page: Path) -> dict[str, object]:
    """Return speeds of a page: the medians of three rounds, and each round; solves: the fastest."""
    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu"]
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = driver.chromium.launch(executable_path=path, args=arguments)
        tab = browser.new_page(viewport={"width": 1440, "height": 960})
        tab.goto(page.as_uri())
        tab.wait_for_timeout(2000)
        rounds = [tab.evaluate(PAINT, SECONDS) for _ in range(REPEATS)]
        solves = {}
        for problem in (Poisson(), Darcy()):
            field = ArrayPacker()(problem.sample(Grid((SIDE, SIDE)), [0], seed=0)[0])
            asked = {"name": problem.name, "side": SIDE, "input": field}
            solves[problem.name] = min(tab.evaluate(SOLVE, asked) for _ in range(REPEATS))
        version = browser.version
        browser.close()
    return {
        "browser": f"chromium {version}, headless, without GPU",
        **{name: round(median(one[name] for one in rounds), 2) for name in rounds[0]},
        **{f"all_{name}": [round(one[name], 2) for one in rounds] for name in rounds[0]},
        "solve_milliseconds": {name: round(value, 1) for name, value in solves.items()},
    }


def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data = generate(Poisson(), place / "p.zarr", resolution=SIDE, samples=SAMPLES, seed=0)
        run = place / "two-scale"
        fit_run(data, run, method="two-scale", settings={"predictor": "affine"}, device="cpu")
        page = write_page([run], place / "page.html")
        found = measure(page.path)
    record = {
        "page": f"Poisson {SIDE}x{SIDE}, two-scale, affine, {SAMPLES} samples",
        "bytes": page.bytes,
        **found,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }
    write_record(out, record)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
