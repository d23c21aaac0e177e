"""Keeping the journal small: thinned lines tell the same, the oldest goes first, what lives stays."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.collector.journal.helpers import end, line_of, python, whole_lines
from tests.collector.journal.test_claim import HOLDER
from trainvitals.journal import layout, retention
from trainvitals.journal.record import encode, seconds, timestamp_at
from trainvitals.journal.retention import sweep, sweep_node, sweep_runs, thin
from trainvitals.journal.tail import Tail

NOW = 1_753_878_896.0
DAY, HOUR = 86400.0, 3600.0
GPU_FILE = "gpu_metrics_20250729_123400.jsonl"


def stamped(path: Path, age: float) -> Path:
    os.utime(path, (NOW - age, NOW - age))
    return path


def write(path: Path, records: list[dict[str, Any]], age: float = 2 * DAY) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(encode, records)))
    return stamped(path, age)


def ticks(count: int, gpus: int = 2, interval: float = 1.0, start: float = NOW - 2 * DAY) -> list[dict[str, Any]]:
    """As the agent writes: given fields in each line, others when they change."""
    records: list[dict[str, Any]] = []
    for tick in range(count):
        for gpu in range(gpus):
            record = {
                "timestamp": timestamp_at(start + tick * interval),
                "gpu_index": gpu,
                "power_draw_watts": 100.0 + tick,
            }
            if tick == 0:
                record |= {"pcie_width": 16.0, "uuid": f"GPU-{gpu}"}
            if tick % 45 == 30:
                record["pcie_width"] = None if tick % 2 else float(tick)
            records.append(record)
    return records


def carried(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The full state after each line, as readers build it."""
    last: dict[object, dict[str, Any]] = {}
    for record in records:
        last[record.get("gpu_index")] = {**last.get(record.get("gpu_index"), {}), **record}
        yield last[record.get("gpu_index")]


def test_a_line_a_minute_and_gpu_stays(tmp_path: Path) -> None:
    path = write(tmp_path / GPU_FILE, ticks(600))
    thin(path)
    records = whole_lines(path)
    minutes = [(int((seconds(record["timestamp"]) or 0) // 60), record["gpu_index"]) for record in records]
    assert len(minutes) == 1 + 2 * 11
    assert len(set(minutes[1:])) == len(minutes) - 1


def test_every_line_that_stays_tells_what_held_at_its_time(tmp_path: Path) -> None:
    """Whoever carries values over from line to line sees, at each time that is left, what stood there before."""
    records = ticks(600)
    path = write(tmp_path / GPU_FILE, records)
    before = {(state["timestamp"], state["gpu_index"]): state for state in carried(records)}
    thin(path)
    after = list(carried(whole_lines(path)))
    assert after[1:] == [before[state["timestamp"], state["gpu_index"]] for state in after[1:]]
    assert [state for state in after if state["gpu_index"] == 0][-1] == before[records[-1]["timestamp"], 0]


def test_lines_of_the_host_are_thinned_alike(tmp_path: Path) -> None:
    records = [{"timestamp": timestamp_at(NOW + tick), "cpu_usage_percent": float(tick)} for tick in range(300)]
    path = write(tmp_path / "host_metrics_20250729_123400.jsonl", records)
    thin(path)
    assert whole_lines(path)[-1] == records[-1]
    assert len(whole_lines(path)) == 7


def test_thinning_again_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / GPU_FILE, ticks(600))
    thin(path)
    once = path.read_bytes()
    thin(path)
    assert path.read_bytes() == once
    assert [path.name for path in tmp_path.iterdir()] == [GPU_FILE]


@pytest.mark.parametrize("interval", [0.1, 1.0, 15.0, 30.0])
@pytest.mark.parametrize("offset", [0.0, 3.9, 4.5, 59.0])
def test_only_old_files_are_thinned_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: float, offset: float
) -> None:
    """Wherever in its minute a file begins (NOW is 56 s into one)."""
    records = ticks(40, interval=interval, start=NOW - 3 * DAY + offset)
    old = write(tmp_path / GPU_FILE, records)
    young = write(tmp_path / "gpu_metrics_20250730_123400.jsonl", records, age=DAY - 10)
    thinned: list[Path] = []

    def told(path: Path) -> None:
        thinned.append(path)
        thin(path)

    monkeypatch.setattr(retention, "thin", told)
    for _ in range(3):
        sweep_node(tmp_path, NOW)
    assert thinned == [old]
    assert whole_lines(young) == records
    assert old.stat().st_mtime == NOW - 2 * DAY


def test_a_cursor_stays_good_across_thinning(tmp_path: Path) -> None:
    path = write(tmp_path / GPU_FILE, ticks(600))
    reader = Tail()
    reader.follow(path)
    while reader.read(path):
        pass
    cursor = reader.cursor()
    thin(path)
    again = Tail(cursor)
    assert again.read(path) == reader.read(path) == []
    with path.open("ab") as file:
        file.write(encode({"n": 1}))
    assert again.read(path) == reader.read(path) == [{"n": 1}]


GARBAGE = b"\0\xff garbage\n" + b"[" * 100_000 + b"\n" + b'{"gpu_index":[1],"timestamp":7}\n{"gpu_index":{}}\n[]\n\n'


def test_garbage_is_thinned_away_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / GPU_FILE
    content = list(map(encode, ticks(300)))
    path.write_bytes(GARBAGE + b"".join(content[:200]) + GARBAGE + b"".join(content[200:]) + b'{"cut')
    stamped(path, 2 * DAY)
    sweep_node(tmp_path, NOW)
    records = whole_lines(path)
    assert len(records) < 40
    assert records[-1]["power_draw_watts"] == 399.0


@pytest.mark.parametrize("content", [b"", b"\n\n", GARBAGE, b"\0" * 10_000, encode({"gpu_index": 0})])
def test_files_with_nothing_to_thin(tmp_path: Path, content: bytes) -> None:
    (tmp_path / GPU_FILE).write_bytes(content)
    stamped(tmp_path / GPU_FILE, 2 * DAY)
    for _ in range(2):
        assert sweep_node(tmp_path, NOW) == (tmp_path / GPU_FILE).stat().st_size


def test_a_failure_while_thinning_leaves_the_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / GPU_FILE, ticks(300))
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "utime", full)
    sweep_node(tmp_path, NOW)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_the_place_of_the_thinned_copy_or_of_the_file_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    before = write(precious, ticks(300)).read_bytes()
    path = write(tmp_path / "node" / GPU_FILE, ticks(300))
    path.with_name(f".{path.name}.thin").symlink_to(precious)
    linked = path.with_name(GPU_FILE.replace("0729", "0728"))
    linked.symlink_to(precious)
    sweep_node(path.parent, NOW)
    assert len(whole_lines(path)) < 30 and linked.is_symlink()
    assert precious.read_bytes() == before


