"""From a finding to a receiver, on real connections: at once, together, again where it failed, each by itself."""

import math
from pathlib import Path

import pytest

from tests.collector.support import wait_for
from tests.notify.support import HOST, Hook, closed, finding, hook, notifying, opened, storm, ticket, updated
from trainvitals.detect.finding import Finding, Place
from trainvitals.notify.limits import PACES, Pace


def test_a_webhook_gets_all_that_is_known(tmp_path: Path, server: Hook) -> None:
    found = Finding("TrainingNonFinite", "page", "the loss is nan at step 812", value=math.nan, threshold=math.inf,
                    place=Place(run="gemma", rank="0", part="\udcff"), step=812)  # fmt: skip
    with notifying(tmp_path, f"webhook={server.url}/hook?token=1") as notifier:
        notifier.tell([updated(found, evidence=(ticket(),))])
        [body] = wait_for(lambda: server.taken)
    assert server.posts[0][0] == "/hook?token=1"
    assert (body["version"], body["host"], body["severity"]) == (1, HOST, "page")
    assert body["text"].startswith("[page] TrainingNonFinite · run gemma · rank 0")
    [one] = body["findings"]
    assert one["evidence"][0]["kind"] == "GpuTemperatureHigh"
    assert one["what"] == found.what and one["todo"] == found.todo and one["runbook"].endswith("/TrainingNonFinite.md")
    assert {name: one[name] for name in ("kind", "severity", "state", "instance", "value", "threshold", "step")} == {
        "kind": "TrainingNonFinite", "severity": "page", "state": "open", "instance": HOST, "value": "NaN",
        "threshold": "Infinity", "step": 812}  # fmt: skip
    assert one["place"]["run"] == "gemma" and one["opened"] == "2025-07-30T12:34:56.000Z" and "closed" not in one


def test_slack_gets_text_in_which_no_name_rings(tmp_path: Path, server: Hook) -> None:
    environ = {"SLACK_WEBHOOK_URL": f"{server.url}/services/T0/B0/x", "SLACK_CHANNEL": "#gpus"}
    with notifying(tmp_path, "slack", environ, page="https://tv.example") as notifier:
        notifier.tell([opened(finding(run="<!channel> & <http://evil.example|run>\nx"))])
        [body] = wait_for(lambda: server.taken)
    assert body["channel"] == "#gpus"
    assert "&lt;!channel&gt; &amp; &lt;http://evil.example|run&gt; x" in body["text"]
    assert "<" not in body["text"] and "Now: https://tv.example/" in body["text"] and "Do first: " in body["text"]


def test_a_login_in_the_address_becomes_a_header(tmp_path: Path, server: Hook) -> None:
    with notifying(tmp_path, f"webhook=http://user:p%40ss@{server.url.removeprefix('http://')}/x") as notifier:
        notifier.tell([opened()])
        wait_for(lambda: server.taken)
    assert server.headers[0]["Authorization"] == "Basic dXNlcjpwQHNz"


def test_a_page_is_on_its_way_at_once_and_so_is_one_after_a_ticket(
    tmp_path: Path, server: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute tells waiting from not waiting."""
    monkeypatch.setitem(PACES, "webhook", Pace(60, 600))
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        for change in (opened(ticket()), opened()):
            before = len(server.taken)
            notifier.tell([change])
            wait_for(lambda before=before: len(server.taken) > before)


def test_a_storm_is_a_message_after_the_first(tmp_path: Path, server: Hook, quick: None) -> None:
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        changes = storm(1000)
        notifier.tell(changes[:1])
        wait_for(lambda: server.taken)
        notifier.tell(changes[1:])
        wait_for(lambda: len(server.findings()) == 1000)
    assert [len(body["findings"]) for body in server.taken] == [1, 999]


def test_the_worst_is_told_first(tmp_path: Path, server: Hook) -> None:
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        notifier.tell([opened(ticket()), opened(finding("Info", "info")), opened(), opened(ticket("GpuMemoryHigh"))])
        wait_for(lambda: server.taken)
    assert [one["severity"] for one in server.taken[0]["findings"]] == ["page", "ticket", "ticket"]


def test_an_end_is_told_where_the_beginning_was(tmp_path: Path, server: Hook, quick: None) -> None:
    with notifying(tmp_path, f"webhook={server.url}") as notifier:
        notifier.tell([opened(), closed(finding("Unknown"))])
        wait_for(lambda: server.taken)
        notifier.tell([closed()])
        wait_for(lambda: len(server.taken) == 2)
    assert server.findings() == [("TrainingNonFinite", "open"), ("TrainingNonFinite", "resolved")]
    assert server.taken[1]["findings"][0]["closed"] == "2025-07-30T12:35:56.000Z"


def test_a_proxy_is_used_but_not_on_the_way_to_this_machine(
    tmp_path: Path, server: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hook() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with notifying(tmp_path, f"webhook=http://hook.example/x,webhook={server.url}/y") as notifier:
            notifier.tell([opened()])
            wait_for(lambda: server.posts and proxy.posts)
        assert [path for path, _ in proxy.posts] == ["http://hook.example/x"]
        assert [path for path, _ in server.posts] == ["/y"]
