"""A stand-in for libnvidia-ml.so.1, so that the real pynvml runs where there is no GPU.

    library = build(directory)
    scenario = Scenario(directory / "scenario", "gpus 2")
    subprocess.run([...], env={**os.environ, **environment(library.parent, scenario.path)})
    scenario.set(1, "temperature", 91)

README.md beside this file has the scenario's format.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-shared", "-pthread")
# The library looks at the file at most every 5 ms, by a clock that ticks every 4 ms, or 10 ms on some kernels.
SETTLE_SECONDS = 0.015

_sources = Path(__file__).parent
_serials = itertools.count(1000)  # clear of those that tests write by hand


def build(directory: Path, flags: Sequence[str] = ()) -> Path:
    """Compiles the library into the directory, unless it is there from the same sources, and returns its path."""
    library = directory / LIBRARY
    stamp = directory / f"{LIBRARY}.stamp"
    digest = _digest(flags)
    if library.exists() and stamp.exists() and stamp.read_text() == digest:
        return library
    directory.mkdir(parents=True, exist_ok=True)
    made = directory / f"{LIBRARY}.{os.getpid()}"
    sources = [str(path) for path in sorted(_sources.glob("*.c"))]
    subprocess.run(["gcc", *FLAGS, *flags, f"-Wl,-soname,{LIBRARY}", "-o", str(made), *sources], check=True)
    made.replace(library)
    stamp.write_text(digest)
    return library


def _digest(flags: Sequence[str]) -> str:
    hasher = hashlib.sha256(" ".join([*FLAGS, *flags]).encode())
    for path in sorted(_sources.glob("*.[ch]")):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


def environment(lib_dir: Path, scenario_path: Path) -> dict[str, str]:
    """What a subprocess needs in its environment to find the library and its scenario."""
    paths = [str(lib_dir), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": ":".join(filter(None, paths)), "FAKENVML_SCENARIO": str(scenario_path)}


def preload(library: Path) -> None:
    """Makes pynvml in this process find the library: the loader matches its soname before it searches any path."""
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


class Scenario:
    """A scenario file. When a method returns, every later NVML call sees what it wrote."""

    def __init__(self, path: Path, text: str = "") -> None:
        self.path = path
        self.write(text)

    def write(self, text: str) -> None:
        self.text = text
        new = self.path.with_name(f"{self.path.name}.new")
        new.write_text(text)
        new.replace(self.path)
        time.sleep(SETTLE_SECONDS)

    def add(self, line: str) -> None:
        self.write(f"{self.text.rstrip()}\n{line}\n")

    def set(self, gpu: int | str, key: str, value: object = "") -> None:
        """Adds a line about a GPU, by index or "*" for all, which wins over earlier ones."""
        self.add(f"gpu {gpu} {key} {value}")

    def xid(self, gpu: int, code: int) -> int:
        """Raises an Xid on a GPU and returns the event's serial."""
        serial = next(_serials)
        self.add(f"xid {gpu} {code} {serial}")
        return serial