def filled(path: Path, size: int, age: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * (size - 1) + b"\n")
    return stamped(path, age)


def test_over_their_cap_the_oldest_node_files_go(tmp_path: Path) -> None:
    files = [filled(tmp_path / f"gpu_metrics_2025072{day}_000000.jsonl", 1000, (9 - day) * DAY) for day in range(5)]
    host = filled(tmp_path / "host_metrics_20250721_000000.jsonl", 1000, 8.1 * DAY)
    other = filled(tmp_path / "events.jsonl", 9000, 9 * DAY)
    assert sweep_node(tmp_path, NOW, cap=6000) == 6000
    assert sweep_node(tmp_path, NOW, cap=3500) == 3000
    assert [path for path in (*files, host, other) if path.exists()] == [*files[2:], other]


def test_the_file_being_written_stays_whatever_the_cap(tmp_path: Path) -> None:
    old = filled(tmp_path / "gpu_metrics_20250729_000000.jsonl", 1000, 2 * HOUR)
    current = filled(tmp_path / "gpu_metrics_20250730_000000.jsonl", 1000, 5)
    assert sweep_node(tmp_path, NOW, cap=10) == 1000
    assert (old.exists(), current.exists()) == (False, True)


def run(root: Path, name: str, age: float, size: int = 1000) -> Path:
    folder = root / "runs" / name
    filled(folder / "training_metrics_20250720_000000.jsonl", size, age)
    filled(folder / "agent" / "host.jsonl", 10, age)
    stamped(folder / "agent", age)
    return stamped(folder, age)


def left(root: Path) -> set[str]:
    return {path.name for path in (root / "runs").iterdir() if path.is_dir()}


