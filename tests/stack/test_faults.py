"""What befalls the demo's GPUs and its run reaches a webhook and a mailbox: soon, once, and its end too."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import docker
import pytest

from tests.alerting.support import Mailbox, Recorder, receiving_mail, recording
from tests.stack.support import PROJECT, Stack, wait_for, write_env

ARRIVAL_SECONDS = 45
CYCLE_SECONDS = 280
# The phase of the demo that is to blame, what it raises, and how long it lasts before it is what the rule means.
FAULTS = {"NaN": ("TrainingNonFinite", 0), "hang": ("TrainingHangSuspected", 60),
          "throttled": ("GpuTemperatureHigh", 5), "Xid": ("GpuXidFatal", 0)}  # fmt: skip
ALSO = {"GpuMissing": "Xid"}
_PHASE = re.compile(r"^(\S+) .*phase: (\w+) for")


@pytest.fixture(scope="module")
def arrivals(stack: Stack, client: docker.DockerClient) -> Iterator[tuple[Recorder, Mailbox]]:
    """Servers on the engine's own bridge, where containers find them."""
    host = client.networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"]
    with recording(host) as recorder, receiving_mail(host) as (mailbox, port):
        stack.knobs |= {"WEBHOOK_URL": f"{recorder.url}/hook", "SMTP_HOST": host, "SMTP_PORT": str(port),
                        "SMTP_TLS": "none", "SMTP_FROM": "stack@example.com", "SMTP_TO": "me@example.com"}  # fmt: skip
        write_env(stack)
        stack.down()
        stack.up()
        deadline = time.monotonic() + CYCLE_SECONDS + 2 * ARRIVAL_SECONDS
        while time.monotonic() < deadline and not _is_over(recorder):
            time.sleep(1)
        yield recorder, mailbox


def _is_over(recorder: Recorder) -> bool:
    wanted = {name for name, _ in FAULTS.values()} | set(ALSO)
    return wanted <= set(recorder.alerts()) and wanted <= set(recorder.alerts(status="resolved"))


def _phases(client: docker.DockerClient) -> dict[str, float]:
    """When each began for the first time."""
    (demo,) = client.containers.list(filters={"label": [f"com.docker.compose.project={PROJECT}",
                                                        "com.docker.compose.service=demo"]})  # fmt: skip
    told = demo.logs(timestamps=True).decode().splitlines()
    found: dict[str, float] = {}
    for match in filter(None, map(_PHASE.match, told)):
        found.setdefault(match[2], datetime.fromisoformat(match[1][:26] + "+00:00").timestamp())
    return found


def _first(recorder: Recorder, name: str) -> float:
    return min(post.at for post in recorder.to("/hook") for alert in post.json()["alerts"]
               if alert["status"] == "firing" and alert["labels"]["alertname"] == name)  # fmt: skip


def test_each_fault_arrives_in_time(arrivals: tuple[Recorder, Mailbox], client: docker.DockerClient) -> None:
    recorder, _ = arrivals
    phases = _phases(client)
    told = set(recorder.alerts())
    assert {name for name, _ in FAULTS.values()} | set(ALSO) <= told
    for phase, (name, lasts) in FAULTS.items():
        assert _first(recorder, name) - phases[phase] - lasts < ARRIVAL_SECONDS, name


def test_each_comes_once_and_so_does_its_end(arrivals: tuple[Recorder, Mailbox]) -> None:
    recorder, _ = arrivals
    seen: Counter[tuple[Any, ...]] = Counter()
    for post in recorder.to("/hook"):
        for alert in post.json()["alerts"]:
            labels = alert["labels"]
            place = tuple(labels.get(key, "") for key in ("alertname", "severity", "instance", "run", "rank", "uuid"))
            seen[(*place, alert["startsAt"], alert["status"])] += 1
    twice = {key: count for key, count in seen.items() if count > 1 and key[-1] == "resolved"}
    assert not twice


def test_the_mailbox_has_what_the_webhook_has(arrivals: tuple[Recorder, Mailbox]) -> None:
    recorder, mailbox = arrivals
    subjects = " ".join(str(mail["subject"]) for mail in mailbox.mails)
    for name, _ in FAULTS.values():
        assert name in subjects or name in recorder.alerts()
    assert mailbox.mails


def test_killed_servers_come_back_with_what_they_had(stack: Stack, client: docker.DockerClient) -> None:
    stack.up()
    before = float(stack.prometheus('count_over_time(up{job="prometheus"}[1h])')[0]["value"][1])
    for service in ("prometheus", "alertmanager", "collector"):
        stack.compose("kill", "--signal", "KILL", service)
    stack.up()
    again = 'count_over_time(up{job="prometheus"}[1h])'
    wait_for(lambda: float(stack.prometheus(again)[0]["value"][1]) >= before, 60)
