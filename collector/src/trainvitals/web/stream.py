"""The event stream: one event a snapshot to every reader, until they leave or the server ends. Where no snapshot comes
for a while, what is known then is told again: a reader that hears nothing takes the agent for lost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from trainvitals.agent.service import Agent
from trainvitals.model import Snapshot

# Less than the page waits before it says so.
KEEP_ALIVE_SECONDS = 3.0
MAX_READERS = 100


class Streams:
    def __init__(self, agent: Agent, tell: Callable[[], bytes]) -> None:
        """`tell` makes the data of an event, which is one line."""
        self._agent, self._tell = agent, tell
        self._wakers: set[asyncio.Event] = set()
        self._ended = False
        self._event: tuple[Snapshot, list[str], bytes] | None = None

    @property
    def is_full(self) -> bool:
        return len(self._wakers) >= MAX_READERS

    def end(self) -> None:
        self._ended = True
        for waker in self._wakers:
            waker.set()

    async def events(self) -> AsyncIterator[bytes]:
        """A reader that falls behind misses the events between; nobody waits for it."""
        loop, waker = asyncio.get_running_loop(), asyncio.Event()

        def wake(_: Snapshot) -> None:
            loop.call_soon_threadsafe(waker.set)

        self._wakers.add(waker)
        self._agent.listeners.append(wake)
        try:
            while not self._ended:
                waker.clear()
                yield self._told()
                await _set_within(waker, KEEP_ALIVE_SECONDS)
        finally:
            self._agent.listeners.remove(wake)
            self._wakers.discard(waker)

    def _told(self) -> bytes:
        """Made once for all readers, anew with each snapshot and where the agent's health changes between."""
        snapshot, problems = self._agent.snapshot, self._agent.health()
        if self._event is None or self._event[0] is not snapshot or self._event[1] != problems:
            self._event = (snapshot, problems, b"data: " + self._tell() + b"\n\n")
        return self._event[2]


async def _set_within(event: asyncio.Event, timeout: float) -> None:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), timeout)
