"""Packages of npm for tests, by a lock without addresses: made once for each lock, and kept in .cache.

made(Path("tests/web_page/axe"), ("package.json", "package-lock.json", ".npmrc"), "axe")  ->  .cache/axe/5f1c…
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[1] / ".cache"


def run(*words: str, folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"


def made(sources: Path, names: Sequence[str], cache: str, finish: Callable[[Path], None] = lambda folder: None) -> Path:
    """`finish` makes of the packages what is wanted, in the folder it is given."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed: it loads what this test needs")
    content = b"".join((sources / name).read_bytes() for name in names)
    folder = CACHE / cache / hashlib.sha256(content).hexdigest()[:16]
    if folder.is_dir():
        return folder
    work = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in names:
        shutil.copy(sources / name, work)
    run("npm", "ci", folder=work)
    finish(work)
    work.rename(folder)
    return folder
