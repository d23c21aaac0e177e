"""W&B online, its real client against a small server: kills, a server that is down, a helper process that dies."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.sinks.support import (
    Busy,
    Points,
    Trainer,
    ended_run,
    environment,
    following,
    needed,
    sync,
    wait_until,
    wandb_rows,
)
from tests.sinks.wandb_server import Server, serving


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    needed("wandb")
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    # Else its client uploads every 15 s.
    monkeypatch.setenv("WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL", "2")
    return tmp_path


def use(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.port}")


def points(server: Server) -> Points:
    rows = [json.loads(line) for line in server.history]
    assert [row["_step"] for row in rows] == list(range(len(rows)))
    return Counter((name, row["step"]) for row in rows for name in row
                   if name != "step" and not name.startswith("_"))  # fmt: skip


def test_kills_lose_nothing_and_bring_nothing_twice(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Server()) as server:
        use(server, monkeypatch)
        trainer = Trainer(root)
        busy = Busy(trainer)
        # Each process is killed when some of its rows are there and some are not.
        for _ in range(3):
            before = len(server.history)
            process = following(root, "wandb=p", stderr=subprocess.DEVNULL)
            wait_until(lambda before=before: len(server.history) > before)
            time.sleep(random.uniform(0.5, 3.0))
            process.kill()
            process.wait()
        busy.end()
        done = sync(root, "gemma", "wandb=p", environ={"WANDB_MODE": "online"})
        assert done.returncode == 0, done.stderr
        assert points(server) == trainer.expected()


def test_a_server_that_comes_late_gets_everything(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = Server()
    use(late, monkeypatch)
    trainer = Trainer(root)
    trainer.step(50)
    process = following(root, "wandb=p", stderr=subprocess.DEVNULL)
    try:
        time.sleep(3)
        with serving(late):
            wait_until(lambda: points(late) == trainer.expected())
    finally:
        process.kill()
        process.wait()
        trainer.end()


def test_a_helper_process_that_dies_is_replaced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Server()) as server:
        use(server, monkeypatch)
        trainer = Trainer(root)
        trainer.step(20)
        process = following(root, "wandb=p", stderr=subprocess.DEVNULL)
        try:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            wait_until(lambda: children.read_text().split())
            time.sleep(1)
            for helper in children.read_text().split():
                os.kill(int(helper), signal.SIGKILL)
            trainer.step(20)
            wait_until(lambda: points(server) == trainer.expected())
        finally:
            process.kill()
            process.wait()
            trainer.end()


def test_without_a_key_the_error_names_what_to_do(root: Path) -> None:
    ended_run(root)
    done = sync(root, "gemma", "wandb=p", environ={"WANDB_MODE": "online", "WANDB_API_KEY": "", "HOME": str(root)})
    assert done.returncode == 1
    assert "wandb login" in done.stderr


def test_folders_of_a_run_whose_process_was_killed_are_joined_by_wandb_sync(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(root)
    trainer.step(1000)
    monkeypatch.setenv("WANDB_MODE", "offline")
    process = following(root, "wandb=p", stderr=subprocess.DEVNULL)
    wait_until(lambda: wandb_rows(root))
    process.kill()
    process.wait()
    trainer.step(1000)
    trainer.end()
    assert sync(root, "gemma", "wandb=p").returncode == 0
    folders = sorted(map(str, root.glob("wandb/offline-run-*")))
    assert len(folders) == 2
    monkeypatch.setenv("WANDB_MODE", "online")
    more = ["--append"] if version("wandb").startswith("0.29.") else []
    with serving(Server()) as server:
        use(server, monkeypatch)
        done = subprocess.run([sys.executable, "-m", "wandb", "sync", *more, *folders], capture_output=True, text=True,
                              timeout=60, check=False, input="y\n", cwd=root)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert points(server) == trainer.expected()
