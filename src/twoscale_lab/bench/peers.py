"""The peers of the benchmarks: plain code on well-known libraries."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Sampler, TensorDataset

from twoscale.errors import missing_extra
from twoscale.networks import FNO2d


def darcy_by_sparse_lu(coefficients: np.ndarray) -> np.ndarray:
    """Return Darcy solutions: assemble the five-point matrix of each sample and factorise it."""
    samples, size, _ = coefficients.shape
    inner = size - 2
    index = np.arange(inner**2).reshape(inner, inner)
    solutions = np.zeros((samples, size, size))
    for sample, a in enumerate(coefficients):
        faces = [  # of each interior node: above, below, left, right
            0.5 * (a[1:-1, 1:-1] + a[:-2, 1:-1]),
            0.5 * (a[1:-1, 1:-1] + a[2:, 1:-1]),
            0.5 * (a[1:-1, 1:-1] + a[1:-1, :-2]),
            0.5 * (a[1:-1, 1:-1] + a[1:-1, 2:]),
        ]
        rows, columns, values = [index.ravel()], [index.ravel()], [sum(faces).ravel()]
        for face, (down, right) in zip(faces, ((-1, 0), (1, 0), (0, -1), (0, 1)), strict=True):
            i, j = np.indices((inner, inner))
            inside = (i + down >= 0) & (i + down < inner) & (j + right >= 0) & (j + right < inner)
            rows.append(index[inside])
            columns.append(index[i[inside] + down, j[inside] + right])
            values.append(-face[inside])
        entries = np.concatenate(values) * (size - 1) ** 2
        places = (np.concatenate(rows), np.concatenate(columns))
        matrix = scipy.sparse.csc_matrix((entries, places))
        solution = scipy.sparse.linalg.splu(matrix).solve(np.ones(inner**2))
        solutions[sample, 1:-1, 1:-1] = solution.reshape(inner, inner)
    return solutions


def poisson_by_sparse_lu(forcings: np.ndarray) -> np.ndarray:
    """Return Poisson solutions: one sparse factorisation, a solve per sample."""
    samples, size, _ = forcings.shape
    inner = size - 2
    line = scipy.sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(inner, inner))
    one = scipy.sparse.identity(inner)
    matrix = (scipy.sparse.kron(line, one) + scipy.sparse.kron(one, line)) * (size - 1) ** 2
    factors = scipy.sparse.linalg.splu(matrix.tocsc())
    solutions = np.zeros((samples, size, size))
    for sample, forcing in enumerate(forcings):
        solution = factors.solve(forcing[1:-1, 1:-1].ravel().astype(np.float64))
        solutions[sample, 1:-1, 1:-1] = solution.reshape(inner, inner)
    return solutions


def _fit_pca(values: np.ndarray, components: int) -> Any:
    """Return a scaler and a scikit-learn PCA of one block, fitted."""
    try:
        from sklearn.decomposition import PCA
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise missing_extra("scikit-learn", "bench") from error
    pca = PCA(components, svd_solver="randomized", random_state=0)
    return make_pipeline(StandardScaler(), pca).fit(values)


class PatchwisePCA:
    """One scikit-learn PCA for each patch; the ranks are given."""

    def __init__(self, patches: int, ranks: list[int]) -> None:
        self.patches = patches
        self.ranks = ranks

    def _cut(self, fields: np.ndarray) -> list[np.ndarray]:
        count, side = len(fields), fields.shape[1] // self.patches
        cut = fields.reshape(count, self.patches, side, self.patches, side)
        cut = cut.transpose(1, 3, 0, 2, 4).reshape(-1, count, side * side)
        return [np.ascontiguousarray(patch) for patch in cut]

    def fit(self, fields: np.ndarray) -> PatchwisePCA:
        pieces = zip(self._cut(fields), self.ranks, strict=True)
        self.parts = [_fit_pca(patch, rank) for patch, rank in pieces]
        return self

    def encode(self, fields: np.ndarray) -> np.ndarray:
        pieces = zip(self.parts, self._cut(fields), strict=True)
        return np.concatenate([part.transform(patch) for part, patch in pieces], 1)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        cuts = np.split(codes, np.cumsum(self.ranks)[:-1], 1)
        blocks = [part.inverse_transform(cut) for part, cut in zip(self.parts, cuts, strict=True)]
        side = int(blocks[0].shape[1] ** 0.5)
        cut = np.stack(blocks).reshape(self.patches, self.patches, len(codes), side, side)
        size = self.patches * side
        return cut.transpose(2, 0, 3, 1, 4).reshape(len(codes), size, size)


class TwoScalePCA:
    """The paper's output representation by scikit-learn: a coarse PCA, then one per patch."""

    def __init__(self, factor: int, coarse: int, patches: int, ranks: list[int]) -> None:
        self.factor = factor
        self.components = coarse
        self.local = PatchwisePCA(patches, ranks)

    def _coarse(self, fields: np.ndarray) -> np.ndarray:
        pooled = functional.avg_pool2d(torch.from_numpy(fields)[:, None], self.factor)
        return pooled.flatten(1).numpy()

    def _fine(self, coarse: np.ndarray, size: int) -> np.ndarray:
        grid = torch.from_numpy(coarse).float().reshape(len(coarse), 1, size // self.factor, -1)
        return functional.interpolate(grid, (size, size), mode="bilinear")[:, 0].numpy()

    def fit(self, fields: np.ndarray) -> TwoScalePCA:
        self.coarse = _fit_pca(self._coarse(fields), self.components)
        self.local.fit(self._residual(fields))
        return self

    def _residual(self, fields: np.ndarray) -> np.ndarray:
        known = self.coarse.inverse_transform(self.coarse.transform(self._coarse(fields)))
        return fields - self._fine(known, fields.shape[1])

    def encode(self, fields: np.ndarray) -> np.ndarray:
        coarse = self.coarse.transform(self._coarse(fields))
        return np.concatenate([coarse, self.local.encode(self._residual(fields))], 1)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        coarse, local = codes[:, : self.components], codes[:, self.components :]
        fields = self.local.decode(local)
        return fields + self._fine(self.coarse.inverse_transform(coarse), fields.shape[1])


class SpectralConv2d(nn.Module):
    """Complex weights on the lowest modes of the FFT, channels first, as FNO is usually written."""

    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        shape = (channels, channels, modes, modes)
        self.upper = nn.Parameter(torch.rand(shape, dtype=torch.cfloat) / channels**2)
        self.lower = nn.Parameter(torch.rand(shape, dtype=torch.cfloat) / channels**2)

    def forward(self, x: Tensor) -> Tensor:
        m, spectrum = self.modes, torch.fft.rfft2(x)
        out = torch.zeros_like(spectrum)
        product = "bixy,ioxy->boxy"
        out[:, :, :m, :m] = torch.einsum(product, spectrum[:, :, :m, :m], self.upper)
        out[:, :, -m:, :m] = torch.einsum(product, spectrum[:, :, -m:, :m], self.lower)
        return torch.fft.irfft2(out, s=x.shape[-2:])


class PlainFNO(nn.Module):
    """The same network as `FNO2d` of one channel, from well-known parts."""

    def __init__(self, *, layers: int, width: int, modes: int, padding: int, head: int) -> None:
        super().__init__()
        self.padding = padding
        self.lift = nn.Conv2d(3, width, 1)
        self.spectral = nn.ModuleList(SpectralConv2d(width, modes) for _ in range(layers))
        self.bypass = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))
        self.head = nn.Sequential(nn.Conv2d(width, head, 1), nn.GELU(), nn.Conv2d(head, 1, 1))

    def forward(self, fields: Tensor) -> Tensor:
        height, width = fields.shape[2:]
        axes = [torch.linspace(0, 1, side, device=fields.device) for side in (height, width)]
        rows, columns = torch.meshgrid(*axes, indexing="ij")
        x = torch.cat([fields, rows.expand_as(fields), columns.expand_as(fields)], 1)
        x = functional.pad(self.lift(x), (0, self.padding, 0, self.padding))
        for spectral, bypass in zip(self.spectral, self.bypass, strict=True):
            x = functional.gelu(spectral(x) + bypass(x))
        return self.head(x[..., :height, :width])


