"""Data-parallel training over gloo: every rank writes a file of its own, and the files tell which rank is slow.

    python ddp.py                                    # starts its two processes by itself
    torchrun --nproc-per-node 2 ddp.py               # the same
    torchrun --nproc-per-node 2 ddp.py --slow-rank 1 # rank 1 gets its data late

Takes away: all ranks' steps last equally long, since each waits for the slowest. Who is slow shows in what a rank does
before it waits for the others: here in `data_wait_seconds`. The others' wait hides in their `backward_seconds`.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import trainvitals as tv

FEATURES, BATCH = 16, 32


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="ddp", help="the run's name (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--slow-rank", type=int, metavar="RANK", help="this rank's data comes late (default: none's)")
    parser.add_argument("--slow-seconds", type=float, default=0.05, help="how late (default: %(default)s)")
    return parser.parse_args()


def launch_two() -> None:
    """As torchrun does, on any free port. Does not return."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # torchrun would warn that it sets it
    words = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d",
             "--rdzv-endpoint", "localhost:0"]  # fmt: skip
    os.execv(sys.executable, [sys.executable, *words, *sys.argv])


def batches(steps: int, seconds_late: float, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        time.sleep(seconds_late)
        inputs = torch.randn(BATCH, FEATURES, generator=generator)
        yield inputs, inputs.sum(dim=1, keepdim=True)


def train(run: tv.Run, arguments: argparse.Namespace) -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    late = arguments.slow_seconds if dist.get_rank() == arguments.slow_rank else 0.0
    for inputs, targets in run.data(batches(arguments.steps, late, seed=dist.get_rank())):
        with run.step():
            with run.phase("forward"):
                loss = nn.functional.mse_loss(model(inputs), targets)
            with run.phase("backward"):  # gradients are exchanged here, so this is where fast ranks wait
                optimizer.zero_grad()
                loss.backward()
            with run.phase("optimizer"):
                optimizer.step()
        run.log(loss=loss)


def say_where(run: tv.Run) -> None:
    if not run:
        print("nothing was recorded")
        return
    print(f"run {run.id}: {run.world_size} ranks, {run.number} steps, {run.status}")
    print(f"journal  {run.folder}")
    print("next     trainvitals serve     # its page shows this run and its ranks")
    print(f"         tail -n 3 {run.folder}/training_metrics_*.rank*.jsonl")


def main() -> None:
    arguments = parse_arguments()
    if "RANK" not in os.environ:
        launch_two()
    dist.init_process_group("gloo")
    # The rank, its place on this node and the number of ranks are found, from torchrun as from SLURM or MPI.
    with tv.start(arguments.name, config=arguments, framework="pytorch", planned_steps=arguments.steps) as run:
        train(run, arguments)
    dist.barrier()
    if dist.get_rank() == 0:
        say_where(run)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
