"""The index of one rank's training files: kept up to date, and read.

index = RankIndex(root / "runs" / "gemma", "gpu1", 0); index.advance(lambda: False); index.view()
->  View([Block("training_metrics_….jsonl", 0, 38211, …), …], missing=0)

What cannot be written, because the journal is read-only or its disk full, is held in memory. What does not fit with the
files that it speaks of is made anew.
"""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from trainvitals.agent.run_state import OWN_NAMES
from trainvitals.journal import index, layout
from trainvitals.journal.index import Block, Names
from trainvitals.journal.index_file import IndexFile, Stamp
from trainvitals.journal.lines import opened

# Lines that no block tells of yet, as those at the ends of files, are read so far at once.
TAIL_BYTES = 8 << 20
SAVED_BLOCKS = 64
MAX_UNSAVED_BYTES = 16 << 20
MAX_FILES = 10_000
# Of so many files the names are remembered: as many runs as are listed at most.
MAX_KNOWN = 1000


class Span(NamedTuple):
    """Lines of a file."""

    file: str
    start: int
    end: int


class View(NamedTuple):
    """All blocks in the order of the files, the last lines of each among them, which no index tells of yet. `missing`
    counts the bytes that wait to be indexed."""

    blocks: list[Block]
    missing: int


class RankIndex:
    """Whoever uses it holds its lock."""

    def __init__(self, folder: Path, host: str, rank: int, is_writer: bool = True) -> None:
        self.folder, self.rank, self.lock = folder, rank, threading.Lock()
        self._file = _index_file(folder, host, rank)
        self._is_writer, self._is_loaded = is_writer, False
        self._ends: dict[str, int] = {}
        self._names = Names(OWN_NAMES)
        # The file as it was left.
        self._left: Stamp | None = None
        self._unsaved: list[bytes] = []
        self.unsaved_bytes = 0

    def advance(self, is_enough: Callable[[], bool]) -> bool:
        """Goes on until all is told of, or it `is_enough`; whether all is."""
        files = self._files()
        if not self._is_loaded or self._file.stamp() != self._left:
            self._load(files)
        try:
            return all(self._advance_file(span, is_enough) for span in self._untold(files))
        finally:
            self._save()

    def view(self) -> View:
        files = self._files()
        blocks = [block for block in self._load(files) if block.file in files]
        left, missing = TAIL_BYTES, 0
        # They are not written: what they tell of for the first time will be told by the blocks to come.
        names = Names(OWN_NAMES, set(self._names.told))
        for span in reversed(self._untold(files)):
            size = span.end - span.start
            if size > left:
                missing += size
                continue
            left -= size
            blocks += self._rest(span, names)
        return View(sorted(blocks, key=lambda block: (block.file, block.offset)), missing)

    def _rest(self, span: Span, names: Names) -> list[Block]:
        with suppress(OSError), opened(self.folder, span.file) as fd:
            return list(index.blocks(fd, span.file, span.start, names, span.end))
        return []

    def _files(self) -> dict[str, int]:
        """The rank's, in the order of their times, and how long each is."""
        found: list[tuple[str, int]] = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            mine = (entry for entry in entries if layout.training_rank(entry.name) == self.rank)
            found += [(entry.name, entry.stat(follow_symlinks=False).st_size) for entry in mine
                      if entry.is_file(follow_symlinks=False)]  # fmt: skip
        return dict(sorted(found)[-MAX_FILES:])

    def _untold(self, files: Mapping[str, int]) -> list[Span]:
        return [Span(name, start, size) for name, size in files.items() if (start := self._ends.get(name, 0)) < size]

    def _advance_file(self, span: Span, is_enough: Callable[[], bool]) -> bool:
        """A file that is gone, or that may not be read, is passed over."""
        with suppress(OSError), opened(self.folder, span.file) as fd:
            for block in index.blocks(fd, span.file, span.start, self._names):
                if self.unsaved_bytes > MAX_UNSAVED_BYTES:
                    break
                self._keep(block)
                if is_enough():
                    return False
        return True

    def _keep(self, block: Block) -> None:
        line = index.encoded(block)
        self._unsaved.append(line)
        self.unsaved_bytes += len(line)
        self._ends[block.file] = block.end
        if len(self._unsaved) % SAVED_BLOCKS == 0:
            self._save()

    def _save(self) -> None:
        if self._unsaved and self._is_writer and self._file.append(b"".join(self._unsaved)):
            self._unsaved, self.unsaved_bytes = [], 0
            self._left = self._file.stamp()

    def _load(self, files: Mapping[str, int]) -> list[Block]:
        """Takes the file as it is: it may have been removed, cut or replaced."""
        self._left, self._is_loaded = self._file.stamp(), True
        try:
            return self._taken(b"".join([self._file.read(), *self._unsaved]).splitlines(), files)
        except ValueError:
            self._start_over()
            return []

    def _taken(self, lines: list[bytes], files: Mapping[str, int]) -> list[Block]:
        blocks, ends = list(map(index.decoded, lines)), dict[str, int]()
        for block in blocks:
            if block.offset != ends.get(block.file, 0) or files.get(block.file, block.end) < block.end:
                raise ValueError("a block is missing, or its file is another now")
            ends[block.file] = block.end
        self._ends = ends
        self._names = Names(OWN_NAMES, set[str]().union(*(block.names for block in blocks)))
        return blocks

    def _start_over(self) -> None:
        self._ends, self._names = {}, Names(OWN_NAMES)
        self._unsaved, self.unsaved_bytes = [], 0
        if self._is_writer:
            self._file.clear()
            self._left = self._file.stamp()


def told_names(folder: Path, host: str, rank: int) -> frozenset[str]:
    """The fields that the index's file tells of; it is read again only where it has changed."""
    if stamp := _index_file(folder, host, rank).stamp():
        with suppress(LookupError):
            return _names_at(stamp, folder, host, rank)
    return frozenset()


@lru_cache(MAX_KNOWN)
def _names_at(_: Stamp, folder: Path, host: str, rank: int) -> frozenset[str]:
    """Found without taking all of it apart. What cannot be read now may be later."""
    lines = _index_file(folder, host, rank).read()
    if not lines:
        raise LookupError(folder)
    names, at = set[str](), 0
    with suppress(ValueError):
        while (at := lines.find(index.NEW_NAMES, at)) >= 0:
            begun, at = lines.rfind(b"\n", 0, at) + 1, lines.index(b"\n", at)
            names.update(index.decoded(lines[begun:at]).names)
    return frozenset(names)


def _index_file(folder: Path, host: str, rank: int) -> IndexFile:
    return IndexFile(folder, layout.index_file(host, rank), index.header(folder.name, rank))
