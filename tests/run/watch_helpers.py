"""A run that keeps what it is told, and models small enough for a test."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn


class Recorder:
    """What a watch needs of a run."""

    def __init__(self) -> None:
        self.number = 0
        self.lines: list[dict[str, Any]] = []
        self.seconds: list[tuple[str, float]] = []
        self.events: list[dict[str, Any]] = []

    def log(self, values: Mapping[str, Any], /, *, step: int) -> None:
        self.lines.append({"step": step, **values})

    def add_seconds(self, **seconds: float) -> None:
        self.seconds += seconds.items()

    def write_event(self, kind: str, **fields: Any) -> None:
        self.events.append({"event": kind, "step": self.number, **fields})

    def phases(self) -> list[str]:
        return [name for name, _ in self.seconds]

    def values(self, name: str) -> list[Any]:
        return [line[name] for line in self.lines if name in line]


def small(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def batch(seed: int = 1) -> torch.Tensor:
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(seed))


def sgd(model: nn.Module, rate: float = 0.1) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=rate)


def train(run: Recorder, model: Any, optimizer: Any, steps: int = 1,
          loss: Callable[[Any], Any] = lambda model: model(batch()).square().mean()) -> None:  # fmt: skip
    for _ in range(steps):
        run.number += 1
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()


def norm(tensors: Any) -> float:
    return float(torch.cat([tensor.detach().reshape(-1).double() for tensor in tensors]).norm())


def gradients(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
