"""Benchmarks of fitting: generating data, fitting representations, and everything together."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twoscale.data import generate as generate_dataset
from twoscale.domain.grid import Grid
from twoscale.networks import DenseNetwork
from twoscale.operators.operators import CodeOperator
from twoscale.problems import Darcy, Poisson
from twoscale.runtime.threads import one_thread
from twoscale.surrogate import Surrogate
from twoscale_lab.bench import peers
from twoscale_lab.bench.measure import Comparison, Setup, compare, relative, stopwatch
from twoscale_lab.bench.training import same_loss


def generate(setup: Setup) -> Iterator[Comparison]:
    """Darcy solves against a sparse LU per sample on one core; a dataset written to disk."""
    resolution = setup.size(48, 256)
    samples, few = setup.size(32, 16, gpu=10000), setup.size(4, 3)
    darcy, grid = Darcy(), Grid.square(resolution)
    inputs = darcy.sample(grid, range(samples), seed=0, device=setup.device)
    plain = inputs[:few].cpu().numpy()

    def ours() -> Tensor:
        with one_thread():  # per core
            return darcy.solve(inputs)

    def theirs() -> Any:
        with one_thread():
            return peers.darcy_by_sparse_lu(plain)

    details: dict[str, Any] = {"samples": samples, "peer_samples": few}
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"resolution": resolution, "samples": samples}
        options["device"] = setup.device
        path = Path(folder) / "darcy.zarr"
        details["dataset_seconds"], _ = stopwatch(lambda: generate_dataset(darcy, path, **options))
    yield compare(
        f"generate darcy-{resolution}",
        "sparse LU per sample, SciPy, one core",
        ours,
        theirs,
        unit="solve",
        units=(samples, few),
        repeats=setup.size(1, 3),
        agreement=lambda a, b: {"difference": relative(a[:few].cpu(), torch.from_numpy(b))},
        details=details,
    )


def pca(setup: Setup) -> Iterator[Comparison]:
    """Both representations of two-scale against scikit-learn, patch by patch."""
    paper = (128, 256) if setup.cuda else (128,)
    for resolution in (32,) if setup.scale == "small" else paper:
        yield _pca_at(setup, resolution)


def _pca_at(setup: Setup, resolution: int) -> Comparison:
    samples, held = setup.size(200, 8000), setup.size(50, 500)
    factor = setup.size(4, resolution // 32)
    x, u = setup.fields(Poisson(), resolution, samples + held)
    surrogate = Surrogate("two-scale", device=str(setup.device), coarse_factor=factor)
    plain_x, plain_u = (fields.cpu().numpy() for fields in (x, u))
    peers.PatchwisePCA(4, [1] * 16).fit(plain_x[:20])  # so that the peer's library is loaded

    def ours() -> CodeOperator:
        operator = surrogate.parts.operator()
        assert isinstance(operator, CodeOperator)
        operator.inputs.fit(x[:samples, None])
        operator.outputs.fit(u[:samples, None])
        return operator

    first = ours()
    inputs, outputs = first.inputs.ranks, first.outputs.ranks

    def theirs() -> peers.TwoScalePCA:
        peers.PatchwisePCA(4, inputs["pca"]).fit(plain_x[:samples])
        both = peers.TwoScalePCA(factor, outputs["coarse"][0], 4, outputs["residual"])
        return both.fit(plain_u[:samples])

    def oracles(operator: CodeOperator, peer: peers.TwoScalePCA) -> dict[str, float]:
        decoded = operator.outputs.reconstruct(u[samples:, None])[:, 0]
        theirs = torch.from_numpy(peer.decode(peer.encode(plain_u[samples:])))
        return {
            "oracle": relative(decoded, u[samples:]),
            "peer_oracle": relative(theirs, torch.from_numpy(plain_u[samples:])),
        }

    return compare(
        f"pca poisson-{resolution}",
        "scikit-learn randomised PCA per patch, ranks told in advance",
        ours,
        theirs,
        unit="fit",
        repeats=setup.size(1, 2) if resolution < 256 else 1,  # the peer takes minutes
        agreement=oracles,
        details={"samples": samples, "coarse_factor": factor},
    )


def end_to_end(setup: Setup) -> Iterator[Comparison]:
    """Data, representations and training of two-scale Poisson-64 against all peers together."""
    resolution, samples = setup.size(32, 64), setup.size(300, 10000)
    training, held = round(0.8 * samples), round(0.1 * samples)
    epochs = setup.size(2, 500)
    poisson, grid = Poisson(), Grid.square(resolution)
    forcing = poisson.sample(grid, range(samples), seed=0, device=setup.device)
    parts = [slice(training), slice(training, training + held), slice(training + held, None)]

    def ours() -> dict[str, Any]:
        x, u = forcing.float(), poisson.solve(forcing).float()
        surrogate = Surrogate("two-scale", device=str(setup.device), epochs=epochs)
        surrogate.fit(x[parts[0]], u[parts[0]], validation=(x[parts[1]], u[parts[1]]))
        error = relative(surrogate.predict(x[parts[2]].cpu()), u[parts[2]].cpu())
        return {"mre": error, "ranks": surrogate.retained, "timings": surrogate.timings_}

    seconds, found = stopwatch(ours)
    retained = found["ranks"]

    def theirs() -> float:
        x = forcing.cpu().numpy()
        u = peers.poisson_by_sparse_lu(x).astype("float32")
        x = x.astype("float32")
        inputs = peers.PatchwisePCA(4, retained["input"]["ranks"]["pca"]).fit(x[parts[0]])
        ranks = retained["output"]["ranks"]
        outputs = peers.TwoScalePCA(4, ranks["coarse"][0], 4, ranks["residual"]).fit(u[parts[0]])
        codes = [(_codes(inputs, x[part]), _codes(outputs, u[part])) for part in parts]
        sizes = (codes[0][0].shape[1], 128, 128, 128, codes[0][1].shape[1])
        network = DenseNetwork(sizes, seed=0).to(setup.device)
        loss = same_loss("two-scale", [ranks["coarse"][0], sum(ranks["residual"])], codes[0][1])
        peers.train_with_dataloader(network, codes[0], codes[1], epochs=epochs, loss=loss)
        with torch.no_grad():
            predicted = network(codes[2][0].to(setup.device)).cpu().numpy()
        return relative(torch.from_numpy(outputs.decode(predicted)), torch.from_numpy(u[parts[2]]))

    peer_seconds, error = stopwatch(theirs)
    yield Comparison(
        f"end-to-end two-scale poisson-{resolution}",
        "sparse LU, scikit-learn, DataLoader",
        "pipeline",
        [seconds],
        [peer_seconds],
        {"mre": found["mre"], "peer_mre": error},
        {"samples": samples, "epochs": epochs, "timings": found["timings"]},
    )


def _codes(peer: peers.PatchwisePCA | peers.TwoScalePCA, fields: Any) -> Tensor:
    return torch.from_numpy(peer.encode(fields)).float()
