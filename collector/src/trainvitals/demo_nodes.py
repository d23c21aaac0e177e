"""The demo's other nodes: each an agent with a page of its own, on the ports after the first one's.

trainvitals demo --nodes 2      8080: this machine's name, ranks 0 to 3      8081: demo-2, ranks 4 to 7
"""

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from trainvitals import demo
from trainvitals.agent.service import Agent
from trainvitals.detect.making import make_engine
from trainvitals.journal.layout import host_name
from trainvitals.sources import Source
from trainvitals.sources.host import HostSource
from trainvitals.web.access import Access
from trainvitals.web.app import make_app
from trainvitals.web.server import bind, serving_beside


def names(nodes: int) -> list[str]:
    return [host_name(), *(f"demo-{number}" for number in range(2, nodes + 1))]


def bind_all(settings: dict[str, Any], nodes: int) -> list[socket.socket]:
    """A port for each, or none: with port 0 each has any that is free."""
    with ExitStack() as bound:
        found = []
        for node in range(nodes):
            port = settings["port"] + node if settings["port"] else 0
            found.append(bound.enter_context(bind(settings["host"], port)))
        bound.pop_all()
    return found


@contextmanager
def others(folder: Path, settings: dict[str, Any], access: Access,
           listening: Sequence[socket.socket]) -> Iterator[None]:  # fmt: skip
    """All nodes but the first, which the command itself serves."""
    told = names(len(listening))
    with ExitStack() as running:
        for node in range(1, len(listening)):
            sources: list[Source] = [
                demo.gpus(node, len(told), settings["seed"]),
                HostSource(settings["per_core"], settings["host_proc"]),
            ]
            agent = Agent(sources, demo.root_of(folder, told, node), host=told[node], interval=settings["interval"],
                          node_price=settings["node_price"],
                          engine=make_engine(settings["rules"], goes_on=True))  # fmt: skip
            agent.start()
            running.callback(agent.stop)
            app = make_app(agent, access.config, settings["allowed_hosts"], token=access.token)
            running.enter_context(serving_beside(app, listening[node], access.config))
        yield
