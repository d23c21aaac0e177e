import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a shell script of that name before what is on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return put


@pytest.fixture(autouse=True)
def no_log() -> Iterator[None]:
    """A log that a test began ends with it."""
    yield
    for handler in [*logging.getLogger("deploy").handlers]:
        logging.getLogger("deploy").removeHandler(handler)
        handler.close()
