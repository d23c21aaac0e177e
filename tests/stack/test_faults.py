"""What befalls the demo's GPUs and its run reaches a webhook and a mailbox: soon, once, and its end too."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from email.header import decode_header, make_header
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.alerting.support import Mailbox, Recorder, receiving_mail, recording
from tests.grafana.support import MAY_BE_EMPTY, UIDS, board, choices, events, queries
from tests.stack import told, twins
from tests.stack.support import Stack, containers, memory_bytes, wait_for, write_env
from trainvitals.demo import CYCLE_SECONDS as DEMO_SECONDS

ARRIVAL_SECONDS = 45
# What the agent finds goes out at once: Alertmanager waits 3 s for more of the same, 5 s where nobody has to get up.
AGENT_ARRIVAL_SECONDS = 10.0
CYCLE_SECONDS = 280
MEMORY_BYTES = 450 * 2**20
# What is raised, the phase of the demo that is to blame, and how long that lasts before it is what the rule means.
FAULTS = {"TrainingDataStarved": ("data-starved", 0), "TrainingStraggler": ("straggling", 40),
          "GpuTemperatureHigh": ("throttled", 5), "TrainingNonFinite": ("NaN", 0),
          "TrainingHangSuspected": ("hang", 60), "GpuMissing": ("Xid", 0), "GpuXidFatal": ("Xid", 0),
          "TrainingCrashed": ("Xid", 20)}  # fmt: skip
# True too, where a rule's last moment falls into the phase: the hot GPU ends it near its own limit, and a run that
# hangs saves no checkpoint.
ALSO = {"GpuThermalMargin", "TrainingCheckpointOverdue"}
# Grafana's own metrics, and what the demo has nothing of once its rules are loaded.
EMPTY_HERE = {panel for panel in MAY_BE_EMPTY if panel[1] not in ("Xid errors", "event Ended", "event Alerts")}
_PHASE = re.compile(r"^(\S+) phase: (\S+) for")


@pytest.fixture(scope="module")
def arrivals(stack: Stack, client: docker.DockerClient) -> Iterator[tuple[Recorder, Mailbox]]:
    """Servers on the engine's own bridge, where containers find them. All that the first cycle raised has ended."""
    host = client.networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"]
    with recording(host) as recorder, receiving_mail(host) as (mailbox, port):
        stack.knobs |= {"WEBHOOK_URL": f"{recorder.url}/hook", "SMTP_HOST": host, "SMTP_PORT": str(port),
                        "SMTP_TLS": "none", "SMTP_FROM": "stack@example.com", "SMTP_TO": "me@example.com"}  # fmt: skip
        write_env(stack)
        stack.down("--volumes")
        stack.up()
        with twins.in_trouble(stack, recorder):
            wait_for(
                lambda: not _missing(recorder), CYCLE_SECONDS + 2 * ARRIVAL_SECONDS, 1,
                lambda: (_missing(recorder), recorder.alerts(), stack.prometheus("up"), stack.alerts()))  # fmt: skip
            twins.wait_for_ends(stack, recorder)
            yield recorder, mailbox


def _missing(recorder: Recorder) -> set[tuple[str, str]]:
    there = {(labels["alertname"], status) for _, status, labels in _told(recorder)}
    return {(name, status) for name in FAULTS for status in ("firing", "resolved")} - there


def _phases(client: docker.DockerClient) -> dict[str, float]:
    """When each began for the first time."""
    found: dict[str, float] = {}
    for match in filter(
        None, map(_PHASE.match, containers(client)["demo"].logs(timestamps=True).decode().splitlines())
    ):
        found.setdefault(match[2], datetime.fromisoformat(match[1][:26] + "+00:00").timestamp())
    return found


def _told(recorder: Recorder) -> Iterator[tuple[float, str, dict[str, str]]]:
    """Each alert of each message: when, whether it fires, its labels. Not those of the run beside the demo."""
    for post in recorder.to("/hook"):
        for alert in post.json()["alerts"]:
            if alert["labels"].get("run") != "twins":
                yield post.at, alert["status"], alert["labels"]


def test_each_fault_arrives_in_time(arrivals: tuple[Recorder, Mailbox], client: docker.DockerClient) -> None:
    phases, took = _phases(client), {}
    for at, status, labels in _told(arrivals[0]):
        if status == "firing" and labels["alertname"] in FAULTS:
            phase, lasts = FAULTS[labels["alertname"]]
            took.setdefault(labels["alertname"], round(at - phases[phase] - lasts, 1))
    assert {name: seconds for name, seconds in took.items() if not -1 < seconds < ARRIVAL_SECONDS} == {}
    print(took)


def test_nothing_else_is_told_of_the_demo(arrivals: tuple[Recorder, Mailbox]) -> None:
    names = {
        labels["alertname"] for _, _, labels in _told(arrivals[0]) if labels.get("instance", "").startswith("demo")
    }
    # How busy this machine is, the demo's nodes tell of it too.
    assert {name for name in names if not name.startswith("Host")} == {*FAULTS, *ALSO} & names
    slow = [labels for _, _, labels in _told(arrivals[0]) if labels["alertname"] == "TrainingStraggler"]
    assert {labels["rank"] for labels in slow} == {"6"}, slow


def _alerts(recorder: Recorder) -> list[told.Alert]:
    """But for those of the run beside the demo."""
    every = told.alerts(post.json() for post in recorder.to("/hook"))
    return [one for one in every if one.labels.get("run") != "twins"]


