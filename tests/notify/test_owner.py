"""The notifier as its owner has it: it waits for nobody, ends well, and goes on after a start."""

import time
from pathlib import Path

import pytest

from tests.collector.support import wait_for
from tests.notify.support import HOST, Hook, closed, finding, notifying, opened, settled, storm, ticket, trickling
from tests.ports import free_port
from trainvitals.alerting.channels import QuietHours
from trainvitals.clock import SYSTEM
from trainvitals.notify import Notifier, channels, courier
from trainvitals.notify.quiet import Quiet


def test_telling_waits_for_nobody_and_raises_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not for a disk, not for a receiver, not before the start, not after the end, whatever it is given."""
    mail = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(free_port()), "SMTP_FROM": "a@b.example",
            "SMTP_TO": "a@b.example"}  # fmt: skip
    with trickling() as url:
        notifier = Notifier(channels(f"webhook={url},email", mail), Path("/proc/nowhere"), HOST)
        notifier.tell(storm(10))
        notifier.start()
        began = time.monotonic()
        for change in storm(500):
            notifier.tell([change])
        notifier.tell([None])  # type: ignore[list-item]
        notifier.tell(None)  # type: ignore[arg-type]
        notifier.adopt([None])  # type: ignore[list-item]
        assert time.monotonic() - began < 10
        assert "findings could not be handed on" in caplog.text
        notifier.stop(0.2)
        notifier.tell(storm(10))


def test_quiet_hours_hold_tickets_back(tmp_path: Path, server: Hook, quick: None) -> None:
    with notifying(tmp_path, f"webhook={server.url}", hours=QuietHours("12:00", "13:00", "UTC")) as notifier:
        notifier.tell([opened(ticket())])
        settled(lambda: server.taken)
        notifier.tell([opened()])
        wait_for(lambda: server.taken)
    assert server.findings() == [("TrainingNonFinite", "open")]


def test_at_the_end_what_waits_for_its_turn_is_sent(tmp_path: Path, server: Hook) -> None:
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        notifier.tell([opened()])
        wait_for(lambda: server.taken)
        notifier.tell([opened(ticket())])
    assert server.findings() == [("TrainingNonFinite", "open"), ("GpuTemperatureHigh", "open")]


def test_an_end_that_comes_between_two_looks_is_not_missed(
    tmp_path: Path, server: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    [channel] = channels(f"webhook={server.url}", {})
    carrying = courier.Courier(channel, tmp_path / "q", HOST, clock=SYSTEM, quiet=Quiet(None), page="")
    clear = carrying._wake.clear

    def clear_after_an_end() -> None:
        carrying.end()
        clear()

    monkeypatch.setattr(carrying._wake, "clear", clear_after_an_end)
    carrying.start()
    carrying.join(10)
    assert not carrying.is_alive()


def test_after_a_start_what_waited_is_sent_and_what_was_told_is_not(tmp_path: Path, server: Hook, quick: None) -> None:
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        notifier.tell([opened()])
        wait_for(lambda: server.taken)
        server.status = 503
        notifier.tell([opened(finding("GpuMissing")), opened(finding("GpuXidFatal"))])
        wait_for(lambda: len(server.times) > 1)
    server.status = 200
    there = [opened(), opened(finding("GpuMissing")), opened(finding("TrainingStalled"))]
    with notifying(tmp_path, f"webhook={server.url}/mended", adopted=there) as notifier:
        wait_for(lambda: len(server.findings()) == 4)
        settled(lambda: len(server.findings()) > 4)
        notifier.tell([closed()])
        wait_for(lambda: len(server.findings()) == 5)
    assert sorted(server.findings()[1:4]) == [("GpuMissing", "open"), ("GpuXidFatal", "resolved"),
                                              ("TrainingStalled", "open")]  # fmt: skip
    assert server.findings()[4] == ("TrainingNonFinite", "resolved")


@pytest.mark.parametrize(("path", "told"), [
    ("http://127.0.0.1:{port}/hush", "webhook 127.0.0.1 127.0.0.1:{port}: connection refused"),
    ("http://no.such.host.invalid/hush", "webhook no.such.host.invalid no.such.host.invalid:80: its name is not known"),
])  # fmt: skip
def test_a_wrong_address_says_so_at_the_start_and_monitoring_goes_on(
    tmp_path: Path, path: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with notifying(tmp_path, f"webhook={path.format(port=port)}") as notifier:
        wait_for(lambda: "monitoring goes on" in caplog.text)
        notifier.stop(0)
    assert told.format(port=port) in caplog.text and "--notify (TRAINVITALS_NOTIFY)" in caplog.text
    assert "hush" not in caplog.text


def test_one_that_listens_is_told_nothing_at_the_start(tmp_path: Path, server: Hook,
                                                       caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    with notifying(tmp_path, f"webhook={server.url}"):
        settled(lambda: server.times)
    assert caplog.text == ""
