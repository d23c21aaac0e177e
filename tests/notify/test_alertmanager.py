"""Alerts as a rule's twin, on the real Alertmanager where there is one, else by what is posted."""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.alerting.support import Recorder, Running, alertmanager, recording
from tests.collector.support import wait_for
from tests.notify.support import HOST, Hook, finding, hook, notifying, settled, ticket
from tests.ports import free_port
from trainvitals.clock import SYSTEM
from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.errors import SettingError
from trainvitals.journal.record import seconds
from trainvitals.notify import Notifier, channels, desk
from trainvitals.notify import notifier as notifier_of_ours
from trainvitals.notify.alertmanager import alert, labels
from trainvitals.notify.message import Item

XID = finding("GpuXidFatal", what="Xid 79", gpu="3", uuid="GPU-3")
STALLED = finding("TrainingStalled", what="no step for 300 s", run="gemma")


def change(one: Finding, state: str = "open", ago: float = 0.0, **more: Any) -> Change:
    now = time.time()
    return Change(state, one, now - ago, now, **more)  # type: ignore[arg-type]


def item(one: Finding, cause: Finding | None = None) -> Item:
    return Item(change(one, cause=cause), "open", one.severity)


# --- What is posted ---


@pytest.mark.parametrize(("one", "cause", "found"), [
    (STALLED, None, {"run": "gemma"}),
    (XID, None, {"gpu": "3", "uuid": "GPU-3"}),
    (finding("GpuMissing"), None, {"run": "gemma", "rank": "0"}),
    (Finding("HostDiskFull", "page", "/ is full", place=Place(part="/data")), None, {"mountpoint": "/data"}),
    (Finding("SourceDown", "ticket", "nvml is silent", place=Place(part="nvml")), None, {"part": "nvml"}),
    (Finding("GpuMissing", "page", "7 of 8"), None, {}),
    (STALLED, XID, {"run": "gemma", "folded": "GpuXidFatal"}),
    (finding(run="x\ny\udcff"), None, {"run": "x y "}),
])  # fmt: skip
def test_labels_are_those_of_the_twin(one: Finding, cause: Finding | None, found: dict[str, str]) -> None:
    assert labels(item(one, cause), HOST) == {"alertname": one.kind, "severity": one.severity, "source": "agent",
                                              "instance": HOST, **found}  # fmt: skip


def test_annotations_say_what_without_a_value_and_then_all(server: Hook) -> None:
    told = alert(Item(change(XID, evidence=(STALLED,)), "open", "page", more=3), HOST, time.time())["annotations"]
    assert told["summary"] == "A GPU of gpu1 reports a fatal error"
    assert told["description"].startswith("Xid 79. Take the GPU out of service")
    assert told["description"].endswith("With it: TrainingStalled: no step for 300 s. With it: 3 more")
    assert told["runbook_url"].endswith("/docs/runbooks/GpuXidFatal.md")
    own = alert(item(finding("my rule", what="Loss is 3.14")), HOST, time.time())["annotations"]
    assert own == {"summary": "The rule my rule of your own is met", "description": "Loss is 3.14."}


@pytest.mark.parametrize("ago", [-3600.0, 0.0, 3600.0])
def test_an_alert_never_ends_before_it_starts(ago: float) -> None:
    """A clock may have been set meanwhile."""
    for state in ("open", "resolved"):
        now = time.time()
        told = alert(Item(change(XID, ago=ago), state, "page"), HOST, now)  # type: ignore[arg-type]
        starts, ends = seconds(told["startsAt"]), seconds(told["endsAt"])
        assert starts is not None and ends is not None
        assert starts < ends and (ends > now + 120 if state == "open" else ends < now + 1)


def test_stamps_of_an_end_and_a_begin_that_are_next_to_each_other_are_two() -> None:
    for fraction in range(1000):
        now = 1_795_122_330 + fraction / 777_777
        told = alert(Item(change(XID)._replace(opened=now), "resolved", "page"), HOST, now)
        assert told["startsAt"] < told["endsAt"]


def test_what_it_refuses_is_tried_again_as_long_as_it_goes_on(tmp_path: Path, server: Hook, quick: None) -> None:
    server.answers.extend([404] + [401] * 12)
    with notifying(tmp_path, f"alertmanager={server.url}", clock=SYSTEM) as notifier:
        notifier.tell([change(XID)])
        wait_for(lambda: [body for path, body in server.posts if path == "/api/v2/alerts"])
    assert notifier.counts()["alertmanager 127.0.0.1"].dropped == 0


# --- The real one ---


