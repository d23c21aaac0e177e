"""What is summed up of a rank's records, and how a run tells it."""

import math
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from trainvitals import exporter
from trainvitals.agent.run_folder import gpus_of
from trainvitals.agent.run_state import MAX_CUSTOM_NAMES, MAX_KEPT_NAMES, RankState, RunState, as_label
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


def nested(deep: int = 100_000) -> Any:
    value: Any = 1
    for _ in range(deep):
        value = [value]
    return value


@pytest.mark.parametrize("odd", [nested(), [1], {"a": 1}, None], ids=["deep", "list", "map", "none"])
def test_what_is_no_text_and_no_number_is_an_empty_label(odd: object) -> None:
    run = RunState("r", info={"name": odd, "framework": odd, "world_size": odd})
    labels = dict(told(run, "run_info")[0].labels)
    assert [labels["name"] or "r", labels["framework"]] == ["r", ""]


def test_what_is_text_or_a_number_is_its_own_label() -> None:
    assert [as_label(value) for value in ("a", 3, 1.5, True)] == ["a", "3", "1.5", "True"]
    assert as_label(10**5000) in ("", "1" + "0" * 199)  # newer Pythons write no integer that long


def test_no_series_comes_twice_whatever_the_names() -> None:
    """Two names that differ in what no label can hold are one label."""
    run = RunState("r", status="running")
    bad = {chr(0xD800 + n): math.nan for n in range(8)} | {"long" * 100 + str(n): math.inf for n in range(8)}
    own = {chr(0xDC00 + n): 1.0 for n in range(8)} | {"wide" * 100 + str(n): 2.0 for n in range(8)} | {'a"\n\\': 1.0}
    for rank in (0, 1):
        run.rank(rank).take([record(1, **bad, **own)])
        run.gpus[rank] = gpus_of({"gpus": [{"gpu": 0, "uuid": "G"}, {"gpu": "0", "uuid": "G"}, {"gpu": 1}]}, {})
    text, _ = exporter.render(Snapshot(NOW, tuple(run.readings(NOW))))
    samples = [sample for family in text_string_to_metric_families(text.decode()) for sample in family.samples]
    series = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    assert len(series) == len(set(series))
    counts = {sample.labels["field"]: sample.value for sample in samples if sample.name == "training_nonfinite_total"}
    assert counts == {"?": 8.0, "long" * 50: 8.0}
    assert len([name for name, _ in series if "gpu_info" in name]) == 4


def test_fields_that_were_no_number_are_capped_and_the_loss_is_among_them() -> None:
    run = RunState("r")
    run.rank(0).take([record(1, **{f"m{n}": math.nan for n in range(MAX_CUSTOM_NAMES + 5)}, loss=math.nan)])
    fields = [reading.label("field") for reading in told(run, "nonfinite")]
    assert len(fields) == MAX_CUSTOM_NAMES + 1
    assert fields[-1] == "loss"


def test_names_without_end_take_no_memory_without_end_and_are_counted() -> None:
    run = RunState("r")
    for step in range(1, 101):
        run.rank(0).take([record(step, **{f"m{step}_{n}": 1.0 for n in range(100)})])
    run.rank(0).take([record(101, loss=2.0)])
    assert len(run.rank(0).last) <= MAX_KEPT_NAMES
    assert rank_values(run.rank(0))["loss"] == 2.0
    assert {"metrics_dropped_total": 10_000.0 - MAX_CUSTOM_NAMES} in [dict(r.values) for r in told(run, "run")]


class Odd:
    """Compares with nothing, like lists nested too deep."""

    def __eq__(self, other: object) -> bool:
        raise RecursionError

    __hash__ = None  # type: ignore[assignment]


def test_a_record_that_cannot_be_taken_is_lost_alone() -> None:
    state = RankState(0)
    assert state.take([record(1), {"step": Odd()}, record(2, loss=3.0)]) == 1
    assert rank_values(state)["loss"] == 3.0
    assert state.steps == 2


def test_a_gpu_known_by_its_uuid_has_the_number_that_the_node_gives_it() -> None:
    process = {"gpus": [{"uuid": "GPU-a"}, {"uuid": "GPU-b"}, {"gpu": 5, "uuid": "GPU-a"}, "nonsense"]}
    assert gpus_of(process, {"GPU-a": "3"}) == [("3", "GPU-a"), ("", "GPU-b"), ("5", "GPU-a")]
