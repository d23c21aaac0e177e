"""A node's events: their files, and reading them as far back as they are kept.

gpu/<host>/events.jsonl, and gpu/<host>/events.1.jsonl, which was set aside when it was full
"""

from collections.abc import Iterator
from pathlib import Path

from trainvitals.journal.record import Record
from trainvitals.journal.tail import Tail

EVENTS, OLDER_EVENTS = "events.jsonl", "events.1.jsonl"


def read_events(folder: Path) -> Iterator[Record]:
    """The oldest first."""
    tail = Tail()
    for path in (folder / OLDER_EVENTS, folder / EVENTS):
        tail.follow(path)
        while records := tail.read(path):
            yield from records
