"""The dead man's switch: an address that is called while all is well, and that rings somewhere else when it is not.

Heartbeat("https://hc.example/abc", is_well).start()
"""

import logging
import threading
from collections.abc import Callable

from trainvitals.notify.attempt import Attempt
from trainvitals.notify.channel import Channel, Unsent
from trainvitals.notify.limits import ATTEMPT_SECONDS, HEARTBEAT_SECONDS
from trainvitals.notify.message import Message
from trainvitals.notify.request import ONLY_REACHED, ask, connect

log = logging.getLogger("trainvitals.notify")


class Switch(Channel):
    """As a channel, so that it is tried and checked like one."""

    kind = "heartbeat"

    def __init__(self, key: str, url: str) -> None:
        super().__init__(key, [url])
        self._url = url

    def send(self, message: Message) -> None:
        self.beat()

    def beat(self) -> None:
        ask(self._url)

    def check(self) -> str:
        connect(self._url)
        return ONLY_REACHED


class Heartbeat(threading.Thread):
    def __init__(self, switch: Switch, is_well: Callable[[], bool]) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self.switch, self._is_well = switch, is_well
        self._ending = threading.Event()
        self._attempt = Attempt("heartbeat")
        self._said = ""

    def run(self) -> None:
        while not self._ending.is_set():
            if self._asked():
                self._beat()
            self._ending.wait(HEARTBEAT_SECONDS)

    def end(self) -> None:
        self._ending.set()

    def _asked(self) -> bool:
        try:
            return bool(self._is_well())
        except Exception as error:
            log.warning("heartbeat: whether all is well cannot be told (%s); it is not sent", type(error).__name__)
            return False

    def _beat(self) -> None:
        why = ""
        try:
            self._attempt.run(self.switch.beat, ATTEMPT_SECONDS)
        except Unsent as error:
            why = self.switch.hide(str(error))
        except Exception as error:
            why = f"failed by an error of ours ({type(error).__name__})"
        if why and why != self._said:
            log.warning("heartbeat: %s: see %s", why, self.switch.key)
        self._said = why
