"""How much one value may hold, found by counting: a matrix is not read to learn that it is too long for a line.

bounded({"sizes": [1, 2], "weights": [[0.5, …], …]}, 1000)  ->  TooMuch
"""

from typing import Any

from trainvitals.journal.configuration import members_of

MAX_ENTRIES = 1000
PLAIN = frozenset((float, int, str, bool))
_LEFT_OUT = object()


class TooMuch(Exception):
    """Said of a value that holds more than it may."""


def bounded(value: Any, most: int = MAX_ENTRIES) -> Any:
    """Its copy, without what a device has yet to compute; or a few words in its place."""
    try:
        kept = _Room(most).fill(value)
    except TooMuch:
        raise TooMuch(f"<{type(value).__name__} of more than {most} entries>") from None
    return None if kept is _LEFT_OUT else kept


def is_afar(value: Any) -> bool:
    """Whether to read it would be to wait: for a GPU, or for what jax computes meanwhile."""
    if hasattr(value, "detach"):
        return bool(value.device.type != "cpu")
    return hasattr(value, "is_ready") and hasattr(value, "block_until_ready") and not value.is_ready()


def entries_in(value: Any) -> int:
    """The elements of a tensor or an array, the length of what has one, else 1."""
    if hasattr(value, "detach"):
        return value.numel()  # type: ignore[no-any-return]
    if type(size := getattr(value, "size", None)) is int:
        return size
    try:
        return len(value)
    except Exception:
        return 1


class _Room:
    """For so many entries, on all levels together."""

    def __init__(self, left: int) -> None:
        self._left = left

    def fill(self, value: Any) -> Any:
        if value is None or type(value) in PLAIN or isinstance(value, (str, int, float)):
            return value
        if (members := members_of(value)) is not None:
            self._take(len(members))
            filled = {key: self.fill(item) for key, item in members.items()}
            return {key: item for key, item in filled.items() if item is not _LEFT_OUT}
        if isinstance(value, (list, tuple, set, frozenset)):
            self._take(len(value))
            return [kept for item in value if (kept := self.fill(item)) is not _LEFT_OUT]
        if is_afar(value):
            return _LEFT_OUT
        self._take(entries_in(value))
        return value

    def _take(self, count: object) -> None:
        """What is no number at all is too much, too."""
        if not (isinstance(count, int) and count <= self._left):
            raise TooMuch
        self._left -= count
