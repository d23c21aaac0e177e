"""Following many growing files: each whole line once, across rotation, truncation and restarts.

    tail = Tail(); tail.follow(path); tail.read(path)  ->  [{"step": 1, ...}, ...]
`cursor()` is the place reached, as plain JSON; handed to a new Tail, reading goes on from there.
A file is known by its first bytes, which hold a time in milliseconds, and not by its inode: a
thinned copy is the same file, a new file on an old inode is not. In a copy, or a file that was cut,
the offset means nothing: there the place is found by the time of the last record that was read.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from trainvitals.journal.descriptors import whole_length
from trainvitals.journal.record import Record, decode

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 20
HEAD_BYTES = 96
# Something that is no file, put there under a file's name, must not keep the reader waiting.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


@dataclass(slots=True)
class _Place:
    offset: int = 0
    head: bytes = b""
    inode: int = 0
    last: str = ""
    read_as: tuple[int, int] = (0, 0)
    failing: bool = False


class Tail:
    def __init__(self, cursor: dict[str, Any] | None = None) -> None:
        self._places: dict[Path, _Place] = {}
        self.garbage_lines = 0
        self.errors = 0
        for path, (offset, head, *more) in (cursor or {}).items():
            # A cursor of an earlier version has no more than the two.
            inode, last = more or (0, "")
            self._places[Path(path)] = _Place(int(offset), bytes.fromhex(head), int(inode), str(last))

    def cursor(self) -> dict[str, Any]:
        return {str(path): [place.offset, place.head.hex(), place.inode, place.last]
                for path, place in self._places.items()}  # fmt: skip

    def follow(self, path: Path) -> None:
        self._places.setdefault(path, _Place())

    def forget(self, path: Path) -> None:
        self._places.pop(path, None)

    def followed(self) -> Iterable[Path]:
        return list(self._places)

    def has_news(self, path: Path) -> bool:
        """Whether the file changed since it was last read to its end."""
        place = self._places.get(path)
        try:
            status = os.stat(path)
        except OSError:
            return False
        return place is not None and place.read_as != (status.st_size, status.st_mtime_ns)

    def read(self, path: Path, max_bytes: int = CHUNK_BYTES) -> list[Record]:
        """The next whole records, about `max_bytes` of them; none at the end of the file."""
        place = self._places.get(path)
        if place is None:
            return []
        try:
            records = self._read(place, path, max_bytes)
        except FileNotFoundError:
            return []
        except OSError:
            # Once, however often it is tried: it is one error that lasts.
            self.errors += not place.failing
            place.failing = True
            return []
        place.failing = False
        return records

    def _read(self, place: _Place, path: Path, max_bytes: int) -> list[Record]:
        fd = os.open(path, _FLAGS)
        try:
            return self._records(place, fd, max_bytes)
        finally:
            os.close(fd)

    def _records(self, place: _Place, fd: int, max_bytes: int) -> list[Record]:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a file")
        self._find_place(place, fd, status)
        while block := self._block(fd, place, max_bytes):
            place.offset += len(block)
            self._remember_head(place, fd)
            if records := self._parse(block):
                place.last = _last_time(records) or place.last
                return records
        # As it was before the reading: what came since is news.
        place.read_as = (status.st_size, status.st_mtime_ns)
        return []

    def _find_place(self, place: _Place, fd: int, status: os.stat_result) -> None:
        """Another file under the same name is read from its start, a changed one from where its new records
        begin; where no time is known, a shortened one from its end."""
        if place.head and os.pread(fd, len(place.head), 0) != place.head:
            place.offset = 0
        elif place.offset and place.last and _was_changed(place, fd, status):
            place.offset = _later_than(place.last, fd)
        elif status.st_size < place.offset:
            place.offset = whole_length(fd)
        place.inode = status.st_ino
        if not place.offset:
            place.head, place.last = b"", ""

    def _remember_head(self, place: _Place, fd: int) -> None:
        """Of the first line only, which stays when the file is cut or thinned."""
        if not place.head:
            head = os.pread(fd, min(HEAD_BYTES, place.offset), 0)
            place.head = head[: head.find(b"\n") + 1] or head

    def _block(self, fd: int, place: _Place, max_bytes: int) -> bytes:
        """Whole lines from the place on; a line too long to be one is passed over."""
        size = max_bytes
        self._go_to_line(fd, place)
        while True:
            block = os.pread(fd, size, place.offset)
            end = block.rfind(b"\n") + 1
            if end or len(block) < size:
                return block[:end]
            size *= 4
            if size > MAX_LINE_BYTES:
                self.garbage_lines += 1
                place.offset += len(block)
                place.last = ""  # The place lies within a line, as it does in a file that was changed.
                self._go_to_line(fd, place)
                size = max_bytes

    def _go_to_line(self, fd: int, place: _Place) -> None:
        """Past the rest of a line that the place lies within: one too long, or a file written anew."""
        while place.offset and os.pread(fd, 1, place.offset - 1) != b"\n":
            rest = os.pread(fd, CHUNK_BYTES, place.offset)
            if not rest:
                return
            place.offset += rest.find(b"\n") + 1 or len(rest)

    def _parse(self, block: bytes) -> list[Record]:
        lines = block.split(b"\n")
        lines.pop()
        with suppress(orjson.JSONDecodeError):
            if not block.startswith(b" ") and b"\n " not in block:
                records = [orjson.loads(line) for line in lines]
                if all(type(record) is dict for record in records):
                    return records
        return [record for record in map(self._decoded, lines) if record is not None]

    def _decoded(self, line: bytes) -> Record | None:
        with suppress(ValueError):
            return decode(line)
        self.garbage_lines += bool(line.strip())
        return None


def _last_time(records: list[Record]) -> str:
    return next((time for record in reversed(records) if isinstance(time := record.get("timestamp"), str)), "")


def _was_changed(place: _Place, fd: int, status: os.stat_result) -> bool:
    """Otherwise than by what was added to its end."""
    return (
        status.st_size < place.offset
        or place.inode not in (0, status.st_ino)
        or os.pread(fd, 1, place.offset - 1) != b"\n"
    )


def _later_than(last: str, fd: int) -> int:
    """Where the first line begins that is later; the end of the whole lines where none is."""
    offset = 0
    with open(os.dup(fd), "rb") as file:
        file.seek(0)
        while (line := file.readline(MAX_LINE_BYTES)).endswith(b"\n"):
            with suppress(ValueError):
                if _last_time([decode(line)]) > last:
                    break
            offset += len(line)
    return offset
