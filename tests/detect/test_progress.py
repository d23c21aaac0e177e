"""Time that passes: stalls, hangs, pauses that are announced, checkpoints that do not come, speed, data, ends."""

import math
from typing import Any

import pytest

from tests.detect.support import BEGAN, judged, kinds, line, lines, with_ticks
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Change
from trainvitals.journal.record import timestamp_at

STEPS = 100


def after(engine: Engine, seconds: float, since: float = BEGAN + STEPS, every: float = 5.0) -> list[Change]:
    found: list[Change] = []
    now = since
    while now < since + seconds:
        now += every
        found += engine.tick(now)
    return found


def running(step_seconds: float = 1.0, **values: Any) -> Engine:
    engine = Engine()
    engine.begin("gemma", BEGAN)
    judged(lines(STEPS, step_seconds, loss=lambda step: 3.0, **values), engine)
    engine.tick(BEGAN + STEPS * step_seconds)
    return engine


def phase(step: int, name: str, is_open: bool) -> dict[str, Any]:
    return line(step, event="phase", phase=name, open=is_open)


@pytest.mark.parametrize(("seconds", "wanted"), [(290, set()), (320, {"TrainingStalled"})])
def test_a_run_stalls_after_five_minutes(seconds: float, wanted: set[str]) -> None:
    assert kinds(after(running(), seconds)) == wanted


def test_a_run_of_slow_steps_stalls_after_ten_of_them() -> None:
    engine = running(60.0)
    since = BEGAN + STEPS * 60.0
    assert kinds(after(engine, 590, since)) == set()
    assert kinds(after(engine, 30, since + 590)) == {"TrainingStalled"}


@pytest.mark.parametrize(("told", "minutes", "wanted"), [({}, 39, set()), ({}, 410, {"TrainingStalled"}),
                                                         ({"step_duration_seconds": 2400.0}, 390, set())])  # fmt: skip
def test_steps_of_forty_minutes_stall_after_ten_of_them_from_the_first_on(
    told: dict[str, float], minutes: int, wanted: set[str]
) -> None:
    engine = Engine()
    engine.begin("gemma", BEGAN)
    count = 1 if told else 2
    judged([line(step, 2400.0, loss=3.0, **told) for step in range(1, count + 1)], engine)
    found = after(engine, minutes * 60.0, BEGAN + 2400.0 * count)
    assert kinds(found) == wanted
    assert all("after the first ones" in one.finding.what for one in found)


def test_a_stall_is_over_with_the_next_step() -> None:
    engine = running()
    after(engine, 400)
    judged([line(STEPS + 401, loss=3.0)], engine)
    assert [one.state for one in after(engine, 250, BEGAN + STEPS + 401)] == ["close"]


def test_an_announced_evaluation_has_an_hour() -> None:
    engine = running()
    engine.run_event("gemma", 0, phase(STEPS, "evaluation", is_open=True))
    assert kinds(after(engine, 3500)) == set()
    assert kinds(after(engine, 200, BEGAN + STEPS + 3500)) == {"TrainingStalled"}


def gaps(*lengths: float) -> tuple[Engine, float]:
    """Fifty steps before each silence of such a length, and after the last; when the last one was."""
    engine, now, step = Engine(), BEGAN, 0
    engine.begin("gemma", now)
    for length in (*lengths, 0.0):
        for _ in range(50):
            step, now = step + 1, now + 1
            judged([{**line(step, loss=3.0), "timestamp": timestamp_at(now)}], engine)
        after(engine, length, now, every=length / 50 or 5.0)
        now += length
    return engine, now


def told_after(engine: Engine, since: float, most: float = 3600.0) -> float:
    """Seconds of silence until it is told."""
    engine.news()
    for second in range(5, int(most), 5):
        if any(one.state == "open" for one in engine.tick(since + second)):
            return second
    return most


def test_a_stall_that_was_told_is_no_habit() -> None:
    assert told_after(*gaps(6 * 3600.0)) == 305


def test_a_pause_that_comes_again_is_one_and_may_take_half_as_long_again() -> None:
    assert told_after(*gaps(400.0, 400.0)) == 605
    assert told_after(*gaps(6 * 3600.0, 400.0)) == 605


