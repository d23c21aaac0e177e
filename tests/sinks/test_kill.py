"""Killed at random moments while a run goes on, and started again: no point twice, none lost."""

import os
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
    ended_run,
    environment,
    following,
    mlflow_points,
    needed,
    sync,
    tensorboard_points,
    wait_until,
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


def test_what_a_kill_left_of_a_database_is_removed_next_time_and_nothing_else(tmp_path: Path) -> None:
    needed("mlflow")
    ended_run(tmp_path)
    target = f"mlflow=sqlite:///{tmp_path}/mlflow.db"
    process = following(tmp_path, target, stderr=subprocess.DEVNULL)
    wait_until(lambda: list(tmp_path.glob("mlflow.db.*.new")))
    process.kill()
    process.wait()
    (left,) = tmp_path.glob("mlflow.db.*.new")
    kept = [left.with_name(left.name.replace(f".{process.pid}.", f".{whose}.")) for whose in (os.getpid(), "mine")]
    kept += [tmp_path / "other.db.1.new", tmp_path / f"mlflow.db.elsewhere.{process.pid}.new"]
    for path in (*kept, left.with_name(f"{left.name}-journal")):
        path.touch()

    done = sync(tmp_path, "gemma", target)
    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.glob("*.new*")) == sorted(kept)
