"""A training beside storage that fails: full, read-only, gone, or silent for seconds. It ends as it would alone."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.collector.journal.helpers import small_disk
from tests.collector.support import wait_for
from tests.run.harm.conftest import Folders
from tests.run.support import (
    MOST_EXIT_SECONDS,
    Outcome,
    Training,
    assert_harmless,
    environment,
    lines,
    losses,
    run_folders,
    run_json,
)

# Longer than an end may take: who waits for an answer is found out.
SILENT_SECONDS = 6.0
ALL = set(range(1, 151))
SLOW_WRITE = Path(__file__).with_name("slow_write.c")
SLOW_FS = Path(__file__).with_name("slow_fs.py")


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


def test_a_disk_that_is_full_when_it_starts(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        with small_disk(folders[number] / "disk") as disk:
            fill(disk)
            outcome = Training(folders[number], journal=disk / "journal").outcome()
            assert not (disk / "journal" / "runs").exists() or len(run_folders(disk / "journal")) <= 1
        return outcome

    assert "No space left" in assert_harmless(attempt, alone, warnings=1).said[0]


def test_a_disk_that_fills_up_midway(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        with small_disk(folders[number] / "disk") as disk:
            training = Training(folders[number], "--gate", "60", journal=disk / "journal")
            training.pass_gate(lambda: fill(disk))
            outcome = training.outcome()
            written = losses(run_folders(disk / "journal")[0])  # reads strictly: no line is torn
            assert set(range(1, 59)) <= set(written) and len(written) < 150
        return outcome

    assert "no space left" in assert_harmless(attempt, alone, warnings=1).said[0].lower()


def test_a_disk_that_has_room_again_before_the_end(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        with small_disk(folders[number] / "disk", "1m") as disk:
            fill(disk)
            training = Training(folders[number], "--gate", "140", journal=disk / "journal")
            training.pass_gate((disk / "filler").unlink)
            outcome = training.outcome()
            (run,) = run_folders(disk / "journal")
            assert (run.name, run_json(run)["status"], set(losses(run))) == ("harm", "finished", set(range(1, 151)))
        return outcome

    assert_harmless(attempt, alone, warnings=1)


def test_a_folder_that_is_read_only(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        with small_disk(folders[number] / "disk") as disk:
            remount(disk, "ro")
            return Training(folders[number], journal=disk / "journal").outcome()

    assert "Read-only file system" in assert_harmless(attempt, alone, warnings=1).said[0]


def test_a_folder_that_is_deleted_midway(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        training = Training(folders[number], "--gate", "60")
        training.pass_gate(lambda: shutil.rmtree(training.journal))
        return training.outcome()

    assert_harmless(attempt, alone)


def test_a_folder_that_is_a_file(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        (folders[number] / "journal").write_text("not a folder")
        return Training(folders[number]).outcome()

    assert_harmless(attempt, alone, warnings=1)


@contextmanager
def silent_file_system(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Where it is mounted, and the file that silences it."""
    pytest.importorskip("mfusepy", reason="mounting a FUSE file system needs mfusepy and libfuse")
    mount, behind, switch = (folder / name for name in ("mount", "behind", "silent"))
    mount.mkdir()
    behind.mkdir()
    words = [sys.executable, str(SLOW_FS), str(mount), str(behind), str(switch), str(SILENT_SECONDS)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_for(lambda: mount.is_mount() or server.poll() is not None)
        if server.poll() is not None:
            pytest.skip(f"mounting a FUSE file system needs more than there is: {server.communicate()[0][-200:]}")
        yield mount, switch
    finally:
        switch.unlink(missing_ok=True)
        subprocess.run(["umount", "--lazy", mount], check=False)
        server.kill()
        server.communicate(timeout=10)


def test_a_fuse_file_system_that_is_silent_from_the_start(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        with silent_file_system(folders[number]) as (mount, switch):
            switch.touch()
            return Training(folders[number], journal=mount / "journal").outcome()

    assert_harmless(attempt, alone)


def test_a_fuse_file_system_that_falls_silent_midway(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        with silent_file_system(folders[number]) as (mount, switch):
            training = Training(folders[number], "--gate", "60", journal=mount / "journal")
            training.pass_gate(switch.touch)
            outcome = training.outcome()
            switch.unlink()
            # What was being written when the program ended may be there in part.
            assert len(lines(run_folders(mount / "journal")[0], torn=True)) >= 50
        return outcome

    assert_harmless(attempt, alone, warnings=1)


def test_a_signal_ends_the_program_also_where_the_storage_is_silent(tmp_path: Path) -> None:
    with silent_file_system(tmp_path) as (mount, switch):
        training = Training(tmp_path, "--gate", "60", journal=mount / "journal")
        training.pass_gate(lambda: (switch.touch(), training.process.send_signal(signal.SIGTERM)))
        began = time.monotonic()
        training.process.communicate(timeout=60)
        # The SDK's patience, and what the kernel waits for before it lets go of the files.
        assert training.process.returncode == -signal.SIGTERM
        assert time.monotonic() - began < MOST_EXIT_SECONDS + 2 * SILENT_SECONDS


def slow_writes(folder: Path, milliseconds: int) -> dict[str, str]:
    """What makes each write into the folder's journal take long, once the file `slow` is there."""
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    library = folder / "slow_write.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, SLOW_WRITE], check=True)
    return {"LD_PRELOAD": str(library), "SLOW_PREFIX": str(folder / "journal"), "SLOW_SWITCH": str(folder / "slow"),
            "SLOW_MILLISECONDS": str(milliseconds)}  # fmt: skip


def test_a_local_disk_that_becomes_slow_midway(folders: Folders, alone: Outcome) -> None:
    """Behind a large checkpoint, say. One call meets it; from then on a thread does."""

    def attempt(number: int) -> Outcome:
        folder = folders[number]
        training = Training(folder, "--gate", "60", env=environment(folder / "journal", **slow_writes(folder, 30)))
        training.pass_gate((folder / "slow").touch)
        outcome = training.outcome()
        (run,) = run_folders(folder / "journal")
        assert set(losses(run)) == ALL and run_json(run)["status"] == "finished"
        assert max(outcome.slowest.values()) > 0.03
        return outcome

    assert_harmless(attempt, alone, warnings=0)  # but the one that says so, which is not counted


def test_a_fuse_file_system_that_answers_gets_everything(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        with silent_file_system(folders[number]) as (mount, _):
            outcome = Training(folders[number], journal=mount / "journal").outcome()
            (run,) = run_folders(mount / "journal")
            assert set(losses(run)) == set(range(1, 151)) and run_json(run)["status"] == "finished"
        return outcome

    assert_harmless(attempt, alone, warnings=1)
