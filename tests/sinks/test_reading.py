"""What a target is given: rows from lines, series from the node's lines, and how a run stands."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import trainvitals as tv
from tests.collector.support import wait_for
from tests.sinks.support import Trainer, ended_run
from trainvitals.journal import retention
from trainvitals.journal.record import timestamp_at
from trainvitals.sinks import parse, run_info
from trainvitals.sinks.config_values import flat
from trainvitals.sinks.resources import NodeSeries, slot_of
from trainvitals.sinks.rows import as_step, histogram_rows, training_rows
from trainvitals.sinks.source import RunSource

BEGAN = 1_795_000_000.0


def write(path: Path, lines: list[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def gpu_line(age: float, number: int = 0, **values: Any) -> dict[str, Any]:
    return {"timestamp": timestamp_at(BEGAN + age), "gpu_index": number, **values}


def test_lines_of_one_step_are_one_row_and_the_later_value_counts() -> None:
    lines = [{"step": 1, "loss": 1.0, "word": "a"}, {"step": 2, "loss": 3}, {"step": 1, "loss": 2.0, "wait": 0.5}]
    rows = training_rows(1, lines, BEGAN)
    assert [(row.step, row.values) for row in rows] == [(1, {"rank1/loss": 2.0, "rank1/wait": 0.5}),
                                                        (2, {"rank1/loss": 3.0})]  # fmt: skip


@pytest.mark.parametrize(("told", "step"), [
    (3, 3), (3.7, 3), (-2, -2), (2**70, 0), (math.nan, 0), (math.inf, 0), ("3", 0), (None, 0), (True, 0)])  # fmt: skip
def test_a_step_that_no_target_counts_is_the_start(told: object, step: int) -> None:
    assert as_step(told) == step


@pytest.mark.parametrize("told", [
    None, {}, {"edges": [0, 1]}, {"edges": [0, 1], "counts": [1, 2]}, {"edges": [0], "counts": []},
    {"edges": [0, "1"], "counts": [1]}])  # fmt: skip
def test_a_histogram_that_is_none_is_left_out(told: object) -> None:
    assert histogram_rows(0, [{"event": "histograms", "step": 1, "histograms": {"parameters/x": told}}], BEGAN) == []


def test_a_point_a_second_for_ten_minutes_then_one_every_ten_seconds() -> None:
    assert [slot_of(age) for age in (0, 0.9, 1, 599.9, 600, 609.9, 610, 86400)] == [
        0, 0, 1, 599, 600, 600, 601, 600 + 8580]  # fmt: skip


def test_what_did_not_change_is_carried_over_and_what_became_unknown_is_gone(tmp_path: Path) -> None:
    write(tmp_path / "gpu_metrics_20261118_000000.jsonl", [
        gpu_line(0.0, uuid="GPU-0", utilization_percent=1.0, clock_hertz_graphics=1e9),
        gpu_line(1.0, utilization_percent=2.0), gpu_line(2.0, utilization_percent=3.0, clock_hertz_graphics=None),
        gpu_line(3.0, uuid="GPU-1", utilization_percent=4.0)])  # fmt: skip
    rows = NodeSeries(tmp_path, "gpu", BEGAN).rows(last=True)
    assert [row.values for row in rows] == [
        {"gpu_0_gpu_utilization_pct": 1.0, "gpu_0_graphics_clock_mhz": 1000.0},
        {"gpu_0_gpu_utilization_pct": 2.0, "gpu_0_graphics_clock_mhz": 1000.0},
        {"gpu_0_gpu_utilization_pct": 3.0}, {"gpu_0_gpu_utilization_pct": 4.0}]  # fmt: skip
    assert [row.step for row in rows] == [0, 1, 2, 3]


def test_a_slot_is_told_when_the_next_begins_and_once(tmp_path: Path) -> None:
    path = tmp_path / "gpu_metrics_20261118_000000.jsonl"
    series = NodeSeries(tmp_path, "gpu", BEGAN)
    write(path, [gpu_line(0.0, utilization_percent=1.0)])
    assert series.rows() == []
    write(path, [gpu_line(0.5, utilization_percent=2.0), gpu_line(1.0, utilization_percent=3.0)])
    assert [row.values["gpu_0_gpu_utilization_pct"] for row in series.rows()] == [2.0]
    again = NodeSeries(tmp_path, "gpu", BEGAN)
    again.next_slot = series.next_slot
    assert [row.values["gpu_0_gpu_utilization_pct"] for row in again.rows(last=True)] == [3.0]
    assert again.rows(last=True) == []


def test_lines_that_may_be_of_after_the_end_wait_until_that_is_known(tmp_path: Path) -> None:
    write(tmp_path / "gpu_metrics_20261118_000000.jsonl", [gpu_line(age, utilization_percent=1.0) for age in range(9)])
    series = NodeSeries(tmp_path, "gpu", BEGAN)
    series.lived = BEGAN + 3
    assert [row.step for row in series.rows(last=True)] == [0, 1, 2, 3]
    series.lived = BEGAN + 8
    series.end = BEGAN + 5
    assert [row.step for row in series.rows(last=True)] == [4, 5]
    assert series.is_past_end()


def test_lines_that_were_thinned_meanwhile_bring_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "gpu_metrics_20261118_000000.jsonl"
    write(path, [gpu_line(age, utilization_percent=float(age)) for age in range(180)])
    series = NodeSeries(tmp_path, "gpu", BEGAN)
    assert len(series.rows()) == 179
    retention.thin(path)
    write(path, [gpu_line(180.0, utilization_percent=180.0), gpu_line(181.0, utilization_percent=181.0)])
    assert [row.step for row in series.rows()] == [179, 180]


def test_the_same_rows_come_again_up_to_a_mark(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path)
    trainer.step(3)
    source = RunSource(trainer.folder, tmp_path, BEGAN)
    first = source.read()
    trainer.step(4)
    second = source.read()
    again = RunSource(trainer.folder, tmp_path, BEGAN)
    trainer.step(5)
    assert [again.read(mark.place).rows for mark in (first, second)] == [first.rows, second.rows]
    assert len(again.read().rows) == 5
    trainer.end()


def test_a_run_that_lives_is_shown_its_own_gpus_once_it_told_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINVITALS_HOSTNAME", "node1")
    trainer = Trainer(tmp_path)
    began = time.time() - 5
    lines = [{"timestamp": timestamp_at(began + age), "gpu_index": number, "uuid": f"GPU-{number}",
              "utilization_percent": 1.0} for age in (1, 2, 3) for number in (0, 1)]  # fmt: skip
    write(tmp_path / "gpu" / "node1" / "gpu_metrics_20261118_000000.jsonl", lines)
    source = RunSource(trainer.folder, tmp_path, began)
    source.info()
    assert source.read().rows == []
    trainer.files.rank.tell(gpus=[{"uuid": "GPU-1"}])
    info = source.info()
    assert [row.values for row in source.read().rows] == [{"gpu_1_gpu_utilization_pct": 1.0}] * 2
    assert info.gpus == {0: "gpu_1"}
    trainer.end()


@pytest.mark.parametrize(("told", "status"), [({"event": "note"}, "killed"), ({"event": "signal"}, "preempted")])
def test_a_run_that_is_gone_was_killed_or_a_signal_it_told_of_is_why_and_one_that_ended_is_as_it_said(
    tmp_path: Path, told: dict[str, str], status: str
) -> None:
    script = "import sys, time; from pathlib import Path; from tests.sinks.support import Trainer\n" \
             "files = Trainer(Path(sys.argv[1])).files\n" \
             f"files.events.append({told}); print(flush=True); time.sleep(60)"  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    folder = tmp_path / "runs" / "gemma"
    assert run_info.read(folder).status == "running"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for(lambda: run_info.read(folder).status != "running")
    assert run_info.read(folder).status == status
    info = run_info.read(folder)
    assert info.ended is not None
    assert time.time() - info.ended < 60
    assert run_info.read(ended_run(tmp_path, name="other").folder).status == "finished"


def test_a_run_that_one_of_its_ranks_crashed_in_is_crashed(tmp_path: Path) -> None:
    for rank, how in ((0, "finished"), (1, "crashed")):
        run = tv.start("both", dir=tmp_path, rank=rank, world_size=2, run_id="both")
        run.finish(how, "ValueError: x" if rank else "")
    assert run_info.read(tmp_path / "runs" / "both").status == "crashed"
    for rank in (0, 1):
        tv.start("both", dir=tmp_path, rank=rank, world_size=2, run_id="both", resume=True).finish()
    assert run_info.read(tmp_path / "runs" / "both").status == "finished"


def test_a_config_is_pairs() -> None:
    assert flat({"a": {"b": 1, "c": {}}, "d": [1, None], "e": None, "f": True}) == {
        "a.b": 1, "a.c": "{}", "d": "[1, null]", "e": "null", "f": True}  # fmt: skip


def test_a_target_is_shown_without_its_password() -> None:
    assert parse("mlflow=https://me:secret@host/x").shown == "mlflow=https://…@host/x"
