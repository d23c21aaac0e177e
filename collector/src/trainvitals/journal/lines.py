"""A file's whole lines by where they lie, from folders that anybody may have filled. For readers only.

part(path, -65536, 65536)   ->  the records at its end

with opened(folder, "training_metrics_20250730_123456.jsonl") as fd:
    for group in groups(fd, 0, 128):     ->  Group(offset=0, end=38211, lines=[b'{"timestamp":…}', …])
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import orjson

from trainvitals.journal.descriptors import FOLDER_FLAGS, open_regular
from trainvitals.journal.record import Record, decode

CHUNK_BYTES = 1 << 18
# A line of more is no line of a training: the journal's own writer keeps to a thousand values.
MAX_LINE_BYTES = 4 << 20


class Group(NamedTuple):
    offset: int
    end: int
    lines: list[bytes]


@contextmanager
def opened(folder: Path, name: str) -> Iterator[int]:
    """Neither the folder nor the file may be a link: it would lead to what only the reader is allowed to read."""
    above = os.open(folder, FOLDER_FLAGS)
    try:
        fd = open_regular(name, os.O_RDONLY | os.O_NOFOLLOW, above)
    finally:
        os.close(above)
    try:
        yield fd
    finally:
        os.close(fd)


def groups(fd: int, start: int, most: int, end: int | None = None, max_bytes: int = CHUNK_BYTES,
           longest: int = MAX_LINE_BYTES) -> Iterator[Group]:  # fmt: skip
    """Groups of `most` lines, or of fewer that are `max_bytes` long; the last one is what is left. Of lines none is
    longer than the `longest`: such a one is passed over."""
    lines: list[bytes] = []
    begun = at = start
    for line_end, line in _lines(fd, start, end, longest):
        lines.append(line)
        at = line_end
        if len(lines) == most or at - begun >= max_bytes:
            yield Group(begun, at, lines)
            begun, lines = at, []
    if lines:
        yield Group(begun, at, lines)


def part(path: Path, start: int, length: int) -> list[Record]:
    """The records in so many bytes; a negative `start` counts from the end. A line that is cut is none."""
    with suppress(OSError), opened(path.parent, path.name) as fd:
        begin = start if start >= 0 else max(0, os.fstat(fd).st_size + start)
        first, *more = os.pread(fd, length, begin).split(b"\n")
        # What may be cut is looked at by itself: those between are read as whole ones are, quickly.
        return [record for lines in ([first], more[:-1], more[-1:]) for record in records(lines)]
    return []


def records(lines: Iterable[bytes]) -> list[Record]:
    """What is no record is left out."""
    lines = list(lines)
    with suppress(orjson.JSONDecodeError):
        # A line that opens with a blank may hold numbers that orjson would round.
        if not any(line[:1] == b" " for line in lines):
            found = [orjson.loads(line) for line in lines]
            if all(type(record) is dict for record in found):
                return found
    return [record for record in map(_record, lines) if record is not None]


def _record(line: bytes) -> Record | None:
    with suppress(ValueError):
        return decode(line)
    return None


def _lines(fd: int, start: int, end: int | None, longest: int) -> Iterator[tuple[int, bytes]]:
    """Each line with the place behind it; a line that has no end yet is none."""
    rest, at = b"", start
    place = start
    while block := os.pread(fd, CHUNK_BYTES if end is None else max(0, min(CHUNK_BYTES, end - place)), place):
        place += len(block)
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            at += len(line) + 1
            yield at, line
        if len(rest) > longest:
            place = at = _behind_line(fd, place)
            rest = b""
            yield at, b""


def _behind_line(fd: int, place: int) -> int:
    """Of a line that is too long."""
    while block := os.pread(fd, CHUNK_BYTES, place):
        newline = block.find(b"\n")
        if newline >= 0:
            return place + newline + 1
        place += len(block)
    return place
