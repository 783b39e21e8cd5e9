"""Fits that several processes do together, and one process alone, to be compared.

`python -m tests.training.together FOLDER DEVICE` is one of the processes; the environment says
which.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from twoscale import FNO, Encoder, Refinement, Surrogate, TwoScale
from twoscale.files import Checkpoint
from twoscale.training import epochs

SMALL = {"width": 8, "epochs": 3}


def make_fields(samples=23):
    """Fields on 8 x 8 nodes, and their sums along both axes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 8, 8, generator=generator)
    return x, x.cumsum(1) + x.cumsum(2)


def make_surrogates(device="cpu"):
    """One surrogate of each kind; most have 21 training samples, so last minibatches are odd."""
    fno = {"modes": 3, "padding": 2, "layers": 2, **SMALL}
    encoder = {**SMALL, "width": 4, "blocks": 1}
    parts = {
        "fno": {"predictor": FNO(batch_size=4, **fno)},
        MANY_HELD_OUT: {"predictor": FNO(batch_size=4, **fno)},
        "one sample a step": {"predictor": FNO(batch_size=1, **fno, patience=1)},
        "images of the fno": {"predictor": FNO(batch_size=8, **fno), "symmetries": "mirrors"},
        "encoder": {"predictor": Encoder(batch_size=5, **encoder), "symmetries": "square"},
        "codes": {
            "predictor": Encoder(batch_size=5, members=2, objective="score-normalised", **encoder),
            "outputs": TwoScale(patches=(2, 2), coarse_components=3),
        },
        "clipped adam": {"predictor": Encoder(batch_size=4, optimiser="adam", **encoder)},
        "correction": {
            "predictor": "affine",
            "correction": Refinement(channels=4, epochs=3, batch_size=6),
        },
    }
    return {name: Surrogate("whole-field", device=device, **one) for name, one in parts.items()}


MANY_HELD_OUT = "many held out"  # more validation samples than training samples


def fit(name, surrogate):
    """Fit one of the surrogates on the fields; return it."""
    return surrogate.fit(*make_fields(), validation=0.6 if name == MANY_HELD_OUT else None)


def facts_of(surrogate):
    """Return the loss curves and the weights of a fitted surrogate."""
    weights = {k: v.flatten().tolist() for k, v in surrogate.operator_.state_dict().items()}
    return {"history": surrogate.history_, "weights": weights}


class Stop(Exception):
    """What a fit is stopped with."""


def fit_in_two_runs(surrogate, fields, checkpoint):
    """Stop a fit after its second epoch, in all processes; go on from inside of that epoch."""

    def stop(stage, done, total, remark):
        if stage == "training" and done == 2:
            raise Stop

    try:
        surrogate.fit(*fields, checkpoint=checkpoint, progress=stop)
    except Stop:
        return surrogate.fit(*fields, checkpoint=checkpoint)
    raise AssertionError("the fit was not stopped")


def main(folder, device):
    """Fit all, together with the other processes; write what each one has found."""
    dist.init_process_group("gloo")
    fields = make_fields()
    found = {name: facts_of(fit(name, one)) for name, one in make_surrogates(device).items()}
    Checkpoint.due = lambda self: True
    epochs._GROUP_STEPS = 2
    again = fit_in_two_runs(make_surrogates(device)["fno"], fields, folder / "fit")
    found["continued"] = facts_of(again)
    (folder / f"{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
