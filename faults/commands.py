"""The commands that write something, each in the ways that trials use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from faults.contents import meaning, sizes, snapshot
from faults.operations import read_log, watch
from faults.rules import last_line
from faults.templates import (
    FIT,
    GENERATE,
    IMPORT,
    SMALL_DEMO,
    TUNE,
    Undisturbed,
    save_at_once,
)
from faults.trials import Place


@dataclass(frozen=True)
class Case:
    """A command that writes `target`, what it needs, and what it may find there.

    `old` is the template that lies at the target before; then the command has --overwrite, unless
    it adds to what is there. `parts` are the results that appear each in one step. Results of
    `growing` ones appear piece by piece. What is not `fixed` differs from run to run. By its `cost`
    (quick, usual, long) a command is tried more or less often.
    """

    name: str
    arguments: tuple[str, ...]
    target: str
    needs: tuple[str, ...] = ()
    old: str = ""
    inside: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    growing: bool = False
    fixed: bool = True
    cost: str = "usual"
    prepare: Callable[[], None] | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(f"{self.target}/{name}" for name in self.inside) or (self.target,)

    @property
    def command(self) -> tuple[str, ...]:
        return (*self.arguments, "--out", self.target)

    @property
    def names(self) -> set[str]:
        """Return what may lie in the place in the end."""
        return {name.split("/")[0] for name in (*self.needs, self.target, *self.beside)}

    def set_up(self, place: Place) -> None:
        """Put what the command needs into a place."""
        for name in self.needs:
            place.put(name)
        if self.old:
            place.put(self.old, self.target)

    def over(self, old: str, *flags: str) -> Case:
        """Return the same command where an old result lies at the target."""
        words = " ".join((self.name, *(flags or ("again",))))
        return replace(self, name=words, old=old, arguments=(*self.arguments, *flags))

    def reference(self, place: Place) -> dict[str, Any]:
        """Return what an undisturbed run leaves and takes: meanings, operations, seconds."""
        return place.templates.remembered(
            "reference-" + self.name.replace(" ", "_").replace("/", "_"),
            lambda: self._undisturbed(place.another()),
        )

    def _undisturbed(self, place: Place) -> dict[str, Any]:
        self.set_up(place)
        old = {part: self.state(place, part) for part in self.parts}
        before = snapshot(place.path)
        log = place.root / "operations"
        outcome = place.run(*self.command, prepare=both(self.prepare, watch(log)))
        if outcome.status:
            raise Undisturbed(f"undisturbed, {outcome.command} fails: {last_line(outcome)}")
        return {
            "old": old,
            "new": {part: self.state(place, part) for part in self.parts},
            "operations": read_log(log),
            "seconds": outcome.seconds,
            "before": before,
            "after": sizes(place.path),
        }

    @staticmethod
    def state(place: Place, part: str) -> dict[str, str] | None:
        """Return the meaning of what lies somewhere, None if nothing does."""
        path = place.path / part
        return meaning(path) if path.exists() else None


def both(*steps: Callable[[], None] | None) -> Callable[[], None]:
    """Return one step that takes several, in order."""

    def take() -> None:
        for step in steps:
            if step:
                step()

    return take


OVER = "--overwrite"
_import = ("import", "pairs.npz", "--input", "a", "--output", "u")
_study = ("study", "run", "tiny.yaml", "--scale", "small")

GENERATE_DATA = Case("generate", GENERATE, "deep/er/result.zarr", cost="quick")
IMPORT_NPZ = Case("import npz", _import, "result.zarr", ("pairs.npz",), cost="quick")
IMPORT_NPY = replace(
    IMPORT_NPZ,
    name="import npy",
    arguments=("import", "a.npy", "u.npy"),
    needs=("a.npy", "u.npy"),
)
IMPORT_HDF5 = Case(
    "import hdf5", ("import", "pairs.h5", *_import[2:]), "result.zarr", ("pairs.h5",), cost="quick"
)
IMPORT_MIXED = replace(
    IMPORT_NPZ,
    name="import channels",
    arguments=("import", "mixed.npz", *IMPORT),
    needs=("mixed.npz",),
)
FIT_ONE = Case("fit", ("fit", "data.zarr", *FIT), "result", ("data.zarr",))
FIT_SEEDS = replace(
    FIT_ONE,
    name="fit seeds",
    arguments=(*FIT_ONE.arguments, "--seeds", "0,1"),
    inside=("seed-0", "seed-1"),
)
FIT_SAVING = replace(FIT_ONE, name="fit with checkpoints", prepare=save_at_once)
SEARCH = replace(
    FIT_ONE,
    name="fit budget",
    arguments=("fit", "data.zarr", "--budget", "0.5s"),
    fixed=False,
    cost="long",
)
FINETUNE = Case("finetune", ("finetune", "small-run", *TUNE), "result", ("small-run",))
FINETUNE_SAVING = replace(FINETUNE, name="finetune with checkpoints", prepare=save_at_once)
PREDICT = Case(
    "predict",
    ("predict", "small-run", "inputs.npy"),
    "result.npy",
    ("small-run", "inputs.npy"),
    cost="quick",
)
PREDICT_MIXED = Case(
    "predict channels",
    ("predict", "mixed-run", "mixed.npy", "--parameters", "p.npy"),
    "result.npy",
    ("mixed-run", "mixed.npy", "p.npy"),
    cost="quick",
)
REPORT = Case(
    "report",
    ("study", "report", "small-study"),
    "result.html",
    ("small-study",),
    beside=("figures",),
)
STUDY = Case("study run", _study, "result", ("tiny.yaml",), growing=True, cost="long")
DEMO = Case("demo", ("demo", *SMALL_DEMO), "result", growing=True, fixed=False, cost="long")

FRESH = (
    GENERATE_DATA,
    IMPORT_NPZ,
    IMPORT_NPY,
    IMPORT_HDF5,
    IMPORT_MIXED,
    FIT_ONE,
    FIT_SEEDS,
    FIT_SAVING,
    SEARCH,
    FINETUNE,
    FINETUNE_SAVING,
    PREDICT,
    PREDICT_MIXED,
    REPORT,
    STUDY,
    DEMO,
)
AGAIN = (
    GENERATE_DATA.over("other.zarr", OVER),
    IMPORT_NPZ.over("other.zarr", OVER),
    FIT_ONE.over("other-run", OVER),
    FIT_SEEDS.over("runs", OVER),
    FIT_SAVING.over("other-run", OVER),
    SEARCH.over("other-run", OVER),
    FINETUNE.over("other-run", OVER),
    PREDICT.over("prediction.npy", OVER),
    REPORT.over("page.html", OVER),
    replace(STUDY, arguments=(*STUDY.arguments, "--seeds", "0,1")).over("small-study"),
    DEMO.over("small-demo", OVER),
)
CASES = FRESH + AGAIN
