"""Where each rank's steps go, and which rank the others wait for."""

from pathlib import Path
from typing import Any

import pytest

from tests.collector.agent.written import NOON, line, run_folder
from tests.collector.journal.helpers import add
from trainvitals.agent.rank_times import rank_times
from trainvitals.journal.record import encode


def write(folder: Path, rank: int, count: int = 300, **values: float) -> None:
    told = {"step_duration_seconds": 0.5, **values}
    content = b"".join(
        line(step, NOON + step, loss=1.0) + line(step, NOON + step, **told) for step in range(1, count + 1)
    )
    add(folder / f"training_metrics_20250730_120000.rank{rank}.jsonl", content)
    process = {"host": f"gpu{rank // 4}", "gpus": [{"gpu": str(rank % 4), "uuid": f"GPU-{rank}"}, {"uuid": "GPU-x"}]}
    (folder / f"process.rank{rank}.json").write_bytes(encode(process))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return run_folder(tmp_path)


def told(folder: Path, last: int = 100) -> Any:
    return rank_times(folder, last, {"GPU-x": "9"})


def test_the_rank_that_is_slow_before_the_others_wait_is_named(run: Path) -> None:
    for rank in range(8):
        slow = 0.3 if rank == 6 else 0.1
        write(run, rank, data_wait_seconds=0.01, forward_seconds=slow, backward_seconds=0.2, optimizer_seconds=0.05)
    found = told(run)
    assert [row["rank"] for row in found["ranks"]] == list(range(8))
    assert found["ranks"][6] == {
        "rank": 6, "host": "gpu1", "gpus": ["2", "9"], "step": 300, "step_seconds": 0.5, "data_wait_seconds": 0.01,
        "forward_seconds": 0.3, "backward_seconds": 0.2, "optimizer_seconds": 0.05,
        "before_collective_seconds": 0.31}  # fmt: skip
    assert (found["slowest"]["rank"], found["slowest"]["host"]) == (6, "gpu1")
    assert found["slowest"]["ratio"] == pytest.approx(0.31 / 0.11)
    assert found["slowest"]["words"] == "rank 6 on gpu1 takes 2.82 times as long as the others before it waits for them"


def test_ranks_that_are_alike_are_called_so(run: Path) -> None:
    for rank in range(4):
        write(run, rank, forward_seconds=0.1 + rank / 1000)
    assert told(run)["slowest"]["words"].startswith("no rank is slow: rank 3 on gpu0 takes 1.02 times")


def test_ranks_that_run_freely_are_known_by_whole_steps(run: Path) -> None:
    for rank in range(4):
        write(run, rank, step_duration_seconds=0.9 if rank == 2 else 0.5)
    found = told(run)
    assert found["ranks"][0]["before_collective_seconds"] == 0.5
    assert found["slowest"]["words"] == "rank 2 on gpu0 takes 1.80 times as long as the others for a step"


def test_of_steps_that_end_together_the_wait_tells_and_not_the_shorter_step(run: Path) -> None:
    for rank in range(2):
        waits = 0.45 if rank == 1 else 0.05
        write(run, rank, data_wait_seconds=waits, step_duration_seconds=0.95 - waits)
    words = "rank 1 on gpu0 takes 1.73 times as long as the others before it waits for them"
    assert told(run)["slowest"]["words"] == words


def test_one_rank_alone_is_not_the_slowest(run: Path) -> None:
    write(run, 0)
    assert told(run)["slowest"] is None


def test_only_the_last_steps_count_and_those_of_the_last_life(run: Path) -> None:
    write(run, 0, 100, forward_seconds=0.1)
    later = b"".join(line(step, NOON + 9000, forward_seconds=0.7) for step in range(50, 71))
    add(run / "training_metrics_20250730_150000.rank0.jsonl", later)
    assert told(run, 20)["ranks"][0]["forward_seconds"] == 0.7
    assert told(run, 20)["ranks"][0]["step"] == 70
    assert told(run, 1000)["ranks"][0]["forward_seconds"] == 0.1


def test_lines_that_are_long_are_read_as_far_back_as_it_takes(run: Path) -> None:
    content = b"".join(line(step, NOON, forward_seconds=step / 1000, text="x" * 5000) for step in range(1, 301))
    add(run / "training_metrics_20250730_120000.rank0.jsonl", content)
    assert told(run, 100)["ranks"][0]["forward_seconds"] == pytest.approx(0.251, abs=0.001)


def test_nonsense_is_unknown(run: Path) -> None:
    add(run / "training_metrics_20250730_120000.rank0.jsonl",
        b'{"step":1,"forward_seconds":NaN,"data_wait_seconds":-1}\n'
        b'{"step":2,"forward_seconds":"x","step_duration_seconds":1e999}\n{"step":"x"}\n\xff\n')  # fmt: skip
    (run / "process.rank0.json").write_bytes(b'{"host":["x"],"gpus":{"a":1}}')
    (run / "process.rank1.json").write_bytes(b"garbage")
    [row] = told(run)["ranks"]
    assert row == {"rank": 0, "host": None, "gpus": [], "step": 2, "step_seconds": None, "data_wait_seconds": None,
                   "forward_seconds": None, "backward_seconds": None, "optimizer_seconds": None,
                   "before_collective_seconds": None}  # fmt: skip


def test_a_rank_that_has_begun_and_told_nothing_is_there(run: Path) -> None:
    (run / "process.rank0.json").write_bytes(encode({"host": "gpu1"}))
    [row] = told(run)["ranks"]
    assert (row["host"], row["step"]) == ("gpu1", None)
