"""Findings over the API: open and past, each once; and the word that somebody knows of one."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from starlette.applications import Starlette

from tests.alerting.test_received import alert, told
from tests.collector.support import wait_for
from tests.collector.web.asking import LOCAL, ask
from tests.collector.web.finding import (
    HOT,
    JSON,
    PAGE,
    XID,
    acknowledge,
    diverged,
    end,
    listed,
    made,
    note,
    one_of,
    post,
    silence,
)
from trainvitals.agent import findings as module
from trainvitals.agent import quiet
from trainvitals.agent.service import Agent
from trainvitals.agent.twins import NO_WAY
from trainvitals.detect.finding import Finding, Place
from trainvitals.journal import append
from trainvitals.journal.record import encode
from trainvitals.web import bodies
from trainvitals.web.app import make_app
from trainvitals.web.config import WebConfig

ACKNOWLEDGE = "/api/v1/findings/acknowledge"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    # A busy machine makes any write slow, and what is queued then is not in the file at once.
    monkeypatch.setattr(append, "SLOW_WRITE_SECONDS", 60.0)
    agent = made(tmp_path)
    yield agent
    agent.stop()


@pytest.fixture
def started(agent: Agent) -> Agent:
    agent.start()
    return agent


@pytest.fixture
def app(agent: Agent) -> Starlette:
    return make_app(agent)


def alertmanager_says(app: Starlette, *alerts: dict[str, Any]) -> None:
    assert post(app, "/api/v1/alertmanager", told(*alerts)).status == 200


def brief(app: Starlette) -> dict[str, Any]:
    return dict(ask(app, "/api/v1/snapshot").json()["alerts"])


# --- What is listed ---


def test_an_open_one_is_told_with_all_that_is_known(agent: Agent, app: Starlette) -> None:
    note(agent, HOT, 1_753_878_896.7004)
    assert listed(app) == [{
        "id": listed(app)[0]["id"], "state": "open", "source": "agent", "instance": "gpu1",
        "kind": "GpuTemperatureHigh", "severity": "ticket", "gpu": "3", "uuid": "GPU-3", "value": 84, "threshold": 80,
        "what": "the GPU is at 84 °C",
        "todo": HOT.todo, "runbook": listed(app)[0]["runbook"], "opened": "2025-07-30T12:34:56.700Z", "evidence": [],
        "acknowledged": None, "silenced": None}]  # fmt: skip
    assert listed(app)[0]["runbook"].endswith("/GpuTemperatureHigh.md")
    assert len(listed(app)[0]["id"]) == 16


def test_what_follows_from_it_is_its_evidence(agent: Agent, app: Starlette) -> None:
    note(agent, XID)
    note(agent, Finding("TrainingStalled", "page", "no step", place=Place("gemma"), value=math.nan, step=7, stays=1e9))
    [one] = listed(app)
    [follows] = one["evidence"]
    assert (one["kind"], follows["kind"], follows["run"]) == ("GpuXidFatal", "TrainingStalled", "gemma")
    assert (follows["value"], follows["step"]) == ("NaN", 7)


def test_the_worst_come_first_open_before_past(agent: Agent, app: Starlette) -> None:
    info = HOT._replace(kind="Info", severity="info")
    for one in (info, HOT, XID, HOT._replace(kind="Over", severity="page")):
        note(agent, one)
    end(agent, HOT._replace(kind="Over"))
    assert [one["kind"] for one in listed(app)] == ["GpuXidFatal", "GpuTemperatureHigh", "Info", "Over"]
    assert [one["kind"] for one in listed(app, "?state=past")] == ["Over"]
    assert [one["kind"] for one in listed(app, "?state=open&limit=2")] == ["GpuXidFatal", "GpuTemperatureHigh"]
    assert ask(app, "/api/v1/findings?limit=1").json()["more"] == 3


def test_a_past_one_keeps_its_name_and_says_when_it_ended(started: Agent, agent: Agent, app: Starlette) -> None:
    run = Finding("TrainingNonFinite", "page", "the loss is nan", place=Place("gemma", "0"), value=math.inf, stays=1e9)
    diverged(agent.root).end("finished")
    wait_for(agent.runs.states)
    for finding in (HOT, run):
        note(agent, finding)
    before = {one["kind"]: one for one in listed(app)}
    for finding in (HOT, run):
        end(agent, finding)
    for kind in ("GpuTemperatureHigh", "TrainingNonFinite"):
        [past] = [one for one in listed(app) if one["kind"] == kind and one["id"] == before[kind]["id"]]
        assert past["closed"] >= past["opened"]
        assert past == {**before[kind], "state": "closed", "closed": past["closed"]}


def test_what_was_open_when_the_agent_was_killed_and_is_not_any_more_has_no_end(agent: Agent, app: Starlette) -> None:
    line = {"timestamp": "2025-07-30T12:00:00.000Z", "event": "finding", "state": "open", "kind": "GpuMissing",
            "severity": "page", "what": "7 of 8", "opened": "2025-07-30T12:00:00.000Z"}  # fmt: skip
    agent.keep(line)
    [one] = listed(app)
    assert (one["state"], one["what"], "closed" in one) == ("closed", "7 of 8", False)


def test_a_name_that_is_no_utf_8_or_means_harm_is_told_as_near_as_can_be(agent: Agent, app: Starlette) -> None:
    note(agent, Finding("<script>", "page", "a\udcffb", place=Place("<img src=x>\udcff"), stays=1e9))
    [one] = listed(app)
    assert (one["kind"], one["run"], one["what"]) == ("<script>", "<img src=x>?", "a?b")
    assert acknowledge(app, {"id": one["id"]}).status == 200
    assert listed(app)[0]["acknowledged"]


def test_lines_that_somebody_broke_cost_themselves_alone(agent: Agent, app: Starlette) -> None:
    folder = agent.root / "gpu" / "gpu1"
    broken: list[Any] = [{"event": "finding"}, {"event": "finding", "kind": 3, "opened": [], "timestamp": {}},
                         {"event": "finding", "kind": "x", "opened": "no time", "timestamp": "y"},
                         {"event": "finding", "kind": "Good", "opened": "2025-07-30T12:00:00.000Z", "evidence": [3, {}],
                          "timestamp": "2025-07-30T12:00:00.000Z", "state": 7, "value": "x", "run": ["y"]},
                         {"event": "alert", "labels": 3}]  # fmt: skip
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b"{torn\n\xff\xfe\n[]\n" + b"".join(map(encode, broken)))
    assert [one["kind"] for one in listed(app)] == ["Good"]


def test_files_are_read_no_further_back_than_a_bound_and_once(
    agent: Agent, app: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NODE_BYTES", 4000)
    for number in range(100):
        note(agent, HOT._replace(kind=f"K{number}"))
        end(agent, HOT._replace(kind=f"K{number}"))
    kinds = [one["kind"] for one in listed(app)]
    assert 2 < len(kinds) < 20 and kinds[0] == "K99"
    read: list[Path] = []
    last = module._last
    monkeypatch.setattr(module, "_last", lambda path, start: read.append(path) or last(path, start))  # type: ignore
    listed(app)
    assert read == []
    note(agent, HOT)
    listed(app)
    assert [path.name for path in read] == ["events.jsonl"]


def test_of_many_runs_the_newest_are_looked_at(agent: Agent, app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 3)
    for number in range(6):
        folder = agent.root / "runs" / f"r{number}" / "agent"
        folder.mkdir(parents=True)
        stamp = f"2025-07-30T12:00:0{number}.000Z"
        (folder / "gpu1.jsonl").write_bytes(encode({
            "timestamp": stamp, "event": "finding", "state": "close", "kind": "TrainingCrashed", "severity": "page",
            "run": f"r{number}", "what": "x", "opened": stamp}))  # fmt: skip
        time.sleep(0.01)
    assert [one["run"] for one in listed(app)] == ["r5", "r4", "r3"]


@pytest.mark.parametrize("query", [
    "state=new", "state=", "limit=0", "limit=1001", "limit=-1", "limit=1.5", "limit=x", "limit=٣", "limit=",
    f"limit={'9' * 5000}"])  # fmt: skip
def test_a_question_that_cannot_be_answered_is_named(app: Starlette, query: str) -> None:
    answer = ask(app, f"/api/v1/findings?{query}")
    assert answer.status == 400
    assert answer.json()["error"].startswith(f"{query.partition('=')[0]}: ")
    assert "cannot be used: " in answer.json()["error"] and len(answer.text) < 400


def test_an_agent_that_judges_nothing_has_none(tmp_path: Path) -> None:
    app = make_app(Agent([], tmp_path, host="gpu1"))
    assert ask(app, "/api/v1/findings").json() == {"findings": [], "more": 0, "problems": []}


# --- What came by Alertmanager ---


def test_an_alert_of_a_rule_stands_beside(agent: Agent, app: Starlette) -> None:
    alertmanager_says(app, alert("HostClockSkew", severity="ticket", source="prometheus"))
    [one] = listed(app)
    assert {name: one[name] for name in ("state", "source", "kind", "severity", "instance", "what", "opened")} == {
        "state": "open", "source": "prometheus", "kind": "HostClockSkew", "severity": "ticket", "instance": "gpu1",
        "what": "HostClockSkew it is", "opened": "2026-05-01T10:00:00.123Z"}  # fmt: skip
    alertmanager_says(app, alert("HostClockSkew", "resolved", severity="ticket", source="prometheus"))
    [past] = listed(app)
    assert (past["id"], past["state"], past["closed"]) == (one["id"], "closed", "2026-05-01T10:05:00.000Z")


def test_nothing_is_shown_twice(started: Agent, agent: Agent, app: Starlette) -> None:
    """As Alertmanager has it: the agent's own alert, and what a rule made of the same."""
    note(agent, HOT)
    diverged(agent.root)
    nan = one_of(app, "TrainingNonFinite")
    place = {"gpu": "3", "uuid": "GPU-3", "severity": "ticket"}
    alertmanager_says(
        app, alert("GpuTemperatureHigh", source="agent", **place),
        alert("GpuTemperatureHigh", source="prometheus", **place),
        alert("TrainingNonFinite", source="prometheus", run="gemma", rank=nan["rank"]),
        alert("TrainingNonFinite", source="prometheus", run="gemma", rank="9"),
        alert("GpuTemperatureHigh", source="agent", **{**place, "instance": "gpu2"}))  # fmt: skip
    open_ones = [(one["kind"], one["instance"], one.get("rank")) for one in listed(app)]
    assert sorted(open_ones, key=str) == [
        ("GpuTemperatureHigh", "gpu1", None), ("GpuTemperatureHigh", "gpu2", None),
        ("TrainingNonFinite", "gpu1", "0"), ("TrainingNonFinite", "gpu1", "9")]  # fmt: skip
    rows = [(row["name"], row["where"]) for row in brief(app)["firing"]]
    assert len(rows) == len(set(rows)) and brief(app)["firing_count"] == 4


