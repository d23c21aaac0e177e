"""That a rank evaluates or saves is told while it does, and no longer."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainvitals as tv
from tests.collector.agent.test_runs import Trainer, _look_again, status, values
from tests.collector.support import wait_for
from trainvitals import exporter
from trainvitals.agent.runs import Runs
from trainvitals.catalog import LASTING_PHASES
from trainvitals.detect.open_phases import MAX_OPEN, OpenPhases
from trainvitals.journal.record import Record, timestamp_at
from trainvitals.model import Snapshot
from trainvitals.run import timing

NAME = "training_phase_open_timestamp_seconds"


@pytest.fixture
def trainers() -> Iterator[list[Trainer]]:
    made: list[Trainer] = []
    yield made
    for trainer in made:
        trainer.kill()


def open_phases(runs: Runs, rank: str = "0") -> dict[str, object]:
    found = values(runs, "rank", rank)
    fields = {phase: f"phase_open_timestamp_seconds_{phase}" for phase in LASTING_PHASES}
    return {phase: found[field] for phase, field in fields.items() if field in found}


def seen(root: Path) -> Runs:
    """By an agent that starts now."""
    runs = Runs(root, "here")
    runs.update()
    return runs


def test_it_is_told_from_its_beginning_to_its_end(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", "evaluate")
    runs = seen(tmp_path)
    assert open_phases(runs) == {"evaluation": pytest.approx(time.time(), abs=30)}
    trainers[0].say("save")
    runs.update()
    assert set(open_phases(runs)) == {"evaluation", "checkpoint"}
    trainers[0].say("saved")
    runs.update()
    assert set(open_phases(runs)) == {"evaluation"}
    trainers[0].say("evaluated")
    runs.update()
    assert open_phases(runs) == {}


def test_an_agent_that_starts_in_the_midst_of_it_knows_at_once(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", "evaluate", "evaluated", "step", "save")
    assert set(open_phases(seen(tmp_path))) == {"checkpoint"}
    trainers[0].say("saved")
    assert open_phases(seen(tmp_path)) == {}


def test_before_the_first_step_it_is_told_and_nothing_else_of_the_rank(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("evaluate")
    runs = seen(tmp_path)
    assert list(values(runs, "rank", "0")) == ["phase_open_timestamp_seconds_evaluation"]
    text = exporter.render(Snapshot(1.0, tuple(runs.readings())))[0].decode()
    assert f'{NAME}{{phase="evaluation",rank="0",run="gemma"}}' in text


def test_a_step_after_it_ends_it_though_its_end_was_not_written(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", "evaluate")
    runs = seen(tmp_path)
    trainers[0].say("step")
    runs.update()
    assert open_phases(runs) == {} == open_phases(seen(tmp_path))
    trainers[0].say("evaluate")
    runs.update()
    assert set(open_phases(runs)) == {"evaluation"} == set(open_phases(seen(tmp_path)))


@pytest.mark.parametrize("word", ["finish", "crash"])
def test_a_rank_that_ended_within_it_is_in_it_no_more(tmp_path: Path, trainers: list[Trainer], word: str) -> None:
    trainers.append(Trainer(tmp_path))
    trainers[0].say("step", "evaluate")
    runs = seen(tmp_path)
    trainers[0].say(word)
    _look_again(runs)
    assert open_phases(runs) == {} == open_phases(seen(tmp_path))


def test_a_trainer_that_is_killed_within_it_does_not_keep_it(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers += [Trainer(tmp_path, rank=rank, world=2, run_id="gemma") for rank in (0, 1)]
    for trainer in trainers:
        trainer.say("step", "save")
    runs = seen(tmp_path)
    assert set(open_phases(runs, "1")) == {"checkpoint"}
    trainers[1].kill()
    _look_again(runs)
    assert open_phases(runs, "1") == {}
    assert set(open_phases(runs, "0")) == {"checkpoint"}
    trainers[0].kill()
    _look_again(runs)
    assert status(runs) == ("killed",)
    assert open_phases(runs) == {} == open_phases(seen(tmp_path))


def test_resumed_it_begins_anew(tmp_path: Path, trainers: list[Trainer]) -> None:
    trainers.append(Trainer(tmp_path, run_id="gemma"))
    trainers[0].say("step", "step", "evaluate")
    runs = seen(tmp_path)
    trainers[0].kill()
    trainers.append(Trainer(tmp_path, run_id="gemma"))
    _look_again(runs)
    assert status(runs) == ("running",)
    assert open_phases(runs) == {} == open_phases(seen(tmp_path))
    trainers[1].say("step", "evaluate")
    runs.update()
    assert set(open_phases(runs)) == {"evaluation"} == set(open_phases(seen(tmp_path)))


def test_a_log_within_it_that_brings_the_step_before_does_not_end_it(tmp_path: Path) -> None:
    """What the SDK writes, with its times."""
    run = tv.start("gemma", dir=str(tmp_path), agent=False)
    try:
        with run.step():
            pass
        with run.phase("evaluation"):
            time.sleep(0.01)
            run.log(eval_loss=1.0)
            assert set(wait_for(lambda: open_phases(seen(tmp_path)))) == {"evaluation"}
        assert open_phases(seen(tmp_path)) == {}
    finally:
        run.finish()


def phase(name: str = "evaluation", is_open: object = True, step: object = 1, when: float = 100.0) -> Record:
    return {"timestamp": timestamp_at(when), "event": "phase", "step": step, "phase": name, "open": is_open}


def told(phases: OpenPhases, timed: Record | None = None) -> dict[str, object]:
    return dict(phases.of(0, 0.0, timed or {}))


def test_of_one_within_another_of_its_kind_the_outer_one_counts() -> None:
    phases = OpenPhases()
    for event in (phase(when=100.0), phase(when=110.0), phase(is_open=False, when=120.0)):
        phases.take(0, event)
        assert told(phases) == {"phase_open_timestamp_seconds_evaluation": 100.0}
    phases.take(0, phase(is_open=False))
    assert told(phases) == {}


def test_one_that_was_left_open_hides_no_later_one() -> None:
    phases = OpenPhases()
    phases.take(0, phase(step=1, when=100.0))
    phases.take(0, phase(step=9, when=200.0))
    timed = {"step": 9, "timestamp": timestamp_at(199.0)}
    assert told(phases, timed) == {"phase_open_timestamp_seconds_evaluation": 200.0}


def test_odd_events_do_no_harm_and_take_no_memory_without_end() -> None:
    phases = OpenPhases()
    odd: list[Record] = [{}, phase("forward"), phase("x"), phase(is_open="yes"), {**phase(), "timestamp": 7},
                         {**phase(), "phase": ["evaluation"]}, phase(is_open=False)]  # fmt: skip
    for event in odd:
        phases.take(0, event)
    assert told(phases) == {}
    for _ in range(10 * MAX_OPEN):
        phases.take(0, phase(step=[1]))
    assert len(phases._open[0]) == MAX_OPEN


def test_what_the_sdk_announces_is_what_is_followed() -> None:
    assert set(LASTING_PHASES) == timing.ANNOUNCED
