"""Journal files written and read strictly, disks that are small, and Python processes that are easy to watch."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trainvitals.journal import tail
from trainvitals.journal.record import decode, encode, timestamp
from trainvitals.journal.tail import Tail


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """Every record of a file in which nothing is torn."""
    content = path.read_bytes()
    assert content == b"" or content.endswith(b"\n"), f"{path.name} ends in {content[-40:]!r}"
    return [decode(line) for line in content.split(b"\n")[:-1]]


def numbers(folder: Path, key: str = "n") -> list[Any]:
    """A field of all records of a folder's files, the oldest file first."""
    return [record[key] for path in sorted(folder.glob("*.jsonl")) for record in whole_lines(path)]


def line(number: int, **more: Any) -> bytes:
    return encode({"timestamp": timestamp(1_753_878_896_000_000_000 + number * 1_000_000), "n": number, **more})


def lines(numbers: Sequence[int], **more: Any) -> bytes:
    return b"".join(line(number, **more) for number in numbers)


def add(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def following(*paths: Path, cursor: dict[str, Any] | None = None) -> Tail:
    made = Tail(cursor)
    for path in paths:
        made.follow(path)
    return made


def read(reader: Tail, path: Path, max_bytes: int = tail.CHUNK_BYTES) -> list[int]:
    """The numbers of all that is there to read."""
    found: list[int] = []
    while records := reader.read(path, max_bytes):
        found += [record["n"] for record in records]
    return found


@contextmanager
def small_disk(at: Path, size: str = "64k") -> Iterator[Path]:
    at.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", at], check=False, capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def python(script: str, *arguments: object, **options: Any) -> "subprocess.Popen[str]":
    """A process of its own that runs `script`, its output at hand line by line."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
        bufsize=1, **options)  # fmt: skip


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate(timeout=10)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
