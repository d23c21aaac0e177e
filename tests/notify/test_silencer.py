"""Silences in Alertmanager, on the real one where there is one: made, prolonged, ended, and again after any trouble."""

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.alerting.support import Recorder, Running, alertmanager, recording
from tests.collector.support import wait_for
from tests.notify.support import HOST, Hook, finding, settled, ticket
from tests.ports import free_port
from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.notify import silencer as module
from trainvitals.notify.alertmanager import Alertmanager
from trainvitals.notify.matchers import Matcher, of_alert, of_finding, of_silence
from trainvitals.notify.silencer import Silencer, Wanted

NAN = finding("TrainingNonFinite", run="gemma", rank="0")
ONE, OTHER = "a" * 16, "b" * 16


def change(one: Finding) -> Change:
    now = time.time()
    return Change("open", one, now, now)


def wanted(one: Finding = NAN, key: str = ONE, lasts: float = 900.0, enough: float = 600.0) -> Wanted:
    now = time.time()
    return Wanted(key, of_finding(change(one), HOST), now + lasts, now + enough, "known (me)")


def labels(one: Finding, source: str = "prometheus", **more: str) -> dict[str, str]:
    return {"alertname": one.kind, "severity": one.severity, "source": source, "instance": HOST,
            **one.place.labels(), **more}  # fmt: skip


@contextmanager
def silencing(url: str, want: list[Wanted]) -> Iterator[Silencer]:
    """What is wanted may be changed meanwhile, with a nudge."""
    found = Silencer(Alertmanager("--notify", url), HOST, lambda: list(want))
    found.start()
    try:
        yield found
    finally:
        found.end()
        found.join(10)


@pytest.fixture
def people() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@pytest.fixture
def running(tmp_path: Path, people: Recorder) -> Iterator[Running]:
    with alertmanager(tmp_path, {"WEBHOOK_URL": f"{people.url}/hook", "COLLECTOR_URL": people.url}) as started:
        yield started


def silences(running: Running, state: str = "active") -> list[dict[str, Any]]:
    return [one for one in running.get("/api/v2/silences") if one["status"]["state"] == state]


def states(running: Running) -> dict[str, str]:
    """Of each alert, by who says it."""
    return {one["labels"]["source"] + one["labels"].get("rank", ""):
            "silenced" if one["status"]["silencedBy"] else "told" for one in running.get("/api/v2/alerts")}  # fmt: skip


# --- Of what ---


@pytest.mark.parametrize(("named", "found"), [
    ({"kind": "GpuMissing"}, {("alertname", "GpuMissing"), ("instance", "gpu1|")}),
    ({"gpu": "3", "uuid": "GPU-3"}, {("gpu", "3"), ("uuid", "GPU-3"), ("instance", "gpu1|")}),
    ({"run": "gemma", "rank": "1"}, {("run", "gemma"), ("rank", "1")}),
    ({"kind": "x\ny", "run": "z\udcff"}, {("alertname", "x y"), ("run", "z ")}),
])  # fmt: skip
def test_a_silence_is_of_this_machine_or_of_a_run(named: dict[str, str], found: set[tuple[str, str]]) -> None:
    assert {one[:2] for one in of_silence(named, HOST)} == found


def test_a_machine_s_name_is_no_pattern() -> None:
    assert Matcher("instance", r"gpu\.\*\(|", is_regex=True) in of_silence({"kind": "x"}, "gpu.*(")


def test_an_acknowledgement_is_of_the_alert_as_its_twin_has_it_and_of_none_that_is_graver() -> None:
    found = {one.name: one.value for one in of_finding(change(ticket()), HOST)}
    assert found == {"alertname": "GpuTemperatureHigh", "instance": HOST, "run": "", "rank": "", "gpu": "3",
                     "uuid": "GPU-3", "mountpoint": "", "severity": "info|ticket"}  # fmt: skip
    found = {one.name: one.value for one in of_finding(change(NAN), HOST)}
    assert found == {"alertname": "TrainingNonFinite", "run": "gemma", "rank": "0", "uuid": ""}
    disk = Finding("HostDiskFull", "page", "full", place=Place(part="/data"))
    assert Matcher("mountpoint", "/data") in of_finding(change(disk), HOST)
    down = Finding("SourceDown", "ticket", "silent", place=Place(part="nvml"))
    assert Matcher("part", "nvml|", is_regex=True) in of_finding(change(down), HOST)


