"""Following runs: the living, the ended and the killed, and every record once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.collector.support import wait_for
from trainvitals.agent import runs as module
from trainvitals.agent.run_folder import Contents, Shelf
from trainvitals.agent.run_state import RankState
from trainvitals.agent.runs import Runs
from trainvitals.clock import Clock
from trainvitals.journal import layout
from trainvitals.journal import runs as journal_runs
from trainvitals.journal.record import Record
from trainvitals.model import Reading


class Trainer:
    """One rank in a process of its own; each word is done when `say` returns."""

    def __init__(self, root: Path, name: str = "gemma", rank: int = 0, world: int = 1, run_id: str = "") -> None:
        words = [sys.executable, "-m", "tests.collector.agent.trainer", str(root), name, str(rank), str(world), run_id]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.run, self.pid = self.process.stdout.readline().split()

    def say(self, *words: str) -> None:
        assert self.process.stdin
        assert self.process.stdout
        for word in words:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline().strip() == word

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def trainers() -> Iterator[list[Trainer]]:
    made: list[Trainer] = []
    yield made
    for trainer in made:
        trainer.kill()


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Runs]:
    """Started with nothing there, as on a new machine."""
    runs = Runs(tmp_path, "here")
    runs.start()
    yield runs
    runs.stop()


def values(runs: Runs, scope: str = "run", rank: str = "") -> dict[str, object]:
    found = [r for r in runs.readings() if r.scope == scope and r.label("rank") == rank]
    return {name: value for reading in found for name, value in reading.values.items()}


def status(runs: Runs) -> object:
    return values(runs).get("run_status")


def test_a_run_is_seen_and_followed_step_by_step(tmp_path: Path, follower: Runs, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    wait_for(lambda: status(follower) == ("running",))
    trainers[0].say("step", "step", "checkpoint", "step")
    wait_for(lambda: values(follower, "rank", "0").get("steps_total") == 3.0)
    assert values(follower, "custom", "0") == {"metric": 3.0}
    assert values(follower)["last_checkpoint_timestamp_seconds"] == pytest.approx(time.time(), abs=60)
    assert values(follower)["planned_steps"] == 100.0
    join = next(r for r in follower.readings() if r.scope == "rank_gpu")
    assert dict(join.labels) == {"run": "gemma", "rank": "0", "gpu": "0", "uuid": "GPU-0"}


def test_processes_of_a_live_run_are_measured(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    runs = Runs(tmp_path, "here")
    runs.update()
    assert values(runs)["processes"] == 1.0
    assert values(runs)["process_resident_bytes"] > 5e6  # type: ignore[operator]


@pytest.mark.parametrize(("word", "expected"), [("finish", "finished"), ("crash", "crashed")])
def test_an_end_that_was_written_is_believed(
    tmp_path: Path, follower: Runs, trainers: list[Trainer], word: str, expected: str
) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", word)
    wait_for(lambda: status(follower) == (expected,))
    trainers[0].kill()
    time.sleep(module.LOOK_SECONDS * 3)
    assert status(follower) == (expected,)
    assert not list((tmp_path / "runs" / "gemma" / "agent").iterdir())


def test_a_run_without_an_end_is_marked_killed(tmp_path: Path, follower: Runs, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step")
    wait_for(lambda: status(follower) == ("running",))
    os.kill(int(trainers[0].pid), signal.SIGKILL)
    wait_for(lambda: status(follower) == ("killed",), 5)
    report = tmp_path / "runs" / "gemma" / "agent" / "here.jsonl"
    lines = wait_for(lambda: report.exists() and [json.loads(line) for line in report.open()])
    assert [(line["event"], line["status"], line["rank"]) for line in lines] == [("status", "killed", 0)]


def test_a_rank_that_is_gone_while_another_lives_is_told_of_and_the_run_goes_on(
    tmp_path: Path, follower: Runs, trainers: list[Trainer]
) -> None:
    trainers.extend(Trainer(tmp_path, rank=rank, world=2, run_id="gemma") for rank in range(2))
    for trainer in trainers:
        trainer.say("step")
    wait_for(lambda: status(follower) == ("running",))
    os.kill(int(trainers[1].pid), signal.SIGKILL)
    wait_for(lambda: [list(state.gone) for state in follower.states()] == [[1]], 5)
    assert status(follower) == ("running",)


def test_a_run_that_hung_for_an_hour_and_was_killed_is_told_of(
    tmp_path: Path, follower: Runs, trainers: list[Trainer]
) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step")
    wait_for(lambda: status(follower) == ("running",))
    (tmp_path / "runs" / "gemma" / "agent" / "here.jsonl").touch()
    for path in (tmp_path / "runs" / "gemma", *(tmp_path / "runs" / "gemma").iterdir()):
        os.utime(path, (0, time.time() - 3600))
    trainers[0].kill()
    wait_for(lambda: status(follower) == ("killed",), 5)
    follower._next_scan = 0.0
    time.sleep(module.LOOK_SECONDS * 3)
    assert status(follower) == ("killed",)


def test_a_killed_run_is_reported_once_over_restarts_of_the_agent(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].kill()
    for _ in range(3):
        runs = Runs(tmp_path, "here")
        runs.update()
        assert status(runs) == ("killed",)
    report = tmp_path / "runs" / "gemma" / "agent" / "here.jsonl"
    assert len(report.read_text().splitlines()) == 1


def test_a_stopped_process_is_alive(tmp_path: Path, follower: Runs, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    wait_for(lambda: status(follower) == ("running",))
    os.kill(int(trainers[0].pid), signal.SIGSTOP)
    time.sleep(module.LOOK_SECONDS * 3)
    assert status(follower) == ("running",)


def test_one_rank_killed_leaves_the_run_running_and_is_reported(
    tmp_path: Path, follower: Runs, trainers: list[Trainer]
) -> None:
    trainers += [Trainer(tmp_path, rank=rank, world=2, run_id="both") for rank in (0, 1)]
    wait_for(lambda: status(follower) == ("running",))
    trainers[1].kill()
    report = tmp_path / "runs" / "both" / "agent" / "here.jsonl"
    wait_for(report.exists, 5)
    assert json.loads(report.read_text())["rank"] == 1
    assert status(follower) == ("running",)


def test_a_resumed_run_lives_again_and_goes_on_counting(
    tmp_path: Path, follower: Runs, trainers: list[Trainer]
) -> None:
    trainers.append(Trainer(tmp_path, run_id="again"))
    trainers[0].say("step", "step")
    trainers[0].kill()
    wait_for(lambda: status(follower) == ("killed",), 5)
    trainers.append(Trainer(tmp_path, run_id="again"))
    trainers[1].say("step")
    wait_for(lambda: status(follower) == ("running",), 5)
    wait_for(lambda: values(follower, "rank", "0").get("steps_total") == 3.0)


def test_after_a_restart_of_the_agent_counters_go_on(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", "step")
    for _ in range(2):
        runs = Runs(tmp_path, "here")
        runs.update()
        assert values(runs, "rank", "0")["steps_total"] == 2.0


def test_ranks_of_another_kernel_are_left_to_its_agent(
    tmp_path: Path, trainers: list[Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    trainers += [Trainer(tmp_path, rank=rank, world=2, run_id="both") for rank in (0, 1)]
    for trainer in trainers:
        trainer.say("step")
    here = layout.boot_id()
    _move(tmp_path / "runs" / "both" / "process.rank1.json", here, "elsewhere")
    assert _ranks(Runs(tmp_path, "here")) == {"0", "1"}  # beside rank 0: reads for the whole run
    _move(tmp_path / "runs" / "both" / "process.rank0.json", here, "elsewhere")
    _move(tmp_path / "runs" / "both" / "process.rank1.json", "elsewhere", here)
    assert _ranks(Runs(tmp_path, "here")) == {"1"}


def _move(process_file: Path, before: str, after: str) -> None:
    """In place, so that the lock stays."""
    process_file.write_text(process_file.read_text().replace(f'"boot_id":"{before}"', f'"boot_id":"{after}"'))


def _ranks(runs: Runs) -> set[str]:
    runs.update()
    return {reading.label("rank") for reading in runs.readings() if reading.scope == "rank"}


def test_an_ended_run_goes_after_ten_minutes(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", "finish")
    late = [0.0]
    runs = Runs(tmp_path, "here", Clock(lambda: time.time() + late[0], lambda: time.monotonic() + late[0]))
    runs.update()
    assert status(runs) == ("finished",)
    late[0] = 590.0
    runs.update()
    assert status(runs) == ("finished",)
    late[0] = 610.0
    runs.update()
    assert runs.readings() == []
    assert not list(runs.tail.followed())


def test_a_run_that_was_over_long_ago_is_not_read_at_all(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", "finish")
    runs = Runs(tmp_path, "here", Clock(lambda: time.time() + 3600, time.monotonic))
    runs.update()
    assert runs.readings() == []
    assert not list(runs.tail.followed())


def test_a_deleted_run_is_forgotten(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    runs = Runs(tmp_path, "here", polling=True)
    runs.update()
    trainers[0].kill()
    subprocess.run(["rm", "-r", str(tmp_path / "runs" / "gemma")], check=True)
    runs._next_scan = 0.0
    runs.update()
    assert runs.readings() == []


def test_files_without_a_process_show_their_values_and_no_status(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "copied"
    folder.mkdir(parents=True)
    (folder / "training_metrics_20250730_123456.jsonl").write_text('{"timestamp":"x","step":1,"loss":3.5}\n')
    runs = Runs(tmp_path, "here")
    runs.update()
    assert values(runs, "rank", "0")["loss"] == 3.5
    assert status(runs) is None


def test_hostile_contents_are_counted_and_skipped(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step")
    folder = tmp_path / "runs" / "gemma"
    rubbish = b'\x00\xff\n{"step":\n[1]\n"x"\n{"step":9,"loss":1.0}\n'
    (folder / "training_metrics_20250101_000000.jsonl").write_bytes(rubbish)
    (folder / "events.rank0.jsonl").write_bytes(b"rubbish\n")
    (folder / "run.json").write_bytes(b"{")
    (folder / "process.rank7.json").write_bytes(b"\x00\x01")
    runs = Runs(tmp_path, "here")
    runs.update()
    assert runs.tail.garbage_lines == 5
    assert values(runs, "rank", "0")["steps_total"] == 2.0
    assert status(runs) == ("running",)


def test_a_listener_hears_of_a_record_at_once(tmp_path: Path, follower: Runs, trainers: list[Trainer]) -> None:
    heard: list[tuple[str, int, int]] = []

    def listen(run: str, rank: int, records: list[Record], are_events: bool) -> None:
        heard.extend((run, rank, record["step"]) for record in records if "step" in record)

    follower.listeners.append(listen)
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", "step")
    wait_for(lambda: heard == [("gemma", 0, 1), ("gemma", 0, 2)], 3)


def test_without_inotify_it_polls(tmp_path: Path, trainers: list[Trainer]) -> None:
    runs = Runs(tmp_path, "here", polling=True)
    runs.start()
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step")
    wait_for(lambda: values(runs, "rank", "0").get("steps_total") == 1.0, 5)
    runs.stop()


def test_many_runs_and_ranks_at_once(tmp_path: Path) -> None:
    for number in range(40):
        folder = tmp_path / "runs" / f"run-{number}"
        folder.mkdir(parents=True)
        for rank in range(8):
            (folder / f"training_metrics_20250730_123456.rank{rank}.jsonl").write_text('{"step":1,"loss":1.0}\n' * 3)
    runs = Runs(tmp_path, "here")
    runs.update()
    ranks: list[Reading] = [reading for reading in runs.readings() if reading.scope == "rank"]
    assert len(ranks) == 320


def test_a_folder_whose_name_is_no_text_is_passed_over(tmp_path: Path) -> None:
    os.makedirs(os.fsencode(tmp_path / "runs") + b"/bad-\xff")
    runs = Runs(tmp_path, "here")
    runs.update()
    assert runs.readings() == []


def test_a_run_that_breaks_its_reader_leaves_the_others(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers += [Trainer(tmp_path, "bad"), Trainer(tmp_path, "good")]
    runs = Runs(tmp_path, "here")
    runs._scan()

    def fail(records: list[Record]) -> None:
        raise ZeroDivisionError

    runs._followed["bad"].state.ranks[0] = SimpleNamespace(take=fail, readings=lambda *_: [], custom=dict)  # type: ignore[assignment]
    for trainer in trainers:
        trainer.say("step")
    runs.update()
    assert values(runs, "rank", "0")["steps_total"] == 1.0


def test_a_name_nested_without_end_hides_no_run(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    (tmp_path / "runs" / "gemma" / "run.json").write_text('{"name":' + "[" * 1000 + "]" * 1000 + "}")
    runs = Runs(tmp_path, "here")
    runs.update()
    assert status(runs) == ("running",)


def test_a_run_that_cannot_be_told_is_left_out_alone_and_logged_once(
    tmp_path: Path, trainers: list[Trainer], caplog: pytest.LogCaptureFixture
) -> None:
    trainers += [Trainer(tmp_path, "bad"), Trainer(tmp_path, "good")]
    runs = Runs(tmp_path, "here")
    runs.update()
    runs._followed["bad"].state.processes = None  # type: ignore[assignment]
    for _ in range(3):
        assert {reading.label("run") for reading in runs.readings()} == {"good"}
    assert len([entry for entry in caplog.records if "cannot be followed" in entry.message]) == 1


def test_a_record_that_cannot_be_taken_is_counted_as_garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "runs" / "copied"
    folder.mkdir(parents=True)
    (folder / "training_metrics_20250730_123456.jsonl").write_text('{"step":1}\n{"step":2}\n{"step":3}\n')
    take = RankState._take
    monkeypatch.setattr(RankState, "_take", lambda self, record: take(self, record if record["step"] != 2 else None))
    runs = Runs(tmp_path, "here")
    runs.update()
    assert runs.tail.garbage_lines == 1
    assert values(runs, "rank", "0")["steps_total"] == 2.0


def _reports(root: Path, run: str) -> list[Record]:
    path = root / "runs" / run / "agent" / "here.jsonl"
    return [json.loads(line) for line in path.open()] if path.exists() else []


def _look_again(runs: Runs) -> None:
    runs._next_look = 0.0
    runs.update()


def test_ranks_of_another_kernel_are_read_but_never_reported_killed(tmp_path: Path, trainers: list[Trainer]) -> None:
    """Where locks do not show across hosts, all ranks of the others look dead."""
    trainers += [Trainer(tmp_path, rank=rank, world=2, run_id="both") for rank in (0, 1)]
    trainers[1].say("step")
    _move(tmp_path / "runs" / "both" / "process.rank1.json", layout.boot_id(), "elsewhere")
    trainers[1].kill()
    runs = Runs(tmp_path, "here")
    assert _ranks(runs) >= {"1"}
    assert status(runs) == ("running",)
    trainers[0].kill()
    _look_again(runs)
    assert status(runs) == ("killed",)
    assert [line["rank"] for line in _reports(tmp_path, "both")] == [0]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("first", ["step", "crash"])
def test_a_run_resumed_and_killed_again_is_reported_again(
    tmp_path: Path, trainers: list[Trainer], restarted: bool, first: str
) -> None:
    runs = Runs(tmp_path, "here")
    for life in range(3):
        trainers.append(Trainer(tmp_path, run_id="again"))
        trainers[life].say(first if life == 0 else "step")
        if not restarted:
            _look_again(runs)
        trainers[life].kill()
        for _ in range(2):
            runs = Runs(tmp_path, "here") if restarted else runs
            _look_again(runs)
    started = [line["started"] for line in _reports(tmp_path, "again")]
    assert len(started) == len(set(started)) == (3 if first == "step" else 2)


def test_a_link_to_a_run_is_no_second_run(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    (tmp_path / "runs" / "latest").symlink_to("gemma")
    runs = Runs(tmp_path, "here")
    runs.update()
    assert {reading.label("run") for reading in runs.readings()} == {"gemma"}


def test_a_link_that_may_not_be_followed_hides_no_run(tmp_path: Path, trainers: list[Trainer]) -> None:
    """In a folder that everybody may write to, the kernel follows no link of another user, not even for a look."""
    trainers.append(Trainer(tmp_path))
    (tmp_path / "runs").chmod(0o1777)
    link = tmp_path / "runs" / "latest"
    link.symlink_to("gemma")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(PermissionError):
        link.stat()
    runs = Runs(tmp_path, "here")
    runs.update()
    assert {reading.label("run") for reading in runs.readings()} == {"gemma"}


def test_runs_that_cannot_be_listed_are_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "runs").write_text("")
    shelf = Shelf(tmp_path / "runs")
    assert [shelf.runs(), shelf.runs(), shelf.errors] == [None, None, 1]
    assert [record.message for record in caplog.records] == [
        f"{tmp_path}/runs cannot be listed (Not a directory): new runs are not seen"
    ]
    (tmp_path / "runs").unlink()
    assert [shelf.runs(), shelf.errors] == [None, 1], "that nobody trained yet is no error"
    (tmp_path / "runs" / "gemma").mkdir(parents=True)
    assert shelf.runs() == [tmp_path / "runs" / "gemma"]


def test_a_small_file_replaced_within_one_tick_of_the_clock_is_read_again(tmp_path: Path) -> None:
    path, contents = tmp_path / "run.json", Contents()
    for replaced, text in ((False, '{"a":1}'), (False, '{"a":22}'), (True, '{"a":33}')):
        draft = tmp_path / "draft" if replaced else path
        draft.write_text(text)
        draft.replace(path)
        os.utime(path, (1.0, 1.0))
        assert contents.get(path, journal_runs.read_json) == json.loads(text)


def test_finished_runs_hold_no_watches(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers += [Trainer(tmp_path, f"run-{number}") for number in range(3)]
    trainers[0].say("finish")
    trainers[0].kill()
    late = [3600.0]
    runs = Runs(tmp_path, "here", Clock(lambda: time.time() + late[0], lambda: time.monotonic() + late[0]))
    if runs._watch is None:
        pytest.skip("this kernel has no inotify")
    runs.update()
    held = Path(f"/proc/self/fdinfo/{runs._watch.fd}")
    assert held.read_text().count("inotify wd:") == 3  # the folder of runs and the two that live
    trainers[1].kill()
    for _ in range(2):
        late[0] += 3600.0
        runs._next_scan = 0.0
        runs.update()
    assert held.read_text().count("inotify wd:") == 2


def test_ranks_that_ended_well_beside_a_rank_0_elsewhere_are_not_killed(
    tmp_path: Path, trainers: list[Trainer]
) -> None:
    trainers += [Trainer(tmp_path, rank=rank, world=2, run_id="both") for rank in (0, 1)]
    _move(tmp_path / "runs" / "both" / "process.rank0.json", layout.boot_id(), "elsewhere")
    trainers[1].say("step", "finish")
    trainers[1].kill()
    (tmp_path / "runs" / "both" / "run.json").unlink()
    runs = Runs(tmp_path, "here")
    runs.update()
    assert status(runs) == ("finished",)
    assert not list((tmp_path / "runs" / "both" / "agent").iterdir())
