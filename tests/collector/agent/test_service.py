"""The agent as a whole, on fake and simulated sources: one writer, health, memory of the past, full disks."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.collector.agent.fakes import FakeEventSource, FakeGpu, FakeSource
from tests.collector.journal.helpers import open_descriptors
from tests.collector.support import wait_for
from trainvitals.agent.service import Agent
from trainvitals.catalog import SERIES
from trainvitals.clock import Clock
from trainvitals.errors import DeviceLost, JournalError
from trainvitals.journal import layout
from trainvitals.journal.record import timestamp_at
from trainvitals.model import Event
from trainvitals.sources.host import HostSource
from trainvitals.sources.simulated import SimulatedSource


@contextmanager
def running(root: Path, *sources: Any, **settings: Any) -> Iterator[Agent]:
    agent = Agent(sources or [FakeSource([FakeGpu(0), FakeGpu(1)])], root, **{"interval": 0.1, **settings})
    agent.start()
    try:
        wait_for(lambda: agent.snapshot.readings)
        yield agent
    finally:
        agent.stop()


def node_value(agent: Agent, name: str) -> float | None:
    return next((value for r in agent.snapshot.of("host") if (value := r.number(name)) is not None), None)


def own_value(agent: Agent, name: str) -> float | None:
    return next(agent.snapshot.of("agent")).number(name)


def lines(root: Path, name: str = "gpu_metrics_*.jsonl") -> list[dict[str, Any]]:
    folder = layout.gpu_folder(root, layout.host_name())
    return [json.loads(line) for path in sorted(folder.glob(name)) for line in path.open()]


def test_a_tick_becomes_a_snapshot_lines_and_history(tmp_path: Path) -> None:
    with running(tmp_path, SimulatedSource(2), HostSource()) as agent:
        wait_for(lambda: len(lines(tmp_path)) >= 4)
        assert {line["gpu_index"] for line in lines(tmp_path)} == {0, 1}
        assert agent.history.gpus() == ["0", "1"]
        assert node_value(agent, "gpu_count") == 2
        wait_for(lambda: node_value(agent, "cpu_usage_percent") is not None)
        wait_for(lambda: "filesystems" in _host_fields(tmp_path))
    assert _host_fields(tmp_path) >= {"cpu_usage_percent", "source_up_simulated", "journal_records_dropped_total",
                                      "gpu_count", "gpu_expected_count"}  # fmt: skip


def _host_fields(root: Path) -> set[str]:
    return {name for line in lines(root, "host_metrics_*.jsonl") for name in line}


def test_a_second_agent_on_the_same_journal_is_turned_away(tmp_path: Path) -> None:
    with running(tmp_path), pytest.raises(JournalError, match="an agent runs already"):
        Agent([], tmp_path).start()
    with running(tmp_path):
        pass


def test_an_agent_that_stopped_holds_no_descriptor(tmp_path: Path) -> None:
    with running(tmp_path / "first"):
        pass
    before = open_descriptors()
    with running(tmp_path / "second"):
        assert open_descriptors() > before
    assert open_descriptors() == before


def test_a_gpu_that_went_is_still_missed_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainvitals.agent.service.HOUSEKEEPING_SECONDS", 0.1)
    kept = layout.gpu_folder(tmp_path, layout.host_name()) / "gpus.json"
    with running(tmp_path):
        wait_for(kept.exists)
    with running(tmp_path, FakeSource([FakeGpu(0)])) as agent:
        wait_for(lambda: node_value(agent, "gpu_expected_count") == 2)
        assert node_value(agent, "gpu_count") == 1
    kept.write_text('{"most": "many"}')
    with running(tmp_path, FakeSource([FakeGpu(0)])) as agent:
        assert node_value(agent, "gpu_expected_count") == 1


def test_a_gpu_that_went_is_missed_and_makes_the_agent_unhealthy(tmp_path: Path) -> None:
    gpu = FakeGpu(1)
    with running(tmp_path, FakeSource([FakeGpu(0), gpu]), HostSource()) as agent:
        wait_for(lambda: node_value(agent, "gpu_count") == 2)
        assert agent.health() == []
        gpu.error = DeviceLost("nvml", "gone")
        wait_for(lambda: node_value(agent, "gpu_count") == 1)
        assert node_value(agent, "gpu_expected_count") == 2
        assert agent.health() == ["1 of 2 GPUs answer: GPU 1 (GPU-1) is missing"]


def test_what_was_set_is_expected_from_the_start(tmp_path: Path) -> None:
    with running(tmp_path, expected_gpus=8, node_price=2.5) as agent:
        assert agent.health() == ["2 of 8 GPUs answer"]
        assert node_value(agent, "node_price_dollars_per_hour") == 2.5


def test_events_reach_the_journal(tmp_path: Path) -> None:
    source = FakeEventSource([FakeGpu(0)])
    source.events = [Event("xid", (("gpu", "0"), ("uuid", "GPU-0")), {"xid": 79}, time.time())]
    with running(tmp_path, source):
        wait_for(lambda: lines(tmp_path, "events.jsonl"))
    assert lines(tmp_path, "events.jsonl")[0]["xid"] == 79


def test_history_is_filled_from_what_an_earlier_agent_wrote(tmp_path: Path) -> None:
    folder = layout.gpu_folder(tmp_path, layout.host_name())
    folder.mkdir(parents=True)
    began = time.time() - 600
    rows = [
        {"timestamp": timestamp_at(began + n), "gpu_index": 0, "temperature_celsius": 40.0 + n % 7} for n in range(60)
    ]
    path = folder / "gpu_metrics_20250730_123456.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "rubbish\n")
    with running(tmp_path) as agent:
        known = wait_for(lambda: _temperatures(agent, began) if len(_temperatures(agent, began)) >= 59 else None)
    assert set(known) == {40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0}


def _temperatures(agent: Agent, start: float) -> list[float]:
    _, points = agent.history.points("0", "temperature_celsius", start, start + 60, time.time())
    return [point.mean for point in points if point.mean is not None]


def test_a_clock_set_back_does_no_harm(tmp_path: Path) -> None:
    back = [0.0]
    with running(tmp_path, clock=Clock(lambda: time.time() - back[0], time.monotonic)) as agent:
        before = own_value(agent, "samples_total") or 0
        back[0] = 86400.0
        wait_for(lambda: (own_value(agent, "samples_total") or 0) > before + 10)
        assert node_value(agent, "gpu_count") == 2


def test_a_folder_that_cannot_be_written_is_said_and_the_readings_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with running(blocked / "journal") as agent:
        wait_for(lambda: (own_value(agent, "journal_records_dropped_total") or 0) > 3)
        assert node_value(agent, "gpu_count") == 2
    assert "readings are shown but not kept" in caplog.text
    assert caplog.text.count("records are dropped") == 1


def test_a_full_disk_drops_records_and_writing_resumes(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(small)], check=True)
    try:
        with running(small, SimulatedSource(8), interval=0.1) as agent:
            filler = small / "filler"
            filler.write_bytes(b"x" * _free(small))
            wait_for(lambda: (own_value(agent, "journal_records_dropped_total") or 0) > 10)
            filler.unlink()
            written = own_value(agent, "journal_records_total") or 0
            wait_for(lambda: (own_value(agent, "journal_records_total") or 0) > written + 8)
        assert all(line["timestamp"] for line in lines(small))
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def _free(folder: Path) -> int:
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


def test_a_log_folder_of_ones_own_takes_the_lines_and_is_never_tidied(tmp_path: Path) -> None:
    own = tmp_path / "own"
    old = own / "gpu_metrics_20200101_000000.jsonl"
    own.mkdir()
    old.write_text('{"timestamp":"2020-01-01T00:00:00.000Z","gpu_index":0}\n' * 3)
    os.utime(old, (1577836800, 1577836800))
    with running(tmp_path / "journal", log_folder=own):
        wait_for(lambda: len(list(own.glob("gpu_metrics_*.jsonl"))) == 2)
    assert len(old.read_text().splitlines()) == 3
    assert not list((tmp_path / "journal").glob("gpu/*/gpu_metrics_*"))


def test_without_a_log_nothing_is_written(tmp_path: Path) -> None:
    with running(tmp_path, keep_log=False):
        pass
    assert not list(tmp_path.rglob("*.jsonl"))


def test_listeners_get_every_snapshot(tmp_path: Path) -> None:
    seen: list[float] = []
    with running(tmp_path) as agent:
        agent.listeners.append(lambda snapshot: seen.append(snapshot.timestamp))
        wait_for(lambda: len(seen) > 3)
    assert seen == sorted(seen)


def test_sources_tell_whether_they_are_up(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        source = next(agent.snapshot.of("source"))
        assert source.labels == (("source", "nvml"),)
        assert source.values.keys() == set(SERIES["source"])


def test_nothing_is_written_after_the_end(tmp_path: Path) -> None:
    with running(tmp_path, SimulatedSource(8), interval=0.02):
        pass
    before = {path: path.stat().st_size for path in tmp_path.rglob("*.jsonl")}
    time.sleep(0.2)
    assert {path: path.stat().st_size for path in tmp_path.rglob("*.jsonl")} == before


def test_the_xid_of_a_gpu_that_is_gone_stays_to_be_seen(tmp_path: Path) -> None:
    with running(tmp_path, SimulatedSource(3, "xid79")) as agent:
        wait_for(lambda: node_value(agent, "gpu_count") == 2, 15)
        xid = wait_for(lambda: list(agent.snapshot.of("xid")))[0]
        assert xid.label("xid") == "79"
        assert xid.values["errors_total"] == 1.0


def test_what_the_driver_counts_is_expected(tmp_path: Path) -> None:
    with running(tmp_path, FakeSource([FakeGpu(0)], gpu_count=2)) as agent:
        assert agent.health() == ["1 of 2 GPUs answer"]


def test_a_snapshot_that_is_no_longer_made_is_no_longer_shown(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        agent._sampler.last_published -= 60
        agent._sampler._publish = lambda sample: time.sleep(30)
        wait_for(lambda: not agent.snapshot.readings or setattr(agent._sampler, "last_published", 0.0))
        assert "stuck" in agent.health()[0]
        agent._sampler._stop.set()


def test_runs_whose_disk_hangs_are_not_shown_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "copied"
    folder.mkdir(parents=True)
    (folder / "training_metrics_20250730_123456.jsonl").write_text('{"step":1,"loss":3.5}\n')
    hang = threading.Event()
    with running(tmp_path) as agent:
        wait_for(lambda: list(agent.snapshot.of("rank")))
        agent.runs.update = lambda: hang.wait(60)
        wait_for(lambda: not (setattr(agent.runs, "last_update", -1e9) or list(agent.snapshot.of("rank"))))
        assert "cannot be followed" in agent.health()[0]
        hang.set()
