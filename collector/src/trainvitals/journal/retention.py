"""Keeping the journal small: old node files thinned, then the oldest files and finished runs removed."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trainvitals.journal import layout, runs
from trainvitals.journal.record import Record, decode, encode, seconds

RUNS_CAP_BYTES = 2 * 2**30
NODE_CAP_BYTES = 512 * 2**20
THIN_AFTER_SECONDS = 86400.0
THIN_TO_SECONDS = 60
_UNTOUCHED_SECONDS = 3600.0


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
    found = [(match[2], path) for path in _children(folder) if (match := layout.NODE_FILE.match(path.name))]
    return [path for _, path in sorted(found)]


def sweep_runs(root: Path, now: float, cap: int = RUNS_CAP_BYTES) -> int:
    """The runs that were touched last stay longest; a live one stays whatever it takes."""
    folders = sorted((path for path in _children(root / "runs") if path.is_dir()), key=_last_touched)
    sizes = {folder: sum(_size(path) for path in folder.rglob("*")) for folder in folders}
    total = sum(sizes.values())
    for folder in folders:
        if total > cap and not _may_be_live(folder, now):
            shutil.rmtree(folder, ignore_errors=True)
            total -= sizes[folder]
    return total


def thin(path: Path) -> None:
    """One line a minute and GPU. Fields of the minute's later lines fill what its first did not hold,
    so that what is read rarely stays too; the first line keeps its beginning, by which readers know the file."""
    draft = path.with_name(f".{path.name}.thin")
    with draft.open("wb") as out:
        for record in _by_minute(path):
            out.write(encode(record))
    shutil.copystat(path, draft)
    draft.replace(path)


def _by_minute(path: Path) -> Iterator[Record]:
    minute: int | None = None
    kept: dict[object, Record] = {}
    for record in _records(path):
        at = int((seconds(record.get("timestamp")) or 0.0) // THIN_TO_SECONDS)
        if at != minute:
            yield from kept.values()
            minute, kept = at, {}
        first = kept.setdefault(record.get("gpu_index"), record)
        for field, value in record.items():
            first.setdefault(field, value)
    yield from kept.values()


def _records(path: Path) -> Iterator[Record]:
    with path.open("rb") as lines:
        for line in lines:
            with suppress(ValueError):
                yield decode(line)


def _is_thin(path: Path) -> bool:
    """Told by the lines themselves: the second one of a GPU comes in another minute."""
    first: dict[object, int] = {}
    with suppress(OSError):
        for record in _records(path):
            at = int((seconds(record.get("timestamp")) or 0.0) // THIN_TO_SECONDS)
            key = record.get("gpu_index")
            if key in first:
                return first[key] != at
            first[key] = at
    return True


def _may_be_live(folder: Path, now: float) -> bool:
    """Locks do not show on every shared file system, so a run written to within the hour counts too."""
    touched = now - _last_touched(folder) < _UNTOUCHED_SECONDS
    return touched or any(runs.is_alive(path) for path in runs.process_files(folder))


def _last_touched(folder: Path) -> float:
    return max([_modified(folder), *(_modified(path) for path in folder.rglob("*"))])


def _children(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


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
