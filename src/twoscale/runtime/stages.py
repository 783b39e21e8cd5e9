"""The timed stages of a fit and of its use, besides the PCA of each representation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """A stage of which the seconds are recorded, and how it is shown.

    `trains` counts it as training; `is_shared` says that networks which are trained together share
    its time. `colour` and `hatch` are those of its bars.
    """

    name: str
    title: str
    colour: str
    hatch: str = ""
    trains: bool = False
    is_shared: bool = False
    heading: str = ""

    @property
    def column(self) -> str:
        """Return its heading in tables, where there is little room."""
        return self.heading or self.title


TRANSFORM = Stage("transform", "transform", "#CC79A7")
TRAINING = Stage(
    "training", "network training", "#AAAAAA", trains=True, is_shared=True, heading="network"
)
CORRECTION = Stage("refinement", "refinement", "#E69F00", "////", trains=True)
FINETUNE_PREPARE = Stage(
    "finetune_prepare", "fine-tuning, preparation", "#F0E442", trains=True, heading="preparation"
)
FINETUNING = Stage("finetuning", "fine-tuning", "#009E73", "xxxx", trains=True)
CALIBRATION = Stage("calibration", "calibration", "#56B4E9")
INFERENCE = Stage("inference", "inference", "#D55E00")

_IN_ORDER = (
    *(TRANSFORM, TRAINING, CORRECTION),
    *(FINETUNE_PREPARE, FINETUNING, CALIBRATION, INFERENCE),
)
STAGES = {stage.name: stage for stage in _IN_ORDER}
"""The stages by name, in the order in which they happen."""

PCA = "pca_"
"""What the names of PCA stages begin with; the name of a representation or chain stage follows."""

PCA_SIDES = (f"{PCA}input", f"{PCA}output")
"""The stages of representations that are no chains."""

PCA_OVERHEAD = f"{PCA}overhead"
"""Work of a chain between its stages."""
