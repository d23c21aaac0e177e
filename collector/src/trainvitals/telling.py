"""What an agent judges by and tells people with, as its settings and its alerts.yml name them.

telling = Telling(settings, environ, root)   ->   SettingError where a setting cannot be used, before anything starts
agent = Agent(…, engine=telling.engine, tell=telling.tell, ways=telling.ways); agent.start(); telling.start(agent)

Rules and ways to people that cannot be used are left out, with a warning.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainvitals.agent import twins
from trainvitals.agent.service import Agent
from trainvitals.detect.finding import Change
from trainvitals.detect.making import make_engine
from trainvitals.errors import SettingError
from trainvitals.journal import layout
from trainvitals.notify.alertmanager import Alertmanager
from trainvitals.notify.notifier import Notifier
from trainvitals.notify.settings import Plan, plan
from trainvitals.notify.silencer import Silencer

FOLDER = "notify"
_SECTION = ("notify", "heartbeat", "quiet_hours")

log = logging.getLogger("trainvitals.notify")


class Telling:
    def __init__(self, settings: Mapping[str, Any], environ: Mapping[str, str], root: Path | None = None, *,
                 is_demo: bool = False) -> None:  # fmt: skip
        """`root`: the journal, where the last good alerts.yml is kept. What a demo shows is told to nobody."""
        host = layout.host_name(is_simulated=bool(settings["simulate"]))
        self.engine = make_engine(settings["rules"], goes_on=True,
                                  folder=layout.gpu_folder(root, host) / FOLDER if root else None)  # fmt: skip
        sections = getattr(self.engine.rules, "sections", {})
        section = {name: sections[name] for name in _SECTION if name in sections}
        refused: list[SettingError] = []
        named = plan(settings["notify"], environ, section, heartbeat=settings["heartbeat_url"], refused=refused)
        self._refused = [str(error) for error in refused]
        for words in self._refused:
            log.warning("%s; monitoring goes on without it", words)
        self._plan = Plan() if is_demo else named
        self._notifier: Notifier | None = None
        # What was found before there was anybody to tell of it.
        self._early: list[Change] = []
        self._lock = threading.Lock()
        self._agent: Agent | None = None
        self._silencers: list[Silencer] = []

    def ways(self) -> int:
        """Those that work, as far as is known."""
        return self._notifier.working() if self._notifier else len(self._plan.channels)

    def start(self, agent: Agent) -> None:
        wanted = self._plan
        folder = layout.gpu_folder(agent.root, agent.host) / FOLDER
        notifier = Notifier(wanted.channels, folder, agent.host, hours=wanted.hours, page=wanted.page,
                            heartbeat=wanted.heartbeat, is_well=lambda: not agent.troubles(),
                            hear=agent.quiet.heard)  # fmt: skip
        self._silencers = [Silencer(channel, agent.host, lambda: twins.wanted(agent, time.time()))
                           for channel in wanted.channels if isinstance(channel, Alertmanager)]  # fmt: skip
        self._agent, agent.silencers, agent.refused = agent, self._silencers, self._refused
        notifier.adopt(agent.before)
        with self._lock:
            notifier.tell(self._early)
            self._notifier, self._early = notifier, []
        notifier.start()
        agent.quiet.listeners += [notifier.nudge, *(silencer.nudge for silencer in self._silencers)]
        for silencer in self._silencers:
            silencer.start()

    def tell(self, news: Sequence[Change]) -> None:
        with self._lock:
            if self._notifier is None:
                self._early += news
                return
        self._notifier.tell(news)
        opened = [change.finding.key for change in news if change.state == "open"]
        if self._agent and any(map(self._agent.quiet.kept.was_acknowledged, opened)):
            # What Alertmanager still keeps quiet of the one before is news now.
            for silencer in self._silencers:
                silencer.nudge()

    def stop(self) -> None:
        for silencer in self._silencers:
            silencer.end()
        if self._notifier:
            self._notifier.stop()
