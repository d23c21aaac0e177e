"""The engine within an agent: what it says is told at once, written down, shown as series, and survives a restart."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.collector.agent.fakes import FakeGpu, FakeSource
from trainvitals.agent.service import Agent
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.errors import DeviceLost
from trainvitals.journal import runs
from trainvitals.journal.record import decode, encode, timestamp_at
from trainvitals.journal.run_files import RunFiles

PATIENCE_SECONDS = 10.0


class Watched:
    """An agent whose news is kept with the time that it came."""

    def __init__(self, root: Path, gpus: Sequence[FakeGpu] = (), **settings: Any) -> None:
        self.told: list[tuple[float, Change]] = []
        self.agent = Agent([FakeSource(list(gpus) or [FakeGpu(0)])], root, engine=Engine(), tell=self._tell,
                           **{"interval": 0.1, **settings})  # fmt: skip

    def _tell(self, news: Sequence[Change]) -> None:
        self.told += [(time.monotonic(), change) for change in news]

    def __enter__(self) -> "Watched":
        self.agent.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.agent.stop()

    def wait_for(self, kind: str, state: str = "open") -> tuple[float, Change]:
        found: list[tuple[float, Change]] = []
        wait(lambda: bool(found.extend(self._of(kind, state)) or found))
        return found[0]

    def _of(self, kind: str, state: str) -> list[tuple[float, Change]]:
        return [one for one in self.told if (one[1].finding.kind, one[1].state) == (kind, state)]


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def training(root: Path, name: str = "gemma") -> RunFiles:
    return RunFiles(runs.claim(root, name), name, planned_steps=1000)


def findings(file: Path) -> list[dict[str, Any]]:
    lines = [decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []
    return [line for line in lines if line.get("event") == "finding"]


def test_a_nan_is_told_at_once_and_written_into_the_run_s_own_events(tmp_path: Path) -> None:
    with Watched(tmp_path) as watched:
        files = training(tmp_path)
        files.metrics.append({"step": 1, "loss": 2.0})
        wait(lambda: bool(watched.agent.runs.states()))
        written = time.monotonic()
        files.metrics.append({"step": 2, "loss": math.nan})
        told, change = watched.wait_for("TrainingNonFinite")
        assert told - written < 5.0
        assert (change.finding.place.run, change.finding.place.rank, change.finding.step) == ("gemma", "0", 2)
        file = tmp_path / "runs" / "gemma" / "agent" / f"{watched.agent.host}.jsonl"
        wait(lambda: bool(findings(file)))
        files.end("finished")
    (line,) = findings(file)
    assert (line["state"], line["kind"], line["severity"], line["step"]) == ("open", "TrainingNonFinite", "page", 2)
    assert line["runbook"].endswith("/TrainingNonFinite.md")


def test_what_is_open_is_a_series(tmp_path: Path) -> None:
    with Watched(tmp_path) as watched:
        files = training(tmp_path)
        files.metrics.append({"step": 1, "loss": math.nan})
        wait(lambda: any(watched.agent.snapshot.of("finding")))
        (reading,) = watched.agent.snapshot.of("finding")
        files.end("finished")
    assert dict(reading.labels) == {"kind": "TrainingNonFinite", "severity": "page", "run": "gemma", "rank": "0",
                                    "gpu": "", "uuid": ""}  # fmt: skip


def test_what_is_folded_is_one_too_and_what_differs_in_its_part_alone_is_one_series(tmp_path: Path) -> None:
    agent = Agent([], tmp_path, engine=Engine())
    assert agent.detecting
    book = agent.detecting._engine.book
    full = Finding("HostDiskFull", "page", "full", place=Place(part="/"))
    for one in (full, full._replace(place=Place(part="/data")), Finding("JournalErrors", "ticket", "lost")):
        book.note(one, 1.0)
    assert len(list(book.heads())) == 2
    found = [dict(reading.labels)["kind"] for reading in agent.detecting.readings(2.0)]
    assert found == ["HostDiskFull", "JournalErrors"]


def test_a_gpu_that_goes_is_told_into_the_machine_s_events(tmp_path: Path) -> None:
    with Watched(tmp_path, expected_gpus=2) as watched:
        watched.agent.detecting._engine._node("", "").host._began = 1.0  # type: ignore[union-attr]
        _, change = watched.wait_for("GpuMissing")
        assert change.finding.what == "1 of 2 GPUs answer"
        file = tmp_path / "gpu" / watched.agent.host / "events.jsonl"
        wait(lambda: bool(findings(file)))


def test_a_gpu_that_was_seen_and_goes_is_named(tmp_path: Path) -> None:
    gpu = FakeGpu(1)
    with Watched(tmp_path, [FakeGpu(0), gpu]) as watched:
        wait(lambda: len(list(watched.agent.snapshot.of("gpu"))) == 2)
        watched.agent.detecting._engine._node("", "").host._began = 1.0  # type: ignore[union-attr]
        gpu.error = DeviceLost("nvml", "gone")
        _, change = watched.wait_for("GpuMissing")
    assert change.finding.what == "1 of 2 GPUs answer: GPU 1 (GPU-1) is missing"


def test_a_rank_of_another_machine_is_told_with_that(tmp_path: Path) -> None:
    """On shared storage the agent beside rank 0 tells of all."""
    files = training(tmp_path)
    folder = tmp_path / "runs" / "gemma"
    (folder / "process.rank1.json").write_bytes(encode({"host": "node-b", "boot_id": "b", "rank": 1}))
    with Watched(tmp_path) as watched:
        engine = watched.agent.detecting._engine  # type: ignore[union-attr]
        wait(lambda: "gemma" in engine._runs and bool(engine._runs["gemma"]._hosts))
        record = {"timestamp": timestamp_at(time.time()), "step": 1, "loss": math.nan}
        (folder / "training_metrics_20250730_120000.rank1.jsonl").write_bytes(encode(record))
        _, change = watched.wait_for("TrainingNonFinite")
    assert (change.finding.place.rank, change.finding.what) == ("1", "on node-b: the loss is nan at step 1")
    files.end("finished")


def test_a_crash_is_told(tmp_path: Path) -> None:
    with Watched(tmp_path) as watched:
        files = training(tmp_path)
        files.metrics.append({"step": 1, "loss": 2.0})
        files.end("crashed", error="ValueError: x")
        _, change = watched.wait_for("TrainingCrashed")
    assert change.finding.what == "the run ended by an exception: ValueError: x"


def test_the_agent_after_it_tells_nothing_twice(tmp_path: Path) -> None:
    files = training(tmp_path)
    files.metrics.append({"step": 1, "loss": math.nan})
    with Watched(tmp_path) as first:
        first.wait_for("TrainingNonFinite")
        began = first.told[0][1].opened
    with Watched(tmp_path) as second:
        assert [one.finding.kind for one in second.agent.before] == ["TrainingNonFinite"]
        assert second.agent.detecting and second.agent.detecting.readings(1.0)
        wait(lambda: any(second.agent.snapshot.of("finding")))
        files.metrics.append({"step": 2, "loss": 1e9, "gradient_norm": math.nan})
        time.sleep(0.5)
        assert second.told == []
        (one,) = second.agent.detecting._engine.book.open.values()  # type: ignore[union-attr]
        assert abs(one.opened - began) < 0.001
    files.end("finished")


def test_what_was_over_long_before_anybody_looked_is_no_news(tmp_path: Path) -> None:
    files = training(tmp_path)
    for step in range(3):
        files.metrics.append({"timestamp": f"2025-07-30T12:00:0{step}.000Z", "step": step, "loss": math.nan})
    with Watched(tmp_path) as watched:
        wait(lambda: bool(watched.agent.runs.states()))
        time.sleep(0.5)
        assert watched.told == []
    files.end("finished")


def test_a_stall_is_judged_only_when_all_that_was_written_is_read(tmp_path: Path) -> None:
    """A backlog's last line is old until the next one is read."""
    files = training(tmp_path)
    for step in range(20_000):
        files.metrics.append({"step": step, "loss": 9.0 - step / 4000, "step_duration_seconds": 0.1})
    with Watched(tmp_path) as watched:
        wait(lambda: any(state.ranks for state in watched.agent.runs.states()))
        time.sleep(1.0)
        assert watched.told == []
    files.end("finished")
