"""What somebody acknowledged or silenced is told to nobody: by the desk, and by an agent over its restarts."""

import json
import signal
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.alerting.support import Recorder, alertmanager, recording
from tests.collector.support import Served, run, serving, wait_for
from tests.collector.web.finding import diverged, made
from tests.collector.web.finding import end as ended
from tests.collector.web.finding import note as noted
from tests.notify.desks import PACE, STALLED, XID, note, told
from tests.notify.support import Hands, Hook, closed, finding, notifying, opened, settled, ticket, updated
from trainvitals import config
from trainvitals.agent.detecting import Detecting
from trainvitals.agent.service import Agent
from trainvitals.agent.twins import problems
from trainvitals.detect.finding import Change
from trainvitals.detect.quieting import Acknowledgement, Covered, Kept, Silence, identity_of
from trainvitals.journal.record import timestamp_at
from trainvitals.notify.desk import Messages
from trainvitals.notify.ledger import Ledger
from trainvitals.notify.quiet import Quiet
from trainvitals.telling import Telling


class Page:
    """Where somebody says what they know, by a clock that is set by hand."""

    def __init__(self, hands: Hands) -> None:
        self.kept, self.hands = Kept(), hands

    def hear(self, change: Change) -> Change | None:
        return self.kept.heard(change, self.hands.wall)

    def acknowledge(self, change: Change) -> None:
        covers = tuple(Covered(one.kind, one.severity, one.place) for one in (change.finding, *change.evidence))
        one = Acknowledgement(
            identity_of(change), timestamp_at(change.opened), timestamp_at(self.hands.wall), "", "", covers
        )
        self.kept = Kept({**self.kept.acknowledged, one.id: one}, self.kept.silences)

    def silence(self, hours: float = 1, **named: str) -> None:
        now = self.hands.wall
        one = Silence("0" * 16, timestamp_at(now), timestamp_at(now + 3600 * hours), **named)
        self.kept = Kept(self.kept.acknowledged, {one.id: one})


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def page(hands: Hands) -> Page:
    return Page(hands)


@pytest.fixture
def desk(page: Page, hands: Hands) -> Messages:
    return Messages(Ledger(), hands.clock, PACE, Quiet(None), hear=page.hear)


# --- The desk ---


def test_what_is_acknowledged_before_it_was_told_is_never_told(desk: Messages, page: Page, hands: Hands) -> None:
    page.acknowledge(opened(ticket()))
    note(desk, opened(ticket()))
    assert not told(desk)
    note(desk, closed(ticket()))
    hands.go(600)
    assert not told(desk) and not desk.ledger.cases


def test_what_is_acknowledged_after_it_was_told_has_no_end_either(desk: Messages, page: Page) -> None:
    note(desk, opened(ticket()))
    assert told(desk)
    page.acknowledge(opened(ticket()))
    note(desk, closed(ticket()))
    assert not told(desk) and not desk.ledger.cases


def test_what_becomes_worse_is_told_as_that(desk: Messages, page: Page, hands: Hands) -> None:
    note(desk, opened(ticket()))
    assert told(desk)
    page.acknowledge(opened(ticket()))
    worse = ticket()._replace(severity="page")
    hands.go(60)
    note(desk, updated(worse))
    assert told(desk) == [("GpuTemperatureHigh", "worse", "page")]
    hands.go(60)
    note(desk, closed(worse))
    assert told(desk) == [("GpuTemperatureHigh", "resolved", "page")]


def test_what_goes_on_when_a_silence_ends_is_told_then(desk: Messages, page: Page, hands: Hands) -> None:
    page.silence(gpu="3")
    note(desk, opened(XID))
    assert not told(desk)
    hands.go(3599)
    assert not told(desk)
    hands.go(2)
    assert told(desk) == [("GpuXidFatal", "open", "page")]


def test_what_ends_meanwhile_is_told_to_nobody(desk: Messages, page: Page, hands: Hands) -> None:
    note(desk, opened(XID))
    assert told(desk)
    page.silence(gpu="3")
    note(desk, closed(XID))
    assert not told(desk)
    hands.go(7200)
    assert not told(desk) and not desk.ledger.cases


def test_of_what_hangs_together_the_loud_part_is_told(desk: Messages, page: Page, hands: Hands) -> None:
    page.silence(kind="GpuXidFatal")
    note(desk, opened(XID), opened(STALLED, cause=XID), updated(XID, evidence=(STALLED,)))
    batch = desk.due()
    assert batch is not None
    [item] = batch.items
    assert (item.finding, item.change.evidence, item.severity) == (STALLED, (), "page")
    desk.done(batch)
    hands.go(60)
    note(desk, closed(XID)._replace(evidence=(STALLED,)))
    assert told(desk) == [("TrainingStalled", "resolved", "page")]