# --- The real one ---


def test_finding_and_twin_are_silenced_and_nobody_else(running: Running, people: Recorder) -> None:
    with silencing(running.url, [wanted()]) as silencer:
        wait_for(lambda: silences(running))
        running.fire(labels(NAN), labels(NAN, "agent"), labels(NAN, rank="1"))
        wait_for(lambda: states(running) == {"prometheus0": "silenced", "agent0": "silenced", "prometheus1": "told"})
        wait_for(lambda: people.to("/hook"))
        settled(lambda: len(people.alerts()) > 1)
        assert silencer.problem == ""
    [one] = silences(running)
    assert one["createdBy"] == f"TrainVitals on {HOST}" and one["comment"] == f"known (me) [{ONE}]"


def test_what_becomes_worse_is_told(running: Running, people: Recorder) -> None:
    hot = ticket()
    with silencing(running.url, [wanted(hot)]):
        wait_for(lambda: silences(running))
        running.fire(labels(hot), labels(hot._replace(severity="page"), "agent"))
        wait_for(lambda: states(running) == {"prometheus": "silenced", "agent": "told"})


def test_what_is_wanted_no_more_ends_and_what_may_run_out_stays(running: Running) -> None:
    want = [wanted(), wanted(ticket(), OTHER)]
    with silencing(running.url, want) as silencer:
        wait_for(lambda: len(silences(running)) == 2)
        want[:] = [Wanted(OTHER, (), 0.0, 0.0)]
        silencer.nudge()
        wait_for(lambda: len(silences(running)) == 1)
        [left] = silences(running)
        assert left["comment"].endswith(f"[{OTHER}]")


def test_another_agent_after_this_one_takes_them_over(running: Running) -> None:
    with silencing(running.url, [wanted(), wanted(ticket(), OTHER)]):
        wait_for(lambda: len(silences(running)) == 2)
    before = {one["id"] for one in silences(running)}
    with silencing(running.url, [wanted()]) as silencer:
        wait_for(lambda: len(silences(running)) == 1)
        wait_for(lambda: silencer.listed_at)
    assert silences(running)[0]["id"] in before


def test_one_that_is_about_to_end_is_prolonged_in_its_place(running: Running) -> None:
    want = [wanted(lasts=30, enough=10)]
    with silencing(running.url, want) as silencer:
        [before] = wait_for(lambda: silences(running))
        want[:] = [wanted()]
        silencer.nudge()
        wait_for(lambda: silences(running)[0]["endsAt"] > before["endsAt"])
        [after] = silences(running)
        assert after["id"] == before["id"]
        silencer.nudge()
        settled(lambda: silences(running)[0]["updatedAt"] != after["updatedAt"])


def test_one_that_somebody_ended_there_or_that_is_there_twice_is_set_right(running: Running) -> None:
    with silencing(running.url, [wanted()]) as silencer:
        [one] = wait_for(lambda: silences(running))
        _send(f"{running.url}/api/v2/silence/{one['id']}", method="DELETE")
        silencer.nudge()
        [again] = wait_for(lambda: silences(running))
        assert again["id"] != one["id"]
        twice = {name: again[name] for name in ("matchers", "startsAt", "endsAt", "createdBy", "comment")}
        _send(f"{running.url}/api/v2/silences", {**twice, "comment": f"again [{ONE}]"})
        assert len(silences(running)) == 2
        silencer.nudge()
        wait_for(lambda: len(silences(running)) == 1)


def test_those_of_others_are_left_alone(running: Running) -> None:
    matchers = [{"name": "alertname", "value": "x", "isRegex": False, "isEqual": True}]
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    starts = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    body = {"matchers": matchers, "startsAt": starts, "endsAt": ends, "comment": f"mine [{OTHER}]"}
    _send(f"{running.url}/api/v2/silences", {**body, "createdBy": "somebody"})
    _send(f"{running.url}/api/v2/silences", {**body, "createdBy": "TrainVitals on gpu2"})
    _send(f"{running.url}/api/v2/silences", {**body, "createdBy": f"TrainVitals on {HOST}", "comment": "by hand"})
    with silencing(running.url, [wanted()]) as silencer:
        wait_for(lambda: len(silences(running)) == 4)
        wait_for(lambda: silencer.listed_at)
    assert len(silences(running)) == 4