@pytest.mark.parametrize("days", [0.5, 1.5])
def test_a_habit_is_forgotten_after_a_day(days: float) -> None:
    engine, now = gaps(400.0, 400.0)
    for number in range(int(days * 86400 / 20)):
        now += 20
        judged([{**line(200 + number, loss=3.0), "timestamp": timestamp_at(now)}], engine)
    assert told_after(engine, now) == (605 if days < 1 else 305)


def test_a_run_that_was_started_anew_has_no_habits_yet() -> None:
    engine, now = gaps(400.0, 400.0)
    engine.begin("gemma", now)
    judged([{**line(200 + step, loss=3.0), "timestamp": timestamp_at(now + step)} for step in range(20)], engine)
    assert told_after(engine, now + 19) == 305


def test_a_hang_that_was_told_is_no_habit_either() -> None:
    engine = Engine()
    engine.begin("gemma", BEGAN)
    for begin in (0, 300):
        judged([{**line(begin + step, loss=3.0), "timestamp": timestamp_at(BEGAN + begin + step)}
                for step in range(1, 101)], engine)  # fmt: skip
        found = _hangs(engine, BEGAN + begin + 100)
        assert kinds(found) == {"TrainingHangSuspected"}
        assert 60 <= found[0].opened - BEGAN - begin - 100 < 70


def _hangs(engine: Engine, since: float, seconds: int = 150) -> list[Change]:
    found: list[Change] = []
    values = {"utilization_percent": 100.0, "power_draw_watts": 90.0, "power_limit_watts": 700.0}
    for second in range(1, seconds):
        engine.gpu(since + second, "0", "GPU-0", values)
        found += engine.tick(since + second)
    return [one for one in found if one.state == "open"]


def test_an_evaluation_that_its_process_did_not_outlive_is_over_also_at_an_earlier_step() -> None:
    engine = running()
    engine.run_event("gemma", 0, phase(STEPS, "evaluation", is_open=True))
    engine.begin("gemma", BEGAN + STEPS + 60)
    judged([{**line(140 + step, loss=3.0), "step": step} for step in range(60, 90)], engine)
    assert told_after(engine, BEGAN + 229) == 305


def test_a_run_that_never_makes_a_step_is_told_after_half_an_hour() -> None:
    engine = Engine()
    engine.begin("gemma", BEGAN)
    assert kinds(after(engine, 1790, BEGAN)) == set()
    assert kinds(after(engine, 30, BEGAN + 1790)) == {"TrainingStalled"}


@pytest.mark.parametrize("lives", [True, False])
def test_a_stall_of_long_ago_is_one_where_a_process_still_lives(lives: bool) -> None:
    engine, now = Engine(), BEGAN + 7 * 3600
    engine.training("gemma", 0, lines(STEPS, loss=lambda step: math.nan), since=now - 6 * 3600)
    if lives:
        engine.resume("gemma", BEGAN - 60)
    found = engine.tick(now)
    assert kinds(found) == ({"TrainingStalled"} if lives else set())
    assert all(one.finding.what.startswith("no step for 418 min") for one in found)


def test_a_run_that_ended_does_not_stall() -> None:
    engine = running()
    engine.ended("gemma", "finished", BEGAN + STEPS)
    assert after(engine, 4000) == []


@pytest.mark.parametrize(("utilization", "watts", "wanted"), [
    (100.0, 100.0, {"TrainingHangSuspected"}),
    (100.0, 600.0, set()),
    (20.0, 100.0, set()),
])  # fmt: skip
def test_gpus_that_look_busy_and_draw_nothing_are_a_hang(utilization: float, watts: float, wanted: set[str]) -> None:
    engine, found = running(), list[Change]()
    for second in range(120):
        now = BEGAN + STEPS + second
        values = {"utilization_percent": utilization, "power_draw_watts": watts, "power_limit_watts": 700.0}
        engine.gpu(now, "0", "GPU-0", values)
        found += engine.tick(now)
    assert kinds(found) == wanted


def test_a_checkpoint_is_overdue_after_twice_the_usual_interval() -> None:
    engine = Engine()
    judged(lines(STEPS, loss=lambda step: 3.0), engine)
    for step in (20, 40, 60, 80):
        engine.run_event("gemma", 0, line(step, event="checkpoint"))
    judged([line(step, loss=3.0) for step in range(101, 119)], engine)
    assert engine.tick(BEGAN + 119) == []
    assert kinds(engine.tick(BEGAN + 121)) == {"TrainingCheckpointOverdue"}


