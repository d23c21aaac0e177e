"""Readings of one's own where no agent runs: the agent's parts in this process, which write nothing anywhere.

own = OwnReadings(make_agent, snapshot_view); own.start(wake); own.json()  ->  what GET /api/v1/snapshot answers
"""

from collections.abc import Callable, Mapping
from typing import Any

from trainvitals.agent.ended import ended_runs
from trainvitals.agent.sampler import SourceState
from trainvitals.agent.service import Agent
from trainvitals.agent.verdict_words import verdict
from trainvitals.alerting.listing import beside
from trainvitals.alerting.rows import grouped
from trainvitals.model import Snapshot

Json = dict[str, Any]
SHOWN_FINDINGS = 50


class OwnReadings:
    def __init__(self, make_agent: Callable[[], Agent],
                 view: Callable[[Snapshot, Mapping[str, SourceState]], Json]) -> None:  # fmt: skip
        self._agent, self._view = make_agent(), view

    def start(self, wake: Callable[[], None]) -> None:
        self._agent.listeners.append(lambda _: wake())
        self._agent.start()

    def stop(self) -> None:
        self._agent.stop()

    def json(self) -> Json:
        agent = self._agent
        firing = beside(agent.detecting.alerts() if agent.detecting else (), (), ended_runs(agent))
        view = {"node": agent.host, "interval": agent.interval, "problems": agent.health(),
                "alerts": {"firing": grouped(firing)[:SHOWN_FINDINGS]},
                **self._view(agent.snapshot, agent.sources)}  # fmt: skip
        return {**view, "verdict": verdict(view)}