def test_over_the_cap_the_runs_touched_last_stay(tmp_path: Path) -> None:
    for days in range(1, 6):
        run(tmp_path, f"run-{days}", days * DAY)
    assert sweep_runs(tmp_path, NOW, cap=6000) == 5050
    assert len(left(tmp_path)) == 5
    assert sweep_runs(tmp_path, NOW, cap=2100) == 2020
    assert left(tmp_path) == {"run-1", "run-2"}


def test_a_run_is_as_young_as_its_youngest_file(tmp_path: Path) -> None:
    run(tmp_path, "long", 9 * DAY)
    stamped(tmp_path / "runs" / "long" / "agent" / "host.jsonl", 2 * HOUR)
    run(tmp_path, "short", DAY)
    sweep_runs(tmp_path, NOW, cap=1500)
    assert left(tmp_path) == {"long"}


def test_that_somebody_looked_at_a_run_keeps_it_no_longer_and_its_index_counts(tmp_path: Path) -> None:
    run(tmp_path, "looked at", 9 * DAY)
    index = tmp_path / "runs" / "looked at" / "agent" / layout.index_file("host", 0)
    index.write_bytes(b"x" * 500)
    run(tmp_path, "young", DAY)
    assert sweep_runs(tmp_path, NOW, cap=10_000) == 2 * 1010 + 500
    assert sweep_runs(tmp_path, NOW, cap=1500) == 1010
    assert left(tmp_path) == {"young"}


def test_a_live_run_stays_whatever_the_cap(tmp_path: Path) -> None:
    run(tmp_path, "dead", 2 * DAY)
    holder = python(HOLDER, tmp_path, "alive")
    try:
        assert line_of(holder) == "alive"
        run(tmp_path, "alive", 9 * DAY)
        stamped(tmp_path / "runs" / "alive" / "process.rank0.json", 9 * DAY)
        stamped(tmp_path / "runs" / "alive", 9 * DAY)
        size = sweep_runs(tmp_path, NOW, cap=0)
        assert left(tmp_path) == {"alive"}
        assert size >= 1000
    finally:
        end(holder)
    assert sweep_runs(tmp_path, NOW, cap=0) < 10
    assert left(tmp_path) == set()


def test_runs_touched_within_the_hour_stay(tmp_path: Path) -> None:
    """Another node may write them where locks do not show."""
    run(tmp_path, "recent", HOUR - 60)
    run(tmp_path, "ahead", -HOUR)
    run(tmp_path, "older", HOUR + 60)
    sweep_runs(tmp_path, NOW, cap=0)
    assert left(tmp_path) == {"recent", "ahead"}


def test_a_run_that_a_crash_left_half_removed_goes(tmp_path: Path) -> None:
    run(tmp_path, ".removed.train", 5)
    run(tmp_path, "train", DAY)
    sweep_runs(tmp_path, NOW)
    assert left(tmp_path) == {"train"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    filled(outside / "precious", 5000, 9 * DAY)
    folder = run(tmp_path, "linking", 9 * DAY)
    (folder / "data").symlink_to(outside)
    os.utime(folder / "data", (0, 0), follow_symlinks=False)
    stamped(folder, 9 * DAY)
    (tmp_path / "runs" / "link").symlink_to(outside)
    sweep_runs(tmp_path, NOW, cap=0)
    assert (outside / "precious").exists()
    assert not folder.exists()


def test_a_link_that_may_not_be_followed_keeps_no_old_run(tmp_path: Path) -> None:
    folder = run(tmp_path, "old", 9 * DAY)
    (tmp_path / "runs").chmod(0o1777)
    (tmp_path / "runs" / "latest").symlink_to("old")
    os.chown(tmp_path / "runs" / "latest", 65534, 65534, follow_symlinks=False)
    sweep_runs(tmp_path, NOW, cap=0)
    assert not folder.exists()


def test_missing_folders_are_nothing(tmp_path: Path) -> None:
    assert sweep(tmp_path / "none", "host", NOW) == 0
    (tmp_path / "runs").write_text("a file")
    assert sweep(tmp_path, "host", NOW) == 0


def test_one_sweep_applies_all_rules(tmp_path: Path) -> None:
    write(layout.gpu_folder(tmp_path, "host") / GPU_FILE, ticks(600))
    run(tmp_path, "old", 2 * DAY)
    run(tmp_path, "new", DAY)
    size = sweep(tmp_path, "host", NOW, runs_cap=1500)
    assert left(tmp_path) == {"new"}
    assert size == 1010 + (layout.gpu_folder(tmp_path, "host") / GPU_FILE).stat().st_size
