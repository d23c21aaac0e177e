"""Small files, as run.json, read and replaced in folders where another user may have been first.

replace(folder / "run.json", b"{}")   ->  readers see the old file or the new one
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from trainvitals.journal.descriptors import FOLDER_FLAGS, open_regular

_DRAFT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def replace(path: Path, content: bytes) -> None:
    """By way of the folder itself, which is no link to another, and of a name that nobody can have guessed."""
    folder = os.open(path.parent, FOLDER_FLAGS)
    draft = _draft_name(path.name)
    try:
        _write(draft, folder, content)
        os.replace(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise
    finally:
        os.close(folder)


def is_foreign(folder: Path) -> bool:
    """A folder, or a link in its place, that another user put there. Who we are is asked of the file system where it
    matters: some give all their files to one user."""
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return True
    return status.st_uid != os.geteuid() and status.st_uid != _owner_of_ours(folder.parent)


def _owner_of_ours(folder: Path) -> int:
    """Whose a file is that we make here."""
    draft = folder / _draft_name("owner")
    fd = open_regular(draft, _DRAFT_FLAGS)
    try:
        draft.unlink()
        return os.fstat(fd).st_uid
    finally:
        os.close(fd)


def _draft_name(name: str) -> str:
    return f".{name}.{os.urandom(8).hex()}"


def _write(name: str, folder: int, content: bytes) -> None:
    with open(open_regular(name, _DRAFT_FLAGS, folder), "wb") as file:
        file.write(content)
