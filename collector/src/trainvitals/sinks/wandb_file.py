"""How many rows an offline file of W&B holds. Read by its format, for W&B's own reader is not for others.

    file = OfflineFile("wandb/offline-run-…/run-3f….wandb"); file.read_on(); file.rows  ->  120
A header, then blocks of 32 KiB with pieces of records; less than 7 bytes at a block's end are left out:
    ":W&B" bee1 00 | checksum (4 bytes), length (2), kind (1), content | checksum, …
A record, put together, is a protobuf message: its field 2 is a row, in it field 2 the step, in it field 1 the number.
"""

import glob
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from trainvitals.sinks import SinkError

HEADER = b":W&B\xe1\xbe\x00"
BLOCK_BYTES = 1 << 15
PIECE = struct.Struct("<IHB")
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
_ROW, _STEP, _NUMBER = 2, 2, 1
_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5


class OfflineFile:
    def __init__(self, path: str) -> None:
        self._path, self._offset, self.rows = path, 0, 0

    def read_on(self) -> None:
        """From where it was read to, up to what is not whole: it is being written, or a kill cut it short."""
        with open(self._path, "rb") as file:
            if not self._offset and not self._begin(file):
                return
            file.seek(self._offset)
            for record in records(file):
                self._offset = file.tell()
                self._count(record)

    def cut(self) -> None:
        """`wandb sync` stops at what is torn, and then leaves out the run's later files too."""
        if 0 < self._offset < os.path.getsize(self._path):
            os.truncate(self._path, self._offset)

    def _begin(self, file: BinaryIO) -> bool:
        header = file.read(len(HEADER))
        if not HEADER.startswith(header):
            raise self._unknown(f"begins with {header!r}")
        self._offset = len(HEADER) if header == HEADER else 0
        return bool(self._offset)

    def _count(self, record: bytes) -> None:
        try:
            number = row_number(record)
        except (IndexError, ValueError) as error:
            raise self._unknown(f"has a record before byte {self._offset} that is none") from error
        self.rows = max(self.rows, number + 1)

    def _unknown(self, what: str) -> SinkError:
        return SinkError(f"{self._path} {what}: move its folder away, and the run goes into a new one")


def records(file: BinaryIO) -> Iterator[bytes]:
    """Those that are whole, from where the file stands."""
    parts: list[bytes] = []
    for kind, content in _pieces(file):
        if (kind in (WHOLE, FIRST)) == bool(parts):
            return
        parts.append(content)
        if kind in (WHOLE, LAST):
            yield b"".join(parts)
            parts = []


def _pieces(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    while True:
        left = BLOCK_BYTES - file.tell() % BLOCK_BYTES
        if left < PIECE.size:
            file.seek(left, 1)
            left = BLOCK_BYTES
        head = file.read(PIECE.size)
        if len(head) < PIECE.size:
            return
        checksum, length, kind = PIECE.unpack(head)
        content = file.read(length)
        if not WHOLE <= kind <= LAST or length > left - PIECE.size or checksum != checksum_of(kind, content):
            return
        yield kind, content


def is_open(path: str) -> bool:
    """In any process that we may look into; a reader's too."""
    wanted = os.path.realpath(path)
    for link in glob.iglob("/proc/[0-9]*/fd/*"):
        with suppress(OSError):  # it was closed meanwhile, or is another user's
            if os.readlink(link) == wanted:
                return True
    return False


def checksum_of(kind: int, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(bytes([kind])))


def row_number(record: bytes) -> int:
    """-1 for a record that is no row. A number that is not said is 0."""
    row = _field(record, _ROW)
    step = _field(row, _STEP) if isinstance(row, bytes) else None
    number = _field(step, _NUMBER) if isinstance(step, bytes) else None
    return -1 if row is None else int(number or 0)


def _field(message: bytes, wanted: int) -> int | bytes | None:
    """A number, or the bytes of all else."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value, at = _value(message, at, key & 7)
        if key >> 3 == wanted:
            return value
    return None


def _value(message: bytes, at: int, kind: int) -> tuple[int | bytes, int]:
    if kind == _VARINT:
        return _varint(message, at)
    if kind not in (_EIGHT_BYTES, _SIZED, _FOUR_BYTES):
        raise ValueError(kind)
    size, at = _varint(message, at) if kind == _SIZED else ({_EIGHT_BYTES: 8, _FOUR_BYTES: 4}[kind], at)
    if at + size > len(message):
        raise IndexError(at + size)
    return message[at : at + size], at + size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