def test_what_is_heard_is_counted_as_the_verdict_has_it(agent: Agent, app: Starlette) -> None:
    for one in (HOT, XID, HOT._replace(kind="Info", severity="info")):
        note(agent, one)
    assert (brief(app)["firing_count"], brief(app)["heard_count"]) == (3, 2)
    silence(app, kind="GpuXidFatal")
    assert (brief(app)["firing_count"], brief(app)["heard_count"]) == (3, 1)
    acknowledge(app, {"id": one_of(app, "GpuTemperatureHigh")["id"]})
    assert brief(app)["heard_count"] == 1, "what is acknowledged is as wrong as before"


def test_a_rule_about_a_run_that_knows_no_machine_is_no_other(started: Agent, agent: Agent, app: Starlette) -> None:
    diverged(agent.root)
    rank = one_of(app, "TrainingNonFinite")["rank"]
    known = alert("TrainingNonFinite", source="prometheus", run="gemma", rank=rank)
    del known["labels"]["instance"]
    alertmanager_says(app, known)
    assert [one["source"] for one in listed(app)] == ["agent"]
    assert brief(app)["firing_count"] == 1


def test_nor_is_it_when_both_are_past(agent: Agent, app: Starlette) -> None:
    note(agent, HOT)
    place = {"gpu": "3", "uuid": "GPU-3", "severity": "ticket", "source": "prometheus"}
    now, ago = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - back)) for back in (0, 7 * 86400))
    alertmanager_says(app, alert("GpuTemperatureHigh", starts=now, **place))
    end(agent, HOT)
    both = ({**alert("GpuTemperatureHigh", "resolved", starts=when, **place), "endsAt": when} for when in (now, ago))
    alertmanager_says(app, *both)
    assert [(one["source"], one["opened"][:10]) for one in listed(app)] == [
        ("agent", now[:10]),
        ("prometheus", ago[:10]),
    ]


