"""One of two ranks of DDP over gloo: `sleeping_rank.py RANK FOLDER STEPS WHERE`.

Rank 1 sleeps in its forward, or in its loader; then no phase is told, as of most loops.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import trainvitals as tv


class Sleeping(nn.Module):
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.linear, self.seconds = nn.Linear(8, 1), seconds

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        time.sleep(self.seconds)
        return self.linear(inputs)


def loader(steps: int, seconds: float) -> Iterator[torch.Tensor]:
    for _ in range(steps):
        time.sleep(seconds)
        yield torch.randn(4, 8)


def sleeps_in_forward(run: tv.Run, model: nn.Module, steps: int) -> None:
    for _ in range(steps):
        with run.step():
            with run.phase("forward"):
                loss = model(torch.randn(4, 8)).mean()
            with run.phase("backward"):
                loss.backward()
        run.log(loss=loss)


def sleeps_in_loader(run: tv.Run, model: nn.Module, batches: Iterator[torch.Tensor]) -> None:
    for batch in run.data(batches):
        with run.step():
            loss = model(batch).mean()
            loss.backward()
        run.log(loss=loss)


def main(rank: int, folder: Path, steps: int, where: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    seconds = 0.25 if rank == 1 else 0.05
    model = DistributedDataParallel(Sleeping(seconds if where == "forward" else 0.05))
    with tv.start("ddp") as run:
        if where == "forward":
            sleeps_in_forward(run, model, steps)
        else:
            sleeps_in_loader(run, model, loader(steps, seconds))
    dist.barrier()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