def test_a_page_that_is_silenced_makes_no_page_of_its_ticket(desk: Messages, page: Page) -> None:
    oom = finding("HostOomKill", "ticket")
    page.silence(run="gemma", kind="TrainingStalled")
    note(desk, opened(oom), opened(STALLED, cause=oom), updated(oom, evidence=(STALLED,)))
    assert told(desk) == [("HostOomKill", "open", "ticket")]


def test_a_channel_that_waits_looks_again_when_it_is_nudged(
    tmp_path: Path, server: Hook, quick: None, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainvitals.notify.desk.LOOK_SECONDS", 600.0)
    page.silence(run="gemma")
    with notifying(tmp_path, f"webhook={server.url}", hear=page.hear) as notifier:
        notifier.tell([opened()])
        settled(lambda: server.taken)
        page.kept = Kept()
        notifier.nudge()
        wait_for(lambda: server.findings() == [("TrainingNonFinite", "open")])


def test_a_message_that_could_not_be_sent_yet_is_not_sent_any_more(
    tmp_path: Path, server: Hook, quick: None, page: Page
) -> None:
    server.status = 503
    with notifying(tmp_path, f"webhook={server.url}", hear=page.hear) as notifier:
        notifier.tell([opened()])
        wait_for(lambda: server.times)
        page.acknowledge(opened())
        notifier.tell([opened(finding("GpuMissing"))])
        server.status = 200
        wait_for(lambda: server.findings() == [("GpuMissing", "open")])
        settled(lambda: len(server.findings()) > 1)


# --- An agent ---


def ask(agent: Served, path: str, content: Any = None, method: str | None = None) -> Any:
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(agent.address + path, body, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def found(agent: Served, run: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        return next((one for one in ask(agent, "/api/v1/findings?state=open")["findings"] if one.get("run") == run), {})

    return wait_for(look)


@contextmanager
def telling(folder: Path, way: str, **environ: str) -> Iterator[Served]:
    told: Mapping[str, str] = {"TRAINVITALS_NOTIFY": way, "TRAINVITALS_HOSTNAME": "gpu1", **environ}
    with serving(folder, "--interval", "0.2", env=told) as agent:
        yield agent


def runs_of(server: Hook) -> list[str]:
    return [one["place"].get("run") for body in list(server.taken) for one in body["findings"]]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_restarts_change_nothing_of_it(tmp_path: Path, server: Hook, how: int) -> None:
    way, folder = f"webhook={server.url}", tmp_path / "journal"
    with telling(folder, way) as agent:
        silence = ask(agent, "/api/v1/silences", {"run": "quiet", "hours": 1, "note": "a test of mine"})["id"]
        runs = [diverged(folder, name) for name in ("quiet", "known", "loud")]
        known = found(agent, "known")
        assert found(agent, "quiet")["silenced"]
        wait_for(lambda: sorted(runs_of(server)) == ["known", "loud"])
        assert ask(agent, "/api/v1/findings/acknowledge", {"id": known["id"], "note": "mine"})["kept"]
        agent.process.send_signal(how)
        agent.process.wait(timeout=10)
    listed = run("alerts", "--dir", str(folder)).stdout
    assert "[acknowledged by 127.0.0.1] " in listed and "[silenced until " in listed
    server.posts.clear()
    with telling(folder, way) as agent:
        assert found(agent, "known")["acknowledged"]["note"] == "mine"
        assert found(agent, "known")["id"] == known["id"]
        assert found(agent, "quiet")["silenced"]["note"] == "a test of mine"
        for files in runs:
            files.metrics.append({"step": 2, "loss": float("nan"), "gradient_norm": float("nan")})
        settled(lambda: {"quiet", "known"} & set(runs_of(server)), 1.5)
        ask(agent, f"/api/v1/silences/{silence}", method="DELETE")
        wait_for(lambda: "quiet" in runs_of(server))
        assert "known" not in runs_of(server)
    for files in runs:
        files.end("finished")


def test_an_acknowledged_run_that_ends_is_told_to_nobody(tmp_path: Path, server: Hook) -> None:
    with telling(tmp_path / "journal", f"webhook={server.url}") as agent:
        files = diverged(tmp_path / "journal")
        ask(agent, "/api/v1/silences", {"run": "other", "hours": 1})
        ask(agent, "/api/v1/findings/acknowledge", {"id": found(agent, "gemma")["id"]})
        wait_for(lambda: runs_of(server) in ([], ["gemma"]))
        before = len(server.taken)
        files.metrics.append({"step": 2, "loss": float("nan")})
        settled(lambda: len(server.taken) > before, 1.0)
        files.end("crashed", error="x")
        wait_for(lambda: "TrainingCrashed" in [kind for kind, _ in server.findings()])


def test_what_is_found_while_the_agent_starts_is_told_and_not_ended(tmp_path: Path, server: Hook) -> None:
    """Before there is anybody to tell, and before a channel has looked at what it knew."""
    telling = Telling(config.load({"notify": f"webhook={server.url}"}, {}), {})
    agent = made(tmp_path)
    agent.detecting = Detecting(telling.engine, agent.runs, agent._folder, agent.keep, telling.tell)
    noted(agent, XID._replace(stays=1e9))
    telling.start(agent)
    noted(agent, ticket()._replace(stays=1e9))
    wait_for(lambda: sorted(server.findings()) == [("GpuTemperatureHigh", "open"), ("GpuXidFatal", "open")])
    settled(lambda: len(server.findings()) > 2)
    telling.stop()
    agent.stop()


def test_a_way_that_cannot_be_used_is_left_out_and_said_where_people_look(
    tmp_path: Path, server: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    telling = Telling(config.load({"notify": f"email,webhook={server.url}"}, {}), {})
    assert telling.ways() == 1
    assert "SMTP_HOST: '' cannot be used" in caplog.text and "monitoring goes on without it" in caplog.text
    agent = made(tmp_path)
    telling.start(agent)
    assert [words.partition(":")[0] for words in problems(agent, 0.0)] == ["SMTP_HOST"]
    telling.stop()
    agent.stop()


def test_what_hangs_on_another_is_not_told_by_itself_after_a_restart(tmp_path: Path, server: Hook) -> None:
    def started() -> tuple[Agent, Telling]:
        telling = Telling(config.load({"notify": f"webhook={server.url}"}, {}), {})
        agent = made(tmp_path)
        agent.detecting = Detecting(telling.engine, agent.runs, agent._folder, agent.keep, telling.tell)
        agent.start()
        telling.start(agent)
        return agent, telling

    for restart in range(2):
        agent, telling = started()
        if not restart:
            noted(agent, XID._replace(stays=1e9))
            noted(agent, STALLED._replace(stays=1e9))
            wait_for(lambda: server.taken)
        settled(lambda: len(server.taken) > 1)
        [change] = agent.open()
        assert (change.finding.kind, [one.kind for one in change.evidence]) == ("GpuXidFatal", ["TrainingStalled"])
        agent.stop()
        telling.stop()
    listed = run("alerts", "--dir", str(tmp_path)).stdout
    assert "GpuXidFatal" in listed and listed.count("FIRING\n") == 1 and listed.count("\n") == 2


# --- With Alertmanager ---


@pytest.fixture
def people() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


def twin(run: str = "gemma", **more: str) -> dict[str, str]:
    return {"alertname": "TrainingNonFinite", "severity": "page", "source": "prometheus", "run": run, "rank": "0",
            "instance": "gpu1", **more}  # fmt: skip


def test_its_slower_twin_stays_quiet_too_and_speaks_again(tmp_path: Path, people: Recorder) -> None:
    folder = tmp_path / "journal"
    (tmp_path / "am").mkdir()
    # The collector is told by it too, as in the stack.
    environ = {"WEBHOOK_URL": f"{people.url}/hook", "COLLECTOR_URL": people.url}
    with alertmanager(tmp_path / "am", environ) as running, telling(folder, f"alertmanager={running.url}") as agent:
        ask(agent, "/api/v1/silences", {"run": "gemma", "hours": 1})
        wait_for(lambda: [one for one in running.get("/api/v2/silences") if one["status"]["state"] == "active"])
        files = diverged(folder), diverged(folder, "llama")
        running.fire(twin(), twin("mistral"))
        wait_for(lambda: {"llama", "mistral"} <= told_runs(people))
        name = found(agent, "llama")["id"]
        ask(agent, "/api/v1/findings/acknowledge", {"id": name, "note": "known"})
        wait_for(
            lambda: len([one for one in running.get("/api/v2/silences") if one["status"]["state"] == "active"]) == 2
        )
        wait_for(lambda: {one["labels"]["run"]: one["status"]["state"] for one in running.get("/api/v2/alerts")}
                 == {"gemma": "suppressed", "llama": "suppressed", "mistral": "active"})  # fmt: skip
        assert "gemma" not in told_runs(people)
        assert ask(agent, "/api/v1/findings")["problems"] == []
        # What Alertmanager keeps quiet stays on the page, though it tells the collector nothing of it.
        assert {one["run"] for one in ask(agent, "/api/v1/findings?state=open")["findings"]} >= {"gemma", "llama"}
        people.posts.clear()
        ask(agent, "/api/v1/findings/acknowledge", {"id": name}, "DELETE")
        for one in ask(agent, "/api/v1/silences")["silences"]:
            ask(agent, f"/api/v1/silences/{one['id']}", method="DELETE")
        wait_for(lambda: "gemma" in told_runs(people), 30)
        for one in files:
            one.end("finished")


def test_what_opens_again_is_not_kept_quiet_until_the_next_look(tmp_path: Path, server: Hook) -> None:
    server.says = "[]"
    telling = Telling(config.load({"notify": f"alertmanager={server.url}"}, {}), {})
    agent = made(tmp_path)
    agent.detecting = Detecting(telling.engine, agent.runs, agent._folder, agent.keep, telling.tell)
    telling.start(agent)
    hot = ticket()._replace(stays=1e9)
    noted(agent, hot)
    [change] = agent.open()
    ended(agent, hot)
    covers = (Covered(hot.kind, hot.severity, hot.place),)
    stamp = timestamp_at(change.opened)
    agent.quiet.acknowledge(Acknowledgement(identity_of(change), stamp, stamp, covers=covers))
    wait_for(lambda: looks(server))
    time.sleep(0.5)
    before = len(looks(server))
    settled(lambda: len(looks(server)) > before)
    noted(agent, hot)
    wait_for(lambda: len(looks(server)) > before)
    telling.stop()
    agent.stop()


def looks(server: Hook) -> list[str]:
    return [path for path, _ in list(server.posts) if path == "/api/v2/silences"]


def told_runs(people: Recorder) -> set[str]:
    return {one["labels"].get("run", "") for post in people.to("/hook") for one in post.json()["alerts"]}


def test_an_alert_of_a_rule_is_acknowledged_there_and_stays_on_the_page(tmp_path: Path, people: Recorder) -> None:
    """Alertmanager tells the collector nothing of what it keeps quiet: it is asked."""
    (tmp_path / "am").mkdir()
    with (
        recording() as collector,
        alertmanager(tmp_path / "am", {"WEBHOOK_URL": f"{people.url}/hook", "COLLECTOR_URL": collector.url}) as running,
        telling(tmp_path / "journal", f"alertmanager={running.url}") as agent,
    ):
        skew = {"alertname": "HostClockSkew", "severity": "page", "source": "prometheus", "instance": "gpu1"}
        running.fire(skew, summary="off by 3 s")
        post = wait_for(lambda: collector.to("/api/v1/alertmanager"))[0]
        ask(agent, "/api/v1/alertmanager", post.json())
        [one] = ask(agent, "/api/v1/findings?state=open")["findings"]
        assert (one["source"], one["what"]) == ("prometheus", "off by 3 s")
        ask(agent, "/api/v1/findings/acknowledge", {"id": one["id"], "note": "ntp is being mended"})
        wait_for(lambda: running.get("/api/v2/alerts")[0]["status"]["silencedBy"])
        # That another is all there is of its group, as Alertmanager would tell, says that this one has ended.
        other = {**post.json()["alerts"][0], "fingerprint": "abc", "labels": {**skew, "device": "x"}}
        ask(agent, "/api/v1/alertmanager", {**post.json(), "alerts": [other]})
        assert [each["id"] for each in known(agent)] == [one["id"]]
        alerts = agent.snapshot()["alerts"]
        assert len(alerts["firing"]) == 2 and alerts["resolved"] == []
        agent.process.send_signal(signal.SIGKILL)
        agent.process.wait(timeout=10)
        with telling(tmp_path / "journal", f"alertmanager={running.url}") as after:
            [still] = wait_for(lambda: known(after))
            assert still["id"] == one["id"] and still["acknowledged"]["note"] == "ntp is being mended"
            assert running.get("/api/v2/alerts")[0]["status"]["silencedBy"]
            ask(after, "/api/v1/findings/acknowledge", {"id": one["id"]}, "DELETE")
            wait_for(lambda: not running.get("/api/v2/alerts")[0]["status"]["silencedBy"])


def known(agent: Served) -> list[dict[str, Any]]:
    found = ask(agent, "/api/v1/findings?state=open")["findings"]
    return [one for one in found if one["acknowledged"]]


def test_an_alertmanager_that_is_down_is_named_on_the_page_and_told_when_it_is_back(
    tmp_path: Path, server: Hook
) -> None:
    server.status = 503
    with telling(tmp_path / "journal", f"alertmanager={server.url}") as agent:
        ask(agent, "/api/v1/silences", {"run": "gemma", "hours": 1})
        [problem] = wait_for(lambda: ask(agent, "/api/v1/silences")["problems"])
        assert problem.startswith("alertmanager 127.0.0.1: answers 503")
        assert agent.snapshot()["alerts"]["problems"] == [problem]
        server.says = json.dumps([])
        server.answers.extend([(200, {})] * 3)
        wait_for(lambda: [path for path, _ in server.posts if path == "/api/v2/silences"], 20)