@pytest.mark.parametrize(("waits", "severity"), [(0.09, None), (0.12, "ticket"), (0.35, "page")])
def test_data_wait_by_its_share(waits: float, severity: str | None) -> None:
    times = {"step_duration_seconds": lambda step: 1.0 - waits, "data_wait_seconds": lambda step: waits}
    found = judged(lines(400, **times))
    assert [one.finding.severity for one in found] == ([severity] if severity else [])


def test_a_loader_that_is_started_anew_each_few_minutes_is_one_finding() -> None:
    waits = {"data_wait_seconds": lambda step: 30.0 if step % 200 == 0 else 0.0}
    records, now = [], BEGAN
    for step in range(1, 4000):
        waited = waits["data_wait_seconds"](step)
        now += 1.0 + waited
        times = {"step_duration_seconds": 1.0, "data_wait_seconds": waited}
        records.append({"timestamp": timestamp_at(now), "step": step, **times})
    assert [(one.state, one.finding.kind) for one in with_ticks(records)] == [("open", "TrainingDataStarved")]


def fetched(rank: int, step: int, at: float, waits: float) -> tuple[int, dict[str, Any]]:
    """A step of a second whose wait ended `at` seconds after the begin."""
    times = {"step_duration_seconds": 1.0, "data_wait_seconds": waits}
    return rank, {"timestamp": timestamp_at(BEGAN + at), "step": step, **times}


def steady(first: int, count: int, at: float, ranks: int = 1, first_wait: float = 0.01) -> list[Any]:
    return [
        fetched(rank, first + number, at + (number + 1) * 1.01, first_wait if number == 0 else 0.01)
        for number in range(count)
        for rank in range(ranks)
    ]


def test_first_batches_of_a_resumed_run_are_no_starvation() -> None:
    engine = Engine()
    for rank, record in steady(1, 400, 0.0, ranks=8):
        engine.training("gemma", rank, [record])
    engine.begin("gemma", BEGAN + 1000)
    for rank, record in steady(401, 60, 1010.0, ranks=8, first_wait=10.0):
        engine.training("gemma", rank, [record])
    assert engine.news() == []


def test_the_first_batch_after_a_pause_is_no_starvation() -> None:
    records = [record for _, record in (*steady(1, 400, 0.0), *steady(401, 200, 800.0, first_wait=20.0))]
    assert judged(records) == []


def test_a_step_s_phases_show_that_the_wait_is_part_of_it() -> None:
    times = {"step_duration_seconds": 1.0, "data_wait_seconds": 0.095, "forward_seconds": 0.4, "backward_seconds": 0.5}
    assert judged([line(step, **times) for step in range(1, 400)]) == []


@pytest.mark.parametrize(("share", "minutes", "wanted"), [
    (0.85, 20, {"TrainingThroughputRegression"}), (0.85, 10, set()), (0.93, 40, set()),
])  # fmt: skip
def test_a_run_that_became_slower(share: float, minutes: int, wanted: set[str]) -> None:
    def speed(step: int) -> float:
        return 100.0 * (1.0 if step < 1800 else share)

    assert kinds(judged(lines(1800 + 60 * minutes, throughput_samples_per_sec=speed))) == wanted


def test_longer_samples_are_no_slower_a_run() -> None:
    def samples(step: int) -> float:
        return 100.0 if step < 1800 else 50.0

    told = {"throughput_samples_per_sec": samples, "tokens_per_second": lambda step: 4e4}
    assert kinds(judged(lines(4200, **told))) == set()


def test_a_checkpoint_with_each_best_loss_is_due_at_no_time() -> None:
    engine, saved, every = running(), 100.0, 15.0
    for _ in range(12):
        engine.run_event("gemma", 0, {"timestamp": timestamp_at(BEGAN + saved), "event": "checkpoint"})
        assert kinds(after(engine, 0.99 * every, BEGAN + saved, every / 8)) <= {"TrainingStalled"}
        saved, every = saved + every, every * 1.6
        engine.tick(BEGAN + saved)
        judged([line(int(saved), loss=3.0)], engine)


def test_what_is_told_in_each_turn_is_one_finding_where_turns_have_long_pauses() -> None:
    engine, now, step, found = Engine(), BEGAN, 0, list[Change]()
    for _ in range(120):
        now += 480.0
        found += engine.tick(now)
        for _ in range(30):
            step, now = step + 1, now + 1.0
            found += judged([{"timestamp": timestamp_at(now), "step": step, "loss": 3.0}], engine)
            found += engine.tick(now)
    assert [one.state for one in found if one.finding.kind == "TrainingLossNotDecreasing"] == ["open"]


