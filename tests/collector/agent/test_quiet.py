"""quiet.json: kept over restarts, whatever becomes of the writer or its disk."""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.collector.journal.helpers import small_disk
from tests.collector.support import wait_for
from trainvitals.agent import quiet as module
from trainvitals.agent import quiet_file
from trainvitals.agent.quiet import FILE, Quiet, TooMany
from trainvitals.clock import Clock
from trainvitals.detect.finding import Place
from trainvitals.detect.quieting import FIELDS, Acknowledgement, Covered, Kept, Silence
from trainvitals.journal import small_files
from trainvitals.journal.record import timestamp_at
from trainvitals.journal.runs import read_json

BEGAN = 1_753_878_896.0


def silent(number: int, hours: float = 1, note: str = "", began: float = BEGAN) -> Silence:
    until = timestamp_at(began + 3600 * hours)
    return Silence(f"{number:016x}", timestamp_at(began), until, "me", note, kind=f"K{number}")


def known(number: int, note: str = "") -> Acknowledgement:
    stamp = timestamp_at(BEGAN + number)
    return Acknowledgement(f"{number:016x}", stamp, stamp, "me", note, (Covered("K", "page", Place(f"r{number}")),))


def made(folder: Path, **more: Any) -> Quiet:
    return Quiet(folder / FILE, "gpu1", **{"clock": Clock(lambda: BEGAN), **more})


def loaded(folder: Path) -> Kept:
    quiet = made(folder)
    quiet.load()
    return quiet.kept


def test_what_is_said_holds_at_once_and_after_a_restart(tmp_path: Path) -> None:
    quiet = made(tmp_path)
    assert quiet.silence(silent(1)) == quiet.acknowledge(known(2)) == ""
    assert loaded(tmp_path) == quiet.kept
    assert quiet.forget(f"{1:016x}") == ""
    assert loaded(tmp_path) == quiet.kept == Kept({f"{2:016x}": known(2)})
    with pytest.raises(KeyError):
        quiet.forget(f"{1:016x}")
    assert {path.name for path in tmp_path.iterdir()} == {FILE}


def test_whoever_tells_is_told_of_each_change(tmp_path: Path) -> None:
    quiet, heard = made(tmp_path), list[int]()
    quiet.listeners.append(lambda: heard.append(len(quiet.kept.silences)))
    quiet.silence(silent(1))
    quiet.forget(f"{1:016x}")
    assert heard == [1, 0]


def test_where_nothing_is_kept_it_holds_in_memory_and_says_so() -> None:
    quiet = Quiet(None, "gpu1")
    assert quiet.silence(silent(1)) == "nothing is kept here"
    assert quiet.kept.silences


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff\xfe", b'{"silences":3}', b"x" * 2_000_000])
def test_a_file_that_somebody_broke_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert loaded(tmp_path) == Kept()
    quiet = made(tmp_path)
    assert quiet.silence(silent(1)) == ""
    assert loaded(tmp_path) == quiet.kept


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    folder = tmp_path / "gpu1"
    folder.mkdir()
    (folder / FILE).symlink_to(tmp_path / "elsewhere")
    made(folder).silence(silent(1))
    assert (tmp_path / "elsewhere").read_text() == "mine" and not (folder / FILE).is_symlink()


# --- Bounds ---


def say(quiet: Quiet, *some: Silence | Acknowledgement) -> None:
    for one in some:
        quiet.silence(one) if isinstance(one, Silence) else quiet.acknowledge(one)


def test_what_is_over_goes_first_and_what_holds_is_never_pushed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 20)
    is_open = {f"{number:016x}" for number in range(5, 20)}
    quiet = made(tmp_path, is_open=lambda: is_open)
    for number in range(20):
        quiet.acknowledge(known(number))
        quiet.silence(silent(100 + number, hours=-1 if number % 4 == 0 else 1))
    quiet.acknowledge(known(50))
    quiet.silence(silent(150))
    assert is_open <= quiet.kept.acknowledged.keys() and f"{0:016x}" not in quiet.kept.acknowledged
    holding = {f"{100 + number:016x}" for number in range(20) if number % 4}
    assert holding <= quiet.kept.silences.keys() and max(map(len, quiet.kept.record().values())) <= 20
    is_open |= {f"{number:016x}" for number in range(200)}
    with pytest.raises(TooMany, match="all of these hold: take some back first"):
        say(quiet, *map(known, range(60, 80)))
    before = quiet.kept
    with pytest.raises(TooMany):
        say(quiet, *map(silent, range(160, 180)))
    assert before.acknowledged == quiet.kept.acknowledged and holding <= quiet.kept.silences.keys()
    assert loaded(tmp_path) == quiet.kept


