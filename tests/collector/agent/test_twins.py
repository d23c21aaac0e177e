"""What Alertmanager is to keep quiet, and which of its alerts go on, as far as this agent can tell."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.alerting.test_received import alert, told
from tests.collector.web.finding import HOT, acknowledge, end, listed, made, note, post, silence
from trainvitals.agent import twins
from trainvitals.agent.service import Agent
from trainvitals.alerting.received import identity, parse
from trainvitals.clock import Clock
from trainvitals.notify.silencer import STAYS_SECONDS
from trainvitals.web.app import make_app


class Asked:
    """In the place of a silencer: what Alertmanager said, and when."""

    def __init__(self) -> None:
        self.listed_at, self.problem = 0.0, ""
        self.quiet: list[dict[str, Any]] = []

    def silenced(self) -> list[dict[str, Any]]:
        return self.quiet


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def agent(tmp_path: Path, asked: Asked) -> Agent:
    agent = made(tmp_path, clock=Clock(time.time, time.monotonic))
    agent.silencers = [asked]  # type: ignore[list-item]
    return agent


def wanted(agent: Agent) -> dict[str, str]:
    """Whether each is to be there, or may run out."""
    return {one.key: "there" if one.matchers else "may run out" for one in twins.wanted(agent, time.time())}


def known(agent: Agent) -> str:
    """A finding that is acknowledged."""
    app = make_app(agent)
    name = str(listed(app)[0]["id"])
    assert acknowledge(app, {"id": name}).status == 200
    return name


def test_of_what_is_acknowledged_as_long_as_it_is_open(agent: Agent) -> None:
    note(agent, HOT)
    assert wanted(agent) == {}
    name = known(agent)
    [one] = twins.wanted(agent, 1000.0)
    assert (one.key, one.until, one.enough, one.words) == (
        name,
        1900.0,
        1600.0,
        "from the page of TrainVitals (127.0.0.1)",
    )
    end(agent, HOT)
    # The rule's alert ends a little later.
    assert wanted(agent) == {name: "may run out"}


def test_what_opens_again_or_becomes_worse_is_told(agent: Agent) -> None:
    note(agent, HOT)
    name = known(agent)
    end(agent, HOT)
    time.sleep(0.002)
    note(agent, HOT)
    assert wanted(agent) == {}
    again = known(agent)
    assert wanted(agent) == {again: "there", name: "may run out"}
    note(agent, HOT._replace(severity="page"))
    assert wanted(agent) == {}


def test_what_is_taken_back_ends(agent: Agent) -> None:
    app = make_app(agent)
    note(agent, HOT)
    name = known(agent)
    silenced = silence(app, gpu="3").json()["id"]
    assert wanted(agent) == {name: "there", silenced: "there"}
    acknowledge(app, {"id": name}, method="DELETE")
    post(app, f"/api/v1/silences/{silenced}", b"", method="DELETE")
    assert wanted(agent) == {}


def test_a_silence_ends_when_it_is_over(agent: Agent) -> None:
    silence(make_app(agent), run="gemma", hours=1)
    [one] = twins.wanted(agent, time.time())
    assert one.enough == one.until - 1
    assert twins.wanted(agent, one.until + 1) == []


def tell(agent: Agent, **more: Any) -> dict[str, Any]:
    app = make_app(agent)
    content = alert("HostClockSkew", source="prometheus", **more)
    assert post(app, "/api/v1/alertmanager", told(content)).status == 200
    return content


def test_another_s_alert_is_kept_quiet_as_long_as_alertmanager_says_so(agent: Agent, asked: Asked) -> None:
    content = tell(agent)
    name = known(agent)
    assert wanted(agent) == {name: "there"}
    # Nobody tells the collector of it any more: after a restart it knows of none.
    agent.received = None
    assert wanted(agent) == {name: "may run out"}
    asked.quiet, asked.listed_at = [content], time.time()
    assert wanted(agent) == {name: "there"}
    assert [identity(one) for one in twins.others(agent, time.time())] == [name]
    asked.quiet = []
    assert wanted(agent) == {}


def test_one_that_alertmanager_has_not_seen_for_long_is_over(agent: Agent, asked: Asked) -> None:
    tell(agent)
    name = known(agent)
    asked.listed_at = time.time() + STAYS_SECONDS - 10
    assert wanted(agent) == {name: "there"}
    asked.listed_at += 20
    assert twins.others(agent, time.time()) == [] and wanted(agent) == {}
    # It is back: its acknowledgement is of this very one.
    assert agent.received
    [back] = parse(told({**alert("HostClockSkew", source="prometheus")}))
    agent.received._known.add({**back, "timestamp": "2999-01-01T00:00:00.000Z"})
    assert wanted(agent) == {name: "there"}


@pytest.mark.parametrize("content", [
    {}, {"labels": None}, {"labels": {}, "startsAt": "2025-07-30T12:00:00Z"},
    {"labels": {"alertname": "x"}, "startsAt": "soon"}])  # fmt: skip
def test_what_is_no_alert_is_passed_over(agent: Agent, asked: Asked, content: dict[str, Any]) -> None:
    asked.quiet = [content]
    assert twins.others(agent, time.time()) == []


def test_what_alertmanager_says_is_shown_but_for_a_copy_of_one_s_own(agent: Agent, asked: Asked) -> None:
    own, other = (
        alert("GpuTemperatureHigh", source="agent"),
        alert("GpuTemperatureHigh", source="agent", instance="gpu2"),
    )
    del other["annotations"]
    asked.quiet = [own, other]
    assert [one["instance"] for one in listed(make_app(agent))] == ["gpu2"]


def test_a_problem_of_any_is_told(agent: Agent, asked: Asked) -> None:
    assert twins.problems(agent, time.time()) == []
    asked.problem = "alertmanager x: answers 503: …"
    assert twins.problems(agent, time.time()) == [asked.problem]
