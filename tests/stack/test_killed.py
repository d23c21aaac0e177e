"""What is killed comes back by itself, with what it had; a run that goes on meanwhile loses nothing."""

import os
import signal
import time

import docker
import pytest

from tests.stack.support import Stack, containers, fetched_text, training, wait_for

STEPS = 400
RUN = f"""
import time, trainvitals
with trainvitals.start("killed-beside") as run:
    for step in range({STEPS}):
        run.log(loss=1 / (1 + step), step=step)
        time.sleep(0.05)
"""
ALL = 'count_over_time(up{job="prometheus"}[1h])'


def kill(client: docker.DockerClient, service: str) -> None:
    """From outside, as the kernel does it when memory is short: what Docker itself ended it would not start again."""
    one = containers(client)[service]
    os.kill(one.attrs["State"]["Pid"], signal.SIGKILL)
    began = one.attrs["State"]["StartedAt"]
    wait_for(lambda: containers(client)[service].attrs["State"]["StartedAt"] != began, 60)
    wait_for(lambda: containers(client)[service].attrs["State"]["Health"]["Status"] == "healthy", 90)


@pytest.mark.parametrize("service", ["prometheus", "alertmanager", "collector", "gate", "node-exporter"])
def test_a_killed_service_comes_back_by_itself(stack: Stack, client: docker.DockerClient, service: str) -> None:
    stack.up()
    if service in ("prometheus", "alertmanager"):
        # As make up does. What Docker itself had signalled would count as ended by hand.
        stack.compose("exec", "-T", service, "sh", "-c", "kill -HUP 1")
    kill(client, service)


def test_a_killed_prometheus_has_its_readings(stack: Stack, client: docker.DockerClient) -> None:
    stack.up()
    before = float(wait_for(lambda: stack.prometheus(ALL), 60)[0]["value"][1])
    kill(client, "prometheus")
    assert float(wait_for(lambda: stack.prometheus(ALL), 60)[0]["value"][1]) >= before
    wait_for(lambda: float(stack.prometheus(ALL)[0]["value"][1]) > before, 60)


def test_a_killed_alertmanager_has_its_silences_and_alerts(stack: Stack, client: docker.DockerClient) -> None:
    stack.up()
    wait_for(stack.alerts, 120)
    silence = stack.silence("Never")
    # It writes them down every 15 s.
    time.sleep(20)
    kill(client, "alertmanager")
    wait_for(lambda: silence in stack.silences(), 30)
    wait_for(stack.alerts, 120)


def test_a_run_beside_a_killed_collector_loses_nothing(stack: Stack, client: docker.DockerClient) -> None:
    stack.up()
    trainer = training(stack, RUN)
    wait_for(lambda: _steps(stack) > STEPS / 10, 60)
    kill(client, "collector")
    assert trainer.poll() is None
    assert trainer.wait(60) == 0
    wait_for(lambda: _steps(stack) == STEPS, 60, tell=lambda: _steps(stack))
    # Not in the journal alone: what it counted while nobody looked is in Prometheus too.
    wait_for(lambda: stack.prometheus(f'training_steps_total{{run="killed-beside"}} == {STEPS}'), 60)


def _steps(stack: Stack) -> float:
    """As the collector's own page counts them."""
    text = fetched_text(f"{stack.url('TRAINVITALS_PORT')}/metrics")
    lines = [line for line in text.splitlines() if line.startswith("training_steps_total{") and "killed-beside" in line]
    return max((float(line.rpartition(" ")[2]) for line in lines), default=0)
