"""From an alert to a message that somebody reads: the real Alertmanager, and servers that take what it sends."""

import time
from collections.abc import Iterator
from email.header import decode_header, make_header
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests.alerting.support import (
    FULL,
    SECRETS,
    SLACK,
    Mailbox,
    Recorder,
    Running,
    alertmanager,
    receiving_mail,
    recording,
)  # fmt: skip
from tests.collector.support import wait_for

LABELS = {"alertname": "TrainingNonFinite", "severity": "page", "source": "prometheus", "instance": "gpu1",
          "run": "gemma", "rank": "3"}  # fmt: skip
ANNOTATIONS = {
    "summary": "The loss is no number.", "description": "NaN since step 12: stop the run.",
    "runbook_url": "https://runbooks.example/TrainingNonFinite.md",
    "dashboard": "/d/trainvitals-run?var-run=gemma two",
}  # fmt: skip
WANTED = ("run gemma", "rank 3", "gpu1", "The loss is no number.", "stop the run", "runbooks.example/TrainingNonFinite",
          "https://grafana.example/d/trainvitals-run?var-run=gemma%20two", "https://tv.example/",
          "https://prom.example/graph?g0.expr=up")  # fmt: skip
SLACK_WORDS = "<!channel> & <http://evil.example|run>"


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    with receiving_mail() as found:
        yield found


def test_a_page_reaches_a_webhook_once_within_seconds_and_its_end_too(tmp_path: Path, server: Recorder) -> None:
    with alertmanager(tmp_path, {"WEBHOOK_URL": f"{server.url}/hook", "COLLECTOR_URL": server.url}) as running:
        began = time.time()
        running.fire(LABELS, **ANNOTATIONS)
        running.fire(LABELS, **ANNOTATIONS)
        [first] = wait_for(lambda: server.to("/hook"))
        assert first.at - began < 6
        running.fire(LABELS, ended=True, **ANNOTATIONS)
        wait_for(lambda: server.alerts("/hook", "resolved"), 20)
        assert server.alerts("/hook") == ["TrainingNonFinite"]
        assert server.alerts("/api/v1/alertmanager") == ["TrainingNonFinite"]


def test_tickets_wait_out_the_quiet_hours_and_pages_do_not(tmp_path: Path, server: Recorder) -> None:
    ever = {"QUIET_HOURS": "00:00-23:59"}
    if time.strftime("%H:%M", time.gmtime(time.time() + 30)) >= "23:59":
        ever = {"QUIET_HOURS": "12:00-11:59"}
    with alertmanager(tmp_path, {"WEBHOOK_URL": f"{server.url}/hook", "COLLECTOR_URL": server.url, **ever}) as running:
        running.fire({"alertname": "Ticket", "severity": "ticket"},
                     {"alertname": "Ticket", "severity": "ticket", "run": "gemma"})  # fmt: skip
        wait_for(lambda: len(server.alerts("/api/v1/alertmanager")) == 2)
        # A ticket waits 5 s for others, a page 3.
        time.sleep(3)
        running.fire({"alertname": "Page", "severity": "page"})
        wait_for(lambda: "Page" in server.alerts())
        assert server.alerts() == ["Page"]
        assert server.alerts("/api/v1/alertmanager") == ["Ticket", "Ticket", "Page"]


def test_what_befalls_a_run_is_one_message_whatever_nodes_it_is_on(tmp_path: Path, server: Recorder) -> None:
    with alertmanager(tmp_path, {"WEBHOOK_URL": f"{server.url}/hook", "COLLECTOR_URL": server.url}) as running:
        running.fire(*({**LABELS, "instance": f"gpu{node}", "rank": str(node)} for node in range(3)), **ANNOTATIONS)
        running.fire({"alertname": "GpuMissing", "severity": "page", "instance": "gpu1"},
                     {"alertname": "GpuMissing", "severity": "page", "instance": "gpu2"}, **ANNOTATIONS)  # fmt: skip
        wait_for(lambda: len(server.alerts()) == 5)
    assert sorted(len(post.json()["alerts"]) for post in server.to("/hook")) == [1, 1, 3]


def test_infos_reach_the_collector_alone(tmp_path: Path, server: Recorder) -> None:
    with alertmanager(tmp_path, {"WEBHOOK_URL": f"{server.url}/hook", "COLLECTOR_URL": server.url}) as running:
        running.fire({"alertname": "Info", "severity": "info"}, {"alertname": "Unjudged"})
        wait_for(server.alerts)
        assert server.alerts() == ["Unjudged"]
        assert sorted(server.alerts("/api/v1/alertmanager")) == ["Info", "Unjudged"]


def test_the_watchdog_feeds_the_dead_mans_switch_alone(tmp_path: Path, server: Recorder) -> None:
    with alertmanager(tmp_path, {"DEADMAN_URL": f"{server.url}/ping", "COLLECTOR_URL": server.url}) as running:
        running.fire({"alertname": "Watchdog", "severity": "none"})
        wait_for(lambda: server.to("/ping"))
        assert server.alerts("/api/v1/alertmanager") == []


