"""The verification of machines that were deployed: `make verify INVENTORY=hosts.yml`, or

    pytest tests/infra --hosts=all --ansible-inventory=hosts.yml

By SSH and sudo alone. Without machines to look at it is no part of the tests.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.infra.machine import Machine


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "group(name): only for machines of this group of the inventory")
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


@pytest.fixture
def machine(host: Any, known: dict[str, Machine]) -> Machine:
    name = host.backend.host
    if name not in known:
        known[name] = Machine(host, name)
    return known[name]


@pytest.fixture(scope="session")
def monitor(request: pytest.FixtureRequest, known: dict[str, Machine]) -> Machine:
    """The machine that Prometheus runs on, whichever is looked at."""
    import testinfra

    inventory = request.config.option.ansible_inventory
    (host,) = testinfra.get_hosts(["ansible://monitoring"], ansible_inventory=inventory, sudo=True)
    return known.setdefault(host.backend.host, Machine(host, host.backend.host))
