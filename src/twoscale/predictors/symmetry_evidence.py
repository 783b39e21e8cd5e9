"""What pairs of fields say against a symmetry, before images of them are used."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from twoscale.domain.space import Space
from twoscale.domain.symmetries import IDENTITY, Group, is_closed, symmetry_group
from twoscale.fields.source import FieldSource, FirstFields, gather
from twoscale.predictors.affine import fit_affine
from twoscale.runtime.texts import percent
from twoscale.runtime.threads import one_thread
from twoscale.training import CodePairs

_SAMPLES = 1000  # that are looked at, at most
_VALUES = 2**24  # numbers of them, at most
_ENOUGH = 50  # samples that say something
_SIDE = 12  # cells per direction of the fields that affine maps are fitted on
_SHIFTS = 4  # of shifts, of which there are many, so many images are enough
_LEARNED = 0.75  # of the samples: affine maps learn from them and are compared on the others
_SURPRISING = 16.0  # squared difference divided by its expectation from chance alone
_VISIBLE = 0.02  # of the fields' deviations, or of an error: smaller differences do not matter


class SymmetryEvidence:
    """The first pairs of two sources, and what they say against symmetries.

    If the equation and the distribution of inputs have a symmetry, images of samples are samples of
    the same kind. Then the mean and the variance of inputs and outputs are unchanged, and an affine
    map is no worse if it learns from images too. Data can speak against a symmetry. They cannot
    prove one.

    Parameters
    ----------
    pairs
        Inputs and outputs of the same samples; those with values that are not finite do not count.
    spaces
        Of both.
    """

    def __init__(self, pairs: tuple[FieldSource, FieldSource], spaces: tuple[Space, Space]) -> None:
        self.spaces = spaces
        largest = max(space.channels * space.grid.nodes for space in spaces)
        count = min(_SAMPLES, max(_ENOUGH, _VALUES // largest))
        both = [gather(FirstFields(source, count)) for source in pairs]
        finite = [one.flatten(1).isfinite().all(1) for one in both]
        sound = finite[0] & finite[1].to(finite[0].device)
        self.fields = [one[sound.to(one.device)] for one in both]

    @property
    def enough(self) -> bool:
        """Say whether there are enough samples to say anything."""
        return len(self.fields[0]) >= _ENOUGH

    def against(self, name: str) -> str:
        """Return what speaks clearly against symmetries, as half a sentence; "" if nothing does."""
        group = symmetry_group(name, *(space.grid for space in self.spaces))
        if not self.enough or len(group) == 1:
            return ""
        changed = self._changed_channel(group)
        if changed is not None:
            return f"the mean or the variance of {changed} changes"
        plain, with_images = self._plain_errors, self._affine_errors(group)
        if not _clearly_larger(with_images, plain):
            return ""
        size = self._pooled[1][self._learned :].square().sum()
        first, second = (percent(float((one.sum() / size).sqrt())) for one in (plain, with_images))
        return f"training images raise the error of an affine map from {first} to {second}"

    def _changed_channel(self, group: Group) -> str | None:
        """Return the channel whose mean or variance changes under a group, if there is one."""
        for side, fields, space in zip(("input", "output"), self.fields, self.spaces, strict=True):
            for place in range(space.channels):
                if _changes(fields[:, place].double(), group):
                    alone = space.channels == 1
                    return side if alone else f"{side} '{space.channel_names[place]}'"
        return None

    @property
    def _learned(self) -> int:
        return int(_LEARNED * len(self.fields[0]))

    @cached_property
    def _pooled(self) -> list[Tensor]:
        """Return means over cells of both sides' fields, every channel of size one."""
        return [_pool(one) for one in self._scaled]

    @cached_property
    def _scaled(self) -> list[Tensor]:
        scaled = []
        for one in self.fields:
            size = one.std((0, 2, 3), keepdim=True)
            scaled.append(one / torch.where(size > 0, size, torch.ones_like(size)))
        return scaled

    def _images(self, side: int, group: Group) -> Tensor:
        """Return pooled fields of all images as rows (symmetries, samples, values)."""
        if is_closed(group):  # cells are mapped onto cells
            images = [symmetry(self._pooled[side]) for symmetry in group]
        else:
            images = [_pool(symmetry(self._scaled[side])) for symmetry in group[:_SHIFTS]]
        return torch.stack(images).flatten(2)

    def _affine_errors(self, group: Group) -> Tensor:
        """Return the squared errors of held-out samples, learned from all images of the others."""
        inputs, outputs = (self._images(side, group) for side in (0, 1))
        learned = self._learned
        rows = [one[:, :learned].flatten(0, 1) for one in (inputs, outputs)]
        held_out = CodePairs(inputs[0, learned:], outputs[0, learned:])
        with one_thread():  # small factorisations
            fit = fit_affine(CodePairs(*rows), held_out, torch.eye(outputs.shape[2]).to(outputs))
        predicted = held_out.inputs @ fit.weight.mT + fit.bias
        return (predicted - held_out.targets).square().sum(1)

    @cached_property
    def _plain_errors(self) -> Tensor:
        return self._affine_errors(IDENTITY)


def _pool(fields: Tensor) -> Tensor:
    rows, columns = (min(_SIDE, side) for side in fields.shape[2:])
    return adaptive_avg_pool2d(fields, (rows, columns)).double()


def _changes(fields: Tensor, group: Group) -> bool:
    """Say whether mean or variance of fields (samples, height, width) change under a group."""
    apart = fields - fields.mean(0)
    squares = apart.square()
    spread = float(squares.mean())
    return _mean_changes(fields, group, spread) or _mean_changes(squares, group, spread**2)


def _mean_changes(fields: Tensor, group: Group, size: float) -> bool:
    """Say whether a mean changes by more than by chance, and visibly beside a squared size."""
    mean, chance = fields.mean(0), fields.var(0) / len(fields)
    for symmetry in group[1:]:
        difference = float((mean - symmetry(mean)).square().mean())
        expected = float((chance + symmetry(chance)).mean())
        if difference > _SURPRISING * expected and difference > _VISIBLE**2 * size:
            return True
    return False


def _clearly_larger(errors: Tensor, others: Tensor) -> bool:
    """Say whether squared errors of samples are larger by more than chance, and visibly."""
    apart = errors - others
    mean, chance = float(apart.mean()), float(apart.var()) / len(apart)
    visible = float(errors.sum()) > (1 + _VISIBLE) ** 2 * float(others.sum())
    return mean > 0 and mean**2 > _SURPRISING * chance and visible
