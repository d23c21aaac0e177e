"""Killed at random moments while a run goes on, and started again: no point twice, none lost."""

import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sinks.support import (
    Busy,
    Points,
    Trainer,
    environment,
    following,
    mlflow_points,
    needed,
    sync,
    tensorboard_points,
    wandb_points,
)

KILLS = 4
# How long a process of each lives before it is killed: some do not get beyond their imports.
LIVES = {"tensorboard": (0.3, 1.5), "wandb": (0.8, 3.0), "mlflow": (1.5, 5.0)}
READ: dict[str, Callable[[Path], Points]] = {
    "tensorboard": lambda root: tensorboard_points(root / "tb", "gemma"),
    "wandb": wandb_points,
    "mlflow": lambda root: mlflow_points(f"sqlite:///{root}/mlflow.db"),
}


@pytest.mark.parametrize("kind", READ)
def test_a_kill_at_any_moment_neither_loses_a_point_nor_brings_it_twice(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed(kind)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    target = {"tensorboard": f"tensorboard={tmp_path}/tb", "wandb": "wandb=p",
              "mlflow": f"mlflow=sqlite:///{tmp_path}/mlflow.db"}[kind]  # fmt: skip
    seed = random.randrange(1000)
    chance = random.Random(seed)
    trainer = Trainer(tmp_path)
    busy = Busy(trainer)
    for _ in range(KILLS):
        process = following(tmp_path, target, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(*LIVES[kind]))
        process.kill()
        process.wait()
    busy.end()
    done = sync(tmp_path, "gemma", target)
    assert done.returncode == 0, done.stderr
    assert READ[kind](tmp_path) == trainer.expected(), f"seed {seed}"
