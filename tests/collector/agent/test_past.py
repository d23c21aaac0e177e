"""Runs that ended more than ten minutes ago: on the page and in the API, and no series any more."""

import os
import shutil
import time
from pathlib import Path

import trainvitals as tv
from tests.collector.support import serving, wait_for
from trainvitals.agent.past import END_BYTES, KEEP_RUNS
from trainvitals.agent.runs import Runs
from trainvitals.clock import Clock
from trainvitals.model import Reading, Snapshot
from trainvitals.web.views import runs_view

IN_AN_HOUR = Clock(lambda: time.time() + 3600, time.monotonic)


def train(root: Path, name: str, steps: int = 3) -> None:
    with tv.start(name, dir=root, planned_steps=steps) as run:
        for step in range(1, steps + 1):
            run.log(step=step, loss=1 / step, own=7)


def shown(runs: Runs) -> dict[str, dict[str, object]]:
    runs._next_scan = 0.0
    runs.update()
    assert runs.readings() == []
    return {run["run"]: run for run in runs_view(Snapshot(1.0, (), runs.past.readings))}


def test_an_agent_that_starts_later_shows_how_the_last_runs_ended(tmp_path: Path) -> None:
    train(tmp_path, "gemma")
    gemma = shown(Runs(tmp_path, "here", IN_AN_HOUR))["gemma"]
    assert (gemma["status"], gemma["planned_steps"], gemma["name"]) == ("finished", 3.0, "gemma")
    [rank] = gemma["ranks"]  # type: ignore[misc]
    assert (rank["step"], rank["loss"], rank["custom"]) == (3.0, 1 / 3, {"own": 7.0})
    assert "last_step_timestamp_seconds" in rank


def test_only_the_end_of_a_long_run_is_read_and_what_needs_its_beginning_is_left_out(tmp_path: Path) -> None:
    train(tmp_path, "long", 3000)
    [lines] = (tmp_path / "runs" / "long").glob("training_metrics_*.jsonl")
    assert lines.stat().st_size > 2 * END_BYTES
    runs = Runs(tmp_path, "here", IN_AN_HOUR)
    [rank] = shown(runs)["long"]["ranks"]  # type: ignore[misc]
    assert rank["step"] == 3000.0
    assert not [name for name in rank if "_total" in name]


def test_ten_runs_are_kept_the_last_ones_first(tmp_path: Path) -> None:
    for number in range(KEEP_RUNS + 3):
        train(tmp_path, f"run{number:02}")
        time.sleep(0.002)  # ends are known to the millisecond
    assert list(shown(Runs(tmp_path, "here", IN_AN_HOUR))) == [f"run{n:02}" for n in range(KEEP_RUNS + 2, 2, -1)]


def test_runs_that_live_come_before_those_that_ended_and_the_newest_first() -> None:
    def told(run: str, status: str, began: float, stepped: float) -> list[Reading]:
        values = {"run_status": (status,), "start_timestamp_seconds": began}
        last = {"last_step_timestamp_seconds": stepped}
        return [Reading("run", (("run", run),), values, 1.0),
                Reading("rank", (("run", run), ("rank", "0")), last, 1.0)]  # fmt: skip

    readings = [*told("over", "finished", 1.0, 9.0), *told("old", "running", 2.0, 10.0),
                *told("late", "killed", 1.5, 9.5), *told("new", "running", 3.0, 10.0)]  # fmt: skip
    shown = [(run["run"], run["status"]) for run in runs_view(Snapshot(1.0, tuple(readings)))]
    assert shown == [("new", "running"), ("old", "running"), ("late", "killed"), ("over", "finished")]


def test_a_run_that_the_agent_saw_to_its_end_stays(tmp_path: Path) -> None:
    late = [0.0]
    runs = Runs(tmp_path, "here", Clock(lambda: time.time() + late[0], lambda: time.monotonic() + late[0]))
    train(tmp_path, "gemma")
    runs.update()
    assert runs.readings() and not runs.past.readings
    late[0] = 3600.0
    assert shown(runs)["gemma"]["status"] == "finished"


def test_a_past_run_that_is_resumed_lives_and_one_that_is_deleted_is_gone(tmp_path: Path) -> None:
    for name in ("again", "deleted"):
        train(tmp_path, name)
    runs = Runs(tmp_path, "here", IN_AN_HOUR)
    assert shown(runs).keys() == {"again", "deleted"}
    shutil.rmtree(tmp_path / "runs" / "deleted")
    assert shown(runs).keys() == {"again"}
    with tv.start("again", dir=tmp_path, resume=True):
        runs._next_scan = 0.0
        runs.update()
        assert runs.readings() and not runs.past.readings


def test_the_api_shows_them_and_a_scrape_does_not(tmp_path: Path) -> None:
    train(tmp_path, "gemma")
    old = time.time() - 3600
    folder = tmp_path / "runs" / "gemma"
    told = (folder / "run.json").read_text().replace(time.strftime('"end":"%Y'), '"end":"2001')
    (folder / "run.json").write_text(told)
    os.utime(folder, (old, old))
    with serving(tmp_path, "--simulate", "1") as agent:
        runs = wait_for(lambda: agent.snapshot()["runs"])
        assert [(run["run"], run["status"]) for run in runs] == [("gemma", "finished")]
        assert "gemma" not in agent.get("/metrics")
