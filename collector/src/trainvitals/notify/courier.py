"""The thread of a channel: waits for news, sends it, and tries again where it could not.

courier.start(); courier.tell(changes); courier.stop(seconds)
A channel that is slow or dead has its own thread wait, and no other.
"""

import logging
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainvitals.clock import Clock
from trainvitals.detect.finding import Change
from trainvitals.notify.attempt import Attempt
from trainvitals.notify.channel import Channel, Unsent
from trainvitals.notify.desk import Alerts, Batch, Desk, Hear, Messages, whole
from trainvitals.notify.ledger import Ledger
from trainvitals.notify.limits import (
    ATTEMPT_SECONDS,
    BACKOFF_SECONDS,
    DISK_SECONDS,
    LOAD_SECONDS,
    MAX_BACKOFF_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    REFUSALS,
)
from trainvitals.notify.message import Message, worst_first
from trainvitals.notify.quiet import Quiet
from trainvitals.notify.shelf import Shelf

# How often it is said that more is dropped.
_SAY_SECONDS = 60.0

log = logging.getLogger("trainvitals.notify")


@dataclass(slots=True)
class Counts:
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0


@dataclass(slots=True)
class _Trouble:
    """Since the last message that arrived."""

    failures: int = 0
    refusals: int = 0
    until: float = 0.0
    said: str = ""


