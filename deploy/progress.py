"""What Ansible is at, in few lines: a line a step that changes something, one where it takes long, one a failure.

  1:12 docker : Install the engine: changed on gpu1, gpu2

All that Ansible says is in the log. It tells of events by deploy/callbacks/trainvitals_events.py.
"""

import json
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from deploy import say

CALLBACKS = Path(__file__).with_name("callbacks")
MARK = "\x1e"
ENVIRON = {"ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS), "ANSIBLE_CALLBACKS_ENABLED": "trainvitals_events"}
SOME = 4


class Failure(NamedTuple):
    host: str
    step: str
    reason: str
    unreachable: bool


class Progress:
    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._begun = time.monotonic()
        self._step = ""
        self._busy: list[str] = []
        self._changed: list[str] = []
        self._failures: dict[str, Failure] = {}
        self._ends: dict[str, tuple[int, int]] = {}
        self._told = {"play": self._play, "step": self._next, "start": self._start, "done": self._done,
                      "end": self._end}  # fmt: skip

    def hear(self, text: str) -> None:
        try:
            event = json.loads(text[len(MARK) :]) if text.startswith(MARK) else None
        except ValueError:
            event = None
        if event:
            self._told[event.pop("event")](**event)
        else:
            say.note(text)

    def idle(self) -> None:
        if self._busy:
            self._say(f"{self._step}: still at it on {some(self._busy)}")

    def failures(self) -> list[Failure]:
        """Of each host that did not get through, what it ended with: what a play mends by itself is no failure."""
        return [one for host, one in self._failures.items() if self._ends.get(host, (0, 1))[1]]

    def tell(self) -> None:
        """At the end: what became of each host."""
        self._flush()
        failed = {one.host for one in self.failures()}
        for host, (changed, _) in self._ends.items():
            if host != "localhost":
                say.line(f"{host}: {'failed, ' if host in failed else ''}{changed or 'nothing'} changed")

    def _play(self, name: str) -> None:
        self._flush()
        self._say(name)

    def _next(self, name: str) -> None:
        self._flush()
        self._step = name

    def _start(self, host: str) -> None:
        self._busy.append(host)

    def _done(self, host: str, how: str, why: str = "") -> None:
        if host in self._busy:
            self._busy.remove(host)
        if how == "changed":
            self._changed.append(host)
        elif how != "ok":
            self._failures[host] = Failure(host, self._step, why, how == "unreachable")
            self._say(f"{self._step}: {how} on {host}")

    def _end(self, host: str, changed: int, failed: int) -> None:
        self._ends[host] = (changed, failed)

    def _flush(self) -> None:
        if self._changed:
            self._say(f"{self._step}: changed on {some(self._changed)}")
        self._changed, self._busy = [], []

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        minutes, seconds = divmod(int(time.monotonic() - self._begun), 60)
        say.line(f"{minutes}:{seconds:02d} {text}")


def some(hosts: Collection[str]) -> str:
    """The first few by name."""
    named = sorted(hosts)
    return ", ".join(named[:SOME]) + (f" and {len(named) - SOME} more" if len(named) > SOME else "")
