"""Keeps the indexes of runs up to date: of those that are followed as they go on, of others when they are asked for.

indexing = Indexing(root, "gpu1", runs.states); indexing.start(); indexing.view("gemma", 0)  ->  View(…)

One thread, which rests four times as long as it works. Where a disk hangs it waits, and nobody waits for it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from trainvitals.agent.rank_index import RankIndex, View
from trainvitals.agent.run_state import RunState
from trainvitals.journal import layout

ROUND_SECONDS = 5.0
# At a time, for one rank, and how many times as long it rests after it.
TURN_SECONDS, REST = 0.02, 4.0
# How long somebody waits who asked, and for him it rests less.
ASKED_SECONDS, ASKED_REST = 5.0, 0.5
LOCK_SECONDS = 2.0
FORGET_SECONDS = 600.0
MAX_UNSAVED_BYTES = 64 << 20
Key = tuple[str, int]

log = logging.getLogger("trainvitals.indexing")


class Busy(Exception):
    """The disk does not answer."""


class Indexing:
    def __init__(self, root: Path, host: str, states: Callable[[], Iterable[RunState]]) -> None:
        self._root, self._host, self._states = root, host, states
        self._indexes: dict[Key, RankIndex] = {}
        self._used: dict[Key, float] = {}
        self._lock = threading.Lock()
        self._stop, self._wake = threading.Event(), threading.Event()
        self._is_writer = False

    def start(self, is_writer: bool) -> None:
        """Of two agents on one host and journal one alone writes."""
        self._is_writer = is_writer
        threading.Thread(target=self._run, name="trainvitals-index", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()

    def view(self, run: str, rank: int, seconds: float = ASKED_SECONDS) -> View:
        """What is known, after `seconds` of indexing at most; the rest goes on without anybody waiting."""
        index, until = self._index((run, rank)), time.monotonic() + seconds
        self._used[run, rank] = time.monotonic()
        if not index.lock.acquire(timeout=seconds + LOCK_SECONDS):
            raise Busy(f"run: {run!r} cannot be read now: the journal's disk does not answer")
        try:
            while not (is_done := index.advance(_Turn(TURN_SECONDS))) and time.monotonic() < until:
                self._stop.wait(ASKED_REST * TURN_SECONDS)
            if not is_done:
                self._wake.set()
            return index.view()
        finally:
            index.lock.release()

    def _index(self, key: Key) -> RankIndex:
        with self._lock:
            if key not in self._indexes:
                folder = layout.run_folder(self._root, key[0])
                self._indexes[key] = RankIndex(folder, self._host, key[1], self._is_writer)
            return self._indexes[key]

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                is_done = self._round()
            except Exception:
                log.exception("indexing the runs failed; it goes on")
                is_done = True
            if is_done:
                self._wake.wait(ROUND_SECONDS)

    def _round(self) -> bool:
        live = {(state.run, rank) for state in self._states() for rank in list(state.ranks)}
        self._forget(live)
        wanted = self._indexes.keys() | (live if self._is_writer else set())
        return all(list(map(self._turn, map(self._index, sorted(wanted)))))

    def _turn(self, index: RankIndex) -> bool:
        """Rests without the lock: whoever asks for the index meanwhile has it."""
        if self._stop.is_set() or not index.lock.acquire(timeout=TURN_SECONDS):
            return True
        began = time.monotonic()
        try:
            is_done = index.advance(_Turn(TURN_SECONDS))
        finally:
            index.lock.release()
        self._stop.wait(REST * (time.monotonic() - began))
        return is_done

    def _forget(self, live: set[Key]) -> None:
        """What nobody has asked for lately, and the oldest of what only memory holds where that is too much."""
        now = time.monotonic()
        with self._lock:
            unsaved = sum(index.unsaved_bytes for index in self._indexes.values())
            for key in sorted(self._indexes.keys() - live, key=lambda key: self._used.get(key, 0.0)):
                is_old = now - self._used.get(key, 0.0) > FORGET_SECONDS
                if is_old or (unsaved > MAX_UNSAVED_BYTES and self._indexes[key].unsaved_bytes):
                    unsaved -= self._indexes.pop(key).unsaved_bytes
                    self._used.pop(key, None)


class _Turn:
    """Asked after each block whether it is another's turn."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def __call__(self) -> bool:
        return time.monotonic() > self._until
