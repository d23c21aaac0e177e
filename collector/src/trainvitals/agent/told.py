"""Which findings were told already, over a restart of the agent too.

memory.sift(news, book, now)  ->  the changes that are news to people

What opened and closed while nobody looked is no news. What the agent of before had told goes on; it is closed when its
detectors, which learn anew, have not seen it again for a while.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.detect.book import Book, Key
from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.journal import small_files
from trainvitals.journal.record import Record, encode
from trainvitals.journal.runs import read_json

FILE = "findings.json"
SETTLING_SECONDS = 300.0
LATE_SECONDS = 60.0


class Memory:
    def __init__(self, folder: Path, began: float, keeps: bool = True) -> None:
        self._file, self._began, self._keeps = folder / FILE, began, keeps
        # Told by the agent of before, and not seen by this one yet.
        self.before: dict[Key, Change] = {}

    def load(self) -> list[Change]:
        kept = (read_json(self._file) or {}).get("open")
        found = [one for each in kept if (one := _change(each))] if isinstance(kept, list) else []
        self.before = _joined({change.finding.key: (change, cause) for change, cause in found})
        return list(self.before.values())

    def sift(self, news: Sequence[Change], book: Book, now: float) -> list[Change]:
        closed = {(change.finding.key, change.opened) for change in news if change.state == "close"}
        late = {one for one in closed if any(each.state == "open" and (each.finding.key, each.opened) == one
                                             and now - each.last > LATE_SECONDS for each in news)}  # fmt: skip
        told = [change for change in news
                if (change.finding.key, change.opened) not in late and self._is_news(change, book)]  # fmt: skip
        told += self._gone(now)
        if told and self._keeps:
            self._keep(book)
        return told

    def _is_news(self, change: Change, book: Book) -> bool:
        before = self.before.pop(change.finding.key, None)
        if before is None or change.state != "open":
            return True
        if (one := book.open.get(change.finding.key)) is not None:
            one.opened = before.opened
        return False

    def _gone(self, now: float) -> list[Change]:
        if not self.before or now - self._began < SETTLING_SECONDS:
            return []
        gone, self.before = self.before, {}
        return [change._replace(state="close", when=now) for change in gone.values()]

    def _keep(self, book: Book) -> None:
        """A disk that is full costs a message that comes twice."""
        some = [_record(one.finding, one.opened, one.cause if one.cause in book.open else None)
                for one in book.open.values()]  # fmt: skip
        some += [_record(change.finding, change.opened, change.cause.key if change.cause else None)
                 for change in self.before.values()]  # fmt: skip
        with suppress(OSError):
            small_files.replace(self._file, encode({"open": some}))


def _record(finding: Finding, opened: float, cause: Key | None) -> Record:
    told = {**finding._asdict(), "place": list(finding.place), "opened": opened}
    return told | ({"cause": [cause[0], list(cause[1])]} if cause else {})


def _change(kept: Any) -> tuple[Change, Key | None] | None:
    """With what it follows from. A file that somebody broke is none."""
    try:
        told = dict(kept)
        opened, place, cause = float(told.pop("opened")), told.pop("place"), told.pop("cause", None)
        finding = Finding(**told, place=Place(*map(str, place)))
        known = (str(cause[0]), Place(*map(str, cause[1]))) if cause else None
        return Change("open", finding, opened, opened, last=opened), known
    except (TypeError, ValueError, KeyError, IndexError):
        return None


def _joined(found: dict[Key, tuple[Change, Key | None]]) -> dict[Key, Change]:
    """What follows from another is told along with that, as before."""
    joined = {}
    for key, (change, cause) in found.items():
        evidence = tuple(other.finding for other, of in found.values() if of == key and other is not change)
        head = found[cause][0].finding if cause in found and cause != key else None
        joined[key] = change._replace(cause=head, evidence=evidence)
    return joined