def test_of_its_own_the_agent_knows_the_end_before_alertmanager_tells(agent: Agent, app: Starlette) -> None:
    note(agent, HOT)
    place = {"gpu": "3", "uuid": "GPU-3", "severity": "ticket", "source": "agent"}
    alertmanager_says(app, alert("GpuTemperatureHigh", **place))
    end(agent, HOT)
    assert [one["state"] for one in listed(app)] == ["closed"]
    assert brief(app)["firing"] == []


# --- Acknowledged ---


def test_an_acknowledged_one_stays_open_and_says_by_whom(agent: Agent, app: Starlette) -> None:
    note(agent, HOT)
    name = listed(app)[0]["id"]
    assert acknowledge(app, {"id": name, "note": " replaced\ntomorrow "}, PAGE).json() == {"ok": True, "kept": True}
    [one] = listed(app)
    assert (one["state"], one["silenced"]) == ("open", None)
    assert {**one["acknowledged"], "at": ""} == {"at": "", "by": "127.0.0.1", "note": "replaced tomorrow"}
    [row] = brief(app)["firing"]
    assert (row["id"], row["acknowledged"]) == (name, one["acknowledged"])
    assert acknowledge(app, {"id": name}, PAGE, "DELETE").json() == {"ok": True, "kept": True}
    assert listed(app)[0]["acknowledged"] is None
    assert acknowledge(app, {"id": name}, PAGE, "DELETE").status == 404


