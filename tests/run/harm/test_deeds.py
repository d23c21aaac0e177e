"""A training that does what a monitor may stumble over: odd values, threads, forks, descriptors. It ends as alone."""

import math
from pathlib import Path

import pytest

from tests.run.harm.conftest import Folders
from tests.run.support import (
    Outcome,
    Training,
    assert_harmless,
    environment,
    events,
    lines,
    losses,
    run_folders,
    run_json,
)
from trainvitals.journal import runs

ALL = set(range(1, 151))


def after(folders: Folders, alone: Outcome, deed: str, **limits: int) -> tuple[Outcome, Path]:
    def attempt(number: int) -> Outcome:
        env = environment(folders[number] / "journal", OWN_FILES=str(folders[number]))
        return Training(folders[number], "--deed", deed, env=env).outcome()

    outcome = assert_harmless(attempt, alone, **limits)
    return outcome, run_folders(outcome.journal)[0]


def test_values_that_are_no_numbers_and_calls_with_the_wrong_things(folders: Folders, alone: Outcome) -> None:
    _, run = after(folders, alone, "values", warnings=3)  # a value of no use, a long one, a model that is none
    assert set(losses(run)) == ALL and run_json(run)["status"] == "finished"
    written = lines(run)
    assert {line["sure"] for line in written if "sure" in line} == ALL
    assert sum(key.startswith("metric ") for line in written for key in line) == 10_000
    assert sum(key.startswith("once") for line in written for key in line) == 99 * 100
    odd = [line["odd"] for line in written if "odd" in line]
    assert math.inf in odd and -math.inf in odd and any(value != value for value in odd)
    assert not any(value is None for line in written for value in line.values())
    assert max(len(str(value)) for value in odd) < 20_000
    assert "1000000 characters" in next(value for value in odd if isinstance(value, str) and value[0] == "x")
    assert all("loss" in line for line in written if line.get("note"))


def test_eight_threads_that_log_at_once(folders: Folders, alone: Outcome) -> None:
    _, run = after(folders, alone, "threads", warnings=0)
    written = lines(run)
    for thread in range(8):
        counts = [line[f"thread {thread}"] for line in written if f"thread {thread}" in line]
        assert counts == list(range(20)) * 15
    assert set(losses(run)) == ALL


def test_children_forked_within_a_step(folders: Folders, alone: Outcome) -> None:
    """None of them is the run: it neither writes for it nor ends it."""
    _, run = after(folders, alone, "forks", warnings=0)
    assert set(losses(run)) == ALL and run_json(run)["status"] == "finished"
    assert not any("forked" in line for line in lines(run)) and not events(run, "note")[3:]
    assert [event["status"] for event in events(run, "end")] == ["finished"]


def test_workers_of_a_data_loader_forked_and_spawned(folders: Folders, alone: Outcome) -> None:
    outcome, run = after(folders, alone, "workers", warnings=0, most_seconds=20)
    assert set(losses(run)) == ALL and len(run_folders(outcome.journal)) == 1
    waits = {line["step"]: line["data_wait_seconds"] for line in lines(run) if "data_wait_seconds" in line}
    assert waits[40] > 0.05  # a process is begun anew there, and half of it is Python's own start


def test_a_program_that_closes_all_descriptors_and_opens_its_own(folders: Folders, alone: Outcome) -> None:
    outcome, run = after(folders, alone, "closes_everything")
    own = [path for path in outcome.journal.parent.iterdir() if path.name.isdigit()]
    assert len(own) == 20 and all(set(path.read_text().splitlines()) == {"mine"} for path in own)
    assert len(ALL - set(losses(run))) <= 2


def test_a_program_that_makes_itself_a_daemon(folders: Folders, alone: Outcome) -> None:
    """It leaves the process that the run was started in, which is told as it is: gone without an end."""
    _, run = after(folders, alone, "daemon", warnings=0)
    assert set(losses(run)) == set(range(1, 40)) and not events(run, "end")
    assert not runs.is_alive(run / "process.rank0.json")


@pytest.mark.parametrize("deed", ["no_descriptors", "no_descriptors_midway"])
def test_a_program_that_has_no_file_descriptors_left(folders: Folders, alone: Outcome, deed: str) -> None:
    _, run = after(folders, alone, deed)
    assert set(losses(run)) == ALL and run_json(run)["status"] == "finished"


def test_a_program_that_may_start_no_threads(folders: Folders, alone: Outcome) -> None:
    _, run = after(folders, alone, "no_threads", warnings=0)
    assert set(losses(run)) == ALL and run_json(run)["status"] == "finished"
