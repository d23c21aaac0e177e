"""The verification of machines that were deployed: `make verify INVENTORY=hosts.yml`, or

    pytest tests/infra --hosts=all --ansible-inventory=hosts.yml

By SSH and sudo alone. Without machines to look at it is no part of the tests.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.infra import sudo
from tests.infra.machine import Machine, watched


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "ansible_inventory", None):
        config.option.connection = config.option.connection or "ansible"
        config.option.sudo = True
        # ansible-inventory lies beside this interpreter, which need not be on PATH.
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return None if getattr(config.option, "hosts", None) else collection_path.name.startswith("test_")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A machine is asked what its groups want, and nothing is skipped for it."""
    kept = [item for item in items if _concerns(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def _concerns(item: pytest.Item) -> bool:
    wanted = item.get_closest_marker("group")
    host = getattr(item, "callspec", None) and item.callspec.params.get("_testinfra_host")  # type: ignore[attr-defined]
    return not wanted or not host or host.backend.host in host.backend.ansible_runner.get_hosts(wanted.args[0])


@pytest.fixture(scope="session")
def known() -> dict[str, Machine]:
    """What was found of each machine, asked for once."""
    return {}


def met(host: Any) -> Machine:
    name = host.backend.host
    told = host.backend.ansible_runner.get_variables(name)
    sudo.prepare(host.backend, told)
    return watched(host, name, told)


@pytest.fixture
def machine(host: Any, known: dict[str, Machine]) -> Machine:
    name = host.backend.host
    return known[name] if name in known else known.setdefault(name, met(host))


@pytest.fixture(scope="session")
def monitor(request: pytest.FixtureRequest, known: dict[str, Machine]) -> Machine:
    """The machine that Prometheus runs on, whichever is looked at."""
    (host,) = hosts(request.config, "monitoring")
    name = host.backend.host
    return known[name] if name in known else known.setdefault(name, met(host))


@pytest.fixture
def neighbour(request: pytest.FixtureRequest, machine: Machine, monitor: Machine,
              known: dict[str, Machine]) -> Machine | None:  # fmt: skip
    """Another of those that are looked at, that Prometheus is not on; none where there is none."""
    there = {host.backend.host: host for host in hosts(request.config, *request.config.option.hosts.split(","))}
    nodes = set(there) & set(machine.host.backend.ansible_runner.get_hosts("gpu_nodes"))
    for name in sorted(nodes - {machine.name, monitor.name}):
        return known[name] if name in known else known.setdefault(name, met(there[name]))
    return None


def hosts(config: pytest.Config, *names: str) -> list[Any]:
    import testinfra

    return testinfra.get_hosts([f"ansible://{name}" for name in names],
                               ansible_inventory=config.option.ansible_inventory, sudo=True)  # fmt: skip
