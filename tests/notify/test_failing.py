"""Receivers that fail, hang, refuse or answer without end: asked again or given up, and no other waits for them."""

import logging
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.collector.support import wait_for
from tests.notify.support import Hook, closed, hook, notifying, opened, storm, ticket, trickling
from tests.ports import free_port
from trainvitals.notify import courier, request


@pytest.mark.parametrize("answer", [500, 502, 503, 429, 408])
def test_what_fails_for_now_is_sent_again_and_again(tmp_path: Path, server: Hook, quick: None, answer: int,
                                                    caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    caplog.set_level(logging.INFO)
    server.answers.extend([answer] * 4)
    with notifying(tmp_path, f"webhook={server.url}/hush") as notifier:
        notifier.tell([opened()])
        wait_for(lambda: server.taken)
        wait_for(lambda: "delivers again" in caplog.text)
        counts = notifier.counts()["webhook 127.0.0.1"]
    assert server.findings() == [("TrainingNonFinite", "open")]
    assert (counts.sent, counts.failed, counts.dropped, counts.waiting) == (1, 4, 0, 0)
    assert caplog.text.count(f"answers {answer}") == 1


@pytest.mark.parametrize("after", ["1", "date"])
def test_a_receiver_says_when_to_come_again(tmp_path: Path, server: Hook, quick: None, after: str) -> None:
    when = formatdate(time.time() + 2, usegmt=True) if after == "date" else after
    server.answers.append((429, {"Retry-After": when}))
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        notifier.tell([opened()])
        wait_for(lambda: server.taken)
    first, second = server.times
    assert second - first >= 0.9


@pytest.mark.parametrize(("after", "seconds"), [
    (None, None), ("", None), ("7", 7.0), ("-3", 0.0), ("soon", None), ("nan", None), ("inf", None)])  # fmt: skip
def test_retry_after_is_a_number_or_nothing(after: str | None, seconds: float | None) -> None:
    assert request._seconds(after) == seconds


def test_no_receiver_makes_it_wait_for_ever() -> None:
    assert courier._pause(1, 10**9) <= 900
    assert all(courier._pause(failures, None) <= 75 for failures in (1, 10, 10**6))


def test_a_receiver_that_hangs_is_given_up_and_asked_again(tmp_path: Path, server: Hook, quick: None,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(request, "SOCKET_SECONDS", 0.3)
    server.answers.extend(["hang", "hang"])
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        notifier.tell([opened()])
        wait_for(lambda: server.taken)
    assert server.findings() == [("TrainingNonFinite", "open")]


def test_one_that_answers_without_end_is_given_up_too(tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch,
                                                      caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    monkeypatch.setattr(courier, "ATTEMPT_SECONDS", 0.5)
    with trickling() as url, notifying(tmp_path, f"webhook={url}") as notifier:
        notifier.tell([opened()])
        wait_for(lambda: "did not answer within 0.5 s" in caplog.text)
        wait_for(lambda: notifier.counts()["webhook 127.0.0.1"].failed >= 2)
        began = time.monotonic()
        notifier.stop(0.5)
        assert time.monotonic() - began < 10


def test_a_dead_channel_delays_no_other(tmp_path: Path, server: Hook, quick: None) -> None:
    with trickling() as hanging, hook() as failing:
        failing.status = 500
        dead = f"http://127.0.0.1:{free_port()}"
        text = ",".join(f"webhook={url}" for url in (hanging, failing.url, dead, server.url))
        with notifying(tmp_path, text) as notifier:
            for change in storm(3):
                notifier.tell([change])
                wait_for(lambda change=change: change.finding.kind in {kind for kind, _ in server.findings()})
            notifier.stop(0)


@pytest.mark.parametrize("answer", [400, 401, 403, 404, 302])
def test_a_refusal_is_said_once_and_given_up_after_some_tries(tmp_path: Path, server: Hook, quick: None, answer: int,
                                                              caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    server.answers.extend([answer] * courier.REFUSALS)
    server.says = "no_service at /services/hush-T0"
    with notifying(tmp_path, "slack", {"SLACK_WEBHOOK_URL": f"{server.url}/services/hush-T0"}) as notifier:
        notifier.tell([opened(), opened(ticket())])
        wait_for(lambda: "2 findings were not told" in caplog.text)
        assert notifier.counts()["slack"].dropped == 2
        notifier.tell([closed(), opened(ticket("GpuMemoryHigh"))])
        [body] = wait_for(lambda: server.taken)
    assert "GpuMemoryHigh" in body["text"] and "TrainingNonFinite" not in body["text"]
    assert caplog.text.count(f"slack: answers {answer}") == 1
    assert "see SLACK_WEBHOOK_URL" in caplog.text and "hush" not in caplog.text
    assert len(server.times) == courier.REFUSALS + 1


def test_what_waited_for_days_of_a_dead_receiver_is_one_message(tmp_path: Path, server: Hook, quick: None) -> None:
    server.status = 503
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        for change in storm(50):
            notifier.tell([change])
        notifier.tell([closed(storm(1)[0].finding)])
        wait_for(lambda: len(server.times) >= 3)
        server.status = 200
        wait_for(lambda: len(server.findings()) == 50)
    assert ("Kind0", "resolved") in server.findings()
