"""quiet.json, read once and written whole: a reader sees the old one or the new one, whatever becomes of the writer.

file = QuietFile(folder / "quiet.json"); file.save(b"{…}\n", seconds=2.0)   ->   "", or why it is not on the disk

A thread of its own writes, so that a disk that hangs costs nobody more than these seconds; what could not be written is
tried again until it is.
"""

import logging
import threading
from pathlib import Path

from trainvitals.journal import small_files
from trainvitals.journal.record import Record
from trainvitals.journal.runs import read_json

RETRY_SECONDS = 15.0
_LATE = "the disk does not answer"

log = logging.getLogger("trainvitals.agent")


class QuietFile:
    def __init__(self, path: Path | None) -> None:
        """None: nothing is kept."""
        self._path = path
        self._turn = threading.Condition()
        self._content, self._asked, self._answered = b"", 0, 0
        self._problem, self._said = "", ""
        self._writer: threading.Thread | None = None

    def load(self) -> Record:
        return (read_json(self._path) if self._path else None) or {}

    def save(self, content: bytes, seconds: float) -> str:
        """What is newer goes before what waits."""
        if self._path is None:
            return "nothing is kept here"
        with self._turn:
            self._content, self._asked = content, self._asked + 1
            asked = self._asked
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_on, name="quiet-file", daemon=True)
                self._writer.start()
            self._turn.notify_all()
            return self._problem if self._turn.wait_for(lambda: self._answered >= asked, seconds) else _LATE

    def _write_on(self) -> None:
        while True:
            with self._turn:
                is_wanted = self._turn.wait_for(lambda: self._asked > self._answered,
                                                RETRY_SECONDS if self._problem else None)  # fmt: skip
                content, asked = self._content, self._asked
            if is_wanted or self._problem:
                problem = self._written(content)
                with self._turn:
                    self._problem, self._answered = problem, asked
                    self._turn.notify_all()

    def _written(self, content: bytes) -> str:
        assert self._path is not None
        try:
            small_files.replace(self._path, content)
        except OSError as error:
            problem = error.strerror or str(error)
            if problem != self._said:
                self._said = problem
                log.warning("%s: %s; it holds until the agent ends, and is written as soon as it can be",
                            self._path, problem)  # fmt: skip
            return problem
        self._said = ""
        return ""
