"""The node's lines: given names first, what changed after, null where a value became unknown."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainvitals.agent.node_log import NodeLog, carried, gpu_values, read_lines
from trainvitals.journal import append
from trainvitals.model import Event, Reading, Value

LABELS = (("gpu", "3"), ("uuid", "GPU-abc"))
GIVEN: dict[str, Value] = {
    "utilization_percent": 97.0,
    "memory_used_mb": 40960.0,
    "memory_total_mb": 81920.0,
    "temperature_celsius": 61.0,
    "power_draw_watts": 312.4,
    "fan_speed_percent": 30.0,
}


def reading(values: dict[str, Value], when: float = 1753878896.789) -> Reading:
    return Reading("gpu", LABELS, values, when)


def write(log: NodeLog, values: dict[str, Value], when: float = 1753878896.789) -> None:
    log.write([reading(values, when)], [reading(values, when)])


def lines(folder: Path, kind: str = "gpu") -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob(f"{kind}_metrics_*.jsonl")) for line in path.open()]


def test_a_line_opens_with_the_given_names(tmp_path: Path) -> None:
    write(NodeLog(tmp_path), {"performance_state": 0.0, **GIVEN})
    line = lines(tmp_path)[0]
    assert list(line) == ["timestamp", "gpu_index", "utilization_percent", "memory_used_mb", "memory_total_mb",
                          "memory_percent", "temperature_celsius", "power_draw_watts", "fan_speed_percent",
                          "performance_state", "uuid"]  # fmt: skip
    assert line["timestamp"] == "2025-07-30T12:34:56.789Z"
    assert (line["gpu_index"], line["memory_percent"], line["uuid"]) == (3, 50.0, "GPU-abc")


def test_after_the_first_line_only_given_and_changed_fields_are_written(tmp_path: Path) -> None:
    log = NodeLog(tmp_path)
    write(log, {**GIVEN, "pcie_width": 16.0, "pcie_replays_total": 0.0})
    write(log, {**GIVEN, "pcie_width": 16.0, "pcie_replays_total": 4.0})
    assert lines(tmp_path)[1].keys() - lines(tmp_path)[0].keys() == set()
    assert "pcie_width" not in lines(tmp_path)[1]
    assert lines(tmp_path)[1]["pcie_replays_total"] == 4.0


def test_a_value_that_became_unknown_is_null_once_and_carried_as_unknown(tmp_path: Path) -> None:
    log = NodeLog(tmp_path)
    write(log, {**GIVEN, "pcie_width": 16.0})
    write(log, GIVEN)
    write(log, GIVEN)
    assert lines(tmp_path)[1]["pcie_width"] is None
    assert "pcie_width" not in lines(tmp_path)[2]
    assert [line["pcie_width"] for line in carried(read_lines(tmp_path, 0))] == [16.0, None, None]


def test_a_new_file_opens_with_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "RETRY_SECONDS", 0.0)
    log = NodeLog(tmp_path)
    log.gpus._max_bytes = 600
    for tick in range(6):
        write(log, {**GIVEN, "pcie_width": 16.0}, 1753878896.0 + tick)
    files = sorted(tmp_path.glob("gpu_metrics_*.jsonl"))
    assert len(files) > 1
    for path in files:
        assert any("pcie_width" in json.loads(line) for line in path.open()), path
    told = {line["timestamp"]: line["pcie_width"] for line in carried(read_lines(tmp_path, 0)) if "uuid" in line}
    assert list(told.values()) == [16.0] * 6


def test_nothing_is_written_of_a_gpu_that_was_not_read(tmp_path: Path) -> None:
    log = NodeLog(tmp_path)
    log.write([], [reading(GIVEN)])
    assert not lines(tmp_path)


def test_the_host_has_lines_of_its_own(tmp_path: Path) -> None:
    log = NodeLog(tmp_path)
    host = Reading("host", (), {"cpu_usage_percent": 12.5}, 1753878896.0)
    log.write([host], [host, Reading("disk", (("device", "sda"),), {"read_bytes_total": 1.0}, 1.0)])
    assert lines(tmp_path, "host") == [{"timestamp": "2025-07-30T12:34:56.000Z", "cpu_usage_percent": 12.5}]
    assert not lines(tmp_path)


def test_an_event_is_a_line_with_who_and_what(tmp_path: Path) -> None:
    log = NodeLog(tmp_path)
    log.write_event(Event("xid", LABELS, {"xid": 79}, 1753878896.789))
    assert json.loads((tmp_path / "events.jsonl").read_text()) == {
        "timestamp": "2025-07-30T12:34:56.789Z", "event": "xid", "gpu": "3", "uuid": "GPU-abc", "xid": 79}  # fmt: skip


def test_memory_share_is_absent_where_the_total_is() -> None:
    assert "memory_percent" not in gpu_values(reading({"memory_used_mb": 5.0}))
    assert "memory_percent" not in gpu_values(reading({"memory_used_mb": 5.0, "memory_total_mb": 0.0}))


def test_a_day_of_eight_busy_gpus_leaves_room_for_a_month_of_thinned_lines(tmp_path: Path) -> None:
    """A line in steady state, counted: 8 GPUs at 1 Hz for a day stay under 300 MB."""
    log = NodeLog(tmp_path)
    busy = {**GIVEN, "memory_controller_utilization_ratio": 0.61, "clock_hertz_graphics": 1755e6,
            "clock_hertz_sm": 1755e6, "clock_hertz_memory": 2619e6, "energy_joules_total": 5001408.026}  # fmt: skip
    write(log, busy)
    size = log.gpus._size
    write(log, {**busy, "energy_joules_total": 5001720.1, "memory_controller_utilization_ratio": 0.6,
                "clock_hertz_graphics": 1740e6, "clock_hertz_sm": 1740e6})  # fmt: skip
    assert (log.gpus._size - size) * 8 * 86400 < 300e6


def test_nothing_is_carried_from_one_file_into_the_next(tmp_path: Path) -> None:
    (tmp_path / "gpu_metrics_20250730_100000.jsonl").write_text('{"gpu_index":0,"uuid":"a","pcie_width":8}\n')
    (tmp_path / "gpu_metrics_20250730_110000.jsonl").write_text('{"gpu_index":0,"uuid":"a"}\n{"gpu_index":0}\n')
    told = list(carried(read_lines(tmp_path, 0)))
    assert [line.get("pcie_width") for line in told] == [8, None, None]
    assert told[2] == {"gpu_index": 0, "uuid": "a"}


def test_a_gpu_that_was_exchanged_starts_afresh_and_so_does_the_one_put_back(tmp_path: Path) -> None:
    log = NodeLog(tmp_path)
    for uuid, values in (("a", {"pcie_width": 16.0}), ("b", {"ecc": 1.0}), ("a", {"pcie_width": 16.0})):
        one = Reading("gpu", (("gpu", "3"), ("uuid", uuid)), {**GIVEN, **values}, 1753878896.0)
        log.write([one], [one])
    told = list(carried(read_lines(tmp_path, 0)))
    assert [(line["uuid"], line.get("pcie_width"), line.get("ecc")) for line in told] == [
        ("a", 16.0, None), ("b", None, 1.0), ("a", 16.0, None)]  # fmt: skip


def test_after_lines_were_lost_everything_is_written_again(tmp_path: Path) -> None:
    """The append may have said yes: on slow storage a line is lost later."""
    log = NodeLog(tmp_path)
    write(log, {**GIVEN, "pcie_width": 16.0, "ecc": 1.0})
    write(log, {**GIVEN, "pcie_width": 8.0})
    path = log.gpus.path
    assert path
    first, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first)  # what told of the change is gone
    log.gpus.counts.dropped += 1
    for _ in range(2):
        write(log, {**GIVEN, "pcie_width": 8.0})
    assert [(line["pcie_width"], line["ecc"]) for line in carried(read_lines(tmp_path, 0))] == [
        (16.0, 1.0), (8.0, None), (8.0, None)]  # fmt: skip
    assert "pcie_width" not in lines(tmp_path)[2]


def test_a_file_that_is_tidied_up_while_others_are_read_is_passed_over(tmp_path: Path) -> None:
    files = [tmp_path / f"gpu_metrics_20250730_1{hour}0000.jsonl" for hour in range(3)]
    for hour, path in enumerate(files):
        path.write_text(f'{{"gpu_index":{hour}}}\n')
    reading = read_lines(tmp_path, 0)
    seen = [next(reading)[1]["gpu_index"]]
    files[1].unlink()
    assert seen + [record["gpu_index"] for _, record in reading] == [0, 2]