def test_each_fault_of_a_cycle_is_told_once_and_its_end_once(
    arrivals: tuple[Recorder, Mailbox], client: docker.DockerClient
) -> None:
    phases = _phases(client)
    windows = {name: (phases[phase] - 1, phases[phase] - 1 + DEMO_SECONDS) for name, (phase, _) in FAULTS.items()}
    assert told.amiss(_alerts(arrivals[0]), windows) == []


def test_nothing_is_told_that_befell_nobody(
    arrivals: tuple[Recorder, Mailbox], client: docker.DockerClient, stack: Stack
) -> None:
    """From the first fault on: until then services come up, and rules that wait for minutes wait for nothing here."""
    known = {*FAULTS, *ALSO, "Watchdog", *(["GrafanaDown"] if "grafana" in stack.left_out else [])}
    assert told.astray(_alerts(arrivals[0]), known, _phases(client)["data-starved"]) == []


def test_no_message_comes_twice(arrivals: tuple[Recorder, Mailbox]) -> None:
    """Another that joins a group makes a message of its own, which names those before it again."""
    seen: Counter[Any] = Counter()
    for post in arrivals[0].to("/hook"):
        message = post.json()
        key = frozenset((alert["fingerprint"], alert["startsAt"], alert["status"]) for alert in message["alerts"])
        seen[(message["receiver"], key)] += 1
    assert [key for key, count in seen.items() if count > 1] == []


@pytest.mark.parametrize("kind", twins.KINDS)
def test_an_agent_s_finding_and_its_rule_are_one_message_and_one_end(
    arrivals: tuple[Recorder, Mailbox], kind: str
) -> None:
    mine = [each for each in twins.messages(arrivals[0]) if each["name"] == kind]
    assert [each["status"] for each in mine] == ["firing", "resolved"]
    assert mine[0]["sources"] == {"agent"}


def test_the_agent_s_message_comes_before_a_rule_could_bring_it(
    arrivals: tuple[Recorder, Mailbox], stack: Stack
) -> None:
    begun = twins.begun(Path(stack.knobs["TRAINVITALS_DIR"]))
    took = {each["name"]: round(each["at"] - begun, 1) for each in twins.messages(arrivals[0])
            if each["status"] == "firing"}  # fmt: skip
    assert {name: late for name, late in took.items() if not 0 < late < AGENT_ARRIVAL_SECONDS} == {}
    print(took)


def test_the_collector_counts_as_one_that_tells(arrivals: tuple[Recorder, Mailbox], stack: Stack) -> None:
    """The rules for agents that have nobody to tell keep out of it."""
    (found,) = stack.prometheus('trainvitals_notify_channels{instance!~"demo.*"}')
    assert found["value"][1] == "1"
    assert not [name for name in arrivals[0].alerts() if name.startswith("AgentFinding")]


def test_the_mailbox_has_what_the_webhook_has(arrivals: tuple[Recorder, Mailbox]) -> None:
    mailbox = arrivals[1]
    wanted = {(name, ended) for name in FAULTS for ended in (False, True)}
    # The last mail may be on its way still.
    wait_for(lambda: wanted <= _mailed(mailbox), 30, tell=lambda: wanted - _mailed(mailbox))
    texts = Counter(part.get_payload() for mail in mailbox.mails for part in mail.walk() if not part.is_multipart())
    assert [text for text, count in texts.items() if count > 1] == []


def _mailed(mailbox: Mailbox) -> set[tuple[str, bool]]:
    """Which alerts, and whether as ended."""
    subjects = [str(make_header(decode_header(mail["subject"]))) for mail in mailbox.mails]
    return {(name, one.startswith("[resolved]")) for one in subjects for name in re.findall(r"\w+", one)}


def test_the_page_of_the_collector_has_them_too(arrivals: tuple[Recorder, Mailbox], stack: Stack) -> None:
    kept = stack.compose("exec", "-T", "collector", "trainvitals", "alerts", "--json")
    assert set(FAULTS) <= set(re.findall(r"\b(?:Gpu|Training)\w+", kept))


@pytest.mark.parametrize("uid", UIDS)
def test_every_query_of_a_dashboard_returns_data(arrivals: tuple[Recorder, Mailbox], stack: Stack, uid: str) -> None:
    chosen = {"job": "trainvitals", "__rate_interval": "1m"}
    asked = queries(board(uid), chosen) + events(board(uid), chosen) + choices(board(uid), chosen)
    asked = [each for each in asked if (uid, each.panel) not in EMPTY_HERE and "grafana_" not in each.expr]
    assert asked
    assert [(each.panel, each.expr) for each in asked if not _ever(stack, each.expr)] == []


def test_the_stack_stays_within_its_memory(arrivals: tuple[Recorder, Mailbox], client: docker.DockerClient) -> None:
    """Without Grafana."""
    used = {name: memory_bytes(one) for name, one in containers(client).items() if name != "grafana"}
    assert sum(used.values()) <= MEMORY_BYTES, used
    print({name: round(size / 2**20, 1) for name, size in used.items()})


def _ever(stack: Stack, expr: str) -> bool:
    """Whether it returned anything at any time since the stack came up."""
    return bool(stack.prometheus(expr) or stack.prometheus_range(expr, 600))
