"""Where pictures come from: the agent that answers, else readings of one's own; told as they come, from a thread.

feed = Feed(told, address, interval=1.0, make_own=None); feed.start()   ->   told(Heard(picture, "agent gpu1:8080", …))

Only what was heard last is kept: whoever does not look for a while misses what was between, and nothing piles up.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from trainvitals.tui import past
from trainvitals.tui.address import Address, Unheard
from trainvitals.tui.history import Frame
from trainvitals.tui.picture import Picture, picture
from trainvitals.tui.text import clean

# An agent that is started anew comes back within this.
PATIENCE_SECONDS = 4.0
LOOK_SECONDS = 5.0
OWN = "this process"
STOP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Heard:
    """`picture` None: nothing is known now, and `problem` says why. `at` by the monotonic clock. `past`: what the agent
    remembers of before."""

    picture: Picture | None
    source: str
    at: float
    problem: str = ""
    past: tuple[Frame, ...] = ()


class Own(Protocol):
    """Readings taken by this process, as the JSON of an agent."""

    def start(self, wake: Callable[[], None]) -> None: ...

    def json(self) -> dict[str, Any]: ...

    def stop(self) -> None: ...


class Feed:
    def __init__(self, tell: Callable[[Heard], None], address: Address | None, interval: float,
                 make_own: Callable[[], Own] | None) -> None:  # fmt: skip
        """One of the two at least; with both the agent comes first."""
        self._tell, self._address, self._interval, self._make_own = tell, address, interval, make_own
        self._own: Own | None = None
        self._why_own = ""
        self._next_look = 0.0
        self._lost_since: float | None = None
        self._has_heard = False
        self._past: tuple[Frame, ...] | None = None
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="trainvitals-feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """An answer under way is not waited for long."""
        self._stop.set()
        self._wake.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                self._tell(self._heard(began))
                self._rest(began)
        finally:
            self._end_own()
            if self._address:
                self._address.close()

    def _rest(self, began: float) -> None:
        """Own readings say when they are new; an agent is asked as often as was wished."""
        due = began + (2.0 if self._own else 1.0) * self._interval
        self._wake.wait(max(0.05, due - time.monotonic()))
        self._wake.clear()

    def _heard(self, now: float) -> Heard:
        """What nobody foresaw is told too: the screen is the only place to say it."""
        try:
            return self._hear(now)
        except Exception as error:
            return Heard(None, OWN, time.monotonic(), clean(f"{type(error).__name__}: {error}"))

    def _hear(self, now: float) -> Heard:
        address = self._address
        if address is None or (self._own and now < self._next_look):
            return self._hear_own()
        try:
            told = address.ask()
        except Unheard as error:
            return self._unheard(address, error, now)
        at = time.monotonic()
        self._end_own()
        # Not before the first picture is on the screen.
        if self._has_heard and self._past is None and told.at is not None:
            self._past = ()
            threading.Thread(target=self._recall, args=(address.another(), told, at), daemon=True).start()
        self._lost_since, self._has_heard = None, True
        return Heard(told, f"agent {address.shown}", at, past=self._past or ())

    def _recall(self, address: Address, told: Picture, at: float) -> None:
        """Beside what goes on: an agent that is slow with its past tells the present all the same."""
        try:
            self._past = past.frames(address, told, at, self._interval)
        finally:
            address.close()

    def _unheard(self, address: Address, error: Unheard, now: float) -> Heard:
        self._next_look = now + LOOK_SECONDS
        since = self._lost_since = now if self._lost_since is None else self._lost_since
        patient = self._has_heard and now - since < PATIENCE_SECONDS
        if self._make_own and (self._own or not patient):
            self._why_own = f"no agent at {address.shown}: {error}"
            return self._hear_own()
        return Heard(None, f"agent {address.shown}", time.monotonic(), str(error))

    def _hear_own(self) -> Heard:
        if self._own is None:
            assert self._make_own is not None
            self._own = self._make_own()
            self._own.start(self._wake.set)
        return Heard(picture(self._own.json()), OWN, time.monotonic(), self._why_own)

    def _end_own(self) -> None:
        own, self._own = self._own, None
        if own:
            own.stop()
