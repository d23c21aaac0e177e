"""What the ranks of a run write, and who writes what."""

import os
import resource
import signal
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.collector.journal.helpers import end, line_of, python, whole_lines
from tests.collector.support import wait_for
from trainvitals.journal import runs
from trainvitals.journal.record import seconds
from trainvitals.journal.run_files import RunFiles

REWRITES = """
import sys
from pathlib import Path
from trainvitals.journal.runs import write_run
print("writing", flush=True)
number = 0
while True:
    write_run(Path(sys.argv[1]), {"n": number, "config": {"text": "x" * (number % 40_000)}, "end": number})
    number += 1
"""


def files_of(root: Path, rank: int = 0, world_size: int = 1, **more: Any) -> RunFiles:
    claimed = runs.claim(root, "train", rank=rank, world_size=world_size, environ={})
    return RunFiles(claimed, "train", **more)


def run_json(files: RunFiles) -> dict[str, Any]:
    content = runs.read_json(files.rank.folder / "run.json")
    assert content is not None
    return content


def test_a_run_says_what_it_is_and_how_it_ended(tmp_path: Path) -> None:
    files = files_of(tmp_path, config={"lr": 0.1, "loss": float("inf")}, framework="torch", planned_steps=1000)
    began = run_json(files)
    assert seconds(began.pop("start")) is not None
    assert began == {"run": "train", "name": "train", "framework": "torch", "world_size": 1, "planned_steps": 1000,
                     "tags": [], "config": {"lr": 0.1, "loss": float("inf")}, "end": None,
                     "status": "running"}  # fmt: skip
    files.end("crashed", error="ValueError: x")
    ended = run_json(files)
    assert (ended["status"], ended["error"]) == ("crashed", "ValueError: x")
    assert (seconds(ended["end"]) or 0) >= (seconds(ended["start"]) or 0) > 0


def test_steps_and_events_lie_in_files_of_their_own(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    files.metrics.append({"step": 1, "loss": 0.5})
    files.events.append({"event": "checkpoint"})
    files.end("finished")
    names = sorted(path.name for path in files.rank.folder.iterdir() if path.is_file())
    assert names[:3] == ["events.rank0.jsonl", "process.rank0.json", "run.json"]
    assert [record["event"] for record in whole_lines(files.rank.folder / names[0])] == ["checkpoint", "end"]
    assert names[3].startswith("training_metrics_20")
    assert names[3].endswith(".jsonl")
    assert ".rank" not in names[3]
    assert [record["step"] for record in whole_lines(files.rank.folder / names[3])] == [1]


def test_of_many_ranks_the_first_alone_writes_the_run(tmp_path: Path) -> None:
    second = files_of(tmp_path, rank=1, world_size=2)
    second.metrics.append({"step": 1})
    assert not (second.rank.folder / "run.json").exists()
    first = files_of(tmp_path, rank=0, world_size=2)
    first.metrics.append({"step": 1})
    assert first.rank.folder == second.rank.folder
    second.end("crashed")
    assert run_json(first)["status"] == "running"
    first.end("finished")
    assert run_json(first)["status"] == "finished"
    training = {path.name.partition(".")[2] for path in first.rank.folder.glob("training_metrics_*")}
    assert training == {"rank0.jsonl", "rank1.jsonl"}


def test_the_end_lets_go_of_the_rank_and_comes_once(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    process_file = files.rank.folder / "process.rank0.json"
    assert runs.is_alive(process_file)
    files.end("finished")
    files.end("crashed")
    assert not runs.is_alive(process_file)
    assert run_json(files)["status"] == "finished"
    assert len(whole_lines(files.rank.folder / "events.rank0.jsonl")) == 1


def test_a_forked_worker_cannot_end_the_run(tmp_path: Path) -> None:
    """Workers run what a trainer registered to run at its exit, too."""
    files = files_of(tmp_path)
    child = os.fork()
    if child == 0:
        try:
            files.end("crashed")
            files.metrics.append({"step": 99})
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert run_json(files)["status"] == "running"
    assert not list(files.rank.folder.glob("*.jsonl"))
    files.end("finished")
    assert run_json(files)["status"] == "finished"


def test_a_run_that_cannot_be_described_runs_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    files = files_of(tmp_path)
    files.describe(kind=endless)
    assert "run.json cannot be written" in caplog.text
    assert files.metrics.append({"step": 1})
    files.end("finished")
    assert not runs.is_alive(files.rank.folder / "process.rank0.json")


def test_a_config_or_a_tag_that_no_json_can_hold_costs_itself_alone(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)
    files = files_of(tmp_path, config={"lr": 0.1, "odd": endless}, tags=["good", endless])  # type: ignore[list-item]
    files.describe(config={"mock": MagicMock(), "password": "x"})
    content = run_json(files)
    assert (content["config"]["lr"], content["config"]["odd"]) == (0.1, ["<list within itself>"])
    assert isinstance(content["config"]["mock"], str)
    assert content["config"]["password"] == "(hidden)"
    assert content["tags"] == ["good", ["<list within itself>"]]


def test_a_config_is_taken_when_it_is_given(tmp_path: Path) -> None:
    config = {"layers": [1, 2]}
    files = files_of(tmp_path, config=config)
    config["layers"].append(3)
    files.end("finished")
    assert run_json(files)["config"] == {"layers": [1, 2]}


GOES_ON = """
import sys
from pathlib import Path
from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles
print(RunFiles(runs.claim(Path(sys.argv[1]), "train", run_id="train", environ={}), "train").last_step, flush=True)
"""


def test_a_pipe_or_a_link_under_a_metrics_files_name_keeps_no_run_waiting(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "train"
    folder.mkdir(parents=True)
    (folder / "training_metrics_20250101_000000.jsonl").write_text('{"step":7}\n')
    (tmp_path / "other.jsonl").write_text('{"step":9}\n')
    (folder / "training_metrics_20250102_000000.jsonl").symlink_to(tmp_path / "other.jsonl")
    os.mkfifo(folder / "training_metrics_20260101_000000.jsonl")
    process = python(GOES_ON, tmp_path)
    try:
        assert process.communicate(timeout=20)[0] == "7\n"
    finally:
        end(process)


def test_readers_of_the_run_never_see_a_half_written_file(tmp_path: Path) -> None:
    writer = python(REWRITES, tmp_path)
    try:
        assert line_of(writer) == "writing"
        path = tmp_path / "run.json"
        while not path.exists():
            assert writer.poll() is None
        seen: set[int] = set()

        def many_read_whole() -> bool:
            for _ in range(100):
                content = runs.read_json(path)
                assert content is not None
                assert content["n"] == content["end"]
                seen.add(content["n"])
            return len(seen) > 200

        wait_for(many_read_whole, seconds=30, pause=0)
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=10)
        assert runs.read_json(path) is not None
    finally:
        end(writer)


def test_a_draft_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    runs.write_run(tmp_path, {"n": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, hard))
    try:
        with pytest.raises(OSError, match="large"):
            runs.write_run(tmp_path, {"n": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert runs.read_json(tmp_path / "run.json") == {"n": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