@pytest.fixture
def server_of_people() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alert fires, and waits for its rule to end, as long as this Alertmanager groups."""
    monkeypatch.setattr(desk, "FIRES_SECONDS", 6.0)
    monkeypatch.setattr(desk, "LINGERS_SECONDS", {"page": 6.0, "ticket": 6.0})


@pytest.fixture
def running(tmp_path: Path, server_of_people: Recorder) -> Iterator[Running]:
    url = server_of_people.url
    (tmp_path / "alertmanager").mkdir()
    with alertmanager(tmp_path / "alertmanager", {"WEBHOOK_URL": f"{url}/hook", "COLLECTOR_URL": url}) as started:
        yield started


def known(running: Running) -> dict[str, tuple[str, str]]:
    """What fires, by name: who says it, and whether it is told."""
    return {one["labels"]["alertname"]: (one["labels"]["source"], one["status"]["state"])
            for one in running.get("/api/v2/alerts")}  # fmt: skip


def test_a_finding_is_a_page_and_then_its_end(tmp_path: Path, running: Running, server_of_people: Recorder,
                                              hurry: None) -> None:  # fmt: skip
    with notifying(tmp_path / "q", f"alertmanager={running.url}", clock=SYSTEM) as notifier:
        notifier.tell([change(XID)])
        wait_for(lambda: known(running) == {"GpuXidFatal": ("agent", "active")})
        wait_for(lambda: server_of_people.alerts() == ["GpuXidFatal"])
        notifier.tell([change(XID, "close", ago=30)])
        wait_for(lambda: server_of_people.alerts(status="resolved") == ["GpuXidFatal"], 30)
    assert known(running) == {}


@pytest.mark.parametrize("is_ticket", [False, True], ids=["page", "ticket"])
def test_a_finding_and_its_twin_are_one_message_and_one_end(
    tmp_path: Path, running: Running, server_of_people: Recorder, hurry: None, is_ticket: bool
) -> None:
    """As Prometheus has it: its rule fires a moment later, is posted again and again, and ends a moment later."""
    one = ticket() if is_ticket else XID
    twin = labels(item(one), HOST) | {"source": "prometheus", "xid": "79"}
    with (
        notifying(tmp_path / "q", f"alertmanager={running.url}", clock=SYSTEM) as notifier,
        firing(running, twin) as rule,
    ):
        notifier.tell([change(one)])
        wait_for(lambda: known(running))
        rule.set()
        wait_for(lambda: len(server_of_people.to("/hook")) == 1)
        wait_for(lambda: states(running) == {"agent": "active", "prometheus": "suppressed"})
        notifier.tell([change(one, "close", ago=30)])
        settled(lambda: server_of_people.alerts(status="resolved"), 3.0)
        rule.clear()
        wait_for(lambda: server_of_people.alerts(status="resolved"), 45)
        wait_for(lambda: not known(running), 30)
    told, ended = (post.json() for post in server_of_people.to("/hook"))
    assert [(told["status"], ended["status"])] == [("firing", "resolved")]
    assert [alert["labels"]["source"] for alert in told["alerts"]] == ["agent"]


@contextmanager
def firing(running: Running, rule: dict[str, str]) -> Iterator[threading.Event]:
    """While the event is set a rule's alert is posted each second, and its end when it is cleared."""
    holds, over = threading.Event(), threading.Event()

    def post() -> None:
        was = False
        while not over.wait(1.0):
            if holds.is_set() or was:
                running.fire(rule, ended=not holds.is_set())
            was = holds.is_set()

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    yield holds
    over.set()
    thread.join(10)


def states(running: Running) -> dict[str, str]:
    return {one["labels"]["source"]: one["status"]["state"] for one in running.get("/api/v2/alerts")}


def test_what_is_folded_reaches_nobody_and_keeps_its_twin_quiet(tmp_path: Path, running: Running,
                                                                server_of_people: Recorder) -> None:  # fmt: skip
    with notifying(tmp_path / "q", f"alertmanager={running.url}", clock=SYSTEM) as notifier:
        notifier.tell([change(XID), change(STALLED, cause=XID), change(XID, "update", evidence=(STALLED,))])
        wait_for(lambda: len(known(running)) == 2)
        running.fire({"alertname": "TrainingStalled", "severity": "page", "source": "prometheus", "run": "gemma",
                      "instance": HOST})  # fmt: skip
        running.fire({"alertname": "Another", "severity": "page", "source": "prometheus"})
        wait_for(lambda: sorted(server_of_people.alerts()) == ["Another", "GpuXidFatal"])
        settled(lambda: "TrainingStalled" in server_of_people.alerts())
    stalled = {one["labels"]["source"]: one["status"]["state"] for one in running.get("/api/v2/alerts")
               if one["labels"]["alertname"] == "TrainingStalled"}  # fmt: skip
    assert stalled == {"agent": "active", "prometheus": "suppressed"}
    assert "TrainingStalled" not in server_of_people.alerts("/api/v1/alertmanager")


