"""Of a run that went down with the machine, or had ended before that did, the target still gets the end."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.collector.agent.test_runs import Trainer
from trainvitals.journal import layout, near, slow
from trainvitals.sinks import parse, run_info
from trainvitals.sinks.follow import Follower
from trainvitals.sinks.run_info import RunInfo

WentDown = Callable[..., Path]


@pytest.fixture
def went_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WentDown]:
    trainers: list[Trainer] = []

    def crash(*words: str, world: int = 1, **told: str) -> Path:
        """A run as a power cut left it; the machine starts now. `told`: what its ranks said of themselves."""
        new = [Trainer(tmp_path, rank=rank, world=world, run_id="gemma") for rank in range(world)]
        trainers.extend(new)
        for trainer in new:
            trainer.say("step", *words)
            trainer.kill()
        folder = tmp_path / "runs" / "gemma"
        for rank in range(world):
            rewrite(folder, rank, boot_id="before", **told)
        started_now(monkeypatch)
        return folder

    yield crash
    for trainer in trainers:
        trainer.kill()


def rewrite(folder: Path, rank: int, **told: str) -> None:
    path = folder / f"process.rank{rank}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **told}))


def started_now(monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(0.01)
    now = time.time()
    monkeypatch.setattr(layout, "boot_time", lambda: now)


class Kept:
    """A stream that has nothing left to hand on but the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ends: list[str] = []

    def info(self) -> RunInfo:
        return run_info.read(self._folder)

    def advance(self, last: bool = False) -> bool:
        return False

    def is_past_end(self) -> bool:
        return True

    def finish(self, info: RunInfo, over: list[Any]) -> None:
        self.ends += over[:1]

    def close(self) -> None: ...


class Following:
    def __init__(self, root: Path) -> None:
        self.streams: list[Kept] = []
        self._follower = Follower(root, parse(f"tensorboard={root}/tb"), self._open)  # type: ignore[arg-type]

    def _open(self, folder: Path) -> Kept:
        self.streams.append(Kept(folder))
        return self.streams[-1]

    def look(self) -> list[str]:
        """What ends it has told."""
        self._follower._next_scan = 0.0
        self._follower.advance()
        return [end for stream in self.streams for end in stream.ends]


@pytest.mark.parametrize(("words", "status"), [((), "killed"), (("finish",), "finished"), (("crash",), "crashed")])
def test_its_end_is_handed_on_once(tmp_path: Path, went_down: WentDown, words: tuple[str, ...], status: str) -> None:
    folder = went_down(*words)
    assert run_info.is_ours(folder)
    following = Following(tmp_path)
    assert following.look() == [status]
    assert following.look() == [status]
    assert run_info.read(folder).ended == pytest.approx(run_info.last_written(folder), abs=1)


def test_another_machine_s_run_on_shared_storage_is_left_to_it(
    tmp_path: Path, went_down: WentDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow, "is_slow", lambda folder: True)
    folder = went_down(host="other")
    assert not run_info.is_ours(folder)
    assert run_info.read(folder).status == "running"
    assert Following(tmp_path).look() == []


def test_ranks_beside_a_rank_0_elsewhere_make_it_nobody_else_s(
    went_down: WentDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow, "is_slow", lambda folder: True)
    folder = went_down(world=2)
    assert run_info.is_ours(folder)
    rewrite(folder, 0, host="other")
    started_now(monkeypatch)
    assert not run_info.is_ours(folder)
    (folder / "process.rank0.json").unlink()
    assert run_info.is_ours(folder)


def test_a_container_s_run_is_asked_for_again_when_the_machine_has_been_up_for_longer(
    tmp_path: Path, went_down: WentDown, monkeypatch: pytest.MonkeyPatch
) -> None:
    went_down(host="0a1b2c3d")
    following = Following(tmp_path)
    assert following.look() == []
    monkeypatch.setattr(near, "RECLAIM_SECONDS", 0.0)
    assert following.look() == ["killed"]
