"""Silences over the API, of what they are, and for how long."""

import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.alerting.test_received import alert, told
from tests.collector.web.asking import LOCAL, ask
from tests.collector.web.finding import HOT, JSON, PAGE, listed, made, note, post, silence
from trainvitals.agent.service import Agent
from trainvitals.clock import Clock
from trainvitals.detect.finding import Finding, Place
from trainvitals.journal.record import seconds
from trainvitals.web.app import make_app

PATH = "/api/v1/silences"


class Hands:
    """A clock that is set by hand, from now on."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.clock = Clock(lambda: time.time() + self.ahead, time.monotonic)


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def agent(tmp_path: Path, hands: Hands) -> Agent:
    return made(tmp_path, clock=hands.clock)


@pytest.fixture
def app(agent: Agent) -> Starlette:
    return make_app(agent)


def silenced(app: Starlette) -> dict[str, bool]:
    return {one["kind"] + one.get("run", "") + one.get("rank", ""): bool(one["silenced"]) for one in listed(app)}


def test_a_silence_lasts_its_hours_and_says_so(agent: Agent, app: Starlette, hands: Hands) -> None:
    note(agent, HOT)
    before = time.time()
    answer = post(app, PATH, {"kind": "GpuTemperatureHigh", "gpu": 3, "hours": 2, "note": "fan ordered"}, PAGE)
    made = answer.json()
    assert (answer.status, made["kept"]) == (200, True)
    assert 7190 < (seconds(made["until"]) or 0) - before < 7210
    [one] = listed(app)
    assert one["silenced"] == {"until": made["until"], "id": made["id"], "note": "fan ordered"}
    [known] = ask(app, PATH).json()["silences"]
    assert {name: known[name] for name in ("id", "until", "kind", "gpu", "by", "note", "state")} == {
        "id": made["id"], "until": made["until"], "kind": "GpuTemperatureHigh", "gpu": "3", "by": "127.0.0.1",
        "note": "fan ordered", "state": "active"}  # fmt: skip
    assert "run" not in known
    [row] = ask(app, "/api/v1/snapshot").json()["alerts"]["firing"]
    assert row["silenced"] == one["silenced"]
    hands.ahead = 7201
    assert listed(app)[0]["silenced"] is None


@pytest.mark.parametrize(("named", "quiet"), [
    ({"kind": "TrainingStalled"}, ["TrainingStalledgemma", "TrainingStalledllama"]),
    ({"run": "gemma"}, ["TrainingNonFinitegemma0", "TrainingNonFinitegemma1", "TrainingStalledgemma"]),
    ({"run": "gemma", "rank": 0}, ["TrainingNonFinitegemma0"]), ({"rank": "1"}, ["TrainingNonFinitegemma1"]),
    ({"kind": "TrainingNonFinite", "run": "llama"}, []), ({"gpu": "3"}, ["GpuTemperatureHigh"]),
    ({"uuid": "GPU-3", "kind": "GpuTemperatureHigh"}, ["GpuTemperatureHigh"]), ({"uuid": "GPU-"}, []),
    ({"kind": "Training"}, []), ({"kind": ".*"}, []), ({"gpu": "3", "run": ""}, ["GpuTemperatureHigh"]),
])  # fmt: skip
def test_it_is_of_what_it_names_and_of_nothing_else(
    agent: Agent, app: Starlette, named: dict[str, Any], quiet: list[str]
) -> None:
    note(agent, HOT)
    for place in (Place("gemma"), Place("llama")):
        note(agent, Finding("TrainingStalled", "page", "x", place=place, stays=1e9))
    for rank in ("0", "1"):
        note(agent, Finding("TrainingNonFinite", "page", "x", place=Place("gemma", rank), stays=1e9))
    assert silence(app, **named).status == 200
    assert sorted(kind for kind, is_quiet in silenced(app).items() if is_quiet) == quiet


def test_the_longest_of_several_is_shown_and_each_can_be_ended(agent: Agent, app: Starlette) -> None:
    note(agent, HOT)
    short, long = (silence(app, gpu="3", hours=hours).json()["id"] for hours in (1, 5))
    silence(app, kind="GpuTemperatureHigh", hours=2)
    assert listed(app)[0]["silenced"]["id"] == long
    assert [one["id"] for one in ask(app, PATH).json()["silences"]][-1] == short
    for name in (long, short):
        assert post(app, f"{PATH}/{name}", b"", PAGE, "DELETE").json() == {"ok": True, "kept": True}
    assert listed(app)[0]["silenced"]["id"] not in (long, short)
    assert post(app, f"{PATH}/{long}", b"", PAGE, "DELETE").status == 404


def test_one_of_a_run_covers_it_on_every_machine(app: Starlette) -> None:
    far = alert("TrainingStalled", source="prometheus", run="gemma", instance="gpu2")
    near = alert("HostDown", source="prometheus", instance="gpu2")
    assert post(app, "/api/v1/alertmanager", told(far, near)).status == 200
    silence(app, run="gemma")
    silence(app, kind="HostDown")
    assert silenced(app) == {"TrainingStalledgemma": True, "HostDown": False}


@pytest.mark.parametrize(("content", "error"), [
    ({}, "kind: None cannot be used: give at least one of kind, run, rank, gpu, uuid"),
    ({"hours": 1}, "kind: None"), ({"kind": "", "hours": 1}, "kind: None"), ({"kind": "x"}, "hours: None cannot"),
    ({"kind": "x", "hours": 0}, "hours: 0 cannot be used: give a number from 0.1 to 720"),
    ({"kind": "x", "hours": 0.09}, "hours: 0.09"), ({"kind": "x", "hours": 720.1}, "hours: 720.1"),
    ({"kind": "x", "hours": "8"}, "hours: '8'"), ({"kind": "x", "hours": True}, "hours: True"),
    ({"kind": "x", "hours": -1}, "hours: -1"), (b'{"kind":"x","hours":1e400}', "the body is no JSON"),
    ({"kind": 3.5, "hours": 1}, "kind: 3.5"), ({"run": ["x"], "hours": 1}, "run: ['x']"),
    ({"rank": True, "hours": 1}, "rank: True"), ({"gpu": "x" * 201, "hours": 1}, "gpu: "),
    ({"kind": "x", "hours": 1, "note": 7}, "note: 7"),
    ({"kind": "x", "hours": 1, "until": "2030"}, "until: '2030' cannot be used: known here: kind, run, rank, gpu,"),
    (b"\xff", "the body is no JSON"), (b"[" * 60000, "the body is no JSON"),
])  # fmt: skip
def test_what_cannot_be_taken_is_named(app: Starlette, content: Any, error: str) -> None:
    answer = post(app, PATH, content)
    assert (answer.status, answer.json()["error"].startswith(error)) == (400, True), answer.text
    assert len(answer.text) < 400
    assert ask(app, PATH).json()["silences"] == []


@pytest.mark.parametrize("name", ["x", "0123456789abcdef", "..", "%2e%2e", "a%00b", "9" * 3000])
def test_one_that_is_not_there_cannot_be_ended(app: Starlette, name: str) -> None:
    answer = post(app, f"{PATH}/{name}", b"", JSON, "DELETE")
    assert answer.status == 404 and len(answer.text) < 400


def test_expired_ones_make_room(agent: Agent, app: Starlette, hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainvitals.agent.quiet.MOST", 20)
    old = [silence(app, kind=f"K{number}", hours=1).json()["id"] for number in range(15)]
    new = [silence(app, kind=f"L{number}", hours=700).json()["id"] for number in range(5)]
    hands.ahead = 7200
    assert silence(app, kind="M", hours=700).status == 200
    left = {one["id"] for one in ask(app, PATH).json()["silences"]}
    assert set(new) < left and len(left) <= 20
    # The oldest first.
    assert [name for name in old if name not in left] == old[: 21 - len(left)]


def test_a_reader_gets_the_list_and_no_form(app: Starlette) -> None:
    answer = ask(app, PATH, LOCAL)
    assert (answer.status, answer.json()) == (200, {"silences": [], "problems": []})
    assert answer.headers["cache-control"] == "no-store"
