"""Where the time of an optimiser step goes: seconds per step and kernels, on this machine.

python scripts/steps.py
"""

import time

import torch
from torch.profiler import ProfilerActivity, profile

from twoscale.networks import DenseNetwork
from twoscale.training import CodePairs, Plan, Task, train_together
from twoscale.training.bank import MLPBank
from twoscale.training.task import CodeLoss

INPUT, OUTPUT, HIDDEN, SAMPLES, BATCH = 144, 162, (128, 128, 128), 8000, 32


def make_task(seed: int, epochs: int, device: str) -> Task:
    plan = Plan(epochs, BATCH, 1e-3, 1e-4, 30, 8192, small=True)
    x = torch.randn(SAMPLES + 1000, INPUT, device=device)
    y = torch.randn(SAMPLES + 1000, OUTPUT, device=device)
    loss = CodeLoss(torch.full((OUTPUT,), 1 / OUTPUT, device=device))
    pairs = [CodePairs(x[part], y[part]) for part in (slice(SAMPLES), slice(SAMPLES, None))]
    network = DenseNetwork((INPUT, *HIDDEN, OUTPUT), seed=seed).to(device)
    return Task(network, *pairs, loss, plan, seed)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for members in (1, 2, 5, 20):
        times = []
        for epochs in (2, 12 if device == "cuda" else 4):
            tasks = [make_task(k, epochs, device) for k in range(members)]
            start = time.perf_counter()
            train_together(tasks)
            times.append((epochs, time.perf_counter() - start))
        (a, short), (b, long) = times
        step = (long - short) / (b - a) / (SAMPLES / BATCH)
        print(f"{members} members: {1e6 * step:.0f} us a step, {1e6 * step / members:.0f} each")
    if device == "cuda":
        tasks = [make_task(k, 1, device) for k in range(5)]
        networks, losses, plans = zip(*((t.network, t.loss, t.plan) for t in tasks), strict=True)
        bank = MLPBank(networks, losses, plans)
        data = bank.stack([task.training for task in tasks])
        batch = data.inputs[:, :BATCH].contiguous(), data.targets[:, :BATCH].contiguous()
        for _ in range(3):
            bank.step(*batch)
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            for _ in range(20):
                bank.step(*batch)
            torch.cuda.synchronize()
        print(found.key_averages().table(sort_by="cuda_time_total", row_limit=20))


if __name__ == "__main__":
    main()
