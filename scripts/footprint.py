"""Peak memory and time of the commands a newcomer runs, on this machine's CPU.

python scripts/footprint.py results/footprint.json
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from records import write_record

DATA = "p128.zarr"
COMMANDS = {
    "generate": f"generate poisson --resolution 128 --samples 10000 --out {DATA}",
    "fit two-scale": f"fit {DATA} --method two-scale --set epochs=3 --out a",
    "fit overlap": f"fit {DATA} --method overlap --set epochs=3 --out b",
    "fit global": f"fit {DATA} --method global --set epochs=3 --out c",
    "demo": "demo",
}


def measure(command: str, folder: str) -> dict[str, float]:
    """Run one command in a child of its own and return its peak memory and wall time."""
    start = time.perf_counter()
    reader, writer = os.pipe()
    if not os.fork():
        arguments = [sys.executable, "-m", "twoscale", *command.split(), "--device", "cpu"]
        subprocess.run(arguments, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        os.write(writer, str(peak).encode())
        os._exit(0)
    os.close(writer)
    peak_kilobytes = int(os.read(reader, 64))
    os.wait()
    seconds = time.perf_counter() - start
    return {"peak_gigabytes": round(peak_kilobytes / 1e6, 2), "seconds": round(seconds, 1)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        measured = {name: measure(command, folder) for name, command in COMMANDS.items()}
    record = {
        "cores": os.cpu_count(),
        "commands": {name: {"run": COMMANDS[name], **measured[name]} for name in COMMANDS},
    }
    write_record(Path(sys.argv[1]), record)
