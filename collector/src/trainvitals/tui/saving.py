"""What was seen, as a file of JSON lines: a line a tick for each GPU and live run, named as in the journal, and last
the whole of what is known now.

save(folder, lines(view))  ->  "Saved 1,240 lines to /home/ada/trainvitals-20261119-134500.jsonl"
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from trainvitals.journal.record import Record, encode, timestamp_at
from trainvitals.tui.history import Frame
from trainvitals.tui.picture import PHASE
from trainvitals.tui.view import View

MOST_NAMES = 100


def lines(view: View) -> list[bytes]:
    """Nothing where nothing was seen."""
    found = [encode(line) for frame in view.history.frames for line in _of(frame)]
    if view.picture.at is None:
        return found
    return [*found, encode({"timestamp": timestamp_at(view.picture.at), "snapshot": asdict(view.picture)})]


def _of(frame: Frame) -> Iterator[Record]:
    things: dict[tuple[str, str], Record] = {}
    for (kind, name, field), value in frame.values.items():
        if not field.startswith(PHASE):
            things.setdefault((kind, name), {})[field] = value
    for (kind, name), values in things.items():
        what = {"gpu_index": int(name)} if kind == "gpu" else {"run": name}
        yield {"timestamp": timestamp_at(frame.told), **what, **values}


def save(folder: Path, what: Sequence[bytes]) -> str:
    """Where it is, or why it is nowhere. Never over another file."""
    if not what:
        return "Not saved: nothing has been seen yet."
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = _write(folder, b"".join(what))
    except OSError as error:
        return f"Not saved: {folder.absolute()}: {error.strerror}; name another folder with --save-dir"
    return f"Saved {len(what):,} lines to {path.absolute()}"


def _write(folder: Path, content: bytes) -> Path:
    stem = time.strftime("trainvitals-%Y%m%d-%H%M%S")
    path, file = _new_file(folder, stem)
    try:
        with os.fdopen(file, "wb") as writing:
            writing.write(content)
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
    return path


def _new_file(folder: Path, stem: str) -> tuple[Path, int]:
    for number in range(1, MOST_NAMES):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}.jsonl"
        with suppress(FileExistsError):
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    raise FileExistsError(0, "every name is taken")