def test_single_slow_steps_are_worth_a_note_and_a_rhythm_is_not() -> None:
    single = lines(1200, step_duration_seconds=lambda step: 9.0 if step == 777 else 1.0)
    rhythm = lines(1200, step_duration_seconds=lambda step: 9.0 if step % 50 == 0 else 1.0)
    assert kinds(judged(single)) == {"TrainingStepTimeOutlier"}
    assert judged(rhythm) == []


def test_the_time_until_a_run_goes_on_is_no_step_s() -> None:
    engine = Engine()
    judged(lines(160, loss=lambda step: 3.0), engine)
    engine.ended("gemma", "preempted", BEGAN + 161)
    engine.begin("gemma", BEGAN + 500)
    records = [{**line(400 + step, loss=3.0), "step": step} for step in range(161, 300)]
    assert judged(records, engine) == []


@pytest.mark.parametrize("slow", [776, 800, 1001])
def test_also_beside_a_round_number(slow: int) -> None:
    found = judged(lines(1200, step_duration_seconds=lambda step: 9.0 if step == slow else 1.0))
    assert [one.finding.step for one in found] == [slow] * (slow % 500 > 1)


def test_an_epoch_s_begin_is_told_once_and_is_a_rhythm_then() -> None:
    begins = {1 + 937 * epoch + epoch % 2 for epoch in range(1, 9)}
    found = with_ticks(lines(8000, step_duration_seconds=lambda step: 9.0 if step in begins else 1.0))
    assert [one.finding.step for one in found if one.state == "open"] == [939]


def test_steps_of_a_life_s_begin_are_slow_by_nature() -> None:
    engine = Engine()
    judged(lines(600, step_duration_seconds=lambda step: 1.0), engine)
    engine.begin("gemma", BEGAN + 610)
    later = lines(900, step_duration_seconds=lambda step: 9.0 if step in (604, 605) else 1.0)
    assert judged(later[603:], engine) == []


def test_a_slow_step_is_told_in_words_where_the_others_take_no_time() -> None:
    (found,) = judged(lines(300, step_duration_seconds=lambda step: 3.0 if step == 212 else 0.0))
    assert found.finding.what == "step 212 took 3 s, where steps usually take no time"


@pytest.mark.parametrize(("status", "kind"), [("crashed", "TrainingCrashed"), ("killed", "TrainingKilled")])
def test_an_end_that_was_none_is_told_once(status: str, kind: str) -> None:
    engine = running()
    engine.ended("gemma", status, BEGAN + STEPS, "ValueError: x")
    engine.ended("gemma", "killed", BEGAN + STEPS)
    found = engine.news()
    assert [one.finding.kind for one in found] == [kind]
    assert ("ValueError: x" in found[0].finding.what) == (status == "crashed")


def test_a_rank_that_is_gone_while_others_live_is_told_at_once_and_the_run_s_end_is_not_news() -> None:
    engine = running()
    engine.lost("gemma", 3, BEGAN + STEPS)
    [told] = engine.news()
    assert (told.finding.kind, told.finding.severity) == ("TrainingKilled", "page")
    assert "rank 3 is gone" in told.finding.what
    # They wait for it: that is no news of its own.
    heads = [one for one in after(engine, 400) if one.cause is None and one.state == "open"]
    assert heads == []
    engine.ended("gemma", "killed", BEGAN + STEPS + 400)
    assert [one.state for one in engine.news() if one.finding.kind == "TrainingKilled"] == []


def test_a_rank_that_was_told_to_end_is_not_lost() -> None:
    engine = running()
    engine.run_event("gemma", 3, line(STEPS - 5, event="signal", signal="SIGTERM"))
    engine.lost("gemma", 3, BEGAN + STEPS)
    assert engine.news() == []


def test_a_run_that_goes_on_is_no_crashed_one_any_more() -> None:
    engine = running()
    engine.ended("gemma", "crashed", BEGAN + STEPS)
    engine.news()
    found = judged([line(STEPS + 60, loss=3.0)], engine)
    assert [(one.state, one.finding.kind) for one in found] == [("close", "TrainingCrashed")]
