"""What a host's line holds beside the host's own values, and that a replay finds by it what the agent would have."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.detect.support import BEGAN, lines, write
from trainvitals.agent.beside import MOST_FILESYSTEMS, Beside
from trainvitals.agent.node_log import NodeLog, carried, read_lines
from trainvitals.detect.engine import Engine
from trainvitals.journal import layout, retention
from trainvitals.model import Reading
from trainvitals.replay import replay

SIZE = 1e12
HOURS = 3


def room(free: float, mountpoint: str = "/data") -> Reading:
    return Reading("filesystem", (("mountpoint", mountpoint),), {"size_bytes": SIZE, "free_bytes": free}, BEGAN)


def source(name: str, is_up: bool) -> Reading:
    return Reading("source", (("source", name),), {"up": float(is_up), "errors_total": 0.0}, BEGAN)


def own(dropped: float = 0.0, unread: float = 0.0) -> Reading:
    values = {"journal_records_dropped_total": dropped, "journal_read_errors_total": unread, "samples_total": 9.0}
    return Reading("agent", (), values, BEGAN)


def test_what_the_agent_knows_besides_is_a_field_each() -> None:
    assert Beside().fields([room(3e11), source("nvml", False), own(2.0), source("host", True)]) == {
        "filesystems": {"/data": {"size_bytes": SIZE, "free_bytes": 3e11}},
        "source_up_nvml": 0.0, "source_up_host": 1.0, "journal_records_dropped_total": 2.0,
        "journal_read_errors_total": 0.0}  # fmt: skip


def test_of_what_nobody_knows_there_is_no_field() -> None:
    unknown = Reading("filesystem", (("mountpoint", "/"),), {"size_bytes": SIZE, "free_bytes": None}, BEGAN)
    unread = Reading("source", (("source", "nvml"),), {"errors_total": 0.0}, BEGAN)
    assert Beside().fields([unknown, unread]) == {}


@pytest.mark.parametrize(("before", "after", "is_told"), [
    (5e11, 5e11 - 0.9e9, False), (5e11, 5e11 - 1.1e9, True), (5e11, 5e11 + 1.1e9, True),
    # Nearly full, less counts more.
    (3e10, 3e10 - 0.2e9, False), (3e10, 3e10 - 0.4e9, True), (0.0, 1.0, True),
])  # fmt: skip
def test_room_is_told_anew_when_enough_has_come_or_gone(before: float, after: float, is_told: bool) -> None:
    beside = Beside()
    beside.fields([room(before)])
    told = beside.fields([room(after)])["filesystems"]["/data"]["free_bytes"]
    assert told == (after if is_told else before)


def test_a_file_system_that_comes_or_goes_is_told_at_once_and_of_many_a_few() -> None:
    beside = Beside()
    beside.fields([room(3e11)])
    assert beside.fields([room(3e11), room(1e11, "/new")])["filesystems"].keys() == {"/data", "/new"}
    assert beside.fields([room(3e11)])["filesystems"].keys() == {"/data"}
    many = beside.fields([room(3e11, f"/{number:03}") for number in range(100)])["filesystems"]
    assert len(many) == MOST_FILESYSTEMS


def test_what_is_told_besides_is_a_small_share_of_the_file(tmp_path: Path) -> None:
    """Two disks that are written to and tidied up all day, told each ten seconds as the host does."""
    rng = random.Random(3)
    sizes = []
    for name, has_more in (("bare", False), ("full", True)):
        log = NodeLog(tmp_path / name)
        for tick in range(7200):
            names = ("cpu_usage_percent", "memory_used_bytes", "memory_available_bytes")
            host = Reading("host", (), {name: rng.uniform(0, 9e11) for name in names}, BEGAN + tick)
            free = 4e11 + 2e10 * ((tick // 10) % 360) / 360
            more = [room(free), room(free / 7, "/"), source("nvml", True), own()] if has_more else []
            log.write([host], [host, *more])
        log.close()
        sizes.append(sum(path.stat().st_size for path in (tmp_path / name).iterdir()))
    assert sizes[0] < sizes[1] < 1.03 * sizes[0]


Course = Callable[[float], list[Reading]]


def recorded(root: Path, course: Course) -> NodeLog:
    """Three hours of a node, and of a run on it."""
    write(root / "runs" / "gemma", lines(HOURS * 360, 10.0, loss=lambda step: 3.0 - step / 2000))
    folder = layout.gpu_folder(root, "node-a")
    log = NodeLog(folder)
    for since in range(0, HOURS * 3600, 10):
        host = Reading("host", (), {"cpu_usage_percent": 20.0 + since % 7}, BEGAN + since)
        log.write([host], [host, *course(float(since))])
    log.close()
    return log


COURSES: dict[str, tuple[Course, str]] = {
    "full": (lambda since: [room(SIZE * (0.5 if since < 5000 else 0.0299))], "HostDiskFull"),
    "by tomorrow": (lambda since: [room(SIZE * (0.38 - 0.03 * since / 3600)), room(SIZE * 0.5, "/")],
                    "HostDiskFillingUp"),
    "no source": (lambda since: [source("nvml", since < 5000)], "SourceDown"),
    "lost": (lambda since: [own(dropped=7.0 * (since > 5000))], "JournalErrors"),
    "unread": (lambda since: [own(unread=1.0 * (since > 5000))], "JournalErrors"),
}  # fmt: skip


@pytest.mark.parametrize("is_thinned", [False, True], ids=["whole", "thinned"])
@pytest.mark.parametrize("name", COURSES)
def test_a_replay_finds_what_the_agent_would_have(tmp_path: Path, name: str, is_thinned: bool) -> None:
    course, kind = COURSES[name]
    recorded(tmp_path, course)
    if is_thinned:
        for path in retention.node_files(layout.gpu_folder(tmp_path, "node-a")):
            retention.thin(path)
    (told,) = replay([tmp_path], Engine())
    assert told.finding.kind == kind
    assert told.finding.place.part == {"HostDiskFull": "/data", "HostDiskFillingUp": "/data", "SourceDown": "nvml"}.get(
        kind, ""
    )


def test_a_replay_of_a_well_node_says_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, lambda since: [room(4e11), source("nvml", True), own(dropped=12.0)])
    assert replay([tmp_path], Engine()) == []


def test_fields_that_somebody_broke_stop_nothing(tmp_path: Path) -> None:
    recorded(tmp_path, lambda since: [])
    (path,) = retention.node_files(layout.gpu_folder(tmp_path, "node-a"))
    broken: dict[str, Any] = {"filesystems": [1, 2], "journal_records_dropped_total": "many", "source_up_nvml": "no"}
    with path.open("a") as file:
        for more in (broken, {"filesystems": {"/": 3}}, {"filesystems": {"/": {"size_bytes": "x", "free_bytes": 1}}}):
            file.write(json.dumps({"timestamp": "2025-07-30T14:59:00.000Z", **more}) + "\n")
    assert replay([tmp_path], Engine()) == []
    assert list(carried(read_lines(path.parent, 0.0, "host")))[-1]["source_up_nvml"] == "no"