def test_the_user_s_name_stands_there_where_there_is_one(agent: Agent) -> None:
    app = make_app(
        agent, WebConfig(users={"ada": bcrypt.hashpw(b"pw", bcrypt.gensalt(4))}), token="hush-hush-hush-hush"
    )
    note(agent, HOT)
    basic = {**JSON, "authorization": "Basic YWRhOnB3"}
    bearer = {**JSON, "authorization": "Bearer hush-hush-hush-hush"}
    name = listed(app, headers=basic)[0]["id"]
    assert acknowledge(app, {"id": name}, basic).status == 200
    assert listed(app, headers=basic)[0]["acknowledged"]["by"] == "ada"
    # A name that nobody checked is none.
    assert acknowledge(app, {"id": name}, {**bearer, "cookie": "", "user": "root"}).status == 403
    assert acknowledge(app, {"id": name}, bearer).status == 200
    assert listed(app, headers=basic)[0]["acknowledged"]["by"] == "127.0.0.1"


def test_it_holds_until_the_finding_ends_or_becomes_worse(agent: Agent, app: Starlette) -> None:
    note(agent, HOT)
    name = listed(app)[0]["id"]
    acknowledge(app, {"id": name})
    note(agent, HOT._replace(severity="page"))
    [one] = listed(app)
    assert (one["id"], one["severity"], one["acknowledged"]) == (name, "page", None)
    acknowledge(app, {"id": name})
    assert listed(app)[0]["acknowledged"]
    end(agent, HOT)
    time.sleep(0.002)
    note(agent, HOT)
    again, past = listed(app)
    assert (again["state"], again["acknowledged"]) == ("open", None)
    assert (past["state"], past["id"]) == ("closed", name) and past["acknowledged"]


