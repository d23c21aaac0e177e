"""Where the time of a step goes, and into which line."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trainvitals as tv
from tests.run.support import Record, events, lines

TICK = 0.004


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tv.Run]:
    with tv.start("timing", dir=tmp_path) as run:
        yield run


def written(run: tv.Run) -> list[Record]:
    run.finish()
    assert run.folder is not None
    return lines(run.folder)


def by_step(records: list[Record]) -> dict[int, Record]:
    """As readers see them: the lines of a step are one."""
    merged: dict[int, Record] = {}
    for record in records:
        merged.setdefault(record["step"], {}).update(record)
    return merged


def slow(count: int) -> Iterator[int]:
    for number in range(count):
        time.sleep(TICK)
        yield number


def test_a_steps_time_is_in_the_line_of_the_log_that_follows_it(run: tv.Run) -> None:
    for number in run.data(slow(3)):
        with run.step():
            time.sleep(TICK)
        run.log(loss=number)
        run.log(accuracy=number)
    first, second = written(run)[:2]
    assert first["loss"] == 0 and first["step"] == 1
    assert TICK <= first["step_duration_seconds"] < 10 * TICK and TICK <= first["data_wait_seconds"] < 10 * TICK
    assert set(second) == {"timestamp", "step", "accuracy"} and second["step"] == 1


def test_a_step_that_no_log_follows_has_a_line_of_its_own(run: tv.Run) -> None:
    for number in range(1, 8):
        with run.step():
            pass
        if number % 3 == 0:
            run.log(loss=number)
    records = written(run)
    assert [record["step"] for record in records] == list(range(1, 8))
    assert [record.get("loss") for record in records] == [None, None, 3, None, None, 6, None]
    assert all("step_duration_seconds" in record for record in records)


def test_phases_each_have_their_own_time_and_no_other(run: tv.Run) -> None:
    with run.step():
        with run.phase("forward"):
            time.sleep(TICK)
            with run.phase("attention"):
                time.sleep(TICK)
        with run.phase("backward"):
            time.sleep(TICK)
    run.log(loss=1)
    (record,) = written(run)
    parts = [record[f"{name}_seconds"] for name in ("forward", "attention", "backward")]
    assert all(part >= TICK for part in parts) and sum(parts) <= record["step_duration_seconds"]


def test_what_comes_between_two_steps_belongs_to_the_later_one_and_is_told_while_it_lasts(run: tv.Run) -> None:
    with run.step():
        pass
    run.log(loss=1)
    with run.phase("evaluation"):
        for _ in run.data(slow(2)):  # its data is its own
            pass
    with run.phase("checkpoint"):
        time.sleep(TICK)
    run.checkpoint(Path("weights.pt"))
    with run.step():
        pass
    run.log(loss=2)
    folder = run.folder
    steps = by_step(written(run))
    assert "evaluation_seconds" not in steps[1] and "data_wait_seconds" not in steps[2]
    assert steps[2]["evaluation_seconds"] >= 2 * TICK and steps[2]["checkpoint_seconds"] >= TICK
    assert folder is not None
    assert [(e["phase"], e["open"], e["step"]) for e in events(folder, "phase")] == [
        ("evaluation", True, 1), ("evaluation", False, 1), ("checkpoint", True, 1), ("checkpoint", False, 1)
    ]  # fmt: skip
    assert [(e["path"], e["step"]) for e in events(folder, "checkpoint")] == [("weights.pt", 1)]


def test_what_is_measured_after_the_last_step_is_not_lost(run: tv.Run) -> None:
    with run.step():
        pass
    run.log(loss=1)
    with run.phase("evaluation"):
        time.sleep(TICK)
    assert by_step(written(run))[1]["evaluation_seconds"] >= TICK


def numbered_from(start: int, every: int = 1) -> Callable[[tv.Run], None]:
    def loop(run: tv.Run) -> None:
        for number in range(start, start + 30):
            with run.step():
                pass
            if number % every == 0:
                run.log(loss=number, step=number)

    return loop


def inside(run: tv.Run) -> None:
    for number in range(30):
        with run.step():
            run.log({"loss": number, "step": number})


def by_step_itself(run: tv.Run) -> None:
    for number in range(500, 530):
        with run.step(number):
            pass
        run.log(loss=number)


# Loops of 30 steps that give their own numbers -> the steps that the journal has, and those with a loss.
LOOPS: dict[str, tuple[Callable[[tv.Run], None], range, range]] = {
    "from 0": (numbered_from(0), range(30), range(30)),
    "from 1": (numbered_from(1), range(1, 31), range(1, 31)),
    "resumed at 9001": (numbered_from(9001), range(9001, 9031), range(9001, 9031)),
    "from 0 every 10th": (numbered_from(0, 10), range(30), range(0, 30, 10)),
    "inside the step": (inside, range(30), range(30)),
    "to the step itself": (by_step_itself, range(500, 530), range(500, 530)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_numbers_that_the_run_gives_itself_are_the_journals(run: tv.Run, name: str) -> None:
    loop, expected, with_loss = LOOPS[name]
    loop(run)
    steps = by_step(written(run))
    assert set(steps) == set(expected) and all("step_duration_seconds" in record for record in steps.values())
    assert {step: record["loss"] for step, record in steps.items() if "loss" in record} == {n: n for n in with_loss}


def test_every_tenth_step_of_a_resumed_run_gives_its_number_from_then_on(run: tv.Run) -> None:
    numbered_from(9001, 10)(run)
    steps = by_step(written(run))
    assert set(steps) == {*range(1, 10), *range(9010, 9031)} and len(steps) == 30


def test_epochs_that_are_logged_as_steps_do_not_set_the_count_back(run: tv.Run) -> None:
    for epoch in range(3):
        for _ in range(10):
            with run.step():
                pass
        run.log(val_loss=epoch, step=epoch)
    records = written(run)
    assert [record["step"] for record in records if "step_duration_seconds" in record] == list(range(1, 31))
    assert [record["step"] for record in records if "val_loss" in record] == [0, 1, 2]
    assert run.number == 30


def test_without_steps_each_log_is_one_and_has_what_was_measured_before_it(run: tv.Run) -> None:
    for number in run.data(slow(3)):
        with run.phase("forward"):
            pass
        run.log(loss=number)
    run.log(loss=9, step=100)
    run.checkpoint("at the end")
    records = written(run)
    assert [record["step"] for record in records] == [1, 2, 3, 100]
    assert all(record["data_wait_seconds"] >= TICK and "forward_seconds" in record for record in records[:3])
    assert run.folder is not None and events(run.folder, "checkpoint")[0]["step"] == 100


def test_what_is_logged_before_the_first_step_is_none_itself(run: tv.Run) -> None:
    run.log(val_loss=5.0)
    for _ in range(2):
        with run.step():
            pass
        run.log(loss=1)
    assert set(by_step(written(run))) == {1, 2} and run.number == 2


def test_callbacks_begin_and_end_a_step_and_give_times_of_their_own(run: tv.Run) -> None:
    run.end_step()  # that none began does no harm
    run.begin_step()
    run.begin_step()  # an exception went through the one before
    run.add_seconds(data_wait=0.25, forward=0.5)
    run.end_step()
    run.log(loss=1)
    run.end_step()
    run.begin_step(7)
    run.end_step()
    run.log(loss=2)
    records = written(run)
    assert [record["step"] for record in records] == [2, 7]
    assert records[0]["data_wait_seconds"] == 0.25 and records[0]["forward_seconds"] == 0.5
    assert all(record["step_duration_seconds"] < 1 for record in records)


def test_a_step_within_a_step_is_part_of_it(run: tv.Run) -> None:
    with run.step():
        for _ in range(2):
            with run.step():
                pass
    run.log(loss=1)
    assert [record["step"] for record in written(run)] == [1]


def test_a_step_that_fails_is_timed_and_the_exception_goes_on(run: tv.Run) -> None:
    with pytest.raises(ZeroDivisionError), run.step(), run.phase("forward"):
        _ = 1 / 0
    run.log(loss=1)
    (record,) = written(run)
    assert record["step_duration_seconds"] >= record["forward_seconds"] > 0
