import pytest
import torch
from torch import nn

from twoscale.training.optimisers import Muon, orthogonalised


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 4, 20), (2, 20, 4)])
def test_singular_values_move_to_around_one(shape):
    matrices = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalised(matrices))
    assert float(values.max()) < 1.25
    assert float(values.median()) > 0.65
    # Directions stay: the product with the polar factor is symmetric and positive.
    u, _, vh = torch.linalg.svd(matrices, full_matrices=False)
    turned = (u @ vh).mT @ orthogonalised(matrices)
    assert float((turned - turned.mT).abs().max()) < 1e-4


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.GELU(), nn.Conv2d(4, 1, 1))


def loss(model):
    x = torch.randn(8, 2, 6, 6, generator=torch.Generator().manual_seed(1))
    return (model(x)[:, 0] - x.prod(1)).square().mean()


def stepped(steps=1, rate=1e-2):
    model = network()
    optimiser = Muon(model.parameters(), lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(model).backward()
        optimiser.step()
    return model, optimiser


def test_it_lowers_a_loss():
    assert float(loss(stepped(150)[0]).detach()) < 0.5 * float(loss(network()).detach())


def test_steps_of_both_kinds_have_the_size_of_the_rate():
    before, after = network().state_dict(), stepped(rate=1e-2)[0].state_dict()
    changes = {name: (after[name] - before[name]).square().mean().sqrt() for name in before}
    for name, change in changes.items():
        full = 0.2e-2 if name == "0.weight" else 1e-2  # of Adam the first step is the rate itself
        assert float(change) == pytest.approx(full, rel=0.35), name


@pytest.mark.parametrize("shape", [(10, 40), (40, 10), (40, 10, 1, 1), (16, 3, 2, 2), (4, 6, 3, 3)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_step_is_the_orthogonalised_gradient(shape, layout):
    gradient = torch.randn(*shape, generator=torch.Generator().manual_seed(3))
    weight = torch.zeros(shape)
    if len(shape) == 4:
        weight = weight.to(memory_format=layout)
    parameter = nn.Parameter(weight)
    parameter.grad = torch.empty_like(parameter).copy_(gradient)
    Muon([parameter], lr=1.0).step()
    turned = orthogonalised(gradient.flatten(1)[None])[0].reshape(shape)
    size = 0.2 * max(shape[0], gradient[0].numel()) ** 0.5
    torch.testing.assert_close(parameter.detach(), -size * turned, rtol=1e-4, atol=1e-4)


def test_steps_are_the_same_in_any_order_of_memory():
    models = [network(), network().to(memory_format=torch.channels_last)]
    for model in models:
        optimiser = Muon(model.parameters(), lr=1e-2)
        for _ in range(5):
            optimiser.zero_grad()
            loss(model).backward()
            optimiser.step()
    for one, two in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, two)


def test_weights_decay_apart_from_the_gradients():
    model = network()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = Muon(model.parameters(), lr=0.1, weight_decay=0.5)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, 0.95 * before[name])


def test_a_single_row_is_no_matrix():
    _, optimiser = stepped()
    assert [len(group) for group in optimiser.alike] == [1]
    assert len(optimiser.others) == 3  # both biases, and the kernel with one output


def test_the_first_step_of_adam_is_that_of_adam():
    model, other = (nn.Linear(3, 1) for _ in range(2))
    other.load_state_dict(model.state_dict())
    optimisers = [Muon(model.parameters(), lr=1e-2), torch.optim.Adam(other.parameters(), lr=1e-2)]
    x = torch.randn(9, 3)
    for _ in range(5):
        for one, optimiser in zip((model, other), optimisers, strict=True):
            optimiser.zero_grad()
            one(x).square().mean().backward()
            optimiser.step()
    torch.testing.assert_close(model.weight, other.weight, rtol=1e-4, atol=1e-6)


def test_all_state_is_there_from_the_start():
    model = network()
    optimiser = Muon(model.parameters(), lr=1e-2)
    before = [value for state in optimiser.state.values() for value in state.values()]
    assert all(float(value.abs().max()) == 0 for value in before)
    loss(model).backward()
    optimiser.step()
    after = [value for state in optimiser.state.values() for value in state.values()]
    assert all(one is two for one, two in zip(before, after, strict=True))


@pytest.mark.gpu
def test_captured_steps_are_those_without_a_graph():
    from twoscale.training import CodePairs, Plan, epochs, loop, train

    plan = Plan(
        epochs=3,
        batch_size=8,
        learning_rate=1e-2,
        weight_decay=0.0,
        patience=1,
        evaluation_batch=64,
        one_cycle=True,
        optimiser="muon",
    )
    x = torch.randn(64, 2, 6, 6, generator=torch.Generator().manual_seed(1)).cuda()
    pairs = CodePairs(x, x.prod(1, keepdim=True))
    results = []
    for kind in (epochs.ReplayedEpochs, epochs.Epochs):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "make_epochs", kind)
            model = network().cuda()
            history = train(model, pairs, pairs, nn.functional.mse_loss, plan, seed=2)
        results.append(history.validation_loss)
    assert results[0] == pytest.approx(results[1], rel=1e-2)
