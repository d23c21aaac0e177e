"""One site for all of the rehearsal: two GPU nodes and the machine that watches them, deployed as a user would."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.alerting.support import Recorder, recording
from tests.rehearsal.deployment import Deployment, copied
from tests.rehearsal.left import seen
from tests.rehearsal.machines import Machine, rehearsal
from tests.rehearsal.stack_images import packed

MACHINES = {
    # An engine that somebody installed by hand; the other two have none.
    "gpu1": Machine("bookworm", gpus=2, engine=True, variables={"stack_node_price": 2.5}),
    "gpu2": Machine("trixie", gpus=1, variables={"stack_expected_gpus": 1}),
    "mon": Machine("trixie"),
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was measured, at the end of what is said."""
    for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", []):
        for name, told in getattr(report, "user_properties", ()):
            terminalreporter.write_line(f"rehearsal: {name}: {told}")


@pytest.fixture(scope="session")
def client() -> Any:
    if not os.environ.get("REHEARSAL"):
        pytest.skip("run by make rehearsal")
    docker = pytest.importorskip("docker")
    return docker.from_env(timeout=300)


@pytest.fixture(scope="session")
def fresh(client: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Machines that nothing was brought to yet."""
    images = packed(client)
    with rehearsal(client, MACHINES) as site:
        made = Deployment(site, copied(tmp_path_factory.mktemp("clone")), f"/mnt/images/{images.name}")
        made.before = {host: seen(site, host) for host in MACHINES}
        yield made


@pytest.fixture(scope="session")
def receiver(fresh: Deployment) -> Iterator[Recorder]:
    """A webhook on the machines' network, which is this machine's first address there."""
    gateway = fresh.site.addresses["mon"].rpartition(".")[0] + ".1"
    with recording(gateway) as recorder:
        fresh.environ["WEBHOOK_URL"] = f"{recorder.url}/hook"
        yield recorder


@pytest.fixture(scope="session")
def deployed(fresh: Deployment, receiver: Recorder) -> Deployment:
    fresh.first = fresh.make()
    return fresh


@pytest.fixture(scope="session")
def clone(deployed: Deployment) -> Path:
    return deployed.clone
