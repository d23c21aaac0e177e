"""The lock by which ranks agree on a folder, in the hands of somebody who does not let go of it."""

import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.journal.helpers import line_of, open_descriptors, python
from tests.collector.journal.test_claim import LAUNCH, NOBODY, take
from trainvitals.journal import claiming

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving a file to another user needs root")


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A journal that all may write to, its lock held by another."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs").chmod(0o1777)
    with (tmp_path / "runs" / ".claim").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield tmp_path


def test_everybodys_lock_is_waited_for_no_longer_than_a_process_waits_at_its_end(held: Path) -> None:
    began, before = time.monotonic(), open_descriptors()
    rank = take(held)
    assert rank.run == "train" and time.monotonic() - began < 2
    rank.release()
    assert open_descriptors() == before
    assert claiming.own_lock(held).stat().st_mode & 0o777 == 0o600


def test_the_ranks_of_one_launch_share_a_folder_all_the_same(held: Path) -> None:
    gate = held / "gate"
    launch = python(LAUNCH, held, "train", 6, gate)
    try:
        gate.touch()
        assert {line_of(launch) for _ in range(6)} == {"train"}
    finally:
        launch.communicate(timeout=20)


@as_root
@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_what_another_user_put_in_the_locks_place_keeps_nobody_waiting(tmp_path: Path, kind: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "precious").touch()
    path = claiming.own_lock(tmp_path)
    if kind == "link":
        path.symlink_to(tmp_path / "precious")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    with path.open("r+") if kind == "file" else (tmp_path / "precious").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        began = time.monotonic()
        assert take(tmp_path).run == "train" and time.monotonic() - began < 5
