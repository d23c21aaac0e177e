"""A run handed on while it lives, and its page served, by processes beside the trainer.

handing = HandingOn(run, ["tensorboard=/data/tb"], "--port", "8080")      # an agent, where none listens
handing.end()                                                             # what is missing is handed over
"""

import logging
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from trainvitals import starting
from trainvitals.compat.node import ensure_agent
from trainvitals.journal import layout

AGENT_SECONDS = 10.0
SYNC_SECONDS = 30.0

log = logging.getLogger("trainvitals")


class HandingOn:
    def __init__(self, run: Any, sinks: Sequence[str] = (), *flags: str) -> None:
        self._run, self._sinks = run, list(sinks)
        self._root = layout.find_root() if run.folder is None else run.folder.parent.parent
        # The journal may hold other people's runs, which are nobody's to hand on here.
        given = [word for sink in sinks if run.id for word in ("--sink", sink, "--sink-runs", run.id)]
        self._child = ensure_agent(self._root, *given, *flags)
        if self._child is None and flags:
            log.warning("an agent listens for %s already: its page shows this run too", self._root)

    def end(self) -> None:
        """After the run's end. The interpreter's end waits for it, but not for ever."""
        if self._child is not None:
            self._child.remove()
        if self._sinks and self._run.id:
            threading.Thread(target=self._hand_over, name="trainvitals-sync").start()

    def _hand_over(self) -> None:
        """What the agent did not come to; what it handed on already is left out."""
        words = [word for sink in self._sinks for word in ("--to", sink)]
        deadline = time.monotonic() + AGENT_SECONDS
        while self._child is not None and self._child.is_running and time.monotonic() < deadline:
            time.sleep(0.05)
        with suppress(subprocess.TimeoutExpired, OSError):
            sync = subprocess.Popen(
                starting.words("trainvitals.cli", "sync", self._run.id, "--dir", str(self._root), *words),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
            sync.wait(SYNC_SECONDS)