def test_the_file_never_grows_beyond_what_is_read_of_it(tmp_path: Path) -> None:
    quiet = made(tmp_path)
    with pytest.raises(TooMany):
        say(quiet, *(silent(number, note="\u00fc" * 2000) for number in range(module.MOST)))
    assert (tmp_path / FILE).stat().st_size <= module.MOST_BYTES
    assert loaded(tmp_path) == quiet.kept and len(quiet.kept.silences) > 200


def test_a_thousand_of_each_fit(tmp_path: Path) -> None:
    quiet = made(tmp_path, is_open=lambda: {f"{number:016x}" for number in range(1000)})
    quiet.kept = Kept({one.id: one for one in map(known, range(999))}, {one.id: one for one in map(silent, range(999))})
    assert quiet.acknowledge(known(999)) == quiet.silence(silent(999)) == ""
    assert loaded(tmp_path) == quiet.kept


# --- Trouble ---

# Writes again and again; each state has as many silences as its note says.
WRITER = """
import sys
from pathlib import Path
from tests.collector.agent.test_quiet import made, silent
quiet = made(Path(sys.argv[1]))
quiet.load()
for number in range(10_000):
    count = number % 50 + 1
    for one in list(quiet.kept.silences):
        quiet.kept.silences.pop(one)
    quiet.kept.silences.update({silent(n).id: silent(n, note=str(count)) for n in range(1, count)})
    quiet.silence(silent(0, note=str(count)))
    if number == 1:
        print("writing", flush=True)
"""


def test_a_kill_amid_writing_leaves_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    chance = random.Random(13)
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], text=True, stdout=subprocess.PIPE,
                                   cwd=Path(__file__).parents[3])  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "writing\n"
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.communicate(timeout=10)
        told = read_json(tmp_path / FILE)
        assert told is not None
        silences = loaded(tmp_path).silences
        assert len(silences) == len(told["silences"]) == int(next(iter(silences.values())).note)


def test_a_full_disk_costs_nothing_but_the_file_which_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                              caplog: pytest.LogCaptureFixture) -> None:  # fmt: skip
    monkeypatch.setattr(quiet_file, "RETRY_SECONDS", 0.05)
    with small_disk(tmp_path / "small") as disk:
        quiet = made(disk)
        assert quiet.silence(silent(1)) == ""
        (disk / "filler").write_bytes(b"x" * (disk_free(disk) - 4096))
        while disk_free(disk):
            with (disk / "filler").open("ab") as filler:
                filler.write(b"x" * disk_free(disk))
        assert quiet.silence(silent(2, note="x" * 100)) == "No space left on device"
        assert quiet.acknowledge(known(3)) == "No space left on device"
        assert len(quiet.kept.silences) == 2
        assert list(loaded(disk).silences) == [f"{1:016x}"]
        (disk / "filler").unlink()
        wait_for(lambda: loaded(disk) == quiet.kept)
        assert quiet.forget(f"{1:016x}") == ""
        assert {path.name for path in disk.iterdir()} == {FILE}
    assert caplog.text.count("it holds until the agent ends, and is written as soon as it can be") == 1


def disk_free(folder: Path) -> int:
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


def test_a_disk_that_hangs_is_not_waited_for_and_gets_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.1)
    hangs, replace, written = threading.Event(), small_files.replace, list[int]()

    def slow(path: Path, content: bytes) -> None:
        hangs.wait(30)
        written.append(content.count(b'"kind"'))
        replace(path, content)

    monkeypatch.setattr(small_files, "replace", slow)
    quiet = made(tmp_path)
    for number in range(5):
        assert quiet.silence(silent(number)) == "the disk does not answer"
    assert len(quiet.kept.silences) == 5
    hangs.set()
    wait_for(lambda: loaded(tmp_path) == quiet.kept)
    assert written == [1, 5]


def test_a_folder_that_is_not_there_is_said_and_met_when_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet_file, "RETRY_SECONDS", 0.05)
    quiet = made(tmp_path / "gpu1")
    assert quiet.silence(silent(1)) == "No such file or directory"
    (tmp_path / "gpu1").mkdir()
    wait_for(lambda: loaded(tmp_path / "gpu1") == quiet.kept)


def test_the_page_on_the_journal_names_all_that_is_in_it() -> None:
    page = (Path(__file__).parents[3] / "docs" / "journal.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| `quiet.json` |")]
    told = Kept({"x": known(1)}, {"y": silent(1)}).record()
    # An agent's places name no machine.
    names = {*told, *FIELDS, *Place._fields[:-1], *told["acknowledged"][0], *told["silences"][0]}
    assert [name for name in names | {"kind", "severity"} if f"`{name}`" not in row] == []
