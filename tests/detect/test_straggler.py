"""TrainingStraggler: the rank that is slow before the others wait for it, and nobody else."""

import math
from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.detect.support import BEGAN, line
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Finding, Place
from trainvitals.journal.record import timestamp_at

Times = Callable[[int, int], float]


def told(forward: Times, ranks: int = 8, steps: int = 400, *, is_free: bool = False) -> list[tuple[str, str, int]]:
    """Rank, severity and step of each."""
    engine, noise = Engine(), Random(3)
    for step in range(1, steps + 1):
        for rank in range(ranks):
            took = forward(rank, step) * noise.uniform(0.99, 1.01)
            values = (
                {"step_duration_seconds": took} if is_free else {"step_duration_seconds": 2.0, "forward_seconds": took}
            )
            engine.training("gemma", rank, [line(step, 2.0, **values)])
    return list(_brief(engine))


def _brief(engine: Engine) -> Iterator[tuple[str, str, int]]:
    for change in engine.news():
        if change.state != "close":
            yield change.finding.place.rank, change.finding.severity, change.finding.step or 0


def slow(which: set[int], ratio: float, since: int = 100) -> Times:
    return lambda rank, step: 0.5 * (ratio if rank in which and step >= since else 1.0)


@pytest.mark.parametrize("ranks", [2, 4, 8, 64])
def test_a_rank_half_as_slow_again_is_a_page(ranks: int) -> None:
    found = told(slow({1}, 1.5), ranks, 200)
    assert {rank for rank, _, _ in found} == {"1"}
    assert found[-1][1] == "page"
    assert found[0][2] <= 120


def test_one_a_little_slower_is_a_ticket_after_two_minutes() -> None:
    ((rank, severity, step),) = told(slow({5}, 1.15))
    assert (rank, severity) == ("5", "ticket")
    assert 160 <= step <= 175


@pytest.mark.parametrize("ratio", [1.0, 1.07])
def test_what_is_within_a_tenth_is_nobody(ratio: float) -> None:
    assert told(slow({5}, ratio)) == []


def test_some_slow_steps_are_no_straggler() -> None:
    assert told(lambda rank, step: 1.5 if rank == 5 and step % 20 < 4 else 0.5) == []


@pytest.mark.parametrize("ratio", [1.15, 1.5])
def test_a_whole_stage_that_is_slow_is_no_worker_s_problem(ratio: float) -> None:
    found = told(slow({12, 13, 14, 15}, ratio, since=1), 16)
    assert {(rank, severity) for rank, severity, _ in found} == {("", "info")}


def test_all_that_become_slow_together_are_no_worker_s_problem() -> None:
    found = told(slow(set(range(8)), 1.6, since=200))
    assert {(rank, severity) for rank, severity, _ in found} == {("", "info")}


def test_what_is_slow_for_long_is_usual() -> None:
    engine, spent = Engine(), 0
    for step in range(1, 1500):
        for rank in range(4):
            values = {"step_duration_seconds": 2.0, "forward_seconds": 0.5 if step < 200 else 0.8}
            engine.training("gemma", rank, [line(step, 2.0, **values)])
        spent += bool(engine.tick(BEGAN + 2.0 * step) or engine.book.open)
    assert 140 < spent < 400


def test_steps_that_wait_for_each_other_say_nothing() -> None:
    assert told(lambda rank, step: 0.5 if step < 100 else 0.8, is_free=True, steps=150) == []


def test_of_ranks_that_run_freely_a_slower_machine_is_no_news_and_one_that_became_slower_is() -> None:
    def times(rank: int, step: int) -> float:
        return 0.5 * (1.12 if rank < 3 else 1.0) * (1.4 if rank == 6 and step >= 200 else 1.0)

    found = told(times, 10, is_free=True)
    assert {rank for rank, _, _ in found} == {"6"}


def on_nodes(which: set[int], ratio: float, ranks: int, each: int) -> list[Finding]:
    engine, times = Engine(), slow(which, ratio)
    engine.info("gemma", {}, {}, {rank: f"node-{rank // each}" for rank in range(ranks)})
    for step in range(1, 250):
        for rank in range(ranks):
            values = {"step_duration_seconds": 2.0, "forward_seconds": times(rank, step)}
            engine.training("gemma", rank, [line(step, 2.0, **values)])
    return [change.finding for change in engine.news() if change.state != "close"]


def test_a_rank_is_named_with_its_machine() -> None:
    found = on_nodes({12}, 1.6, ranks=16, each=8)
    assert {one.place.rank for one in found} == {"12"}
    assert found[0].what.startswith("rank 12 on node-1 takes 1.60 times as long")


@pytest.mark.parametrize(("ranks", "severity"), [(16, "ticket"), (32, "ticket"), (64, "page")])
def test_a_machine_whose_ranks_are_all_slow_is_named_once(ranks: int, severity: str) -> None:
    found = on_nodes(set(range(8, 16)), 1.6, ranks, each=8)
    assert {one.place for one in found} == {Place("gemma", part="node-1")}
    assert found[-1].severity == severity
    assert found[-1].what.startswith("the 8 ranks on node-1 take 1.60 times as long as the others")


