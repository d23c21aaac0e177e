"""What waits: bounded, kept on disk for its owner alone, read again whatever became of the file."""

import math
import os
import random
import stat
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.collector.journal.helpers import small_disk
from tests.collector.support import wait_for
from tests.notify.support import closed, finding, opened, storm, ticket, updated
from trainvitals.notify import shelf as shelves
from trainvitals.notify.case import Case, case_of
from trainvitals.notify.ledger import Ledger
from trainvitals.notify.limits import SENTENCE_CHARACTERS
from trainvitals.notify.shelf import Shelf, read


class Kept:
    """A ledger and its file."""

    def __init__(self, path: Path) -> None:
        self.ledger, self.lock = Ledger(), threading.Lock()
        self.shelf = Shelf(path, self.ledger, self.lock)
        self.shelf.start()
        assert self.shelf.loaded.wait(10)

    def save(self) -> None:
        assert self.shelf.save(10)


def told(cases: Sequence[Case]) -> list[tuple[str, str, str | None]]:
    return [(case.change.finding.kind, case.change.state, case.told) for case in cases]


# --- Its bounds ---


def test_the_oldest_tickets_go_before_pages_and_what_was_told_before_both() -> None:
    ledger = Ledger(max_entries=20)
    known = ledger.note(opened())
    assert known is not None
    known.told = "page"
    for number in range(10):
        ledger.note(opened(ticket(gpu=str(number))))
    for change in storm(10):
        ledger.note(change)
    left = [case.change.finding for case in ledger.cases]
    assert known not in ledger.cases
    assert [one.place.gpu for one in left if one.severity == "ticket"] == [str(number) for number in range(2, 10)]
    assert sum(one.severity == "page" for one in left) == 10
    assert ledger.dropped == 2


def test_so_does_a_bound_in_bytes() -> None:
    ledger = Ledger(max_bytes=20_000)
    for change in storm(1000, "ticket"):
        ledger.note(change)
        assert ledger.live_bytes <= 20_000
    assert ledger.live_bytes == sum(len(case.line) for case in ledger.cases)
    assert len(ledger.cases) + ledger.dropped == 1000


def test_a_flood_does_not_keep_its_teller_waiting() -> None:
    ledger, began = Ledger(), time.monotonic()
    for change in storm(10_000):
        ledger.note(change)
    assert time.monotonic() - began < 10


def test_a_sentence_without_end_is_cut() -> None:
    ledger = Ledger()
    case = ledger.note(opened(finding(what="x" * 10**6)))
    assert case is not None and len(case.change.finding.what) <= SENTENCE_CHARACTERS + 2


# --- Its lines ---


def test_a_line_holds_all_that_is_known() -> None:
    cause = finding("GpuXidFatal", gpu="3", uuid="GPU-3")
    change = updated(finding()._replace(threshold=math.inf, step=812, advice="stop"), evidence=(ticket(),), cause=cause)
    case = Case(change, told="ticket", more=3, number=7)
    number, found = case_of(case.encoded())
    assert number == 7 and found is not None
    assert str(found.change) == str(change)
    assert (found.told, found.more) == ("ticket", 3)


@pytest.mark.parametrize("line", [
    b"", b"\n", b"{", b"[]", b"7", b'{"number":1}', b'{"done":true}', b'{"number":"x","done":true}', b"\xff\xfe\x00",
    Case(opened(), number=1).encoded()[:-9], Case(opened(), number=1).encoded().replace(b'"open"', b'"ajar"'),
    Case(opened(), number=1).encoded().replace(b'"page"', b'"loud"'),
    Case(opened(), number=1).encoded().replace(b'"gemma"', b"[1]"),
    Case(opened(), number=1).encoded().replace(b'"what"', b'"how"'),
])  # fmt: skip
def test_a_line_that_is_none_is_told_apart(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # whichever it is, the line is skipped
        case_of(line)


# --- Its file ---


def test_what_waits_outlives_the_process(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "q" / "slack.jsonl")
    one = kept.ledger.note(opened())
    assert one is not None
    one.told = "page"
    kept.ledger.changed(one)
    kept.ledger.note(opened(ticket()))
    kept.ledger.note(closed())
    kept.save()
    again = Kept(tmp_path / "q" / "slack.jsonl")
    assert told(again.ledger.cases) == [("TrainingNonFinite", "close", "page"), ("GpuTemperatureHigh", "open", None)]
    for case in again.ledger.cases:
        again.ledger.remove(case)
    again.save()
    assert told(Kept(tmp_path / "q" / "slack.jsonl").ledger.cases) == []


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        kept = Kept(tmp_path / "q" / "slack.jsonl")
        kept.ledger.note(opened())
        kept.save()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "q").stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "q").iterdir()] == [0o600]


