"""A fit that is killed goes on from its last checkpoint, to the same weights."""

import pytest
import torch

from tests.surrogate.tiny import tiny
from twoscale import METHODS, Surrogate
from twoscale.files import Checkpoint, Checkpoints


class Killed(BaseException):
    """Ends a fit at once, as a kill would."""


@pytest.fixture(autouse=True)
def always_due(monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(Checkpoint, "worthwhile", lambda self: True)


def kill(saves):
    """Return a change of `Checkpoint.save` that kills after so many saves."""
    save, count = Checkpoint.save, 0

    def counted(self, *state):
        nonlocal count
        save(self, *state)
        count += 1
        if count == saves:
            raise Killed

    return counted


def killed(saves, work):
    """Do some work that is killed after so many saves; say whether it was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", kill(saves))
        try:
            work()
        except Killed:
            return True
    return False


CASES = {
    **{method: (method, {}) for method in METHODS},
    "encoder": ("two-scale", {"predictor": "encoder", "epochs": 2}),
    "affine-mlp": ("local", {"predictor": "affine-mlp"}),
    "field": ("two-scale", {"objective": "field"}),
}


def weights(surrogate):
    return surrogate.operator_.state_dict()


def equal(one, two):
    assert one.keys() == two.keys()
    assert all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize(
    ("case", "saves"), [*((case, 4) for case in CASES), ("two-scale", 1), ("two-scale", 3)]
)
def test_every_method_goes_on(poisson16, tmp_path, case, saves):
    method, changes = CASES[case]
    fields = poisson16.inputs[:90], poisson16.outputs[:90]

    def make():
        return Surrogate(method, device="cpu", seed=3, **tiny(method, **changes))

    epochs, whole = count_epochs(make(), fields)
    assert killed(saves, lambda: make().fit(*fields, checkpoint=tmp_path / "kept"))
    assert [path.name for path in tmp_path.iterdir()] == [".kept.twoscale-work"]
    left, resumed = count_epochs(make(), fields, checkpoint=tmp_path / "kept")
    equal(weights(resumed), weights(whole))
    assert left < epochs or saves < 4
    assert list(tmp_path.iterdir()) == []


def count_epochs(surrogate, fields, **options):
    """Fit a surrogate; return the epochs that were run for it, and it."""
    told = []

    def progress(stage, done, total, remark):
        if stage in ("training", "refinement"):
            told.append(done)

    fitted = surrogate.fit(*fields, progress=progress, **options)
    return len(told), fitted


def test_a_fine_tuning_goes_on(poisson16, tmp_path):
    base = Surrogate("two-scale", device="cpu", **tiny("two-scale")).fit(*poisson16)
    plan = {"objective": "A3", "epochs": 4, "warm_up": 1, "ramp": 2}
    whole = base.finetune(*poisson16, **plan)
    kept = Checkpoints(tmp_path / "kept")
    assert killed(2, lambda: base.finetune(*poisson16, checkpoints=kept, **plan))
    tuned = base.finetune(*poisson16, checkpoints=kept, **plan)
    equal(weights(tuned), weights(whole))
    one, two = (found.history_["finetuning"] for found in (whole, tuned))
    two.pop("earlier_seconds")
    assert one == two


@pytest.mark.parametrize("change", ["fields", "parameters", "settings", "seed"])
def test_another_fit_does_not_take_it_over(poisson16, tmp_path, change):
    fields = poisson16.inputs[:90], poisson16.outputs[:90]
    beside = {"parameters": fields[1].amax((1, 2))} if change == "parameters" else {}

    def make(**changes):
        return Surrogate("local", device="cpu", **tiny("local") | changes)

    assert killed(4, lambda: make().fit(*fields, **beside, checkpoint=tmp_path / "kept"))
    other = {"settings": {"epochs": 2}, "seed": {"seed": 5}}.get(change, {})
    if change == "fields":
        fields = fields[0], 2 * fields[1]
    beside = {name: values.flip(0) for name, values in beside.items()}
    resumed = make(**other).fit(*fields, **beside, checkpoint=tmp_path / "kept")
    equal(weights(resumed), weights(make(**other).fit(*fields, **beside)))
