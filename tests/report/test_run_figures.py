"""The pictures of a run, whatever its fields are."""

import pytest
import torch

from tests.surrogate.tiny import make
from twoscale.report.run_figures import illustrate_run

OUTPUTS = {
    "a field": (1, 16, 16),
    "two channels": (2, 16, 17),
    "a line": (1, 1, 32),
}


@pytest.mark.parametrize("shape", OUTPUTS.values(), ids=OUTPUTS.keys())
@pytest.mark.parametrize("inputs", ["fields", "parameters", "both"])
def test_every_run_has_its_pictures(tmp_path, shape, inputs):
    generator = torch.Generator().manual_seed(0)
    parameters = torch.rand(24, 2, generator=generator)
    u = torch.einsum("np,pchw->nchw", parameters, torch.rand(2, *shape, generator=generator))
    x = None if inputs == "parameters" else u[:, :1, :, ::2] ** 2
    given = {} if inputs == "fields" else {"parameters": parameters}
    surrogate = make("local", patches=2).fit(x, u, **given)
    samples = given["parameters"][:, :, None, None] if given else None
    fields = samples
    if x is not None:
        wide = () if samples is None else (samples.expand(-1, -1, *x.shape[2:]),)
        fields = torch.cat([x, *wide], 1)
    illustrate_run(tmp_path, surrogate, fields, u)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"fields.png", "spectrum.png", "density.png", "losses.png"}