def test_corrupt_lines_are_skipped_and_that_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "slack.jsonl"
    lines = [Case(change, number=number).encoded() for number, change in enumerate(storm(5))]
    path.write_bytes(b"".join([*lines[:2], b"garbage\n", *lines[2:4], lines[4][:-20]]))
    assert len(read(path)) == 4
    assert "2 lines are none of a queue and were skipped" in caplog.text


def test_whatever_a_file_holds_nothing_breaks(tmp_path: Path) -> None:
    chance, path = random.Random(7), tmp_path / "slack.jsonl"
    whole = b"".join(Case(change, number=number).encoded() for number, change in enumerate(storm(20)))
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(chance.randrange(1, 40)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.randrange(len(content))])
        assert len(read(path)) <= 21


def test_it_stays_short_however_much_passes_through(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "slack.jsonl")
    for change in storm(2000):
        case = kept.ledger.note(change)
        assert case is not None
        kept.ledger.remove(case)
        if len(kept.ledger.cases) == 0 and change.finding.kind == "Kind0":
            kept.save()
            assert (tmp_path / "slack.jsonl").stat().st_size < 2**18


def test_a_file_that_is_taken_away_is_written_anew(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "slack.jsonl")
    for change in storm(3):
        kept.ledger.note(change)
        kept.save()
        assert len(read(tmp_path / "slack.jsonl")) == len(kept.ledger.cases)
        (tmp_path / "slack.jsonl").unlink()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("precious")
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "slack.jsonl").symlink_to(tmp_path / "theirs")
    kept = Kept(tmp_path / "q" / "slack.jsonl")
    kept.ledger.note(opened())
    kept.save()
    assert (tmp_path / "theirs").read_text() == "precious"
    assert len(read(tmp_path / "q" / "slack.jsonl")) == 1


def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "q").symlink_to(tmp_path / "theirs")
    kept = Kept(tmp_path / "q" / "slack.jsonl")
    kept.ledger.note(opened())
    kept.save()
    assert list((tmp_path / "theirs").iterdir()) == []
    assert "another user made this folder" in caplog.text


def test_a_full_disk_costs_nothing_but_what_a_kill_would(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with small_disk(tmp_path / "disk") as disk:
        kept = Kept(disk / "q" / "slack.jsonl")
        kept.ledger.note(opened())
        kept.save()
        filler = disk / "filler"
        filler.write_bytes(b"x" * (64 * 1024 - 8192))
        for change in storm(300):
            kept.ledger.note(change)
            kept.save()
        assert len(kept.ledger.cases) == 301
        assert caplog.text.count("messages go on") == 1
        known = read(disk / "q" / "slack.jsonl")
        assert known
        filler.unlink()
        for case in kept.ledger.cases[100:]:
            kept.ledger.remove(case)
        kept.save()
        assert len(read(disk / "q" / "slack.jsonl")) == 100
        assert [path.name for path in (disk / "q").iterdir()] == ["slack.jsonl"]


def test_a_disk_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, go_on = Kept(tmp_path / "slack.jsonl"), threading.Event()
    monkeypatch.setattr(shelves, "_write_all", lambda fd, content: go_on.wait(30))
    kept.ledger.note(opened())
    assert not kept.shelf.save(0.05)
    monkeypatch.undo()
    go_on.set()
    wait_for(lambda: kept.shelf.save(1))
    kept.ledger.note(opened(ticket()))
    kept.save()
