import pytest
import torch

from twoscale import Affine, GlobalPCA, Surrogate, TwoscaleError
from twoscale.representation import NoFields, ParameterScale


def fitted(values):
    names = tuple(f"p{k}" for k in range(values.shape[1]))
    return ParameterScale(names).fit(values, ("none",) * values.shape[1])


def test_parameters_have_unit_variance(generator):
    values = 5 + torch.randn(50, 2, generator=generator) * torch.tensor([1e4, 1e-3])
    scores = fitted(values)(values)
    torch.testing.assert_close(scores.mean(0), torch.zeros(2), atol=1e-3, rtol=0)
    torch.testing.assert_close(scores.std(0, unbiased=False), torch.ones(2), rtol=1e-3, atol=0)


def test_a_parameter_that_never_varies_is_only_shifted():
    values = torch.tensor([[2.0, 7.0], [4.0, 7.0]])
    assert fitted(values)(values).tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_the_state_comes_back_or_is_refused(generator):
    values = torch.randn(20, 2, generator=generator)
    scale = fitted(values)
    again = ParameterScale(("p0", "p1")).restore(scale.state_dict())
    assert torch.equal(again(values), scale(values))
    for broken in ({}, scale.state_dict() | {"scale": torch.ones(3)}):
        with pytest.raises(TwoscaleError, match=r"parameters is missing: .* damaged"):
            ParameterScale(("p0", "p1")).restore(broken)


@pytest.mark.parametrize("alone", [False, True])
def test_the_code_is_that_of_the_fields_and_then_the_parameters(alone, generator):
    p = torch.randn(60, 2, generator=generator)
    x = None if alone else torch.randn(60, 8, 8, generator=generator)
    u = torch.einsum("np,phw->nhw", p, torch.randn(2, 8, 8, generator=generator))
    surrogate = Surrogate(
        inputs=GlobalPCA(5), predictor=Affine(), outputs=GlobalPCA(2), device="cpu"
    )
    surrogate.fit(x, u, parameters=p, validation=(x, u, p))
    code_operator = surrogate.operator_.code_operator
    assert isinstance(code_operator.inputs, NoFields) == alone
    assert code_operator.input_code_size == (2 if alone else 7)
    fields = torch.zeros(60, 0, 1, 1) if alone else x[:, None]
    assert torch.equal(code_operator.encode(fields, p)[:, -2:], code_operator.scalars(p))
    assert surrogate.evaluate(x, u, parameters=p)["mre"] < 1e-3