def test_one_that_is_refused_stands_in_no_other_s_way(running: Running) -> None:
    bad = Wanted(OTHER, of_alert({"alertname": ""}), time.time() + 900, time.time() + 600)
    want = [bad, wanted()]
    with silencing(running.url, want) as silencer:
        wait_for(lambda: silences(running))
        problem = wait_for(lambda: silencer.problem)
        assert "answers 400" in problem and "its silences may be others than those here" in problem
        want.remove(bad)
        silencer.nudge()
        wait_for(lambda: not silencer.problem)


def test_it_says_which_alerts_are_quiet_by_it(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with silencing(running.url, [wanted()]) as silencer:
        wait_for(lambda: silences(running))
        running.fire(labels(NAN), labels(NAN, rank="1"))
        wait_for(lambda: len(states(running)) == 2)
        silencer.nudge()
        [alert] = wait_for(silencer.silenced)
        assert alert["labels"]["rank"] == "0" and alert["fingerprint"]
        running.fire(labels(NAN), ended=True)
        wait_for(lambda: len(states(running)) == 1)
        silencer.nudge()
        settled(lambda: not silencer.silenced())
        monkeypatch.setattr(module, "STAYS_SECONDS", 0.0)
        silencer.nudge()
        wait_for(lambda: not silencer.silenced())


# --- Trouble ---


def test_nothing_is_asked_for_where_nothing_is_wanted(server: Hook) -> None:
    server.says = "[]"
    with silencing(server.url, []) as silencer:
        wait_for(lambda: silencer.listed_at)
        settled(lambda: len(server.times) > 1)
        assert [path for path, _ in server.posts] == ["/api/v2/silences"]


@pytest.mark.parametrize("trouble", [503, 401, "hang", "nonsense", "not there"])
def test_one_that_cannot_be_asked_is_named_without_its_secret_and_asked_again(
    server: Hook, trouble: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "BACKOFF_SECONDS", 0.05)
    monkeypatch.setattr(module, "ATTEMPT_SECONDS", 0.5)
    url = f"http://127.0.0.1:{free_port()}" if trouble == "not there" else server.url
    server.says = "<html>" if trouble == "nonsense" else "no"
    server.status = trouble if isinstance(trouble, int) else 200
    server.answers.extend(["hang"] if trouble == "hang" else [])
    with silencing(url.replace("http://", "http://me:hush-pw@"), [wanted()]) as silencer:
        problem = wait_for(lambda: silencer.problem)
        assert problem.startswith("alertmanager 127.0.0.1: ") and "hush" not in problem + caplog.text
        if trouble != "not there":
            server.says, server.status = "[]", 200
            server.ended.set()
            wait_for(lambda: len(server.times) > 1)


def test_it_says_nothing_where_nothing_is_owed(server: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKOFF_SECONDS", 0.05)
    server.status = 503
    with silencing(server.url, []) as silencer:
        wait_for(lambda: len(server.times) > 2)
        assert silencer.problem == ""


@pytest.mark.parametrize("answer", [
    {}, [None], [{}], [{"id": 3, "comment": 4, "createdBy": 5, "status": 6}], [[]],
    [{"id": "x", "comment": f"[{ONE}]", "createdBy": f"TrainVitals on {HOST}", "status": {"state": "active"}}],
    [{"id": "../../x", "comment": f"[{ONE}]", "createdBy": f"TrainVitals on {HOST}", "status": {"state": "active"},
      "matchers": [None, {"isEqual": False}], "endsAt": "9" * 500}],
])  # fmt: skip
def test_what_no_alertmanager_answers_ends_nothing(server: Hook, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BACKOFF_SECONDS", 0.05)
    server.says = json.dumps(answer)
    with silencing(server.url, [wanted()]) as silencer:
        wait_for(lambda: silencer.problem)
        wait_for(lambda: len(server.times) > 3)
        assert silencer.is_alive()
    assert not [path for path, _ in server.posts if ".." in path]


def _send(url: str, body: Any = None, method: str | None = None) -> None:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    urllib.request.urlopen(request, timeout=5).close()
