"""The loop over epochs: steps, validation, schedule, best weights, and states that are saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import Event, Lock
from typing import Any

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.files import Checkpoint, Checkpoints
from twoscale.networks import DenseNetwork
from twoscale.representation.base import subset
from twoscale.runtime import processes
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.precision import tensor_cores
from twoscale.runtime.progress import Progress
from twoscale.runtime.threads import one_thread
from twoscale.training.bank import MLPBank
from twoscale.training.epochs import make_epochs
from twoscale.training.learner import Learner, ModuleLearner, SharedLearner
from twoscale.training.plan import History, Plan, TimeLimit, make_schedule
from twoscale.training.task import CodePairs, Loss, Task, ValidationLoss, mean_loss


def train(
    network: nn.Module,
    training: CodePairs,
    validation: CodePairs,
    loss: Loss,
    plan: Plan,
    *,
    seed: int = 0,
    validate: ValidationLoss | None = None,
    **options: Any,
) -> History:
    """Train `network` in place; keep the weights of the best validation loss.

    `validate` returns the validation loss, by default the mean of `loss`. Options are those of
    `train_together`.
    """
    task = Task(network, training, validation, loss, plan, seed, validate)
    return train_together([task], **options)[0]


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

    Parameters
    ----------
    tasks
        The networks, and what each learns.
    progress, name
        Called as progress(name, epochs done, epochs, remark).
    begin_epoch
        Called with each epoch's number; it may change tensors that the loss reads.
    remark
        Returns the text beside the progress bar.
    checkpoints, keys
        The state is saved from time to time; a later call continues from it and ends with the same
        weights. `keys` identify the tasks: data, parts and seed.
    limit
        All trainings end in time: rates of one cycle then follow the clock, and the last epoch may
        be a part of one.
    """
    if len(tasks) > 1 and not all(isinstance(task.network, DenseNetwork) for task in tasks):
        raise TwoscaleError("only MLPs can be trained together")
    shared = tasks[0].shard is not None
    if shared and not processes.is_first():
        checkpoints = None
    kept = checkpoints if keys else None
    members = [
        Member(task, key, kept.named(f"finished {key}") if kept else None)
        for task, key in zip(tasks, keys if kept else [""] * len(tasks), strict=True)
    ]
    finished = [member.restore_finished() for member in members]
    if shared:  # all processes have the first one's weights, and the history of a finished training
        for value in tasks[0].network.state_dict().values():
            processes.copy_from_first(value)
        known = processes.from_first(members[0].history if finished[0] else None)
        finished = [known is not None]
        members[0].history = known or members[0].history
    rest = [member for member, done in zip(members, finished, strict=True) if not done]
    work = partial(
        _train,
        name=name,
        begin_epoch=begin_epoch,
        checkpoints=kept,
        limit=limit or TimeLimit(),
    )
    cuda = tasks[0].training.inputs.is_cuda
    if len(rest) > 1 and tasks[0].plan.small and begin_epoch is None and not cuda:
        _train_apart(rest, work, progress)
    elif rest:
        work(rest, progress=progress, remark=remark)
    return [member.history for member in members]


def _train(members: Sequence[Member], **options: Any) -> None:
    """Train networks as one learner."""
    device = members[0].task.training.inputs.device
    chosen = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with _repeatable(members[0].task.plan), chosen:
        Training(members, **options).run()


def _train_apart(
    members: Sequence[Member], work: Callable[..., None], progress: Progress | None
) -> None:
    """Train small networks on the cores of a CPU, each on one of them, as they become free."""
    stop, counted = Event(), _Counted(progress, len(members))
    workers = min(len(members), torch.get_num_threads())
    # Around all of them: flags belong to the process, and threads would restore each other's.
    with _repeatable(members[0].task.plan), ThreadPoolExecutor(workers) as pool:
        done = [pool.submit(work, [one], progress=counted, stop=stop) for one in members]
        try:
            for future in wait(done, return_when=FIRST_EXCEPTION).done:
                future.result()  # raises as soon as any of them fails
        except BaseException:
            stop.set()
            raise


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


