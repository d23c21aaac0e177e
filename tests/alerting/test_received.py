"""The collector as a place where alerts arrive: what it takes, what it refuses, and what it knows after a restart."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from starlette.applications import Starlette

from tests.alerting.support import alertmanager
from tests.collector.support import run, serving, wait_for
from tests.collector.web.asking import LOCAL, Answer, ask, scope
from trainvitals.agent import node_log
from trainvitals.agent.service import Agent
from trainvitals.alerting import received
from trainvitals.alerting.received import FRESH_SECONDS, MAX_BODY_BYTES, MAX_RESOLVED, Known, parse
from trainvitals.journal import append
from trainvitals.journal.node_events import read_events
from trainvitals.journal.record import timestamp_at
from trainvitals.web.app import make_app
from trainvitals.web.config import WebConfig

PATH = "/api/v1/alertmanager"
JSON = {"host": "collector:8080", "content-type": "application/json"}


def alert(name: str = "GpuMissing", status: str = "firing", starts: str = "2026-05-01T10:00:00.123456789Z",
          **labels: str) -> dict[str, Any]:  # fmt: skip
    labels = {"alertname": name, "severity": "page", "instance": "gpu1", **labels}
    mark = format(abs(hash(tuple(sorted(labels.items())))), "x")
    return {"status": status, "labels": labels, "annotations": {"summary": f"{name} it is"}, "startsAt": starts,
            "endsAt": "2026-05-01T10:05:00Z", "generatorURL": "", "fingerprint": mark}  # fmt: skip


def told(*alerts: Any, **more: Any) -> bytes:
    return json.dumps({"version": "4", "status": "firing", "alerts": alerts, **more}).encode()


def post(app: Starlette, body: bytes, headers: Mapping[str, str] = JSON, parts: int = 1) -> Answer:
    return asyncio.run(_post(app, body, headers, parts))


async def _post(app: Starlette, body: bytes, headers: Mapping[str, str], parts: int) -> Answer:
    size = max(1, -(-len(body) // parts))
    pieces = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    messages = iter([{"type": "http.request", "body": piece, "more_body": piece is not pieces[-1]} for piece in pieces])
    answer = Answer()

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        answer.status = message.get("status", answer.status)
        answer.body += message.get("body", b"")

    await asyncio.wait_for(app(scope(PATH, headers.items(), "POST"), receive, send), 10)
    return answer


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starlette]:
    # A busy machine makes any write slow, and what is queued then is not in the file at once.
    monkeypatch.setattr(append, "SLOW_WRITE_SECONDS", 60.0)
    agent = Agent([], tmp_path, host="gpu1")
    yield make_app(agent)
    agent.stop()


def names(app: Starlette, state: str = "firing") -> list[str]:
    return [each["name"] for each in ask(app, "/api/v1/alerts").json()[state]]


def kept(app: Starlette) -> list[tuple[str, str]]:
    agent = app.state.agent
    return [(event["name"], event["status"]) for event in read_events(agent.root / "gpu" / agent.host)]


def test_an_alert_is_kept_and_shown_until_it_ends(app: Starlette) -> None:
    assert post(app, told(alert(), alert("HostDown"))).json() == {"news": 2}
    assert names(app) == ["GpuMissing", "HostDown"]
    assert post(app, told(alert(status="resolved"))).json() == {"news": 1}
    assert (names(app), names(app, "resolved")) == (["HostDown"], ["GpuMissing"])
    assert kept(app) == [("GpuMissing", "firing"), ("HostDown", "firing"), ("GpuMissing", "resolved")]
    seen = ask(app, "/api/v1/snapshot").json()["alerts"]
    assert (seen["firing_count"], seen["firing"][0]["labels"]["instance"]) == (1, "gpu1")
    assert seen["firing"][0]["starts"] == "2026-05-01T10:00:00.123Z"


def test_a_repeat_is_no_news(app: Starlette) -> None:
    for body in (told(alert()), told(alert()), told(alert(status="resolved")), told(alert(status="resolved"))):
        post(app, body)
    assert kept(app) == [("GpuMissing", "firing"), ("GpuMissing", "resolved")]


def test_an_alert_that_comes_again_is_another(app: Starlette) -> None:
    post(app, told(alert()))
    post(app, told(alert(status="resolved")))
    post(app, told(alert(starts="2026-05-01T11:00:00Z")))
    assert (names(app), names(app, "resolved")) == (["GpuMissing"], ["GpuMissing"])


def test_what_a_message_of_its_group_leaves_out_has_ended(app: Starlette) -> None:
    """Alertmanager tells no end of what ends while something else keeps it quiet."""
    ticket, page = alert(severity="ticket"), alert(severity="page")
    post(app, told(ticket, groupKey="{}:{one}"))
    post(app, told(alert("HostDown"), groupKey="{}:{another}"))
    post(app, told(page, groupKey="{}:{one}", truncatedAlerts=3))
    assert names(app) == ["HostDown", "GpuMissing", "GpuMissing"]
    assert post(app, told(page, groupKey="{}:{one}")).json() == {"news": 1}
    assert (names(app), names(app, "resolved")) == (["HostDown", "GpuMissing"], ["GpuMissing"])
    post(app, told(ticket, page, groupKey="{}:{one}"))
    assert names(app) == ["HostDown", "GpuMissing", "GpuMissing"]


def test_an_end_of_what_was_never_told_is_shown(app: Starlette) -> None:
    assert post(app, told(alert(status="resolved"))).json() == {"news": 1}
    assert names(app, "resolved") == ["GpuMissing"]


def test_the_worst_come_first_and_of_these_the_newest(app: Starlette) -> None:
    post(app, told(alert("Info", severity="info"), alert("Ticket", severity="ticket"), alert("Old", severity="page"),
                   alert("New", starts="2026-05-01T11:00:00Z")))  # fmt: skip
    assert names(app) == ["New", "Old", "Ticket", "Info"]


def test_a_new_start_knows_what_was_firing(app: Starlette) -> None:
    post(app, told(alert(), alert("HostDown")))
    post(app, told(alert(status="resolved")))
    again = make_app(app.state.agent)
    assert (names(again), names(again, "resolved")) == (["HostDown"], ["GpuMissing"])
    assert post(again, told(alert("HostDown"))).json() == {"news": 0}


def test_what_is_not_repeated_for_long_is_no_longer_said_to_fire() -> None:
    [line] = parse(told(alert()))
    known = Known([{**line, "timestamp": timestamp_at(1e9)}])
    assert known.view(1e9 + FRESH_SECONDS - 1)["firing"]
    assert not known.view(1e9 + FRESH_SECONDS + 1)["firing"]


def test_that_it_goes_on_is_written_at_times(app: Starlette) -> None:
    store, now = app.state.alerts, time.time()
    for minute in range(0, 40, 4):
        store.take(parse(told(alert())), now + 60 * minute)
    assert len(kept(app)) == 5
    assert store.view(now + 60 * (36 + 20))["firing"]


@pytest.mark.parametrize("headers", [
    {"origin": "http://collector:8080"}, {"origin": "null"}, {"referer": "http://evil.example/"},
    {"sec-fetch-site": "same-origin"}, {"cookie": "a=b"},
])  # fmt: skip
def test_browsers_are_refused_under_whatever_name_they_call(app: Starlette, headers: dict[str, str]) -> None:
    assert post(app, told(alert()), {**JSON, **headers}).status == 403
    assert kept(app) == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_is_refused(app: Starlette, kind: str) -> None:
    assert post(app, told(alert()), {**JSON, "content-type": kind}).status == 415


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_nothing_but_a_post_is_taken(app: Starlette, method: str) -> None:
    assert ask(app, PATH, LOCAL, method).status == 405


@pytest.mark.parametrize("parts", [1, 64])
def test_a_body_without_end_is_cut_off(app: Starlette, parts: int) -> None:
    assert post(app, b" " * (MAX_BODY_BYTES + 1), parts=parts).status == 413
    assert post(app, told(alert()).ljust(MAX_BODY_BYTES), parts=parts).status == 200


HOSTILE = {
    "no JSON": b"\xff\x00", "empty": b"", "a list": b"[]", "no alerts": b"{}", "not a list": b'{"alerts": {}}',
    "deep": b"[" * 100_000, "too many": told(*[{}] * 1001), "not an object": told(7),
    "no labels": told({**alert(), "labels": None}),
    "a number for a label": told({**alert(), "labels": {"alertname": 7}}),
    "no name": told({**alert(), "labels": {"severity": "page"}}),
    "an empty name": told({**alert(), "labels": {"alertname": ""}}),
    "a huge label": told(alert(run="x" * 5000)), "many labels": told(alert(**{f"l{n}": "" for n in range(70)})),
    "a huge annotation": told({**alert(), "annotations": {"summary": "x" * 5000}}),
    "another status": told({**alert(), "status": "burning"}), "no status": told({**alert(), "status": ["firing"]}),
    "a path for a mark": told({**alert(), "fingerprint": "../../x"}), "no mark": told({**alert(), "fingerprint": None}),
    "no start": told({**alert(), "startsAt": None}), "a start that is none": told({**alert(), "startsAt": "9" * 999}),
    "no end": told({**alert(status="resolved"), "endsAt": 7}),
    "half of a pair": told(alert()).replace(b"gpu1", b"\\ud800"),
    "one good, one bad": told(alert(), {**alert("HostDown"), "status": 1}),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_alertmanager_does_not_send_is_refused_whole(app: Starlette, kind: str) -> None:
    answer = post(app, HOSTILE[kind])
    assert (answer.status, bool(answer.json()["error"])) == (400, True)
    assert kept(app) == []


def test_words_that_mean_harm_are_kept_as_words(tmp_path: Path, app: Starlette) -> None:
    name = "<script>alert(1)</script>\n\x1b[2J"
    assert post(app, told(alert(name, run="../../etc"))).status == 200
    assert names(app) == [name]
    listed = run("alerts", "--dir", str(app.state.agent.root))
    assert listed.returncode == 0, listed.stderr
    assert "<script>" in listed.stdout and "\x1b" not in listed.stdout and "run ../../etc" in listed.stdout


def test_a_password_is_asked_for_where_one_is_set(tmp_path: Path) -> None:
    agent = Agent([], tmp_path, host="gpu1")
    users = {"am": bcrypt.hashpw(b"pw", bcrypt.gensalt(4))}
    app = make_app(agent, WebConfig(users=users))
    assert post(app, told(alert())).status == 401
    assert post(app, told(alert()), {**JSON, "authorization": "Basic YW06cHc="}).status == 200


def test_the_list_is_bounded(app: Starlette) -> None:
    for start in range(0, 1200, 400):
        post(app, told(*(alert(f"A{number}") for number in range(start, start + 400))))
    assert len(names(app)) == received.MAX_FIRING
    post(app, told(*(alert(f"A{number}", status="resolved") for number in range(400, 800))))
    assert len(names(app, "resolved")) == MAX_RESOLVED
    assert len(ask(app, "/api/v1/snapshot").json()["alerts"]["firing"]) == 50


def test_the_event_file_is_set_aside_when_it_is_full(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_log, "MAX_EVENTS_BYTES", 4000)
    for number in range(40):
        post(app, told(alert(f"A{number}")))
    folder = app.state.agent.root / "gpu" / "gpu1"
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert set(sizes) == {"events.jsonl", "events.1.jsonl"}
    assert max(sizes.values()) < 4600
    last = [name for name, _ in kept(app)]
    assert last == [f"A{number}" for number in range(40 - len(last), 40)] and len(last) > 9


def test_from_alertmanager_to_the_page_and_the_terminal(tmp_path: Path) -> None:
    with serving(tmp_path / "journal", "--simulate", "1") as collector:
        with alertmanager(tmp_path, {"COLLECTOR_URL": collector.address}) as running:
            running.fire({"alertname": "GpuMissing", "severity": "page", "instance": "gpu1"}, summary="7 of 8 GPUs")
            wait_for(lambda: collector.snapshot()["alerts"]["firing"])
            listed = run("alerts", "--dir", str(collector.folder)).stdout
            assert "GpuMissing" in listed and "7 of 8 GPUs" in listed and "gpu1" in listed
            running.fire({"alertname": "GpuMissing", "severity": "page", "instance": "gpu1"}, ended=True)
            wait_for(lambda: collector.snapshot()["alerts"]["resolved"], 20)
        assert json.loads(run("alerts", "--json", "--dir", str(collector.folder)).stdout)["firing"] == []


def test_an_empty_journal_has_no_alerts(tmp_path: Path) -> None:
    assert run("alerts", "--dir", str(tmp_path)).stdout.startswith("no alert is firing")
