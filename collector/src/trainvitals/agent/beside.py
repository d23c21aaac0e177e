"""What a host's line holds beside the host's own values, so that a replay sees all that the agent judged by.

beside.fields(readings)   ->   {"filesystems": {"/": {"size_bytes": 4e11, "free_bytes": 2e11}}, "source_up_nvml": 1.0,
                                "journal_records_dropped_total": 0.0, "journal_read_errors_total": 0.0}
"""

from collections.abc import Iterable
from typing import Any

from trainvitals.model import Reading

FILESYSTEMS, SOURCE_UP = "filesystems", "source_up_"
COUNTS = ("journal_records_dropped_total", "journal_read_errors_total")
MOST_FILESYSTEMS = 32
# Room changes with each tick; told is what matters: so much of the whole, or of what is left.
OF_SIZE, OF_FREE = 0.001, 0.01
Room = dict[str, float]


class Beside:
    def __init__(self) -> None:
        self._told: dict[str, Room] = {}

    def fields(self, readings: Iterable[Reading]) -> dict[str, Any]:
        rooms: dict[str, Room] = {}
        found: dict[str, Any] = {}
        for one in readings:
            if one.scope == "filesystem" and (room := _room(one)):
                rooms[one.label("mountpoint")] = room
            elif one.scope == "source" and "up" in one.values:
                found[SOURCE_UP + one.label("source")] = one.values["up"]
            elif one.scope == "agent":
                found |= {name: one.values[name] for name in COUNTS if name in one.values}
        return found | ({FILESYSTEMS: self._worth_telling(rooms)} if rooms else {})

    def _worth_telling(self, rooms: dict[str, Room]) -> dict[str, Room]:
        """What was told last, for as long as that is true enough."""
        kept = dict(sorted(rooms.items())[:MOST_FILESYSTEMS])
        if kept.keys() != self._told.keys() or any(_differ(self._told[name], room) for name, room in kept.items()):
            self._told = kept
        return self._told


def _room(one: Reading) -> Room | None:
    size, free = one.number("size_bytes"), one.number("free_bytes")
    return None if size is None or free is None else {"size_bytes": size, "free_bytes": free}


def _differ(told: Room, now: Room) -> bool:
    limit = min(OF_SIZE * told["size_bytes"], OF_FREE * told["free_bytes"])
    return told["size_bytes"] != now["size_bytes"] or abs(told["free_bytes"] - now["free_bytes"]) > limit
