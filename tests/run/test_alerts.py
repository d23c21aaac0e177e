"""Alerts with conditions of the user's own."""

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
    assert [record.message for record in caplog.records] == [
        "alert 'broken' is switched off: its condition failed: ZeroDivisionError: division by zero"
    ]


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
