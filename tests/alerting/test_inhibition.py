"""What keeps quiet because something else says it, on the real Alertmanager: nothing that may end before that does,
for of what is kept quiet no end is told."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.alerting.support import Running, alertmanager
from tests.collector.support import wait_for

RUN = {"run": "gemma", "instance": "gpu1"}
PAGE, TICKET = {"severity": "page"}, {"severity": "ticket"}
AGENT, RULE = {"source": "agent"}, {"source": "prometheus"}
STALLED = {"alertname": "TrainingStalled"}
SLOW = {"alertname": "TrainingStraggler", "rank": "12"}
XID = {"alertname": "GpuXidFatal", "instance": "gpu1", "uuid": "GPU-1", "gpu": "1"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager"), {}) as started:
        yield started


CASES = {
    "the agent's word over its twin's, of a run": (RUN | STALLED | PAGE | AGENT, RUN | STALLED | PAGE | RULE, True),
    "even where the rule has no instance": (
        RUN | STALLED | PAGE | AGENT, {"run": "gemma"} | STALLED | PAGE | RULE, True),
    "and of a GPU": (XID | PAGE | AGENT, XID | PAGE | RULE, True),
    "told, or folded under what it follows from": (
        RUN | STALLED | PAGE | AGENT | {"folded": "GpuXidFatal"}, RUN | STALLED | PAGE | RULE, True),
    "of a rank on another node, told by the agent of the first": (
        RUN | SLOW | TICKET | AGENT, {**RUN, "instance": "gpu2"} | SLOW | TICKET | RULE, True),
    "not of another run": (RUN | STALLED | PAGE | AGENT, RUN | STALLED | PAGE | RULE | {"run": "llama"}, False),
    "not of another rank": (
        RUN | STALLED | PAGE | AGENT | {"rank": "0"}, RUN | STALLED | PAGE | RULE | {"rank": "1"}, False),
    "not of another GPU": (XID | PAGE | AGENT, XID | PAGE | RULE | {"uuid": "GPU-2", "gpu": "2"}, False),
    "not of another host": (XID | PAGE | AGENT, XID | PAGE | RULE | {"instance": "gpu2"}, False),
    "not of another name": (XID | PAGE | AGENT, XID | PAGE | RULE | {"alertname": "GpuMissing"}, False),
    "an agent's ticket keeps no rule's page": (XID | TICKET | AGENT, XID | PAGE | RULE, False),
    "a rule's word keeps none of the agent's": (XID | PAGE | RULE, XID | PAGE | AGENT, False),
    "a page over the ticket of its name": (XID | PAGE | RULE, XID | TICKET | RULE, True),
    "whoever says it": (XID | PAGE | RULE, XID | TICKET | AGENT, True),
    "not over a ticket elsewhere": (XID | PAGE | RULE, XID | TICKET | RULE | {"instance": "gpu2"}, False),
    "a host that is down takes its agent along": (
        {"alertname": "HostDown", "instance": "gpu1"} | PAGE, {"alertname": "AgentDown", "instance": "gpu1"}, True),
    "and not the fault it may be down for": ({"alertname": "HostDown", "instance": "gpu1"} | PAGE, XID | PAGE, False),
    "nor another host's agent": (
        {"alertname": "HostDown", "instance": "gpu1"} | PAGE, {"alertname": "AgentDown", "instance": "gpu2"}, False),
    "nor what names no host": ({"alertname": "HostDown"} | PAGE, {"alertname": "AgentDown"} | TICKET, False),
    "a crash ends what it may have caused, and that is told": (
        RUN | {"alertname": "TrainingCrashed"} | PAGE, RUN | STALLED | PAGE, False),
    "a hang is a stall": (RUN | {"alertname": "TrainingHangSuspected"} | PAGE, RUN | STALLED | PAGE, True),
    "not in another run": (
        RUN | {"alertname": "TrainingHangSuspected"} | PAGE, RUN | STALLED | PAGE | {"run": "llama"}, False),
    "a NaN ends what is told of the loss": (
        RUN | {"alertname": "TrainingNonFinite"} | PAGE, RUN | {"alertname": "TrainingLossDiverging"} | PAGE, False),
    "a host that is down takes its GPUs along, which is told": (
        {"alertname": "HostDown", "instance": "gpu1"} | PAGE, {"alertname": "GpuMissing", "instance": "gpu1"}, False),
    "a full disk is past filling up": (
        {"alertname": "HostDiskFull", "instance": "gpu1", "mountpoint": "/"} | PAGE,
        {"alertname": "HostDiskFillingUp", "instance": "gpu1", "mountpoint": "/"} | TICKET, True),
    "another disk is not": (
        {"alertname": "HostDiskFull", "instance": "gpu1", "mountpoint": "/"} | PAGE,
        {"alertname": "HostDiskFillingUp", "instance": "gpu1", "mountpoint": "/data"} | TICKET, False),
}  # fmt: skip


# Alertmanager looks at alerts one after the other: once this ticket keeps quiet, it has looked at all before it.
LAST = ({"alertname": "Last"} | PAGE, {"alertname": "Last"} | TICKET)


@pytest.mark.parametrize("case", CASES)
def test_it_keeps_quiet(running: Running, case: str) -> None:
    source, target, is_quiet = CASES[case]
    for alert in (source, target, *LAST):
        running.fire(alert)
    seen = wait_for(lambda: _quiet(running, LAST[1]) and running.get("/api/v2/alerts"))
    for alert in (source, target, *LAST):
        running.fire(alert, ended=True)
    wait_for(lambda: not running.get("/api/v2/alerts"))
    assert _status(seen, target)["state"] == ("suppressed" if is_quiet else "active")


def _quiet(running: Running, alert: Mapping[str, str]) -> bool:
    return bool(_status(running.get("/api/v2/alerts"), alert).get("inhibitedBy"))


def _status(seen: Any, alert: Mapping[str, str]) -> dict[str, Any]:
    return next((dict(each["status"]) for each in seen if each["labels"] == alert), {})
