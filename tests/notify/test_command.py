"""`trainvitals notify`: a row for each way, in bounded time."""

from pathlib import Path

import pytest

from tests.collector.support import run
from tests.notify.mailing import mail_server
from tests.notify.support import Hook, hook
from tests.ports import free_port


def rows(text: str) -> dict[str, str]:
    """`slack  delivered` by its name."""
    return {line.split("  ")[0]: " ".join(line.split("  ", 1)[1].split()) for line in text.splitlines()}


def test_each_way_says_what_came_of_it(tmp_path: Path, server: Hook) -> None:
    with hook() as refusing, hook() as hanging, mail_server(tmp_path / "mail") as mail:
        refusing.status, refusing.says, hanging.status = 404, "no_team /hush-T0", "hang"  # type: ignore[assignment]
        server.says = '{"versionInfo": {}}'
        environ = {"SLACK_WEBHOOK_URL": f"{refusing.url}/services/hush-T0", "SSL_CERT_FILE": str(mail.signer),
                   "TRAINVITALS_NOTIFY": f"email,slack,alertmanager={server.url},webhook={hanging.url}/hush-x",
                   "TRAINVITALS_HEARTBEAT_URL": f"{server.url}/ping", **mail.environ()}  # fmt: skip
        told = run("notify", "--test", "--timeout", "3", env=environ)
    found = rows(told.stdout)
    assert (told.returncode, told.stderr) == (1, "")
    assert found["email"] == found["alertmanager 127.0.0.1"] == found["heartbeat"] == "delivered"
    assert found["slack"] == "failed answers 404 Not Found: no_team /(not shown)"
    assert found["webhook 127.0.0.1"] == "failed did not answer within 3 s"
    assert "hush" not in told.stdout
    [sent] = mail.box.mails
    assert "TEST [info] AlertTest" in str(sent["subject"])
    alerts = next(body for path, body in server.posts if path == "/api/v2/alerts")
    assert alerts[0]["labels"]["alertname"] == "AlertTest" and alerts[0]["labels"]["alert_test"]


def test_it_ends_well_where_all_are_delivered(server: Hook) -> None:
    told = run("notify", "--test", "--notify", f"webhook={server.url}", "--notify", f"webhook={server.url}/two")
    assert (told.returncode, told.stderr) == (0, "")
    assert rows(told.stdout) == {"webhook 127.0.0.1": "delivered", "webhook 127.0.0.1 2": "delivered"}
    assert all(body["test"] is True and body["severity"] == "info" for body in server.taken)


def test_a_web_server_that_takes_anything_is_no_alertmanager(server: Hook) -> None:
    told = run("notify", "--test", "--notify", f"alertmanager={server.url}")
    assert told.returncode == 1
    assert "it answers, but not as an Alertmanager does" in rows(told.stdout)["alertmanager 127.0.0.1"]
    assert [path for path, _ in server.posts] == ["/api/v2/status"]


@pytest.mark.parametrize(("status", "state", "exits"), [
    (401, "failed answers 401 Unauthorized", 1), (403, "failed answers 403 Forbidden", 1),
    (404, "failed answers 404 Not Found", 1), (405, "well", 0), (500, "well", 0), (204, "well", 0),
])  # fmt: skip
def test_a_look_asks_whether_the_address_is_known_there(server: Hook, status: int, state: str, exits: int) -> None:
    server.asked = status
    told = run("notify", "--notify", f"webhook={server.url}/hush-x")
    assert (told.returncode, rows(told.stdout)["webhook 127.0.0.1"]) == (exits, state)
    assert not server.times


def test_what_was_not_tried_is_not_called_well(server: Hook) -> None:
    ways = ["--notify", "slack", "--heartbeat-url", f"{server.url}/ping"]
    told = run("notify", *ways, env={"SLACK_WEBHOOK_URL": f"{server.url}/services/hush-T0"})
    assert told.returncode == 0
    assert {rows(told.stdout)[name].partition(" whether")[0] for name in ("slack", "heartbeat")} == {"not tried"}
    assert not server.times


def test_without_a_test_nothing_is_sent(tmp_path: Path, server: Hook) -> None:
    path = tmp_path / "settings.env"
    port = free_port()
    path.write_text(f"TRAINVITALS_NOTIFY=webhook={server.url},email\nSMTP_HOST=127.0.0.1\nSMTP_PORT={port}\n"
                    "SMTP_FROM=a@b.example\nSMTP_TO=a@b.example\n")  # fmt: skip
    told = run("notify", "--env-file", str(path))
    assert told.returncode == 1
    assert rows(told.stdout)["webhook 127.0.0.1"] == "well"
    assert rows(told.stdout)["email"].startswith("failed SMTP_HOST: connection refused; look at SMTP_HOST, SMTP_PORT")
    assert not server.times


@pytest.mark.parametrize(("words", "told"), [
    ((), "--notify (TRAINVITALS_NOTIFY): '' cannot be used: give alertmanager=URL"),
    (("--notify", "slack"), "SLACK_WEBHOOK_URL: '' cannot be used: give it, for --notify (TRAINVITALS_NOTIFY) names"),
    (("--notify", "webhook=hush"), "--notify (TRAINVITALS_NOTIFY): '(not shown)' cannot be used"),
    (("--notify", "webhook=http://127.0.0.1:1/x", "--timeout", "0"), "--timeout: '0' cannot be used"),
])  # fmt: skip
def test_a_mistake_is_one_line(words: tuple[str, ...], told: str) -> None:
    answer = run("notify", "--test", *words)
    assert answer.returncode == 2 and answer.stdout == ""
    assert answer.stderr.startswith(f"trainvitals: {told}") and answer.stderr.count("\n") == 1
