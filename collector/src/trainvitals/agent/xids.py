"""How often each Xid came, by GPU, since the agent started.

Kept by the agent and not by the device: a GPU that falls off the bus takes its readings with it, and
the Xid that says why is to be seen all the same.
"""

from collections.abc import Iterator

from trainvitals.model import Event, Labels, Reading


class Xids:
    def __init__(self) -> None:
        self._seen: dict[Labels, tuple[int, float]] = {}

    def add(self, event: Event) -> None:
        if event.kind == "xid":
            labels = (*event.labels, ("xid", str(event.details.get("xid", ""))))
            self._seen[labels] = (self._seen.get(labels, (0, 0.0))[0] + 1, event.timestamp)

    def readings(self, now: float) -> Iterator[Reading]:
        for labels, (count, when) in list(self._seen.items()):
            yield Reading("xid", labels, {"errors_total": float(count), "last_timestamp_seconds": when}, now)
