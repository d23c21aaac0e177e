"""An agent with two simulated GPUs and this host, whose application is asked in this process."""

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette

from tests.collector.support import wait_for
from trainvitals.agent.service import Agent
from trainvitals.sources.host import HostSource
from trainvitals.sources.simulated import SimulatedSource
from trainvitals.web.app import make_app


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    agent = Agent([SimulatedSource(2), HostSource()], tmp_path_factory.mktemp("journal"), interval=0.1)
    agent.start()
    try:
        wait_for(lambda: len(list(agent.snapshot.of("gpu_info"))) == 2)
        # Two readings of its counters make the share of the CPU.
        wait_for(lambda: any("cpu_usage_percent" in reading.values for reading in agent.snapshot.of("host")))
        yield agent
    finally:
        agent.stop()


@pytest.fixture(scope="module")
def app(agent: Agent) -> Starlette:
    return make_app(agent)