def test_two_slow_machines_of_four_are_no_worker_s_problem() -> None:
    found = on_nodes(set(range(8, 24)), 1.6, ranks=32, each=8)
    assert {(one.place, one.severity) for one in found} == {(Place("gemma"), "info")}


def test_what_another_machine_s_rank_tells_names_that() -> None:
    engine = Engine()
    engine.info("gemma", {}, {}, {0: "node-a", 1: "node-b"})
    engine.training("gemma", 1, [line(1, loss=math.nan)])
    assert engine.news()[0].finding.what == "on node-b: the loss is nan at step 1"


def test_ranks_that_are_gone_are_no_peers_any_more() -> None:
    engine = Engine()
    for step in range(1, 600):
        for rank in range(8) if step < 200 else range(5, 8):
            forward = 0.9 if rank < 5 else 0.6 if rank == 5 and step >= 400 else 0.3
            values = {"step_duration_seconds": 2.0, "forward_seconds": forward}
            engine.training("gemma", rank, [line(step, 2.0, **values)])
    assert {rank for rank, _, _ in _brief(engine)} == {"5"}


def test_a_wait_for_data_counts_too() -> None:
    engine = Engine()
    for step in range(1, 300):
        for rank in range(4):
            waits = 0.5 if rank == 2 else 0.05
            values = {"step_duration_seconds": 2.0, "forward_seconds": 0.5, "data_wait_seconds": waits}
            engine.training("gemma", rank, [line(step, 2.0, **values)])
    assert "2" in {rank for rank, _, _ in _brief(engine)}


def in_step(waits: dict[int, float], ranks: int, steps: int = 300) -> list[tuple[str, str, int]]:
    """As `run.data` and `run.step` tell it: steps end together, and who waits for data has the shorter one."""
    engine, noise = Engine(), Random(5)
    for step in range(1, steps + 1):
        waited = [waits.get(rank, 0.05) * noise.uniform(0.8, 1.2) for rank in range(ranks)]
        for rank, wait in enumerate(waited):
            values = {"step_duration_seconds": max(waited) + 0.5 - wait, "data_wait_seconds": wait}
            engine.training("gemma", rank, [line(step, 1.0, **values)])
    return [one for one in _brief(engine) if one[0]]


@pytest.mark.parametrize(("ranks", "slow"), [(2, {1}), (2, {0}), (8, {5}), (4, {1, 2})])
def test_a_slow_loader_is_named_though_its_rank_has_the_shorter_step(ranks: int, slow: set[int]) -> None:
    found = in_step(dict.fromkeys(slow, 0.5), ranks)
    assert {rank for rank, _, _ in found} == {str(rank) for rank in slow}
    assert found[-1][1] == "page"


def test_loaders_that_are_alike_are_nobody_s() -> None:
    assert in_step({}, 4) == in_step(dict.fromkeys(range(2), 0.6), 2) == []


def test_of_ranks_that_wait_for_data_and_not_for_each_other_whole_steps_tell() -> None:
    engine = Engine()
    for step in range(1, 400):
        for rank in range(6):
            took = 2.0 if rank == 4 and step > 150 else 1.0
            values = {"step_duration_seconds": took, "data_wait_seconds": 0.02}
            when = step + max(0, step - 150) * (took - 1.0)
            engine.training("gemma", rank, [{**line(step, **values), "timestamp": timestamp_at(BEGAN + when)}])
    assert {rank for rank, _, _ in _brief(engine)} == {"4"}


def test_a_hundredth_of_a_step_may_well_be_twice_as_long() -> None:
    assert told(lambda rank, step: 0.02 * (2.0 if rank == 5 else 1.0)) == []


def with_long_steps(ratio: float, every: int, longer: float) -> list[tuple[str, str, int]]:
    """Rank 5 of 8 is slow from step 100 on; all save now and then, and a step takes so much longer."""
    engine, noise, now = Engine(), Random(3), 0.0
    for step in range(1, 500):
        forwards = [0.33 * (ratio if rank == 5 and step >= 100 else 1) * noise.uniform(0.98, 1.02) for rank in range(8)]
        took = max(forwards) + 0.67 + (0 if step % every else longer)
        now += took
        for rank, forward in enumerate(forwards):
            values = {"step_duration_seconds": took, "forward_seconds": forward}
            engine.training("gemma", rank, [line(step, now / step, **values)])
    return list(_brief(engine))


@pytest.mark.parametrize(("every", "longer"), [(50, 4.0), (50, 10.0), (10, 5.0), (100, 6.0)])
@pytest.mark.parametrize(("ratio", "severity"), [(1.2, "ticket"), (1.4, "page")])
def test_steps_that_are_long_now_and_then_hide_nobody(ratio: float, severity: str, every: int, longer: float) -> None:
    found = with_long_steps(ratio, every, longer)
    assert {rank for rank, _, _ in found} == {"5"}
    assert found[-1][1] == severity
    assert found[0][2] <= 230


@pytest.mark.parametrize(("ratio", "longer"), [(1.0, 5.0), (1.2, 60.0)])
def test_long_steps_alone_and_what_is_little_beside_them_are_nobody_s(ratio: float, longer: float) -> None:
    assert with_long_steps(ratio, 10, longer) == []
