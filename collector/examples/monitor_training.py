"""A training loop written for `TrainingMonitor`, running on TrainVitals: only the import was changed.

    python monitor_training.py                                     # a tiny training on the CPU
    python monitor_training.py --simulate --simulate_steps 200     # trains nothing, logs plausible values
    python monitor_training.py --simulate --enable_dashboard --dashboard_port 8081
    python monitor_training.py --config monitoring.yaml            # its keys, in a file; flags go over it

monitoring.yaml, for example:

    track_gradients: true
    dashboard: {enabled: true, port: 8081}
    alert_system: {enabled: true, thresholds: {loss: 2.5}}
"""

import argparse
import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import trainvitals as tv
from trainvitals.compat.performance import TrainingMonitor


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file of TrainingMonitor's settings")
    parser.add_argument("--enable_dashboard", action="store_true", help="a page beside the training")
    parser.add_argument("--dashboard_port", type=int, metavar="PORT", help="its port (default: 8080)")
    parser.add_argument("--simulate", action="store_true", help="train nothing, log plausible values")
    parser.add_argument("--simulate_steps", type=int, default=100, metavar="N", help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=60, help="of the training, if it is none (default: %(default)s)")
    return parser.parse_args()


def settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The file's, and after them, so that they hold, the flags'. Without flags TrainingMonitor(FILE) would do."""
    flags: dict[str, Any] = {}
    if arguments.enable_dashboard:
        flags["enable_dashboard"] = True
    if arguments.dashboard_port is not None:
        flags["dashboard_port"] = arguments.dashboard_port
    written = yaml.safe_load(arguments.config.read_text()) if arguments.config else {"track_gradients": True}
    return {name: value for name, value in written.items() if name not in flags} | flags


def simulated(steps: int) -> Iterator[dict[str, Any]]:
    """Loss falls, accuracy rises, the learning rate warms up and decays; a spike in the loss halfway."""
    chance = random.Random(0)
    for step in range(steps):
        time.sleep(0.02)
        progress = step / max(1, steps - 1)
        spike = 3.0 if step == steps // 2 else 0.0
        yield {
            "loss": 0.3 + 2.0 * math.exp(-4 * progress) + chance.gauss(0, 0.02) + spike,
            "accuracy": 0.95 - 0.85 * math.exp(-4 * progress) + chance.gauss(0, 0.01),
            "learning_rate": 1e-3 * min(1.0, 10 * progress) * (1 - progress),
            "custom_metrics": {"tokens_per_second": chance.gauss(52_000, 800)},
        }


def trained(steps: int) -> Iterator[dict[str, Any]]:
    import torch  # only here: a simulation does not need it

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        inputs = torch.randn(32, 8)
        targets = (inputs.sum(dim=1) > 0).long()
        logits = model(inputs)
        loss = torch.nn.functional.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield {
            # With `track_gradients: true` these two are looked into.
            "model": model,
            "optimizer": optimizer,
            "loss": loss,
            "accuracy": (logits.argmax(1) == targets).float().mean(),
            "learning_rate": optimizer.param_groups[0]["lr"],
            "custom_metrics": {"margin": logits.abs().mean()},
        }


def main() -> int:
    arguments = parse_arguments()
    monitor = TrainingMonitor(settings(arguments))
    monitor.alert_system.add_alert_rule(
        name="loss spike", condition=lambda metrics: metrics.loss > 3.0, severity="warning",
        message="loss is {loss:.2f}", cooldown_seconds=60)  # fmt: skip
    monitor.start_monitoring()
    run = tv.current()
    try:
        for values in simulated(arguments.simulate_steps) if arguments.simulate else trained(arguments.steps):
            monitor.log_training_step(**values)
    finally:
        monitor.stop_monitoring()
        say_where(run)
    return 0


def say_where(run: tv.Run) -> None:
    if not run:  # TRAINVITALS=off
        print("nothing was recorded")
        return
    print(f"run {run.id}: {run.status}")
    print(f"journal  {run.folder}")
    print("next     trainvitals serve     # its page shows this run, its values and alerts")
    print(f"         trainvitals sync {run.id} --to tensorboard=tensorboard")


if __name__ == "__main__":
    sys.exit(main())
