"""A GPU's field over time: from memory, from the journal, within bounds."""

import json
import time
from pathlib import Path

import pytest
from starlette.applications import Starlette

from tests.collector.support import wait_for
from tests.collector.web.asking import ask
from trainvitals.agent import query
from trainvitals.agent.history import HISTORY_FIELDS
from trainvitals.agent.service import Agent
from trainvitals.catalog import SERIES
from trainvitals.journal import layout
from trainvitals.journal.record import timestamp_at
from trainvitals.sources.simulated import SimulatedSource
from trainvitals.web.app import make_app

NOON = 1_753_876_800.0


@pytest.fixture
def past(tmp_path: Path) -> Agent:
    """An agent whose journal holds ten seconds of a day long gone; its files look new to a reader."""
    folder = layout.gpu_folder(tmp_path, layout.host_name())
    folder.mkdir(parents=True)
    lines = [{"timestamp": timestamp_at(NOON + second), "gpu_index": gpu, "utilization_percent": 50.0,
              **({"clock_hertz_sm": 1e9 + second} if second != 5 else {})}
             for second in range(10) for gpu in (0, 1)]  # fmt: skip
    (folder / "gpu_metrics_20250730_120000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Agent([SimulatedSource(1)], tmp_path)


@pytest.mark.parametrize("field", HISTORY_FIELDS)
def test_fields_in_memory(agent: Agent, app: Starlette, field: str) -> None:
    answer = wait_for(lambda: _with_points(app, f"/api/v1/history?gpu=1&field={field}", 2))
    assert (answer["gpu"], answer["field"], answer["step_seconds"]) == ("1", field, 1)
    at, mean, peak = answer["points"][-1]
    assert at == pytest.approx(time.time(), abs=60)
    assert 0 < mean <= peak


def _with_points(app: Starlette, path: str, count: int) -> dict:
    answer = ask(app, path).json()
    return answer if len(answer["points"]) >= count else {}


def test_every_other_field_comes_from_the_journal(past: Agent) -> None:
    path = f"/api/v1/history?gpu=1&field=clock_hertz_sm&from={NOON}&to={NOON + 20}"
    answer = ask(make_app(past), path).json()
    assert answer["points"][0] == [NOON, 1e9, 1e9]
    assert [at for at, _, _ in answer["points"]] == [NOON + second for second in range(10)]
    assert answer["points"][5][1] == 1e9 + 4  # unchanged, so not written again


@pytest.mark.parametrize("words", [("2025-07-30T12:00:03Z", "2025-07-30T12:00:06.500Z"), (NOON + 3, NOON + 6.5)])
def test_from_and_to_are_times_or_seconds(past: Agent, words: tuple[object, object]) -> None:
    path = f"/api/v1/history?field=clock_hertz_sm&from={words[0]}&to={words[1]}"
    assert [at - NOON for at, _, _ in ask(make_app(past), path).json()["points"]] == [3, 4, 5, 6]


def test_nobody_is_handed_more_than_a_screen_can_show(past: Agent) -> None:
    path = f"/api/v1/history?field=clock_hertz_sm&from={NOON}&to={NOON + 30 * 86400}"
    answer = ask(make_app(past), path).json()
    assert answer["step_seconds"] >= 30 * 86400 / query.MAX_POINTS
    assert len(answer["points"]) == 1


def test_an_unknown_gpu_has_no_points(app: Starlette) -> None:
    answer = ask(app, "/api/v1/history?gpu=63")
    assert (answer.status, answer.json()["points"]) == (200, [])


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("gpu=x", "gpu"),
        ("gpu=-1", "gpu"),
        ("gpu=", "gpu"),
        ("gpu=0.5", "gpu"),
        ("field=nonsense", "field"),
        ("field=", "field"),
        ("field=../../etc/passwd", "field"),
        ("from=yesterday", "from"),
        ("from=nan", "from"),
        ("from=-1", "from"),
        ("from=inf", "from"),
        ("to=", "to"),
        ("to=1e300", "to"),
        ("to=2025-13-01T00:00:00Z", "to"),
        ("from=200&to=100", "from"),
        ("from=0&to=99999999", "from"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_fix(app: Starlette, words: str, key: str) -> None:
    answer = ask(app, f"/api/v1/history?{words}")
    assert answer.status == 400
    error = answer.json()["error"]
    assert error.startswith(f"{key}: ")
    assert "cannot be used: " in error


@pytest.mark.parametrize("field", [name for name in SERIES["gpu"] if name not in HISTORY_FIELDS])
def test_every_field_of_a_gpu_may_be_asked_for(app: Starlette, field: str) -> None:
    assert ask(app, f"/api/v1/history?field={field}").status == 200
