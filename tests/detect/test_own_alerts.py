"""Conditions in the trainer: what their events say is a finding, for as long as they may keep quiet."""

import math
from typing import Any

import pytest

from tests.detect.support import BEGAN, judged, lines
from trainvitals.detect.engine import Engine
from trainvitals.journal.record import timestamp_at


def alert(since: float, **values: Any) -> dict[str, Any]:
    return {"timestamp": timestamp_at(BEGAN + since), "event": "alert", "name": "hot loss", "severity": "page",
            "message": "the loss is 9.1", "step": 7, **values}  # fmt: skip


def states(engine: Engine, since: float) -> list[str]:
    return [change.state for change in engine.tick(BEGAN + since)]


def test_its_word_is_a_finding_of_the_rank_that_said_it() -> None:
    engine = Engine()
    engine.run_event("gemma", 3, alert(0, cooldown_seconds=300.0))
    (change,) = engine.news()
    found = change.finding
    assert (found.kind, found.severity, found.what, found.step) == ("hot loss", "page", "the loss is 9.1", 7)
    assert found.place.labels() == {"run": "gemma", "rank": "3"}


@pytest.mark.parametrize(("told", "open_for"), [({"cooldown_seconds": 3600.0}, 3660), ({"cooldown_seconds": 0}, 60),
                                                ({}, 600), ({"cooldown_seconds": math.inf}, 600)])  # fmt: skip
def test_it_stays_for_as_long_as_nothing_more_can_be_heard_of_it(told: dict[str, Any], open_for: float) -> None:
    engine = Engine()
    engine.run_event("gemma", 0, alert(0, **told))
    assert states(engine, open_for - 5) == ["open"]
    assert states(engine, open_for + 5) == ["close"]


def test_where_steps_are_slow_the_next_word_may_come_some_steps_later() -> None:
    engine = Engine()
    judged(lines(30, 120.0), engine)
    engine.run_event("gemma", 0, alert(3600, cooldown_seconds=600.0))
    assert "close" not in states(engine, 3600 + 600 + 1100)
    assert "close" in states(engine, 3600 + 600 + 1300)


def test_it_ends_with_its_run() -> None:
    engine = Engine()
    engine.run_event("gemma", 0, alert(0, cooldown_seconds=3600.0))
    engine.run_event("llama", 0, alert(0, cooldown_seconds=3600.0))
    engine.ended("gemma", "finished", BEGAN + 10)
    assert [one.finding.place.run for one in engine.news() if one.state == "close"] == ["gemma"]


@pytest.mark.parametrize("broken", [{"step": math.nan}, {"step": "x"}, {"cooldown_seconds": "soon"}, {"message": 3},
                                    {"timestamp": None}])  # fmt: skip
def test_an_event_that_somebody_broke_is_told_as_far_as_it_goes(broken: dict[str, Any]) -> None:
    engine = Engine()
    engine.run_event("gemma", 0, alert(0, **broken))
    assert [one.finding.kind for one in engine.news()] == ["hot loss"]
    assert not engine.failures


def test_what_a_trainer_says_is_one_line_that_moves_no_cursor(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    engine.run_event("gemma", 0, alert(0, name="hot\r\n\x1b[31mpage", message="9.1\nERROR forged \u202e\x9b2J"))
    engine.ended("llama", "crashed", BEGAN, "ValueError: \x1b[2J\r\nERROR forged")
    engine.info("mistral", {"config": {"alert_thresholds": {"los\ns": 1}}}, {})
    engine.ended("gemma", "finished", BEGAN + 10)
    assert [(one.state, one.finding.kind, one.finding.what) for one in engine.news()] == [
        ("open", "hot   [31mpage", "9.1 ERROR forged   2J"),
        ("open", "TrainingCrashed", "the run ended by an exception: ValueError:  [2J  ERROR forged"),
        ("close", "hot   [31mpage", "9.1 ERROR forged   2J"),
    ]
    assert all(record.getMessage().isprintable() for record in caplog.records) and len(caplog.records) == 1


@pytest.mark.parametrize("broken", [{"name": ""}, {"name": 3}, {"severity": "loud"}, {"severity": ["page"]}])
def test_one_without_a_name_or_a_severity_is_none(broken: dict[str, Any]) -> None:
    engine = Engine()
    engine.run_event("gemma", 0, alert(0, **broken))
    assert engine.news() == []
