"""What somebody acknowledged or silenced: changed by the page, honoured by whatever tells, kept over restarts.

quiet.acknowledge(acknowledgement)  ->  "", or why it may be lost with the agent
quiet.heard(change)                 ->  what is still to be told of it

gpu/<host>/quiet.json holds it. Its one writer is this host's agent.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from trainvitals.agent.quiet_file import QuietFile
from trainvitals.clock import SYSTEM, Clock
from trainvitals.detect.finding import Change, Place
from trainvitals.detect.quieting import Acknowledgement, Kept, Key, Silence
from trainvitals.journal.record import Record, encode, timestamp_at

FILE = "quiet.json"
MOST = 1000
# As much as is read of a small file.
MOST_BYTES = 1_000_000
SAVE_SECONDS = 2.0
_One = TypeVar("_One", Acknowledgement, Silence)


class TooMany(Exception):
    """All that is kept still holds."""


class Quiet:
    def __init__(self, path: Path | None, host: str, is_open: Callable[[], Collection[str]] = tuple,
                 clock: Clock = SYSTEM) -> None:  # fmt: skip
        """`is_open` names the findings that are: what was acknowledged of others may be forgotten."""
        self._file, self._host, self._is_open, self._clock = QuietFile(path), host, is_open, clock
        self._lock = threading.Lock()
        self.kept = Kept()
        # Told of each change, and wait for nobody.
        self.listeners: list[Callable[[], None]] = []

    def load(self) -> None:
        self.kept = Kept.read(self._file.load())

    def heard(self, change: Change) -> Change | None:
        """What of it is still to be told; None: nothing."""
        return self.kept.heard(change, self._clock.now())

    def acknowledge(self, one: Acknowledgement) -> str:
        with self._lock:
            kept = self.kept
            return self._take(Kept({**_without(kept.acknowledged, {one.id}), one.id: one}, kept.silences))

    def silence(self, one: Silence) -> str:
        with self._lock:
            kept = self.kept
            return self._take(Kept(kept.acknowledged, {**kept.silences, one.id: one}))

    def forget(self, name: str) -> str:
        """Takes an acknowledgement or a silence back; KeyError where there is none of that name."""
        with self._lock:
            kept = self.kept
            if name not in kept.acknowledged and name not in kept.silences:
                raise KeyError(name)
            return self._take(Kept(_without(kept.acknowledged, {name}), _without(kept.silences, {name})))

    def _take(self, kept: Kept) -> str:
        kept, content = self._bounded(kept)
        self.kept = kept
        for listener in self.listeners:
            listener()
        return self._file.save(content, SAVE_SECONDS)

    def _bounded(self, kept: Kept) -> tuple[Kept, bytes]:
        """What is over goes first, the oldest first; what holds is never pushed out."""
        while not _fits(kept, content := encode(kept.record())):
            fewer = self._fewer(kept)
            if fewer.silences == kept.silences and fewer.acknowledged == kept.acknowledged:
                raise TooMany(f"{MOST} of a kind are kept at most, and all of these hold: take some back first")
            kept = fewer
        return kept, content

    def _fewer(self, kept: Kept) -> Kept:
        """A tenth at once, so that not each of many looks through all."""
        now, is_open = timestamp_at(self._clock.now()), self._is_open()
        over = [name for name in kept.acknowledged if name not in is_open]
        # Of those that end at once, the one that was made first.
        expired = sorted((one for one in kept.silences.values() if one.until <= now), key=lambda one: one.until)
        gone = {*over[: MOST // 10], *(one.id for one in expired[: MOST // 10])}
        return Kept(_without(kept.acknowledged, gone), _without(kept.silences, gone))

    def marked(self, alert: Record, name: str) -> Record:
        """An alert with its name, and who keeps it quiet."""
        labels = alert["labels"]
        key = (str(alert["name"]), Place(*(str(labels.get(field, "")) for field in Place._fields)))
        from_where = (str(labels.get("source", "")), str(labels.get("instance", "")))
        marks = self.marks(name, key, str(labels.get("severity", "")), str(alert["starts"]), from_where)
        return {**alert, "id": name, **marks}

    def marks(self, name: str, key: Key, severity: str, opened: str, from_where: tuple[str, str]) -> dict[str, Any]:
        """`from_where`: who said it, and of which machine. Of another's alert the name alone counts, and of another
        machine's a silence that is of a run."""
        is_own, is_here = from_where == ("agent", self._host), from_where[1] in ("", self._host)
        kept = self.kept
        known = kept.acknowledgement(name, key, severity, opened) if is_own else kept.acknowledged.get(name)
        silence = kept.silence(key, self._clock.now(), is_here=is_here)
        return {"acknowledged": known and {"at": known.at, "by": known.by, "note": known.note},
                "silenced": silence and {"until": silence.until, "id": silence.id, "note": silence.note}}  # fmt: skip


def _fits(kept: Kept, content: bytes) -> bool:
    return max(len(kept.acknowledged), len(kept.silences)) <= MOST and len(content) <= MOST_BYTES


def _without(known: Mapping[str, _One], gone: Collection[str]) -> dict[str, _One]:
    return {name: one for name, one in known.items() if name not in gone}