def test_what_followed_from_it_is_known_with_it(agent: Agent, app: Starlette) -> None:
    stalled = Finding("TrainingStalled", "page", "no step", place=Place("gemma"), stays=1e9)
    note(agent, XID)
    note(agent, stalled)
    acknowledge(app, {"id": listed(app)[0]["id"]})
    [change] = agent.open()
    assert agent.quiet.heard(change) is None
    note(agent, Finding("TrainingCrashed", "page", "crashed", place=Place("gemma"), stays=1e9))
    [change] = agent.open()
    heard = agent.quiet.heard(change)
    assert heard is not None and (heard.finding.kind, heard.evidence) == ("TrainingCrashed", ())


def test_one_that_came_by_alertmanager_can_be_acknowledged_and_the_page_says_what_that_is_worth(app: Starlette) -> None:
    alertmanager_says(app, alert("HostClockSkew", source="prometheus"), alert("HostDown", source="prometheus"))
    name = next(one["id"] for one in listed(app) if one["kind"] == "HostClockSkew")
    assert ask(app, "/api/v1/findings").json()["problems"] == []
    assert acknowledge(app, {"id": name}).status == 200
    assert {one["kind"]: bool(one["acknowledged"]) for one in listed(app)} == {"HostClockSkew": True, "HostDown": False}
    for path in ("/api/v1/findings", "/api/v1/silences"):
        assert ask(app, path).json()["problems"] == [NO_WAY]
    assert brief(app)["problems"] == [NO_WAY]


def test_another_machine_s_of_the_same_kind_is_not_known_with_it(agent: Agent, app: Starlette) -> None:
    missing = Finding("GpuMissing", "page", "7 of 8", stays=1e9)
    note(agent, missing)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
    alertmanager_says(app, alert("GpuMissing", starts=now, instance="gpu2", source="prometheus"))
    own = next(one["id"] for one in listed(app) if one["source"] == "agent")
    acknowledge(app, {"id": own})
    silence(app, kind="GpuMissing")
    known = {one["instance"]: (bool(one["acknowledged"]), bool(one["silenced"])) for one in listed(app)}
    assert known == {"gpu1": (True, True), "gpu2": (False, False)}


@pytest.mark.parametrize(("content", "error"), [
    ({}, "id: None cannot be used: give a finding's id"), ({"id": 3}, "id: 3 cannot"), ({"id": []}, "id: [] cannot"),
    ({"id": ""}, "id: '' cannot"), ({"id": "x", "note": 3}, "note: 3 cannot"),
    ({"id": "x", "note": "x" * 501}, "note: "),
    ({"id": "x", "by": "root"}, "by: 'root' cannot be used: known here: id, note"),
    ([], "the body: an object is wanted"), (b"{", "the body is no JSON"), (b"", "the body is no JSON"),
    (b'"\\ud800"', "the body is no JSON"), (b"[" * 60_000, "the body is no JSON"),
])  # fmt: skip
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_what_cannot_be_taken_is_named(app: Starlette, content: Any, error: str, method: str) -> None:
    answer = acknowledge(app, content, method=method)
    assert (answer.status, answer.json()["error"].startswith(error)) == (400, True), answer.text
    assert len(answer.text) < 400
    assert answer.headers["cache-control"] == "no-store"


