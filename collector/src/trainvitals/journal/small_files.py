"""Small files, as run.json, read and replaced in folders where another user may have been first.

replace(folder / "run.json", b"{}")   ->  readers see the old file or the new one
replace_in(fd, "run.json", b"{}")      ->  the same, in a folder that is open already
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
    try:
        replace_in(folder, path.name, content)
    finally:
        os.close(folder)


def replace_in(folder: int, name: str, content: bytes) -> None:
    draft = _draft_name(name)
    try:
        _write(draft, folder, content)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


def is_anothers(fd: int, folder: int) -> bool:
    """A file that another user made. Root's is nobody's trick: root may do to us what he likes."""
    owner = os.fstat(fd).st_uid
    return owner not in (0, os.geteuid()) and owner != _owner_of_ours(folder)


def is_foreign(folder: Path) -> bool:
    """A folder, or a link in its place, that another user put there. Who we are is asked of the file system where it
    matters: some give all their files to one user."""
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return True
    if status.st_uid == os.geteuid():
        return False
    parent = os.open(folder.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return status.st_uid != _owner_of_ours(parent)
    finally:
        os.close(parent)


def _owner_of_ours(folder: int) -> int:
    """Whose a file is that we make here."""
    draft = _draft_name("owner")
    fd = open_regular(draft, _DRAFT_FLAGS, folder)
    try:
        os.unlink(draft, dir_fd=folder)
        return os.fstat(fd).st_uid
    finally:
        os.close(fd)


def _draft_name(name: str) -> str:
    return f".{name}.{os.urandom(8).hex()}"


def _write(name: str, folder: int, content: bytes) -> None:
    with open(open_regular(name, _DRAFT_FLAGS, folder), "wb") as file:
        file.write(content)