class Member:
    """A network that is being trained: its shuffles, schedule, history and best weights.

    `finished` is the checkpoint of its result, for a later process that continues after it.
    """

    def __init__(self, task: Task, key: str = "", finished: Checkpoint | None = None) -> None:
        self.task, self.key, self.finished = task, key, finished
        self.history = History()
        self.schedule = make_schedule(task.plan)
        self.rate = task.plan.learning_rate  # at present
        self.shuffles = torch.Generator().manual_seed(task.seed)
        self.before = self.shuffles.get_state()  # state before the latest shuffle
        self.best = {key: value.clone() for key, value in task.network.state_dict().items()}

    def order(self) -> Tensor:
        """Return the pairs of the next epoch in their order."""
        self.before = self.shuffles.get_state()
        task = self.task
        held = len(task.training)
        count = held if task.shard is None else task.shard.everywhere(held)
        return torch.randperm(count, generator=self.shuffles)[: task.per_epoch]

    def validate(self) -> Tensor | float:
        """Return the validation loss of the present weights."""
        task = self.task
        if task.validate:
            return task.validate()
        return mean_loss(task.network, task.loss, task.validation, task.plan.evaluation_batch)

    def record_epoch(self, training_loss: float, validation_loss: float, time: float = 0.0) -> None:
        """Add an epoch's losses to the history; keep the weights if they are the best so far.

        `time` is the share of the time before a deadline that was used when the epoch began.
        """
        history = self.history
        history.training_loss.append(training_loss)
        history.learning_rate.append(self.schedule.rate(len(history.learning_rate), time))
        history.validation_loss.append(validation_loss)
        if self.schedule.update(validation_loss):
            history.best_epoch = len(history.validation_loss) - 1
            for key, value in self.task.network.state_dict().items():
                self.best[key].copy_(value)

    def finish(self, name: str, earlier: float, share: float) -> None:
        """Leave the network with the best weights; save it if the training took long.

        `earlier` are the seconds of other processes, `share` is the part of the last epoch.
        """
        history, plan = self.history, self.task.plan
        if history.best_epoch < 0:
            raise TwoscaleError(
                f"{name} diverged: no validation loss was finite; try a smaller learning_rate"
            )
        self.task.network.load_state_dict(self.best)
        history.earlier_seconds = earlier
        run = len(history.validation_loss) - 1 + share
        if run < plan.epochs and not self.schedule.exhausted:
            history.cut_after = run
        if self.finished is not None:
            self.finished.earlier = earlier
            if self.finished.worthwhile():
                facts = {"history": vars(history), "extra_history": self.task.extra_history}
                self.finished.save(self.task.network.state_dict(), facts)

    def restore_finished(self) -> bool:
        """Give the network its weights if it was trained before; return whether it was."""
        state = self.finished.load() if self.finished is not None else None
        if state is None or self.finished is None:
            return False
        self.task.network.load_state_dict(state.tensors)
        self.task.extra_history.update(state.facts["extra_history"])
        earlier = {"earlier_seconds": self.finished.earlier}
        self.history = History(**state.facts["history"] | earlier)
        return True

    def tensors(self, *, inside: bool) -> dict[str, Tensor]:
        """Return the tensors of the member's state, `inside` an epoch or between two."""
        shuffles = self.before if inside else self.shuffles.get_state()
        return {"shuffles": shuffles, **{f"best.{key}": value for key, value in self.best.items()}}

    def facts(self) -> dict[str, Any]:
        """Return the rest of the state, as plain values."""
        return {
            "rate": self.rate,
            "schedule": self.schedule.state(),
            "history": vars(self.history),
            "extra_history": self.task.extra_history,
        }

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Continue from the state that another process saved."""
        self.shuffles.set_state(tensors["shuffles"])
        for key, value in self.best.items():
            value.copy_(tensors[f"best.{key}"])
        self.rate = facts["rate"]
        self.schedule.restore(facts["schedule"])
        self.history = History(**facts["history"])
        self.task.extra_history.update(facts["extra_history"])


class Training:
    """One learner and its members from the first epoch, or a saved one, to the last.

    It ends when `stop` is set or the time is over. What is saved are weights, moments, shuffles and
    schedules, the time that is used, and the position: the epoch, and the number of its groups of
    minibatches that are done. Of several processes only the first one has a checkpoint; all restore
    its state.
    """

    def __init__(
        self,
        members: Sequence[Member],
        *,
        name: str,
        progress: Progress | None,
        begin_epoch: Callable[[int], None] | None,
        checkpoints: Checkpoints | None,
        limit: TimeLimit,
        remark: Callable[[], str] | None = None,
        stop: Event | None = None,
    ) -> None:
        self.members, self.plan = members, members[0].task.plan
        self.name, self.progress, self.limit, self.stop = name, progress, limit, stop
        self.begin_epoch, self.remark = begin_epoch, remark
        keys = repr([member.key for member in members])
        self.checkpoint = checkpoints.named(keys) if checkpoints else None
        self.learner, training = _make_learner([member.task for member in members])
        self.epochs = make_epochs(self.learner, training, self.plan, members[0].task.per_epoch)

    def run(self) -> None:
        """Take all steps, and leave each network with its best weights."""
        self.limit.start()
        first, groups = self._restore()
        if self.progress and not (first or groups):
            self.progress(self.name, 0, self.plan.epochs, "")
        for epoch in range(first, self.plan.epochs):
            exhausted = all(member.schedule.exhausted for member in self.members)
            if exhausted or (epoch and self.limit.over):
                break
            if self.stop is not None and self.stop.is_set():
                return
            self._epoch(epoch, groups)
            groups = 0
            self.save_if_due(epoch + 1)
        self.learner.release()
        earlier = self.checkpoint.earlier if self.checkpoint else 0.0
        for member in self.members:
            member.finish(self.name, earlier, self.epochs.share)

    def _epoch(self, epoch: int, groups: int) -> None:
        """Take the steps of an epoch after some groups of minibatches; validate and report."""
        if self.begin_epoch:
            self.begin_epoch(epoch)
        began = self.limit.share
        training_losses = self.epochs.run(
            torch.stack([member.order() for member in self.members]),
            partial(self._set_rates, epoch),
            done=groups,
            between=partial(self.save_if_due, epoch),
            over=None if self.limit.deadline is None else lambda: self.limit.over,
        )
        with self.limit.validating():
            validation_losses = _numbers([member.validate() for member in self.members])
        losses = zip(self.members, training_losses, validation_losses, strict=True)
        for member, training_loss, validation_loss in losses:
            if not member.schedule.exhausted:
                member.record_epoch(training_loss, validation_loss, began)
        name, epochs = self.name, self.plan.epochs
        LOGGER.debug(
            "%s, epoch %d of %d: validation loss %s", name, epoch + 1, epochs, validation_losses
        )
        if self.progress:
            best = min(member.schedule.best for member in self.members)
            text = self.remark() if self.remark else f"validation loss {best:.3g}"
            self.progress(name, epoch + 1, epochs, text)

    def _set_rates(self, epoch: int, share: float) -> None:
        """Set the learning rate of every member from its schedule."""
        time = self.limit.share
        for index, member in enumerate(self.members):
            rate = member.schedule.rate(epoch + share, time)
            if rate != member.rate:
                self.learner.set_rate(index, rate)
                member.rate = rate

    @torch.no_grad()
    def _restore(self) -> tuple[int, int]:
        """Restore a saved state and return its position; (0, 0) without one."""
        state = self.checkpoint.load() if self.checkpoint else None
        if self.members[0].task.shard is not None:
            state = processes.from_first(state)
        if state is None:
            return 0, 0
        self.learner.restore({name: state.tensors[name] for name in self.learner.state()})
        for index, member in enumerate(self.members):
            member.restore(subset(state.tensors, f"member.{index}"), state.facts["members"][index])
            self.learner.set_rate(index, member.rate)
        self.limit.restore(state.facts["time"])
        return state.facts["epoch"], state.facts["groups"]

    def save_if_due(self, epoch: int, groups: int = 0) -> None:
        """Save the state at a position if the checkpoint is due."""
        if self.checkpoint is None or not self.checkpoint.due():
            return
        tensors = dict(self.learner.state())
        for index, member in enumerate(self.members):
            own = member.tensors(inside=groups > 0)
            tensors |= {f"member.{index}.{name}": one for name, one in own.items()}
        facts = {
            "epoch": epoch,
            "groups": groups,
            "members": [one.facts() for one in self.members],
            "time": self.limit.state(),
        }
        self.checkpoint.save(tensors, facts)


def _make_learner(tasks: Sequence[Task]) -> tuple[Learner, CodePairs]:
    """Return the learner of all tasks and their training pairs, (members, samples, ...)."""
    first, training = tasks[0], tasks[0].training
    networks = [task.network for task in tasks if isinstance(task.network, DenseNetwork)]
    if len(networks) == len(tasks):
        bank = MLPBank(networks, [task.loss for task in tasks], [task.plan for task in tasks])
        return bank, bank.stack([task.training for task in tasks])
    kind = ModuleLearner if first.shard is None else SharedLearner
    learner = kind(first.network, first.loss, first.plan, training.inputs.device)
    return learner, CodePairs(training.inputs[None], training.targets[None], shard=first.shard)


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