def test_what_is_not_open_is_not_found(agent: Agent, app: Starlette) -> None:
    note(agent, HOT)
    name = listed(app)[0]["id"]
    end(agent, HOT)
    for unknown in (name, "0123456789abcdef", "../../etc/passwd", "\u00e9" * 300):
        answer = acknowledge(app, {"id": unknown})
        assert answer.status == 404 and "no finding of that id is open" in answer.json()["error"]
        assert len(answer.text) < 400


# --- Who may say so ---


def headers_of(case: str) -> dict[str, str]:
    return {
        "another site": {**PAGE, "origin": "http://evil.example"},
        "another port": {**PAGE, "origin": "http://localhost:9999"},
        "no site": {**PAGE, "origin": "null"},
        "a form": {**LOCAL, "origin": "http://localhost:8080", "content-type": "application/x-www-form-urlencoded"},
        "a text": {**LOCAL, "content-type": "text/plain"},
        "no type": dict(LOCAL),
        "a browser that does not say who": {**JSON, "sec-fetch-site": "cross-site"},
        "a referer alone": {**JSON, "referer": "http://localhost:8080/"},
        "a cookie alone": {**JSON, "cookie": "trainvitals-8080=x"},
        "a name that was bound to here": {**PAGE, "host": "evil.example", "origin": "http://evil.example"},
        "that name without a browser": {**JSON, "host": "evil.example"},
    }[case]


STATUS = {"a form": 415, "a text": 415, "no type": 415, "a name that was bound to here": 421,
          "that name without a browser": 421}  # fmt: skip


@pytest.mark.parametrize("case", [
    "another site", "another port", "no site", "a form", "a text", "no type", "a browser that does not say who",
    "a referer alone", "a cookie alone", "a name that was bound to here", "that name without a browser"])  # fmt: skip
@pytest.mark.parametrize(("path", "method"), [
    (ACKNOWLEDGE, "POST"), (ACKNOWLEDGE, "DELETE"), ("/api/v1/silences", "POST"),
    ("/api/v1/silences/{id}", "DELETE")])  # fmt: skip
def test_no_other_site_changes_anything(agent: Agent, app: Starlette, case: str, path: str, method: str) -> None:
    note(agent, HOT)
    name = listed(app)[0]["id"]
    acknowledge(app, {"id": name}) if method == "DELETE" else None
    silenced = silence(app, kind="Other").json()["id"]
    before = agent.quiet.kept
    body = {"id": name} if path == ACKNOWLEDGE else {"kind": "GpuTemperatureHigh", "hours": 1}
    answer = post(app, path.format(id=silenced), body, headers_of(case), method)
    assert answer.status == STATUS.get(case, 403)
    assert agent.quiet.kept is before
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize(
    "path", ["/api/v1/findings", ACKNOWLEDGE, "/api/v1/silences", "/api/v1/silences/0123456789abcdef"]
)
def test_other_methods_are_none(app: Starlette, path: str, method: str) -> None:
    assert ask(app, path, JSON, method).status == 405


def test_a_body_that_is_too_long_or_never_comes_is_given_up(
    agent: Agent, app: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert acknowledge(app, b" " * (bodies.MOST_BYTES + 1)).status == 413
    assert acknowledge(app, b" " * bodies.MOST_BYTES).status == 400
    monkeypatch.setattr(bodies, "READ_SECONDS", 0.05)

    class Slow:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def never() -> Any:
                import asyncio

                await asyncio.sleep(60)

            await app(scope, never, send)

    assert acknowledge(Slow(), {"id": "x"}).status == 408


def test_more_than_are_kept_are_refused_as_long_as_all_of_them_hold(
    agent: Agent, app: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "MOST", 10)
    for number in range(10):
        assert silence(app, kind=f"K{number}").status == 200
    answer = silence(app, kind="K10")
    assert answer.status == 409 and "take some back first" in answer.json()["error"]
    assert len(ask(app, "/api/v1/silences").json()["silences"]) == 10
