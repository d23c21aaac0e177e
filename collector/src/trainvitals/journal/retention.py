"""Keeping the journal small: old node files thinned, then the oldest files and finished runs removed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, groupby, islice
from pathlib import Path

from trainvitals.journal import layout, runs
from trainvitals.journal.claiming import claiming
from trainvitals.journal.descriptors import open_regular
from trainvitals.journal.record import Record, decode, encode, seconds

RUNS_CAP_BYTES = 2 * 2**30
NODE_CAP_BYTES = 512 * 2**20
THIN_AFTER_SECONDS = 86400.0
THIN_TO_SECONDS = 60
_UNTOUCHED_SECONDS = 3600.0
_REMOVED = ".removed."
# Whoever made the folder may put a link in any file's place.
_DRAFT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def sweep(root: Path, host: str, now: float, *, runs_cap: int = RUNS_CAP_BYTES,
          node_cap: int = NODE_CAP_BYTES) -> int:  # fmt: skip
    """Applies every rule once. Returns the bytes that the journal then holds."""
    return sweep_node(layout.gpu_folder(root, host), now, node_cap) + sweep_runs(root, now, runs_cap)


def sweep_node(folder: Path, now: float, cap: int = NODE_CAP_BYTES) -> int:
    files = node_files(folder)
    for path in files:
        if now - _modified(path) > THIN_AFTER_SECONDS and not _is_thin(path):
            with suppress(OSError):
                thin(path)
    total = sum(_size(path) for path in files)
    for path in files:
        if total > cap and now - _modified(path) > _UNTOUCHED_SECONDS:
            total -= _remove_file(path)
    return total


def node_files(folder: Path) -> list[Path]:
    """A node's files, the oldest first."""
    found = [(match[2], path) for path in layout.children(folder) if (match := layout.NODE_FILE.match(path.name))]
    return [path for _, path in sorted(found)]


def sweep_runs(root: Path, now: float, cap: int = RUNS_CAP_BYTES) -> int:
    """The runs that were touched last stay longest; a live one stays whatever it takes."""
    folders = [path for path in layout.children(root / "runs") if layout.is_folder(path)]
    sizes = {folder: _measure(folder) for folder in folders}
    total = sum(size for _, size in sizes.values())
    for folder in sorted(folders, key=lambda folder: sizes[folder][0]):
        if folder.name.startswith(_REMOVED):
            shutil.rmtree(folder, ignore_errors=True)
        elif total > cap:
            total -= _remove_run(root, folder, now)
    return total


def _remove_run(root: Path, folder: Path, now: float) -> int:
    """Set aside in one step while nobody can resume the run, then removed. Returns the bytes that came free."""
    aside = folder.with_name(_REMOVED + folder.name)
    with suppress(OSError):
        with claiming(root):
            touched, size = _measure(folder)
            if _may_be_live(folder, touched, now):
                return 0
            folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
        return size - _measure(aside)[1]
    return 0


def thin(path: Path) -> None:
    """One line a minute and GPU: its last, filled up with the fields that only earlier ones of that minute hold,
    for a field is written when it changes. The first line of the file stays, by which readers know it."""
    draft = path.with_name(f".{path.name}.thin")
    draft.unlink(missing_ok=True)
    try:
        with open(open_regular(draft, _DRAFT_FLAGS), "wb") as out:
            out.writelines(encode(record) for record in _by_minute(path))
            out.flush()
            status = os.lstat(path)
            os.fchmod(out.fileno(), status.st_mode & 0o777)
            os.utime(out.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _by_minute(path: Path) -> Iterator[Record]:
    records = _records(path)
    yield from islice(records, 1)
    for _, minute in groupby(records, key=_minute):
        merged: dict[str, Record] = {}
        for record in minute:
            merged.setdefault(_gpu(record), {}).update(record)
        yield from merged.values()


def _minute(record: Record) -> int:
    return int((seconds(record.get("timestamp")) or 0.0) // THIN_TO_SECONDS)


def _gpu(record: Record) -> str:
    return str(record.get("gpu_index"))


def _records(path: Path) -> Iterator[Record]:
    with open(open_regular(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as lines:
        for line in lines:
            with suppress(ValueError):
                yield decode(line)


def _is_thin(path: Path) -> bool:
    """Told by the lines themselves: behind the first, the next three of a GPU come in minutes of their own.
    Two would not do, as a minute may end between any two."""
    with suppress(OSError):
        lines = islice(_records(path), 1, None)
        for first in islice(lines, 1):
            same_gpu = (record for record in chain([first], lines) if _gpu(record) == _gpu(first))
            minutes = [_minute(record) for record in islice(same_gpu, 3)]
            return len(set(minutes)) == len(minutes)
    return True


def _may_be_live(folder: Path, touched: float, now: float) -> bool:
    """Locks do not show on every shared file system, so a run written to within the hour counts too."""
    return now - touched < _UNTOUCHED_SECONDS or any(runs.is_alive(path) for path in runs.process_files(folder))


def _measure(folder: Path) -> tuple[float, int]:
    """When anything in it was last touched, and the bytes it holds. That somebody looked at a run, for which an index
    was made, keeps it no longer."""
    touched, size = _modified(folder), 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):
                status = os.lstat(os.path.join(parent, name))
                size += status.st_size if name in files else 0
                if name != "agent" and not layout.INDEX_FILE.match(name):
                    touched = max(touched, status.st_mtime)
    return touched, size


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _modified(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _remove_file(path: Path) -> int:
    size = _size(path)
    with suppress(OSError):
        path.unlink()
        return size
    return 0
