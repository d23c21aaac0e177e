"""A plain PyTorch loop and the whole interface: data wait, steps, phases, values, checkpoints, notes, going on later.

    python plain_loop.py                    # 3 epochs of a tiny model on the CPU, a few seconds
    python plain_loop.py --fail-in-epoch 2  # a crash, as the journal keeps it
    python plain_loop.py --resume           # goes on from the last checkpoint, in the run that wrote it
    python plain_loop.py --agent            # with a page that shows it, for as long as it runs

Takes away: the lines with `run.` are all that monitoring adds, and none of them can fail or wait.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import trainvitals as tv

SAMPLES, FEATURES = 640, 16


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="plain-loop", help="the run's name (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="default: %(default)s")
    parser.add_argument("--output-dir", type=Path, default=Path("plain-loop-output"), help="default: ./%(default)s")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --output-dir, in its run")
    parser.add_argument("--fail-in-epoch", type=int, metavar="EPOCH", help="raise an error in this epoch")
    parser.add_argument("--agent", action="store_true", help="start an agent beside it, if none runs")
    return parser.parse_args()


def make_data() -> TensorDataset:
    """What a linear model with some noise would give."""
    inputs = torch.randn(SAMPLES, FEATURES)
    return TensorDataset(inputs, inputs @ torch.randn(FEATURES, 1) + 0.1 * torch.randn(SAMPLES, 1))


def train_epoch(run: tv.Run, epoch: int, model: nn.Module, optimizer: torch.optim.Optimizer,
                loader: DataLoader) -> None:  # fmt: skip
    step = (epoch - 1) * len(loader)
    for inputs, targets in run.data(loader):  # times the wait for data
        step += 1
        began = time.perf_counter()
        # `run.step()` counts by itself; a loop that may go back to a checkpoint tells its own number.
        with run.step(step):
            with run.phase("forward"):
                loss = nn.functional.mse_loss(model(inputs), targets)
            with run.phase("backward"):
                optimizer.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            with run.phase("optimizer"):
                optimizer.step()
        # Tensors as they are: nobody waits for a GPU here. Common spellings are understood.
        speed = len(inputs) / (time.perf_counter() - began)
        run.log(epoch=epoch, loss=loss, lr=optimizer.param_groups[0]["lr"], grad_norm=norm, throughput=speed)


def evaluate(run: tv.Run, model: nn.Module, data: TensorDataset) -> None:
    with run.phase("evaluation"), torch.no_grad():
        inputs, targets = data.tensors
        loss = nn.functional.mse_loss(model(inputs), targets)
    run.log(validation_loss=loss)


def save(run: tv.Run, path: Path, epoch: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """With the run's id: there may be several runs of one name, and it is this one that goes on from here."""
    with run.phase("checkpoint"):
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"run": run.id, "epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
                   path)  # fmt: skip
    run.checkpoint(path)


def last_checkpoint(arguments: argparse.Namespace) -> dict[str, Any]:
    """What is to go on; nothing where there is none."""
    path = arguments.output_dir / "checkpoint.pt"
    if not arguments.resume:
        return {}
    if not path.exists():
        print(f"no checkpoint in {arguments.output_dir}: a new run begins")
        return {}
    saved = torch.load(path)
    print(f"goes on with run {saved['run']} after epoch {saved['epoch']}")
    return saved


def train(run: tv.Run, arguments: argparse.Namespace, saved: dict[str, Any]) -> None:
    torch.manual_seed(0)
    data = make_data()
    loader = DataLoader(data, batch_size=arguments.batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate)
    run.describe(planned_steps=arguments.epochs * len(loader))
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    done = saved.get("epoch", 0)
    run.event(f"training begins after epoch {done}")
    for epoch in range(done + 1, arguments.epochs + 1):
        if epoch == arguments.fail_in_epoch:
            raise RuntimeError(f"epoch {epoch} was asked to fail")
        train_epoch(run, epoch, model, optimizer, loader)
        evaluate(run, model, data)
        save(run, arguments.output_dir / "checkpoint.pt", epoch, model, optimizer)


def say_where(run: tv.Run) -> None:
    if not run:  # TRAINVITALS=off
        print("nothing was recorded")
        return
    print(f"run {run.id}: {run.number} steps, {run.status}")
    print(f"journal  {run.folder}")
    print("next     trainvitals serve     # its page shows this run")
    print(f"         trainvitals sync {run.id} --to tensorboard=tensorboard")


def main() -> None:
    arguments = parse_arguments()
    saved = last_checkpoint(arguments)
    run = tv.start(arguments.name, config=arguments, framework="pytorch", run_id=saved.get("run", ""),
                   resume=bool(saved), agent=arguments.agent)  # fmt: skip
    try:
        # Leaving the block says how it ended: finished, crashed with its exception, or interrupted.
        with run:
            train(run, arguments, saved)
    finally:
        say_where(run)


if __name__ == "__main__":
    main()
