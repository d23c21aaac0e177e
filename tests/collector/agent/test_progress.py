"""How far a run is: told where it is known, and not where it is not."""

import math
from typing import Any

import pytest

from trainvitals.agent.progress import progress
from trainvitals.agent.run_state import RunState
from trainvitals.journal.record import Record, timestamp_at

NOON = 1_753_876_800.0


def line(step: int, when: float, loss: object = 1.0) -> Record:
    return {"timestamp": timestamp_at(NOON + when), "step": step, "loss": loss}


def run(lines: list[Record], together: int = 1, **info: Any) -> RunState:
    """Lines as they are read, some at a time."""
    state = RunState("gemma", {"start": timestamp_at(NOON), **info}, status="running")
    for at in range(0, len(lines), together):
        state.rank(0).take(lines[at : at + together])
    return state


def steps(count: int, seconds: float, first: int = 1, began: float = 0.0) -> list[Record]:
    return [line(first + at, began + at * seconds) for at in range(count)]


@pytest.mark.parametrize("together", [1, 7, 1000])
@pytest.mark.parametrize("seconds", [0.01, 0.3, 30.0])
def test_speed_and_eta_however_fast_it_is_and_however_it_is_read(seconds: float, together: int) -> None:
    lines = steps(3000, seconds)
    told = progress(run(lines, together, planned_steps=5000), NOON + 3000 * seconds)
    assert told["steps_per_second"] == pytest.approx(1 / seconds, rel=0.05)
    assert told["eta_seconds"] == pytest.approx(2000 * seconds, rel=0.05)


def test_the_speed_is_that_of_late() -> None:
    lines = steps(600, 1.0) + steps(600, 0.1, first=601, began=600)
    assert progress(run(lines), NOON + 660)["steps_per_second"] == pytest.approx(10, rel=0.1)


def test_a_run_that_makes_no_steps_has_no_speed_and_no_end_in_sight() -> None:
    state = run(steps(100, 1.0), planned_steps=1000)
    assert progress(state, NOON + 130)["eta_seconds"] == pytest.approx(900, rel=0.05)
    told = progress(state, NOON + 400)
    assert "steps_per_second" not in told and "eta_seconds" not in told
    slow = run(steps(20, 60.0), planned_steps=1000)
    assert "eta_seconds" in progress(slow, NOON + 20 * 60 + 400)


@pytest.mark.parametrize("lines", [[], steps(1, 1.0), [line(5, 0), line(5, 1)], [{"loss": 1.0}, {"step": math.nan}]])
def test_nothing_is_told_before_it_can_be_known(lines: list[Record]) -> None:
    assert progress(run(lines, planned_steps=10), NOON + 2) == {}


def test_a_run_that_goes_back_is_measured_anew() -> None:
    lines = steps(1000, 1.0) + steps(50, 1.0, first=500, began=4000)
    assert progress(run(lines), NOON + 4050)["steps_per_second"] == pytest.approx(1, rel=0.05)


def test_a_run_that_ended_has_no_speed() -> None:
    state = run(steps(100, 1.0))
    state.ended = NOON + 100
    assert "steps_per_second" not in progress(state, NOON + 101)


def noise(at: int) -> float:
    return math.sin(12.9898 * at) * 43758.5453 % 1 - 0.5


@pytest.mark.parametrize(("slope", "word"), [(-1e-3, "falling"), (1e-3, "rising"), (0.0, "flat"), (-1e-7, "flat")])
@pytest.mark.parametrize("count", [400, 50_000])
def test_where_the_loss_goes(slope: float, word: str, count: int) -> None:
    values = [3.0 + slope * at * 1000 / count + 0.05 * noise(at) for at in range(count)]
    lines = [line(at, 0.1 * at, value) for at, value in enumerate(values)]
    assert progress(run(lines, 50), NOON)["loss_trend"] == word


def test_a_loss_that_is_no_number_is_no_trend_and_spoils_none() -> None:
    assert "loss_trend" not in progress(run([line(at, at, math.nan) for at in range(500)]), NOON)
    lines = [line(at, at, math.nan if at % 10 == 0 else 5.0 - at / 200) for at in range(500)]
    assert progress(run(lines), NOON)["loss_trend"] == "falling"
    assert "loss_trend" not in progress(run([*lines, line(500, 500, math.nan)]), NOON)


def test_the_cost_is_that_of_its_time_without_the_time_between_two_processes() -> None:
    state = run(steps(3600, 1.0))
    assert progress(state, NOON + 7200, 12.0)["cost_dollars"] == pytest.approx(24)
    assert progress(state, NOON + 7200, 12.0)["dollars_per_hour"] == 12.0
    again = run(steps(3600, 1.0) + steps(10, 1.0, first=3000, began=90_000), resumed=[timestamp_at(NOON + 89_990)])
    assert progress(again, NOON + 90_010, 12.0)["cost_dollars"] == pytest.approx(12, rel=0.01)
    # The same pause without a restart was paid for.
    waited = run(steps(3600, 1.0) + steps(10, 1.0, first=3601, began=90_000))
    assert progress(waited, NOON + 90_010, 12.0)["cost_dollars"] == pytest.approx(12 * 90_010 / 3600)


def test_without_a_price_or_a_start_there_is_no_cost() -> None:
    assert "cost_dollars" not in progress(run(steps(10, 1.0)), NOON + 10)
    assert "cost_dollars" not in progress(run(steps(10, 1.0), start=None), NOON + 10, 12.0)


@pytest.mark.parametrize("hostile", [{"resumed": "yes"}, {"resumed": [7, None, {}]}, {"planned_steps": "many"},
                                     {"planned_steps": math.inf}, {"planned_steps": 10**400}])  # fmt: skip
def test_a_run_that_says_nonsense_of_itself_harms_nobody(hostile: dict[str, Any]) -> None:
    told = progress(run(steps(100, 1.0), **hostile), NOON + 100, 1.0)
    assert told["steps_per_second"] == pytest.approx(1, rel=0.05)
    assert math.isfinite(told.get("eta_seconds", 0.0))
