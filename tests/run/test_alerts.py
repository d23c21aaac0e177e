"""Alerts with conditions of the user's own."""

import sys
from pathlib import Path
from typing import Any

import pytest

import trainvitals as tv
from tests.run.devices import Device
from tests.run.support import events, run_folders


def test_alerts_are_asked_at_each_log_and_keep_quiet_for_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tv.start("x", dir=tmp_path)
    run.alert_when("hot", lambda metrics: metrics["loss"] > 5, "critical", "loss is {loss:.1f}, {who} {lr}")
    run.alert_when("each", lambda metrics: metrics["loss"] > 5, "warning", "{loss:%d}", cooldown_seconds=0)
    run.alert_when("broken", lambda metrics: 1 / 0)
    run.alert_when("about what is not logged", lambda metrics: metrics["no such"] > 5)
    for loss in (1, 6.25, 7):
        run.log(loss=loss)
        run.log(lr=loss)
    run.finish()
    alerts = [(e["name"], e["severity"], e["message"], e["step"]) for e in events(*run_folders(tmp_path), "alert")]
    assert alerts == [("hot", "page", "loss is 6.2, {who} {lr}", 3), ("each", "ticket", "{loss:%d}", 3),
                      ("each", "ticket", "{loss:%d}", 5)]  # fmt: skip
    assert [e["cooldown_seconds"] for e in events(*run_folders(tmp_path), "alert")] == [300.0, 0.0, 0.0]
    assert [record.message for record in caplog.records] == [
        "alert 'broken' is switched off: its condition failed: ZeroDivisionError: division by zero"
    ]


def test_a_condition_that_raises_is_switched_off_with_one_warning_also_where_it_is_a_key_of_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits: dict[str, float] = {}
    run = tv.start("x", dir=tmp_path)
    run.alert_when("own", lambda metrics: metrics["loss"] > limits["loss"])
    run.alert_when("untold", lambda metrics: metrics["reward"] < 0 or metrics.get("epoch", 0) > 1)
    for loss in (1, 2, 3):
        run.log(loss=loss)
    run.log(reward=-1)
    run.finish()
    assert [event["name"] for event in events(*run_folders(tmp_path), "alert")] == ["untold"]
    assert [record.message for record in caplog.records] == [
        "alert 'own' is switched off: its condition failed: KeyError: 'loss'"
    ]


def test_of_two_alerts_that_are_alike_only_the_one_that_fails_is_switched_off(tmp_path: Path) -> None:
    class Picky:
        """Equal to its like, as a condition made by a data class is."""

        def __init__(self, fails: bool) -> None:
            self.fails = fails

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Picky)

        __hash__ = None  # type: ignore[assignment]

        def __call__(self, metrics: dict[str, Any]) -> bool:
            return bool(1 / (0 if self.fails else 1))

    run = tv.start("x", dir=tmp_path)
    for fails in (False, True):
        run.alert_when("like", Picky(fails), cooldown_seconds=0)
    run.log(loss=1)
    run.log(loss=2)
    run.finish()
    assert len(list(events(*run_folders(tmp_path), "alert"))) == 2


def test_a_condition_that_logs_by_itself_is_asked_once_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = tv.start("x", dir=tmp_path)
    asked = []

    def notes(metrics: dict[str, Any]) -> bool:
        asked.append(metrics["loss"])
        run.log(seen=1.0)
        return False

    run.alert_when("notes", notes)
    for loss in (1.0, 2.0):
        run.log(loss=loss)
    run.finish()
    assert asked == [1.0, 2.0]
    assert not caplog.records


def test_what_cannot_be_used_is_said_as_it_is_given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = tv.start("x", dir=tmp_path)
    run.alert_when("typo", lambda metrics: True, "critcal")
    run.alert_when("no function", "loss > 3")  # type: ignore[arg-type]
    for cooldown in ("soon", float("nan"), -1, None):
        run.alert_when("no number", lambda metrics: True, cooldown_seconds=cooldown)  # type: ignore[arg-type]
    for loss in (1, 2):
        run.log(loss=loss)
    run.finish()
    told = [(event["name"], event["severity"], event["cooldown_seconds"])
            for event in events(*run_folders(tmp_path), "alert")]  # fmt: skip
    assert told == [("typo", "ticket", 300.0), *[("no number", "ticket", 300.0)] * 4]
    words = [record.message for record in caplog.records]
    assert words[0].startswith("alert_when: severity: 'critcal' cannot be used: choose one of warning, error, critical")
    assert "condition: 'loss > 3' cannot be used: give a function of the metrics" in words[1]
    assert [each.partition(" cannot be used")[0] for each in words[2:]] == [
        f"alert_when: cooldown_seconds: {each!r}" for each in ("soon", "nan", "-1", "None")
    ]
    assert words[3].endswith("give seconds, 0 or more; it is 300")


def test_a_condition_that_wants_to_end_the_process_is_switched_off_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tv.start("x", dir=tmp_path)
    run.alert_when("leaves", lambda metrics: sys.exit(3))
    run.alert_when("stays", lambda metrics: metrics["loss"] > 1)
    for loss in (1, 2):
        run.log(loss=loss)
    run.alert_when("Ctrl-C", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.log(loss=3)
    run.finish()
    assert [event["name"] for event in events(*run_folders(tmp_path), "alert")] == ["stays"]
    assert [record.message for record in caplog.records] == [
        "alert 'leaves' is switched off: its condition failed: SystemExit: 3"
    ]


def interrupted(metrics: dict[str, Any]) -> bool:
    raise KeyboardInterrupt


def test_what_is_known_of_a_step_is_asked_together_whichever_line_it_came_in(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
    run = tv.start("x", dir=tmp_path)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    run.watch(model, optimizer, every=1)

    def is_hot(metrics: dict[str, Any]) -> bool:
        return bool(metrics["loss"] > -100 and metrics["gradient_norm"] > 0)

    run.alert_when("both", is_hot, message="{gradient_norm:.0%} {loss:.1f}", cooldown_seconds=0)
    for step in range(5):
        with run.step():
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        run.log(loss=step + 0.5)
    run.finish()
    told = events(*run_folders(tmp_path), "alert")
    assert [event["step"] for event in told] == [1, 2, 3, 4, 5]
    assert [event["message"].split()[1] for event in told] == ["0.5", "1.5", "2.5", "3.5", "4.5"]
    assert not any("{" in event["message"] for event in told)


def test_a_value_that_a_device_had_still_to_compute_is_asked_about_too(tmp_path: Path) -> None:
    run = tv.start("x", dir=tmp_path)
    run.alert_when("half", lambda metrics: metrics["loss"] == 0.5 and metrics["learning_rate"] == 1)
    run.log(loss=Device(False, False, True), lr=1)
    run.log(lr=2)
    run.log(lr=3)
    run.finish()
    assert [event["name"] for event in events(*run_folders(tmp_path), "alert")] == ["half"]