def plain_fno(network: FNO2d) -> PlainFNO:
    """Return the plain network with the weights of ours."""
    state: dict[str, Tensor] = {}
    for name, value in network.state_dict().items():
        if name.endswith(".weights"):  # (rows, columns, in, real or imaginary, out)
            apart = value.unflatten(0, (2, -1)).permute(0, 3, 5, 1, 2, 4).contiguous()
            place = name.replace("layers", "spectral").removesuffix(".weights")
            state[f"{place}.upper"], state[f"{place}.lower"] = torch.view_as_complex(apart)
        else:
            parts = name.split(".")
            if "bypass" in parts:  # layers.0.bypass.weight
                parts = ["bypass", parts[1], parts[3]]
            state[".".join(parts)] = value[:, :, None, None] if value.ndim == 2 else value
    width, head = len(state["lift.weight"]), len(state["head.0.weight"])
    sizes = {"layers": len(network.layers), "modes": state["spectral.0.upper"].shape[-1]}
    plain = PlainFNO(**sizes, width=width, head=head, padding=network.padding)
    plain.load_state_dict(state)
    return plain


class Shuffled(Sampler[int]):
    """A new order of the samples on each pass: the one our loop has with the same seed."""

    def __init__(self, samples: int, seed: int) -> None:
        self.samples = samples
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(self.samples, generator=self.generator).tolist())

    def __len__(self) -> int:
        return self.samples


def train_with_dataloader(
    network: nn.Module,
    training: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    *,
    epochs: int,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-4,
    patience: int = 30,
    loss: Callable[[Tensor, Tensor], Tensor] = functional.mse_loss,
    seed: int = 0,
    after_epoch: Callable[[], None] | None = None,
) -> nn.Module:
    """Train as a tutorial does: data on the host, a loader, Adam, a plateau schedule."""
    device = next(network.parameters()).device
    sets = [TensorDataset(*(part.cpu() for part in pair)) for pair in (training, validation)]
    order = Shuffled(len(sets[0]), seed)
    loaders = [DataLoader(sets[0], batch_size, sampler=order), DataLoader(sets[1], batch_size)]
    optimiser = torch.optim.Adam(network.parameters(), learning_rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, "min", 0.5, patience)
    best, kept = float("inf"), copy.deepcopy(network.state_dict())
    for _ in range(epochs):
        network.train()
        for inputs, targets in loaders[0]:
            optimiser.zero_grad()
            value = loss(network(inputs.to(device)), targets.to(device))
            value.backward()
            optimiser.step()
        network.eval()
        total = 0.0
        with torch.no_grad():
            for inputs, targets in loaders[1]:
                value = loss(network(inputs.to(device)), targets.to(device))
                total += value.item() * len(inputs)
        schedule.step(total)
        if total < best:
            best, kept = total, copy.deepcopy(network.state_dict())
        if after_epoch:
            after_epoch()
    network.load_state_dict(kept)
    return network