class Courier(threading.Thread):
    def __init__(self, channel: Channel, path: Path, host: str, *, clock: Clock, quiet: Quiet, page: str,
                 hear: Hear = whole) -> None:  # fmt: skip
        super().__init__(name=f"notify-{channel.kind}"[:15], daemon=True)
        self.channel = channel
        self._host, self._page = host, page
        self._clock = clock
        self._lock = threading.Lock()
        self._wake, self._ending = threading.Event(), threading.Event()
        self._ledger = Ledger()
        self._desk = _desk(channel, self._ledger, clock, quiet, hear)
        self._shelf = Shelf(path, self._ledger, self._lock)
        self._attempt = Attempt(channel.kind)
        self._adopted: Sequence[Change] | None = None
        self._trouble = _Trouble()
        self._counts = Counts()
        self._told_drops, self._say_at = 0, 0.0

    def tell(self, changes: Sequence[Change]) -> None:
        with self._lock:
            if self._adopted is not None:
                self._adopted = _among(self._adopted, changes)
            for change in changes:
                self._desk.note(change)
        self._shelf.nudge()
        self._wake.set()

    def nudge(self) -> None:
        """Something else changed what is to be told."""
        self._wake.set()

    def adopt(self, changes: Sequence[Change]) -> None:
        """Once the file has been read, for that knows which of them were told."""
        with self._lock:
            self._adopted = tuple(changes)
        self._wake.set()

    def counts(self) -> Counts:
        with self._lock:
            waiting = sum(case.is_untold or case.is_over for case in self._ledger.cases)
            known = self._counts
            return Counts(known.sent, known.failed, known.dropped + self._ledger.dropped, waiting)

    @property
    def is_well(self) -> bool:
        """As far as was tried."""
        return not self._trouble.said

    def doubt(self, why: str) -> None:
        """It was looked at, and this is wrong; nothing, all is well."""
        if not self._trouble.failures:
            self._trouble.said = why

    def end(self) -> None:
        """What waits gets a last attempt; `join` waits for it."""
        self._ending.set()
        self._wake.set()

    def run(self) -> None:
        self._shelf.start()
        self._shelf.loaded.wait(LOAD_SECONDS)
        while True:
            self._wake.clear()
            # After the clearing: an end that came before it would wait for the next news.
            if self._ending.is_set():
                break
            self._wake.wait(self._guarded_step())
        self._guarded_step(at_once=True)

    def _guarded_step(self, *, at_once: bool = False) -> float:
        try:
            return self._step(at_once=at_once)
        except Exception:
            log.exception("%s: an error of ours; it goes on", self.channel.shown)
            return MAX_BACKOFF_SECONDS

    def _step(self, *, at_once: bool = False) -> float:
        """Sends what is due; how long to wait then."""
        is_held_up = self._is_held_up() and not at_once
        with self._lock:
            self._take_adopted()
            batch = None if is_held_up else self._desk.due(at_once=at_once)
        self._keep()
        self._say_drops()
        if batch is not None:
            self._deliver(batch)
            self._keep()
        with self._lock:
            pause = self._desk.wait()
        return max(pause, self._trouble.until - self._clock.monotonic())

    def _is_held_up(self) -> bool:
        return self._clock.monotonic() < self._trouble.until

    def _take_adopted(self) -> None:
        if self._adopted is not None:
            self._desk.adopt(self._adopted)
            self._adopted = None

    def _keep(self) -> None:
        self._shelf.save(DISK_SECONDS)

    def _deliver(self, batch: Batch) -> None:
        message = Message(worst_first(batch.items), self._host, self._page)
        try:
            self._attempt.run(lambda: self.channel.send(message), ATTEMPT_SECONDS)
        except Unsent as error:
            self._failed(batch, error)
        except Exception as error:
            # What it says may hold a secret.
            self._failed(batch, Unsent(f"failed by an error of ours ({type(error).__name__})", is_refused=True))
        else:
            self._arrived(batch)

    def _arrived(self, batch: Batch) -> None:
        with self._lock:
            self._desk.done(batch)
            self._counts.sent += 1
        if self._trouble.said:
            log.info("%s: delivers again", self.channel.shown)
        self._trouble = _Trouble()

    def _failed(self, batch: Batch, error: Unsent) -> None:
        trouble = self._trouble
        trouble.failures += 1
        trouble.refusals += error.is_refused
        trouble.until = self._clock.monotonic() + _pause(trouble.failures, error.after)
        why = self.channel.hide(str(error))
        self._say(why, error.is_refused)
        with self._lock:
            self._counts.failed += 1
            given_up = self._desk.drop(batch) if trouble.refusals >= REFUSALS else 0
            self._counts.dropped += given_up
        if given_up:
            log.warning("%s: %d findings were not told: %s", self.channel.shown, given_up, why)
            self._trouble = _Trouble(said=why)

    def _say(self, why: str, is_refused: bool) -> None:
        """Each reason once."""
        if why != self._trouble.said:
            self._trouble.said = why
            fix = f": see {self.channel.key}" if is_refused else ""
            log.warning("%s: %s%s; it is tried again", self.channel.shown, why, fix)

    def _say_drops(self) -> None:
        dropped, now = self._ledger.dropped, time.monotonic()
        if dropped > self._told_drops and now >= self._say_at:
            log.warning("%s: %d findings were dropped untold, the oldest tickets first: too many wait, or for too long",
                        self.channel.shown, dropped - self._told_drops)  # fmt: skip
            self._told_drops, self._say_at = dropped, now + _SAY_SECONDS


def _among(there: Sequence[Change], news: Sequence[Change]) -> Sequence[Change]:
    """What is open, with what was heard since: that has not ended for not having been there."""
    known = {change.finding.key: change for change in (*there, *news)}
    return [change for change in known.values() if change.state != "close"]


def _desk(channel: Channel, ledger: Ledger, clock: Clock, quiet: Quiet, hear: Hear) -> Desk:
    """Alertmanager is told of all: it has silences of its own, and what it knows of keeps the rules' alerts quiet."""
    if channel.kind == "alertmanager":
        return Alerts(ledger, clock, channel.pace)
    return Messages(ledger, clock, channel.pace, quiet, only_pages=channel.only_pages, hear=hear)


def _pause(failures: int, after: float | None) -> float:
    if after is not None:
        return min(max(after, BACKOFF_SECONDS), MAX_RETRY_AFTER_SECONDS)
    grown = BACKOFF_SECONDS * 2.0 ** min(failures - 1, 16)
    return min(grown, MAX_BACKOFF_SECONDS) * random.uniform(0.75, 1.25)
