"""What is summed up of a rank's records, and how a run tells it."""

import math
from typing import Any

import orjson
import pytest

from trainvitals import exporter
from trainvitals.agent.run_state import MAX_CUSTOM_NAMES, RankState, RunState
from trainvitals.catalog import SERIES
from trainvitals.model import Histogram, Reading, Snapshot
from trainvitals.web import views

NOW = 1753878896.0


def record(step: int, second: int = 0, **fields: Any) -> dict[str, Any]:
    return {"timestamp": f"2025-07-30T12:34:{second:02d}.000Z", "step": step, **fields}


def rank_values(state: RankState) -> dict[str, Any]:
    return dict(next(state.readings((("run", "r"),), NOW)).values)


def told(run: RunState, scope: str) -> list[Reading]:
    return [reading for reading in run.readings(NOW) if reading.scope == scope]


def test_lines_of_one_step_are_one_step() -> None:
    state = RankState(0)
    state.take([record(1, loss=2.0), record(1, step_duration_seconds=0.3), record(2, loss=1.5)])
    values = rank_values(state)
    assert (values["steps_total"], values["step"], values["loss"]) == (2.0, 2.0, 1.5)


def test_steps_done_again_after_a_restart_count_as_work() -> None:
    state = RankState(0)
    state.take([record(step) for step in (1, 2, 3, 2, 3, 4)])
    assert rank_values(state)["steps_total"] == 6.0


def test_what_a_line_does_not_hold_stays_as_it_was_told() -> None:
    state = RankState(0)
    state.take([record(1, loss=2.0, learning_rate=1e-3), record(2, loss=1.9)])
    assert rank_values(state)["learning_rate"] == 1e-3


def test_durations_fall_into_buckets_the_upper_bound_included() -> None:
    state = RankState(0)
    durations = [0.005, 0.0051, 0.25, 400.0, math.nan, math.inf]
    state.take([record(n, step_duration_seconds=value) for n, value in enumerate(durations)])
    told = rank_values(state)["step_duration_seconds"]
    assert isinstance(told, Histogram)
    assert [told.counts[0], told.counts[1], told.counts[5], told.counts[-1]] == [1, 1, 1, 1]
    assert told.total == pytest.approx(400.2601)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_counted_by_field_and_shown(bad: float) -> None:
    state = RankState(0)
    state.take([record(1, loss=bad, mine=bad), record(2, loss=bad), record(3, loss=1.0)])
    readings = list(state.readings((("run", "r"),), NOW))
    counts = {r.label("field"): r.values["nonfinite_total"] for r in readings if r.scope == "nonfinite"}
    assert counts == {"loss": 2.0, "mine": 1.0}
    assert readings[0].values["loss"] == 1.0


def test_phases_add_up_to_the_wall_time() -> None:
    state = RankState(0)
    state.take([record(1, 0), record(2, 10, data_wait_seconds=3.0, forward_seconds=2.0, backward_seconds=4.0)])
    phases = {k.removeprefix("phase_seconds_total_"): v for k, v in rank_values(state).items() if k.startswith("phase")}
    assert phases == {"data_wait": 3.0, "forward": 2.0, "backward": 4.0, "other": 1.0}


def test_the_rest_of_the_wall_time_never_falls() -> None:
    state = RankState(0)
    state.take([record(1, 0), record(2, 10, forward_seconds=1.0)])
    before = rank_values(state)["phase_seconds_total_other"]
    state.take([record(3, 11, evaluation_seconds=9.0)])
    assert rank_values(state)["phase_seconds_total_other"] == before


def test_names_of_the_users_own_are_capped_and_the_rest_counted() -> None:
    run = RunState("r")
    own = {f"m{n}": float(n) for n in range(MAX_CUSTOM_NAMES + 7)}
    run.rank(0).take([record(1, loss=1.0, text="x", flag=True, **own)])
    assert len(told(run, "custom")) == MAX_CUSTOM_NAMES
    assert {"metrics_dropped_total": 7.0} in [dict(r.values) for r in told(run, "run")]
    assert not {r.label("name") for r in told(run, "custom")} & {"loss", "step", "text", "flag", "timestamp"}


def test_odd_types_in_known_fields_do_no_harm() -> None:
    state = RankState(0)
    state.take([record(1, loss="high", step_duration_seconds="long", data_wait_seconds=None, epoch=[1]),
                {"timestamp": 5, "step": {"a": 1}}, {}])  # fmt: skip
    values = rank_values(state)
    assert values.keys().isdisjoint({"loss", "epoch", "step_duration_seconds", "step", "last_step_timestamp_seconds"})


def test_a_run_says_what_it_is() -> None:
    run = RunState("gemma", status="running", checkpoint=NOW - 60)
    run.info = {"name": "gemma", "framework": "plain", "world_size": 2, "start": "2025-07-30T12:00:00.000Z",
                "planned_steps": 100}  # fmt: skip
    values = dict(told(run, "run")[0].values)
    assert values["run_status"] == ("running",)
    assert values["planned_steps"] == 100.0
    assert values["last_checkpoint_timestamp_seconds"] == NOW - 60
    assert values["start_timestamp_seconds"] == 1753876800.0
    assert dict(told(run, "run_info")[0].labels) == {
        "run": "gemma", "name": "gemma", "framework": "plain", "world_size": "2"}  # fmt: skip


def test_unknown_facts_are_absent() -> None:
    assert dict(told(RunState("r"), "run")[0].values) == {}


def test_everything_told_is_in_the_catalogue() -> None:
    run = RunState("r", status="killed", processes={"processes": 2.0})
    run.gpus[0] = [("0", "GPU-0")]
    run.rank(0).take([record(1, loss=math.nan, memory_reserved_mb=5.0, mine=1.0, data_wait_seconds=1.0)])
    for reading in run.readings(NOW):
        assert set(reading.values) <= set(SERIES[reading.scope]), reading


def test_hostile_names_and_numbers_can_still_be_exported() -> None:
    run = RunState("r")
    run.info = {"name": "\ud800" + "x" * 10_000, "framework": None, "world_size": [1], "planned_steps": 10**400}
    run.rank(0).take([record(10**400, loss=-(10**400), step_duration_seconds=math.nan, forward_seconds=10**400,
                             **{"\udcff": 1.0, "long" * 1000: math.nan})])  # fmt: skip
    text, _ = exporter.render(Snapshot(NOW, tuple(run.readings(NOW))))
    assert b"training_loss" in text
    assert max(map(len, text.splitlines())) < 1000
    orjson.dumps(views.runs_view(Snapshot(NOW, tuple(run.readings(NOW)))))