def test_an_escalation_is_a_page_and_no_end_of_a_ticket(tmp_path: Path, running: Running,
                                                        server_of_people: Recorder) -> None:  # fmt: skip
    with notifying(tmp_path / "q", f"alertmanager={running.url}", clock=SYSTEM) as notifier:
        notifier.tell([change(ticket())])
        wait_for(lambda: known(running))
        notifier.tell([change(ticket()._replace(severity="page"), "update")])
        wait_for(lambda: server_of_people.to("/hook"))
    [one] = running.get("/api/v2/alerts")
    assert one["labels"]["severity"] == "page"


def test_after_a_start_what_goes_on_is_refreshed_and_the_rest_ends(
    tmp_path: Path, running: Running, hurry: None
) -> None:
    with notifying(tmp_path / "q", f"alertmanager={running.url}", clock=SYSTEM) as notifier:
        notifier.tell([change(XID), change(STALLED)])
        wait_for(lambda: len(known(running)) == 2)
        wait_for(lambda: notifier.counts()["alertmanager 127.0.0.1"].waiting == 0)
    before = _ends(running)
    with notifying(tmp_path / "q", f"alertmanager={running.url}", clock=SYSTEM) as notifier:
        notifier.adopt([change(XID)])
        wait_for(lambda: known(running) == {"GpuXidFatal": ("agent", "active")}, 20)
        wait_for(lambda: _ends(running)["GpuXidFatal"] > before["GpuXidFatal"])


def _ends(running: Running) -> dict[str, str]:
    return {one["labels"]["alertname"]: one["endsAt"] for one in running.get("/api/v2/alerts")}


def test_one_that_is_right_is_seen_at_the_start(running: Running) -> None:
    [channel] = channels(f"alertmanager={running.url}/", {})
    channel.check()


def test_one_that_comes_up_a_moment_later_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notifier_of_ours, "AGAIN_SECONDS", 0.2)
    monkeypatch.setattr(notifier_of_ours, "UNTIL_SECONDS", 0.3)
    with hook() as server, notifying(tmp_path, f"alertmanager={server.url}") as notifier:
        server.says, server.answers = '{"versionInfo": {}}', deque([503])
        wait_for(lambda: len(server.times) == 2)
        settled(lambda: notifier.working() != 1)
        assert caplog.text == ""


def test_one_that_stays_away_is_said_once_and_counts_as_none_until_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(notifier_of_ours, "AGAIN_SECONDS", 0.2)
    monkeypatch.setattr(notifier_of_ours, "UNTIL_SECONDS", 0.3)
    with hook() as server, notifying(tmp_path, f"alertmanager={server.url}") as notifier:
        server.says, server.status = '{"versionInfo": {}}', 503
        wait_for(lambda: len(server.times) > 3)
        assert (notifier.working(), caplog.text.count("monitoring goes on")) == (0, 1)
        server.status = 200
        wait_for(lambda: notifier.working() == 1)
        assert "answers now" in caplog.text


@pytest.mark.parametrize("case", ["not there", "another"])
def test_a_wrong_address_is_named(tmp_path: Path, server: Hook, case: str) -> None:
    url = server.url if case == "another" else f"http://127.0.0.1:{free_port()}"
    [channel] = channels(f"alertmanager={url.replace('http://', 'http://u:hush-pw@')}", {})
    with pytest.raises(SettingError) as caught:
        channel.check()
    told = str(caught.value)
    assert told.startswith(f"--notify (TRAINVITALS_NOTIFY): '{url}' cannot be used: ")
    assert "start Alertmanager there, or say where it is" in told and "hush" not in told


def test_one_that_was_down_gets_what_ended_meanwhile_too(tmp_path: Path, quick: None, server: Hook) -> None:
    server.status = 503
    notifier = Notifier(channels(f"alertmanager={server.url}", {}), tmp_path, HOST)
    notifier.tell([change(XID), change(STALLED), change(STALLED, "close")])
    notifier.start()
    wait_for(lambda: len(server.times) > 3)
    server.status = 200
    told = wait_for(lambda: [body for path, body in server.posts if path == "/api/v2/alerts"])
    notifier.stop()
    now = time.time()
    assert {one["labels"]["alertname"] for one in told[0]} == {"GpuXidFatal", "TrainingStalled"}
    assert all((seconds(one["endsAt"]) or 0) > now + 60 for one in told[0])