def test_a_mail_says_what_where_and_what_to_do(tmp_path: Path, mailbox: tuple[Mailbox, int]) -> None:
    box, port = mailbox
    environ = {"SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(port), "SMTP_TLS": "none", "SMTP_FROM": FULL["SMTP_FROM"],
               "SMTP_TO": "a@b.example,c@d.example", **_links()}  # fmt: skip
    with alertmanager(tmp_path, environ) as running:
        running.fire(LABELS, **{**ANNOTATIONS, "summary": "The loss is no number. <b>"})
        wait_for(lambda: box.mails)
    [mail] = box.mails
    assert _decoded(mail["subject"]) == "[page] TrainingNonFinite · run gemma · rank 3 · gpu1"
    assert mail["rcpt"] == "a@b.example,c@d.example"
    plain, html = (_body(mail, kind) for kind in ("text/plain", "text/html"))
    assert [word for word in WANTED if word not in plain] == []
    assert "<b>" in plain
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert [word for word in WANTED[:5] if word not in html] == []


def _decoded(header: str) -> str:
    return str(make_header(decode_header(header)))


def _body(mail: Message, kind: str) -> str:
    part = next(part for part in mail.walk() if part.get_content_type() == kind)
    return bytes(part.get_payload(decode=True)).decode()  # type: ignore[arg-type]


def _links() -> dict[str, str]:
    return {name: FULL[name] for name in ("GRAFANA_URL", "PROMETHEUS_URL", "TRAINVITALS_URL")}


@pytest.fixture
def everywhere(tmp_path: Path, server: Recorder) -> Iterator[Running]:
    """All services with one server in their place; Pushover's address cannot be changed."""
    names = ("PAGERDUTY_KEY", "TELEGRAM_BOT_TOKEN", "TELEGRAM_CHAT_ID")
    environ = {"SLACK_WEBHOOK_URL": server.url + SLACK, "DISCORD_WEBHOOK_URL": f"{server.url}/discord",
               "COLLECTOR_URL": server.url, **{name: FULL[name] for name in names}, **_links()}  # fmt: skip

    def change(config: dict[str, Any]) -> None:
        config["global"] = {"pagerduty_url": f"{server.url}/pagerduty", "telegram_api_url": server.url}

    with alertmanager(tmp_path, environ, change=change) as running:
        yield running


def test_each_service_is_told_in_its_own_form(everywhere: Running, server: Recorder) -> None:
    everywhere.fire({**LABELS, "run": SLACK_WORDS}, **ANNOTATIONS)
    paths = (SLACK, "/pagerduty", f"/bot{FULL['TELEGRAM_BOT_TOKEN']}/sendMessage", "/discord")
    wait_for(lambda: all(map(server.to, paths)))
    slack, pagerduty, chat, discord = (server.to(path)[0].json() for path in paths)
    [attachment] = slack["attachments"]
    assert "<!channel>" not in str(slack) and "&lt;!channel&gt; &amp;" in attachment["text"]
    assert attachment["title_link"].startswith("https://grafana.example/d/")
    assert pagerduty["event_action"] == "trigger" and pagerduty["routing_key"] == FULL["PAGERDUTY_KEY"]
    assert pagerduty["payload"]["severity"] == "critical" and pagerduty["payload"]["source"] == "gpu1"
    assert "parse_mode" not in chat or chat["parse_mode"] == ""
    assert chat["chat_id"] == FULL["TELEGRAM_CHAT_ID"]
    texts = (pagerduty["payload"]["custom_details"]["what"], chat["text"], discord["embeds"][0]["description"])
    for text in texts:
        assert [word for word in WANTED[1:] if word not in text] == []
        assert SLACK_WORDS in text


def test_a_token_stands_in_no_answer_of_alertmanager(everywhere: Running) -> None:
    told = str(everywhere.get("/api/v2/status")) + str(everywhere.get("/api/v2/receivers"))
    assert not [secret for secret in SECRETS if secret in told]


def test_the_link_to_a_rule_keeps_the_path_that_prometheus_has_outside(tmp_path: Path, server: Recorder) -> None:
    environ = {"DISCORD_WEBHOOK_URL": f"{server.url}/discord", "PROMETHEUS_URL": "https://mon.example/prometheus"}
    with alertmanager(tmp_path, environ) as running:
        running.fire(LABELS, generator="https://mon.example/prometheus/graph?g0.expr=a%2Fgraph%3F", **ANNOTATIONS)
        [post] = wait_for(lambda: server.to("/discord"))
    assert "Rule: https://mon.example/prometheus/graph?g0.expr=a%2Fgraph%3F" in post.json()["embeds"][0]["description"]


def test_without_addresses_from_outside_a_message_has_no_dead_links(tmp_path: Path, server: Recorder) -> None:
    with alertmanager(tmp_path, {"DISCORD_WEBHOOK_URL": f"{server.url}/discord"}) as running:
        running.fire(LABELS, **ANNOTATIONS)
        [post] = wait_for(lambda: server.to("/discord"))
    text = post.json()["embeds"][0]["description"]
    assert "runbooks.example" in text
    assert "prometheus:9090" not in text and "/d/trainvitals" not in text and "Dashboard" not in text


def test_many_alerts_are_told_in_one_message_that_is_cut_short(tmp_path: Path, server: Recorder) -> None:
    with alertmanager(tmp_path, {"DISCORD_WEBHOOK_URL": f"{server.url}/discord"}) as running:
        running.fire(*({**LABELS, "rank": str(rank)} for rank in range(12)))
        [post] = wait_for(lambda: server.to("/discord"))
    [embed] = post.json()["embeds"]
    assert embed["title"] == "[page] TrainingNonFinite · run gemma · gpu1 (12)"
    assert embed["description"].count("TrainingNonFinite") == 10
    assert "10 of 12 are shown." in embed["description"]
