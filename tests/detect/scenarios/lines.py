"""Files of the journal's shape, written in one go."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainvitals.journal.record import encode

FLUSH_LINES = 2000


class LineFile:
    """Made with its first line, as the journal's are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[bytes] = []

    def add(self, record: Mapping[str, Any]) -> None:
        self.add_raw(encode(record))

    def add_raw(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) >= FLUSH_LINES:
            self.close()

    def close(self) -> None:
        if self._lines:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.writelines(self._lines)
            self._lines = []


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(content))
