"""The loop over epochs: steps, validation, schedule, best weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.files import Checkpoint, Checkpoints
from twoscale.networks import DenseNetwork
from twoscale.runtime import processes
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.precision import tensor_cores
from twoscale.runtime.progress import Progress
from twoscale.runtime.threads import one_thread
from twoscale.training.bank import MLPBank
from twoscale.training.distributed import SharedEpochs, SharedLearner, begin_together
from twoscale.training.epochs import Epochs, make_epochs
from twoscale.training.learner import Learner, ModuleLearner
from twoscale.training.losses import Loss
from twoscale.training.member import FinishedTraining, Member, SavedTraining, Task, ValidationLoss
from twoscale.training.pairs import CodePairs
from twoscale.training.plan import History, Plan, TimeLimit


def train(
    network: nn.Module,
    training: CodePairs,
    validation: CodePairs,
    loss: Loss,
    plan: Plan,
    *,
    seed: int = 0,
    validate: ValidationLoss | None = None,
    progress: Progress | None = None,
    name: str = "training",
    begin_epoch: Callable[[int], None] | None = None,
    remark: Callable[[], str] | None = None,
) -> History:
    """Train `network` in place; keep the weights of the best validation loss.

    `validate` returns the validation loss, by default the mean of `loss`. `begin_epoch` is called
    with each epoch's number and may change tensors that the loss reads. `remark` returns the text
    beside the progress bar.
    """
    task = Task(network, training, validation, loss, plan, seed, validate)
    (history,) = train_together(
        [task], progress=progress, name=name, begin_epoch=begin_epoch, remark=remark
    )
    return history


def train_together(
    tasks: Sequence[Task],
    *,
    progress: Progress | None = None,
    name: str = "training",
    begin_epoch: Callable[[int], None] | None = None,
    remark: Callable[[], str] | None = None,
    checkpoints: Checkpoints | None = None,
    keys: Sequence[str] = (),
    limit: TimeLimit | None = None,
) -> list[History]:
    """Train several networks side by side, each as `train` would train it alone.

    They must be MLPs with hidden layers of the same widths, their sets of the same sizes, and their
    plans alike but for learning rate, weight decay and patience. Codes may differ in size. On a CPU
    each core trains one network after the other, unless there is a `begin_epoch`, which needs all
    of them at the same epoch.

    With `checkpoints` the state is saved from time to time. A later call continues from it and ends
    with the same weights. `keys` identify the tasks: data, parts and seed. With a `limit` all
    trainings end in time: rates of one cycle then follow the clock, and the last epoch may be a
    part of one.
    """
    if len(tasks) > 1 and not all(isinstance(task.network, DenseNetwork) for task in tasks):
        raise TwoscaleError("only MLPs can be trained together")
    shared = tasks[0].shard is not None
    if shared and not processes.is_first():
        checkpoints = None
    stored = [FinishedTraining(checkpoints, key) for key in keys] if checkpoints else []
    done = {place: one.restore(tasks[place]) for place, one in enumerate(stored)}
    if shared:
        done = {0: begin_together(tasks[0].network, done.get(0))}
    rest = [place for place in range(len(tasks)) if done.get(place) is None]
    if not rest:
        return [history for history in done.values() if history is not None]
    run = _Run(
        [tasks[place] for place in rest],
        name,
        progress,
        checkpoints,
        [keys[place] for place in rest] if checkpoints else [],
        [stored[place] for place in rest] if checkpoints else [],
        limit or TimeLimit(),
    )
    cuda = tasks[0].training.inputs.is_cuda
    apart = tasks[0].plan.small and begin_epoch is None and not cuda
    if len(rest) > 1 and apart:
        trained = run.apart()
    else:
        trained = run.together(begin_epoch=begin_epoch, remark=remark)
    known = {**done, **dict(zip(rest, trained, strict=True))}
    return [history for place in range(len(tasks)) if (history := known[place]) is not None]


@dataclass(frozen=True)
class _Run:
    """Networks to train, the report of their progress, and where their states are saved."""

    tasks: Sequence[Task]
    name: str
    progress: Progress | None
    checkpoints: Checkpoints | None
    keys: Sequence[str]
    finished: Sequence[FinishedTraining]
    limit: TimeLimit

    def apart(self) -> list[History]:
        """Train small networks on the cores of a CPU, each on one of them, as they become free."""
        stop, counted = Event(), _Counted(self.progress, len(self.tasks))
        workers = min(len(self.tasks), torch.get_num_threads())
        # Around all of them: flags belong to the process, and threads would restore each other's.
        with _repeatable(self.tasks[0].plan), ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(one.together, stop=stop) for one in self._singles(counted)]
            try:
                for future in wait(done, return_when=FIRST_EXCEPTION).done:
                    future.result()  # raises as soon as any of them fails
                return [future.result()[0] for future in done]
            except BaseException:
                stop.set()
                raise

    def _singles(self, progress: Progress) -> Iterator[_Run]:
        for place, task in enumerate(self.tasks):
            own = slice(place, place + 1)
            yield _Run(
                [task],
                self.name,
                progress,
                self.checkpoints,
                self.keys[own],
                self.finished[own],
                self.limit,
            )

    def together(
        self,
        *,
        begin_epoch: Callable[[int], None] | None = None,
        remark: Callable[[], str] | None = None,
        stop: Event | None = None,
    ) -> list[History]:
        """Train networks as one learner, until `stop` is set."""
        checkpoint = self.checkpoints.named(repr(list(self.keys))) if self.checkpoints else None
        return _train_bank(
            self.tasks,
            progress=self.progress,
            name=self.name,
            begin_epoch=begin_epoch,
            remark=remark,
            stop=stop,
            checkpoint=checkpoint,
            finished=self.finished,
            limit=self.limit,
        )


class _Counted:
    """Reports the progress of several trainings as that of one, from any of their threads."""

    def __init__(self, progress: Progress | None, members: int) -> None:
        self.progress = progress
        self.members = members
        self.epochs = 0  # of all members together
        self.lock = Lock()

    def __call__(self, name: str, done: int, total: int, remark: str) -> None:
        with self.lock:
            self.epochs += done > 0  # the first call tells the start
            if self.progress and self.epochs % self.members == 0:
                self.progress(name, self.epochs // self.members, total, remark)


def _train_bank(
    tasks: Sequence[Task],
    *,
    progress: Progress | None,
    name: str,
    begin_epoch: Callable[[int], None] | None,
    remark: Callable[[], str] | None,
    stop: Event | None,
    checkpoint: Checkpoint | None,
    finished: Sequence[FinishedTraining],
    limit: TimeLimit,
) -> list[History]:
    """Train networks as one learner, until `stop` is set or the time is over."""
    plan = tasks[0].plan
    members = [Member(task) for task in tasks]
    device = tasks[0].training.inputs.device
    chosen = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with _repeatable(plan), chosen:
        learner, training = _make_learner(tasks)
        epochs = _make_epochs(learner, training, tasks[0])
        saved = SavedTraining(checkpoint, learner, members, limit)
        limit.start()
        first, groups = saved.restore()
        if progress and not (first or groups):
            progress(name, 0, plan.epochs, "")
        for epoch in range(first, plan.epochs):
            if all(member.schedule.exhausted for member in members) or (epoch and limit.over):
                break
            if stop is not None and stop.is_set():
                return []
            if begin_epoch:
                begin_epoch(epoch)
            began = limit.share
            orders = torch.stack([member.order() for member in members])
            training_losses = epochs.run(
                orders,
                partial(_set_rates, learner, members, limit, epoch),
                done=groups,
                between=partial(saved.save_if_due, epoch),
                over=None if limit.deadline is None else lambda: limit.over,
            )
            groups = 0
            with limit.validating():
                validation_losses = _numbers([member.validate() for member in members])
            for index, member in enumerate(members):
                if not member.schedule.exhausted:
                    member.record_epoch(training_losses[index], validation_losses[index], began)
            LOGGER.debug(
                "%s, epoch %d of %d: validation loss %s",
                name,
                epoch + 1,
                plan.epochs,
                validation_losses,
            )
            if progress:
                best = min(member.schedule.best for member in members)
                text = remark() if remark else f"validation loss {best:.3g}"
                progress(name, epoch + 1, plan.epochs, text)
            saved.save_if_due(epoch + 1)
    learner.release()
    earlier = checkpoint.earlier if checkpoint else 0.0
    for place, member in enumerate(members):
        member.finish(name)
        member.history.earlier_seconds = earlier
        run = len(member.history.validation_loss) - 1 + epochs.share
        if run < plan.epochs and not member.schedule.exhausted:
            member.history.cut_after = run
        if finished:
            finished[place].save(member, earlier)
    return [member.history for member in members]


def _set_rates(
    learner: Learner, members: Sequence[Member], limit: TimeLimit, epoch: int, share: float
) -> None:
    """Set the learning rate of every member from its schedule."""
    time = limit.share
    for index, member in enumerate(members):
        rate = member.schedule.rate(epoch + share, time)
        if rate != member.rate:
            learner.set_rate(index, rate)
            member.rate = rate


def _make_learner(tasks: Sequence[Task]) -> tuple[Learner, CodePairs]:
    """Return the learner of all tasks and their training pairs, (members, samples, ...)."""
    first = tasks[0]
    networks = [task.network for task in tasks if isinstance(task.network, DenseNetwork)]
    if len(networks) == len(tasks):
        bank = MLPBank(networks, [task.loss for task in tasks], [task.plan for task in tasks])
        return bank, bank.stack([task.training for task in tasks])
    kind = ModuleLearner if first.shard is None else SharedLearner
    learner = kind(first.network, first.loss, first.plan, first.training.inputs.device)
    return learner, CodePairs(first.training.inputs[None], first.training.targets[None])


def _make_epochs(learner: Learner, training: CodePairs, task: Task) -> Epochs:
    if isinstance(learner, SharedLearner):
        assert task.shard is not None
        return SharedEpochs(learner, training, task.plan, task.shard, task.per_epoch)
    return make_epochs(learner, training, task.plan, task.per_epoch)


def _numbers(losses: Sequence[Tensor | float]) -> list[float]:
    """Return losses as numbers, waiting for the device once."""
    tensors = [loss for loss in losses if isinstance(loss, Tensor)]
    if len(tensors) == len(losses):
        return torch.stack(tensors).tolist()
    return [float(loss) for loss in losses]


@contextmanager
def _repeatable(plan: Plan) -> Iterator[None]:
    """Use deterministic convolutions on CUDA, and one CPU thread for small steps.

    Networks on fields use tensor cores (TF32). Fine-tuning does not: it takes differences of
    decoded fields, which need all digits.
    """
    flags = torch.backends.cudnn
    before = (flags.deterministic, flags.benchmark)
    try:
        flags.deterministic, flags.benchmark = True, plan.tuned
        with (
            one_thread() if plan.small else nullcontext(),
            tensor_cores() if plan.on_fields else nullcontext(),
        ):
            yield
    finally:
        flags.deterministic, flags.benchmark = before
