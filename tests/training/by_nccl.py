"""Fits by one process that goes the way of several, so that NCCL does all that they would tell.

`python -m tests.training.by_nccl FOLDER`; NCCL refuses two processes on one GPU.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from tests.training.together import facts_of, fit, make_surrogates
from twoscale.operators import operators
from twoscale.runtime import processes
from twoscale.runtime.processes import process_group
from twoscale.training.task import Shard


def main(folder):
    """Fit all as the first of several processes whose shard is all samples."""
    with process_group():
        processes.count = lambda: 2
        processes.check_same = lambda value: None
        operators.shard_of = lambda samples, description: Shard(samples, 0, 1)
        surrogates = make_surrogates("cuda").items()
        found = {name: facts_of(fit(name, one)) for name, one in surrogates}
        device = torch.device("cuda", 0)
        found["backend"] = dist.group.WORLD._get_backend(device).name()
    (folder / "0.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
