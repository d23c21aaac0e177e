"""A FUSE file system that keeps its files in another folder, and answers nothing for some seconds where it is told to:

    slow_fs.py MOUNT BEHIND SWITCH SECONDS

While the file SWITCH is there each question waits, SECONDS at most.
"""

import os
import sys
import time
from functools import wraps
from pathlib import Path
from typing import Any

import mfusepy

_STAT = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid", "st_ino")


class Slow(mfusepy.Operations):
    use_ns = True

    def __init__(self, behind: str, switch: Path, seconds: float) -> None:
        self._behind, self._switch, self._seconds = behind, switch, seconds

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or name not in Slow.__dict__ or not callable(found):
            return found

        @wraps(found)
        def answer(path: str, *arguments: Any) -> Any:
            self._wait()
            return found(self._behind + path, *arguments)

        return answer

    def _wait(self) -> None:
        deadline = time.monotonic() + self._seconds
        while self._switch.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def getattr(self, path: str, _: Any = None) -> dict[str, Any]:
        status = os.lstat(path)
        return {name: getattr(status, name) for name in _STAT if "time" not in name} | {
            name: getattr(status, f"{name}_ns") for name in _STAT if "time" in name
        }

    def readdir(self, path: str, _: Any) -> list[str]:
        return [".", "..", *os.listdir(path)]

    def create(self, path: str, mode: int, _: Any = None) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT, mode)

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags & ~(os.O_EXCL | os.O_CREAT | os.O_APPEND))

    def read(self, _: str, size: int, offset: int, handle: int) -> bytes:
        return os.pread(handle, size, offset)

    def write(self, _: str, content: bytes, offset: int, handle: int) -> int:
        return os.pwrite(handle, content, offset)

    def truncate(self, path: str, length: int, _: Any = None) -> None:
        os.truncate(path, length)

    def release(self, _: str, handle: int) -> None:
        os.close(handle)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(path, mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, self._behind + new)


if __name__ == "__main__":
    mount, behind, switch, seconds = sys.argv[1:]
    mfusepy.FUSE(Slow(behind, Path(switch), float(seconds)), mount, foreground=True)
