"""One training loop for everything that is trained.

Data are resident. Networks of the same shape learn side by side, each on its own data and with its
own rate; what one learns does not depend on the others. On CUDA whole groups of optimiser steps are
captured once and replayed, so that small networks are not bound by kernel launches; on a CPU small
networks run on one thread, where handing work to others costs more than the work.
"""

from twoscale.training.loop import train, train_together
from twoscale.training.plan import Deadline, History, Plan, TimeLimit
from twoscale.training.task import CodePairs, Task, mean_loss

__all__ = [
    "CodePairs",
    "Deadline",
    "History",
    "Plan",
    "Task",
    "TimeLimit",
    "mean_loss",
    "train",
    "train_together",
]
