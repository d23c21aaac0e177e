"""A dashboard that is run as a web framework's is; it is the agent's page.

MonitoringDashboard().run(host="127.0.0.1", port=8050)      # until Ctrl-C, or `stop` from another thread
"""

import logging
import threading
from pathlib import Path

from trainvitals.compat.node import ensure_agent, hosts, may_start
from trainvitals.journal import layout
from trainvitals.run import child_agent, harmless
from trainvitals.run.harmless import warn

PORT = 8050
LOOK_SECONDS = 0.2

log = logging.getLogger("trainvitals")


class MonitoringDashboard:
    def __init__(self) -> None:
        self._ended = threading.Event()

    def failed(self, error: BaseException) -> None:
        warn(error)

    @harmless
    def run(self, host: str = "127.0.0.1", port: int = PORT) -> None:
        """Other machines reach it on another host than this; then a link with a token is printed."""
        if not may_start():
            return
        root = layout.find_root()
        agent = ensure_agent(root, "--host", str(host), "--port", str(port))
        if agent is None:
            log.warning("an agent listens for %s already%s: its page shows all of this journal", root, _where(root))
            return
        self._ended.clear()
        try:
            while agent.is_running and not self._ended.wait(LOOK_SECONDS):
                pass
        except KeyboardInterrupt:
            pass  # which ends a server
        finally:
            agent.remove()

    def stop(self) -> None:
        self._ended.set()


def _where(root: Path) -> str:
    known = (child_agent.address(root, host) for host in hosts() if child_agent.is_listened_to(root, host))
    return next((f" at {address}" for address in known if address), "")
