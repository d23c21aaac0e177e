"""Runs that went down with the machine are found by the first agent after its start, and nobody else's are."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.collector.agent.test_runs import Trainer, _look_again, _move, _reports, status, values
from trainvitals.agent.runs import Runs
from trainvitals.clock import Clock
from trainvitals.journal import layout, near, slow
from trainvitals.model import Snapshot
from trainvitals.web.views import runs_view

Crash = Callable[..., Path]
HOUR = 3600.0


@pytest.fixture
def trainers() -> Iterator[list[Trainer]]:
    made: list[Trainer] = []
    yield made
    for trainer in made:
        trainer.kill()


@pytest.fixture
def booted(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """As if this machine had been started then."""
    return lambda when: monkeypatch.setattr(layout, "boot_time", lambda: when)


@pytest.fixture
def went_down(tmp_path: Path, trainers: list[Trainer], booted: Callable[[float], None]) -> Crash:
    def crash(*words: str, world: int = 1) -> Path:
        """A run as the power cut left it; the machine starts now."""
        new = [Trainer(tmp_path, rank=rank, world=world, run_id="gemma") for rank in range(world)]
        trainers.extend(new)
        for trainer in new:
            trainer.say("step", *words)
            trainer.kill()
        folder = tmp_path / "runs" / "gemma"
        for path in folder.glob("process.rank*.json"):
            _move(path, layout.boot_id(), "before")
        time.sleep(0.01)
        booted(time.time())
        return folder

    return crash


def elsewhere(folder: Path) -> None:
    """As a container calls itself, or another machine."""
    for path in folder.glob("process.rank*.json"):
        path.write_text(path.read_text().replace(f'"host":"{layout.host_name()}"', '"host":"0a1b2c3d"'))


def follow(root: Path, clock: Clock | None = None) -> Runs:
    runs = Runs(root, layout.host_name(), *([clock] if clock else []))
    runs.update()
    return runs


def killed(root: Path) -> list[int]:
    path = root / "runs" / "gemma" / "agent" / f"{layout.host_name()}.jsonl"
    return [json.loads(line)["rank"] for line in path.open()] if path.exists() else []


def test_a_run_that_the_power_cut_ended_is_told_to_be_killed_once(tmp_path: Path, went_down: Crash) -> None:
    went_down(world=2)
    runs = follow(tmp_path)
    assert status(runs) == ("killed",)
    assert values(runs, "rank", "0")["steps_total"] == 1.0
    _look_again(runs)
    assert status(follow(tmp_path)) == ("killed",)
    assert killed(tmp_path) == [0, 1]


def test_it_is_shown_for_ten_minutes_from_when_it_was_found_however_long_the_machine_was_off(
    tmp_path: Path, went_down: Crash, booted: Callable[[float], None]
) -> None:
    folder = went_down()
    (folder / "agent" / f"{layout.host_name()}.jsonl").touch()  # it was killed before, and resumed
    made_old(folder, time.time() - 12 * HOUR)
    late = [0.0]
    clock = Clock(lambda: time.time() + late[0], lambda: time.monotonic() + late[0])
    runs = follow(tmp_path, clock)
    assert status(runs) == ("killed",)
    late[0] = 590.0
    _look_again(runs)
    assert status(runs) == ("killed",)
    late[0] = 620.0
    assert runs.readings() == []
    runs.update()
    assert runs_view(Snapshot(1.0, (), runs.past.readings))[0]["status"] == "killed"
    assert follow(tmp_path, clock).readings() == []


def made_old(folder: Path, when: float) -> None:
    for path in (*folder.iterdir(), folder):
        os.utime(path, (when, when))


def test_resumed_it_runs_again_and_its_end_is_its_own(
    tmp_path: Path, went_down: Crash, trainers: list[Trainer]
) -> None:
    went_down(world=2)
    runs = follow(tmp_path)
    assert status(runs) == ("killed",)
    trainers.append(Trainer(tmp_path, run_id="gemma"))
    _look_again(runs)
    assert status(runs) == ("running",)
    trainers[-1].say("finish")
    trainers[-1].kill()
    _look_again(runs)
    assert status(runs) == ("finished",)
    assert killed(tmp_path) == [0, 1]


@pytest.mark.parametrize(("word", "expected"), [("finish", "finished"), ("crash", "crashed")])
def test_a_run_that_had_ended_before_is_shown_as_it_ended(
    tmp_path: Path, went_down: Crash, word: str, expected: str
) -> None:
    went_down(word)
    assert status(follow(tmp_path)) == (expected,)
    assert killed(tmp_path) == []


def test_a_run_that_had_ended_long_before_is_past_and_has_no_series(
    tmp_path: Path, went_down: Crash, booted: Callable[[float], None]
) -> None:
    went_down("finish")
    booted(time.time() + 48 * HOUR)
    runs = follow(tmp_path, Clock(lambda: time.time() + 48 * HOUR, time.monotonic))
    assert runs.readings() == []
    assert runs_view(Snapshot(1.0, (), runs.past.readings))[0]["status"] == "finished"


@pytest.mark.parametrize("silent", [25 * HOUR, -60.0])
def test_what_was_silent_for_long_before_the_start_or_written_after_it_is_not_judged(
    tmp_path: Path, went_down: Crash, silent: float
) -> None:
    made_old(went_down(), layout.boot_time() - silent)
    assert status(follow(tmp_path)) is None
    assert killed(tmp_path) == []


def test_a_container_s_run_is_known_by_the_disk_once_all_have_their_locks_again(
    tmp_path: Path, went_down: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(went_down())
    time.sleep(0.01)
    monkeypatch.setattr(layout, "boot_time", time.time)
    runs = follow(tmp_path)
    assert status(runs) is None
    monkeypatch.setattr(near, "RECLAIM_SECONDS", 0.0)
    _look_again(runs)
    assert status(runs) == ("killed",)


def test_a_copy_of_another_machine_s_run_is_nobody_s_death(
    tmp_path: Path, went_down: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near, "RECLAIM_SECONDS", 0.0)
    folder = went_down()
    elsewhere(folder)
    copy = tmp_path / "copy" / "runs" / "gemma"
    shutil.copytree(folder, copy)  # with the times of the files, as rsync -a
    time.sleep(0.01)
    monkeypatch.setattr(layout, "boot_time", time.time)
    assert status(follow(tmp_path / "copy")) is None
    assert status(follow(tmp_path)) == ("killed",)


def test_on_shared_storage_only_this_machine_s_ranks_are_judged(
    tmp_path: Path, went_down: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near, "RECLAIM_SECONDS", 0.0)
    monkeypatch.setattr(slow, "is_slow", lambda folder: True)
    folder = went_down(world=2)
    path = folder / "process.rank1.json"
    path.write_text(path.read_text().replace(f'"host":"{layout.host_name()}"', '"host":"other"'))
    time.sleep(0.01)
    monkeypatch.setattr(layout, "boot_time", time.time)
    assert status(follow(tmp_path)) == ("killed",)
    assert killed(tmp_path) == [0]
    elsewhere(folder)
    (folder / "agent" / f"{layout.host_name()}.jsonl").unlink()
    assert status(follow(tmp_path)) is None
    assert killed(tmp_path) == []


def test_a_rank_that_holds_its_lock_lives_whatever_its_kernel(
    tmp_path: Path, trainers: list[Trainer], booted: Callable[[float], None]
) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step")
    _move(tmp_path / "runs" / "gemma" / "process.rank0.json", layout.boot_id(), "before")
    time.sleep(0.01)
    booted(time.time())
    assert status(follow(tmp_path)) is None
    assert _reports(tmp_path, "gemma") == []


AGENT = """
import sys
from pathlib import Path
from trainvitals.agent.runs import Runs
from trainvitals.journal import layout
runs = Runs(Path(sys.argv[1]), layout.host_name())
runs.update()
print([state.status for state in runs.states()])
"""


def test_the_kernel_s_own_word_counts_on_when_it_was_started(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step")
    trainers[0].kill()
    folder = tmp_path / "runs" / "gemma"
    _move(folder / "process.rank0.json", layout.boot_id(), "before")
    made_old(folder, time.time() - 60)
    ago = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    agent = ["unshare", "--time", "--boottime", str(-ago), "--fork", sys.executable, "-c", AGENT, str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run([*agent[:5], "true"], capture_output=True, check=False).returncode:
        pytest.skip("a clock of one's own needs root and unshare")
    answer = subprocess.run(agent, capture_output=True, text=True, timeout=30, check=False)
    assert answer.stdout == "['killed']\n", answer.stderr
