"""A run that ends with its test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import trainvitals as tv


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tv.Run]:
    with tv.start("run", dir=tmp_path) as run:
        yield run
