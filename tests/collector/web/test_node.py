"""GPUs and host over time: from memory, from the journal, within bounds."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.collector.support import wait_for
from tests.collector.web.asking import ask
from trainvitals.agent import query
from trainvitals.agent.history import HISTORY_FIELDS, HOST_FIELDS
from trainvitals.agent.service import Agent
from trainvitals.catalog import SERIES
from trainvitals.journal import layout
from trainvitals.journal.record import timestamp_at
from trainvitals.sources.simulated import SimulatedSource
from trainvitals.web.app import make_app

NOON = 1_753_876_800.0
USE = "/api/v1/node?fields=utilization_percent&host=none"
CLOCK = "/api/v1/node?gpu=1&fields=clock_hertz_sm&host=none"


@pytest.fixture
def past(tmp_path: Path) -> Agent:
    """An agent whose journal holds ten seconds of a day long gone; its files look new to a reader."""
    folder = layout.gpu_folder(tmp_path, layout.host_name())
    folder.mkdir(parents=True)
    lines = [{"timestamp": timestamp_at(NOON + second), "gpu_index": gpu, "utilization_percent": 50.0,
              **({"clock_hertz_sm": 1e9 + second} if second != 5 else {})}
             for second in range(10) for gpu in (0, 1)]  # fmt: skip
    (folder / "gpu_metrics_20250730_120000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    host = [
        {"timestamp": timestamp_at(NOON + 60 * minute), "load_average_1m": 1.0 * minute} for minute in (0, 1, 9, 10)
    ]
    (folder / "host_metrics_20250730_120000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in host))
    return Agent([SimulatedSource(1)], tmp_path)


def columns(app: Starlette, path: str) -> Any:
    answer = ask(app, path)
    assert answer.status == 200, answer.text
    return answer.json()


def test_one_call_has_all_of_a_view(app: Starlette) -> None:
    def told() -> Any:
        answer = columns(app, f"/api/v1/node?from={time.time() - 600}")
        host = answer["host"]["cpu_usage_percent"]
        return answer if len(host["x"]) > 1 and len(answer["gpus"]) == 2 else None

    answer = wait_for(told, 30)
    assert answer["step_seconds"] == 1
    for gpu in ("0", "1"):
        assert answer["gpus"][gpu].keys() == HISTORY_FIELDS.keys()
        at, mean, peak = last_known(answer["gpus"][gpu]["utilization_percent"])
        assert at == pytest.approx(time.time(), abs=60)
        assert 0 < mean <= peak
    assert answer["host"].keys() == HOST_FIELDS.keys()
    assert last_known(answer["host"]["memory_used_bytes"])[1] > 2**20


def last_known(column: Any) -> tuple[float, float, float]:
    """A tick that came late is a gap of a second."""
    points = zip(column["x"], column["mean"], column["peak"], strict=True)
    return [point for point in points if point[1] is not None][-1]


def test_an_hour_in_a_thousand_points(app: Starlette) -> None:
    assert columns(app, "/api/v1/node")["step_seconds"] == 4


def test_only_what_is_asked_for(app: Starlette) -> None:
    answer = columns(app, "/api/v1/node?gpu=1,0,1&fields=temperature_celsius&host=cpu_iowait_ratio")
    assert (list(answer["gpus"]), list(answer["gpus"]["1"])) == (["1", "0"], ["temperature_celsius"])
    assert list(answer["host"]) == ["cpu_iowait_ratio"]
    answer = columns(app, "/api/v1/node?gpu=none&host=none")
    assert (answer["gpus"], answer["host"]) == ({}, {})


def test_every_other_field_comes_from_the_journal(past: Agent) -> None:
    column = columns(make_app(past), f"{CLOCK}&from={NOON}&to={NOON + 20}")["gpus"]["1"]["clock_hertz_sm"]
    assert column["x"] == [NOON + second for second in range(10)]
    assert (column["mean"][0], column["peak"][0]) == (1e9, 1e9)
    assert column["mean"][5] == 1e9 + 4  # unchanged, so not written again


def test_where_nothing_was_told_for_long_is_a_gap(past: Agent) -> None:
    path = f"/api/v1/node?gpu=none&host=load_average_1m&from={NOON}&to={NOON + 3600}&points=60"
    column = columns(make_app(past), path)["host"]["load_average_1m"]
    assert column["mean"] == [0.0, 1.0, None, 9.0, 10.0]
    assert column["x"] == [NOON, NOON + 60, NOON + 120, NOON + 540, NOON + 600]


@pytest.mark.parametrize("words", [("2025-07-30T12:00:03Z", "2025-07-30T12:00:06.500Z"), (NOON + 3, NOON + 6.5)])
def test_from_and_to_are_times_or_seconds(past: Agent, words: tuple[object, object]) -> None:
    answer = columns(make_app(past), f"{CLOCK}&from={words[0]}&to={words[1]}")
    assert [at - NOON for at in answer["gpus"]["1"]["clock_hertz_sm"]["x"]] == [3, 4, 5, 6]


def test_nobody_is_handed_more_than_a_screen_can_show(past: Agent) -> None:
    answer = columns(make_app(past), f"{CLOCK}&from={NOON}&to={NOON + 30 * 86400}")
    assert len(answer["gpus"]["1"]["clock_hertz_sm"]["x"]) == 1
    for when in range(0, 30 * 86400, 30):
        past.history.put("1", NOON + when, {"utilization_percent": when % 100})
    kept = past.history.points("1", "utilization_percent", NOON, NOON + 30 * 86400, NOON + 30 * 86400, 700)
    assert kept[0] >= 30 * 86400 / 700 and 600 < len(kept[1]) <= 701


def test_an_unknown_gpu_has_no_points(app: Starlette) -> None:
    answer = columns(app, "/api/v1/node?gpu=63")
    assert answer["gpus"]["63"]["utilization_percent"] == {"x": [], "mean": [], "peak": []}


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("gpu=x", "gpu"),
        ("gpu=-1", "gpu"),
        ("gpu=0.5", "gpu"),
        ("gpu=0,x", "gpu"),
        ("gpu=" + ",".join(map(str, range(65))), "gpu"),
        ("fields=nonsense", "fields"),
        ("fields=../../etc/passwd", "fields"),
        ("host=utilization_percent", "host"),
        ("host=cpu_usage_percent,nonsense", "host"),
        ("from=yesterday", "from"),
        ("from=nan", "from"),
        ("from=-1", "from"),
        ("from=inf", "from"),
        ("to=", "to"),
        ("to=1e300", "to"),
        ("to=2025-13-01T00:00:00Z", "to"),
        ("from=200&to=100", "from"),
        ("from=0&to=99999999", "from"),
        ("points=0", "points"),
        ("points=4001", "points"),
        ("points=-5", "points"),
        ("points=1e3", "points"),
        ("points=٣", "points"),
        ("points=", "points"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_fix(app: Starlette, words: str, key: str) -> None:
    answer = ask(app, f"/api/v1/node?{words}")
    assert answer.status == 400
    error = answer.json()["error"]
    assert error.startswith(f"{key}: ")
    assert "cannot be used: " in error


@pytest.mark.parametrize("scope", ["gpu", "host"])
def test_every_field_may_be_asked_for(app: Starlette, scope: str) -> None:
    name = "fields" if scope == "gpu" else "host"
    for field in SERIES[scope]:
        assert ask(app, f"/api/v1/node?{name}={field}").status == 200


def test_what_is_asked_for_longest_is_bounded(app: Starlette) -> None:
    assert ask(app, f"/api/v1/node?from=0&to={query.MAX_SECONDS:.0f}&points={query.MAX_POINTS}").status == 200


def test_peaks_of_many_gpus_are_left_out_where_that_is_asked_for(app: Starlette) -> None:
    wait_for(lambda: len(columns(app, USE)["gpus"]) == 2, 30)
    for peaks, keys in ((2, {"x", "mean", "peak"}), (1, {"x", "mean"})):
        told = columns(app, f"{USE}&peaks={peaks}")["gpus"]
        assert all(gpu["utilization_percent"].keys() == keys for gpu in told.values())


def test_values_come_in_so_many_digits_as_are_asked_for(past: Agent) -> None:
    path = f"{CLOCK}&from={NOON}&to={NOON + 9}&points=1"
    whole = columns(make_app(past), path)["gpus"]["1"]["clock_hertz_sm"]["mean"]
    short = columns(make_app(past), f"{path}&digits=2")["gpus"]["1"]["clock_hertz_sm"]["mean"]
    assert whole != short == pytest.approx(whole, rel=1e-9)
