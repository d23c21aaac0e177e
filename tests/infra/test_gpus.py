"""GPU machines: the driver, what gives GPUs to containers, and that the agent sees what nvidia-smi sees."""

import re

import pytest

from tests.infra.machine import Machine, patiently
from tests.infra.test_monitoring import active

MIN_TOOLKIT = (1, 14)
pytestmark = pytest.mark.group("gpu_nodes")


@pytest.fixture
def count(machine: Machine) -> int:
    status, told = machine.run("nvidia-smi --list-gpus")
    machine.demand(
        status == 0,
        f"nvidia-smi sees no GPU: {told[-300:]}",
        "deploy again, or restart the machine after a driver's upgrade",
    )
    return len(told.splitlines())


def test_the_engine_gives_gpus_to_containers(machine: Machine, count: int) -> None:
    way = machine.knobs["GPU_DRIVER"]
    machine.demand(
        "compose.gpu.yaml" in machine.knobs["COMPOSE_FILE"],
        "the collector is given no GPU",
        "deploy again: the container toolkit was not there the last time",
    )
    if way == "cdi":
        listed = machine.says("nvidia-ctk cdi list")
        machine.demand(
            "nvidia.com/gpu=all" in listed,
            f"the CDI specification names no GPU: {listed}",
            "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
        )
    else:
        runtimes = machine.answer("docker info --format '{{json .Runtimes}}'", "systemctl status docker")
        machine.demand(
            '"nvidia"' in runtimes,
            "the engine knows no runtime called nvidia, by which the collector is given GPUs",
            "nvidia-ctk runtime configure --runtime=docker, then systemctl restart docker; or deploy again",
            unit="docker",
        )


def test_the_container_toolkit_is_new_enough(machine: Machine, count: int) -> None:
    told = machine.answer("nvidia-ctk --version", "apt-get install nvidia-container-toolkit, or deploy again")
    found = re.search(r"version (\d+)\.(\d+)", told)
    machine.demand(
        found and tuple(map(int, found.groups())) >= MIN_TOOLKIT,
        f"the container toolkit says {told!r}, 1.14 is wanted",
        "apt-get install nvidia-container-toolkit, or deploy again",
    )


def test_the_collector_has_the_driver_s_library(machine: Machine, count: int) -> None:
    inside = "from ctypes import CDLL; CDLL('libnvidia-ml.so.1')"
    status, told = machine.run(f'docker exec trainvitals-collector-1 python -c "{inside}"')
    machine.demand(
        status == 0,
        f"the collector cannot load the driver's library: {told.splitlines()[-1:]}",
        "docker restart trainvitals-collector-1; after a driver's upgrade deploy again",
        container="collector",
    )


def test_the_agent_counts_as_many_gpus_as_nvidia_smi(machine: Machine, monitor: Machine, count: int) -> None:
    name = machine.knobs["TRAINVITALS_HOSTNAME"]
    told = patiently(lambda: counted(monitor, name), lambda told: told == count)
    machine.demand(
        told == count,
        f"nvidia-smi sees {count} GPUs, the agent {'nothing' if told is None else told}",
        "trainvitals doctor in the collector: docker exec trainvitals-collector-1 trainvitals doctor",
        container="collector",
    )


def test_dcgm_s_exporter_is_asked_where_it_runs(machine: Machine, monitor: Machine) -> None:
    name = machine.knobs["TRAINVITALS_HOSTNAME"]
    runs = bool(machine.profiles & {"dcgm", "dcgm-profiling"})
    asked = name in {one["labels"]["instance"] for one in active(monitor) if one["labels"]["job"] == "dcgm"}
    machine.demand(
        asked == runs,
        f"DCGM's exporter {'runs' if runs else 'does not run'} here, and Prometheus "
        f"{'asks for it' if asked else 'does not ask it'}",
        "deploy without --limit: all targets are written at once",
    )


def counted(monitor: Machine, name: str) -> int | None:
    found = monitor.prometheus(f'gpu_count{{instance="{name}"}}')
    return int(float(found[0]["value"][1])) if found else None
