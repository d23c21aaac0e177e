"""`trainvitals alert-test`: what each way answered, through the real Alertmanager."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.alerting.support import FULL, SLACK, Recorder, alertmanager, recording
from tests.collector.support import run
from tests.ports import free_port
from trainvitals.alerting.trial import without_secrets

BY_NAME = "--enable-feature=receiver-name-in-metrics"


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


def rows(text: str) -> dict[str, str]:
    """`slack  delivered` by its first word."""
    return {line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines()}


def test_each_way_is_reported(tmp_path: Path, server: Recorder) -> None:
    environ = {"SLACK_WEBHOOK_URL": server.url + SLACK, "WEBHOOK_URL": f"http://127.0.0.1:{free_port()}/hook",
               "COLLECTOR_URL": server.url, "DEADMAN_URL": f"{server.url}/ping"}  # fmt: skip
    with alertmanager(tmp_path, environ, BY_NAME) as running:
        told = run("alert-test", "--alertmanager", running.url, "--log", str(running.log), "--timeout", "3")
    found = rows(told.stdout)
    assert told.returncode == 1, told.stderr
    assert [found[way] for way in ("slack", "deadman", "collector")] == ["delivered"] * 3
    assert [found[way] for way in ("email", "pagerduty", "telegram", "discord", "pushover")] == ["not configured"] * 5
    assert found["webhook"].startswith("failed") and "connection refused" in found["webhook"]
    assert len(server.to(SLACK)) == len(server.to("/ping")) == 1
    assert "AlertTest" in str(server.to(SLACK)[0].json())


@pytest.mark.parametrize("flags", [(), (BY_NAME,)])
def test_it_ends_well_as_soon_as_all_have_answered(tmp_path: Path, server: Recorder, flags: tuple[str, ...]) -> None:
    environ = {"WEBHOOK_URL": f"{server.url}/hook", "COLLECTOR_URL": server.url}
    with alertmanager(tmp_path, environ, *flags) as running:
        told = run("alert-test", "--alertmanager", running.url, "--timeout", "19")
    assert told.returncode == 0, told.stdout
    assert rows(told.stdout)["webhook"] == rows(told.stdout)["collector"] == "delivered"


def test_where_webhooks_are_not_told_apart_one_that_fails_is_not_hidden(tmp_path: Path, server: Recorder) -> None:
    environ = {"WEBHOOK_URL": f"http://127.0.0.1:{free_port()}/hook", "COLLECTOR_URL": server.url}
    with alertmanager(tmp_path, environ) as running:
        told = run("alert-test", "--alertmanager", running.url, "--log", str(running.log), "--timeout", "3")
    assert told.returncode == 1
    assert "connection refused" in rows(told.stdout)["webhook"]


def test_a_refusal_is_told_and_tried_no_more(tmp_path: Path, server: Recorder) -> None:
    server.status = 403
    environ = {"DISCORD_WEBHOOK_URL": f"{server.url}/discord", "COLLECTOR_URL": server.url}
    with alertmanager(tmp_path, environ, BY_NAME) as running:
        told = run("alert-test", "--alertmanager", running.url, "--log", str(running.log), "--timeout", "3")
    assert told.returncode == 1
    assert "403" in rows(told.stdout)["discord"]
    assert len(server.to("/discord")) == 1


def test_a_real_alert_has_no_part_in_it(tmp_path: Path, server: Recorder) -> None:
    environ = {"WEBHOOK_URL": f"{server.url}/hook", "COLLECTOR_URL": server.url}
    with alertmanager(tmp_path, environ, BY_NAME) as running:
        running.fire({"alertname": "GpuMissing", "severity": "page"})
        assert run("alert-test", "--alertmanager", running.url).returncode == 0
    assert "AlertTest" in server.alerts()


def test_a_configuration_of_another_kind_is_named(tmp_path: Path) -> None:
    def change(config: dict[str, object]) -> None:
        config["route"], config["receivers"] = {"receiver": "own"}, [{"name": "own"}]

    with alertmanager(tmp_path, {}, change=change) as running:
        told = run("alert-test", "--alertmanager", running.url)
    assert (told.returncode, "trainvitals alertmanager-config" in told.stderr) == (2, True)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "nowhere", "file:///etc/passwd"])
def test_an_alertmanager_that_does_not_answer_is_named(address: str) -> None:
    told = run("alert-test", "--alertmanager", address)
    assert (told.returncode, address in told.stderr, "Traceback" in told.stderr) == (2, True, False)


@pytest.mark.parametrize("seconds", ["0", "soon", "nan"])
def test_a_time_that_is_none_is_named(seconds: str) -> None:
    told = run("alert-test", "--timeout", seconds)
    assert (told.returncode, f"--timeout: '{seconds}'" in told.stderr) == (2, True)


def test_no_secret_of_the_log_is_repeated() -> None:
    words = f'Post "https://api.telegram.org/bot{FULL["TELEGRAM_BOT_TOKEN"]}/sendMessage": http://u:pw@hook.example/x'
    told = without_secrets(words)
    assert "secret" not in told and "pw" not in told and "/sendMessage" in told and "hook.example/x" in told
