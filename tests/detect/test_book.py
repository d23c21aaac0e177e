"""The book: a finding opens once, is told again when it is worse, closes late, and hides what follows from it."""

from trainvitals.detect.book import Book
from trainvitals.detect.finding import Finding, Place

NAN = Finding("TrainingNonFinite", "page", "the loss is nan", place=Place("gemma", "0"), stays=60.0)
XID = Finding("GpuXidFatal", "page", "Xid 79", place=Place(gpu="6", uuid="GPU-6"), stays=60.0)
GONE = Finding("GpuMissing", "page", "7 of 8 GPUs answer", stays=60.0)
STALLED = Finding("TrainingStalled", "page", "no step", place=Place("gemma"), stays=60.0)


def states(book: Book) -> list[tuple[str, str]]:
    return [(one.state, one.finding.kind) for one in book.news()]


def test_what_is_said_again_is_told_once() -> None:
    book = Book()
    for when in (1.0, 2.0, 3.0):
        book.note(NAN, when)
        book.settle(when)
    assert states(book) == [("open", "TrainingNonFinite")]


def test_it_closes_when_nobody_has_said_it_for_a_while_and_may_open_anew() -> None:
    book = Book()
    book.note(NAN, 1.0)
    book.settle(61.0)
    assert states(book) == [("open", "TrainingNonFinite")]
    book.settle(61.5)
    book.note(NAN, 70.0)
    assert states(book) == [("close", "TrainingNonFinite"), ("open", "TrainingNonFinite")]


def test_what_becomes_worse_is_told_and_stays_as_bad() -> None:
    book = Book()
    for when, severity in enumerate(("ticket", "page", "ticket")):
        book.note(NAN._replace(severity=severity), float(when))  # type: ignore[arg-type]
    told = book.news()
    assert [(one.state, one.finding.severity) for one in told] == [("open", "ticket"), ("update", "page")]
    assert book.open[NAN.key].finding.severity == "page"


def test_what_follows_from_one_is_its_evidence() -> None:
    book = Book()
    book.gpus["gemma"] = {"GPU-6"}
    for when, finding in enumerate((XID, GONE, STALLED)):
        book.note(finding, float(when))
    told = book.news()
    heads = [one for one in told if one.cause is None]
    assert {one.finding.kind for one in heads} == {"GpuXidFatal"}
    assert [each.kind for each in heads[-1].evidence] == ["GpuMissing", "TrainingStalled"]
    assert {one.cause.kind for one in told if one.cause} == {"GpuXidFatal"}


OOM = Finding("HostOomKill", "ticket", "the kernel killed 1 process", stays=60.0)
KILLED = Finding("TrainingKilled", "page", "gone", place=Place("gemma"), stays=60.0)


def test_a_page_that_follows_from_a_ticket_makes_it_one() -> None:
    book = Book()
    book.note(OOM, 0.0)
    book.note(KILLED, 1.0)
    told = [(one.state, one.finding.kind, one.finding.severity) for one in book.news() if one.cause is None]
    assert told == [("open", "HostOomKill", "ticket"), ("update", "HostOomKill", "page")]
    book.note(OOM, 2.0)
    assert book.open[OOM.key].finding.severity == "page"


def test_so_does_one_that_becomes_a_page_later() -> None:
    book = Book()
    hot = Finding("GpuThermalMargin", "ticket", "hot", place=XID.place)
    slow = Finding("GpuHardwareSlowdown", "ticket", "slow", place=XID.place)
    for when, one in enumerate((hot, slow, slow._replace(severity="page"))):
        book.note(one, float(when))
    assert [one.finding.severity for one in book.news() if one.cause is None] == ["ticket", "ticket", "page"]


def test_a_cause_that_comes_to_light_a_moment_later_is_told_along_and_one_of_later_is_not() -> None:
    for later, causes in ((20.0, ["TrainingKilled"]), (900.0, [])):
        book = Book()
        book.note(KILLED, 0.0)
        book.note(OOM, later)
        assert [one.cause.kind for one in book.news() if one.cause] == causes


def test_what_comes_and_goes_under_a_cause_is_its_evidence_once() -> None:
    book = Book()
    for when in range(0, 1000, 10):
        book.note(XID, float(when))
        if when % 100 == 0:
            book.note(STALLED._replace(what=f"no step since {when}"), float(when))
        book.settle(float(when))
    assert [one.what for one in book.open[XID.key].evidence] == ["no step since 900"]


def test_another_gpu_s_error_is_no_cause_of_a_run_s_stall() -> None:
    book = Book()
    book.gpus["gemma"] = {"GPU-1"}
    book.note(XID, 0.0)
    book.note(STALLED, 1.0)
    assert [one.cause for one in book.news()] == [None, None]


def test_another_run_s_hang_is_no_cause_either() -> None:
    book = Book()
    book.note(Finding("TrainingHangSuspected", "page", "hangs", place=Place("llama")), 0.0)
    book.note(STALLED, 1.0)
    assert [one.cause for one in book.news()] == [None, None]


def test_nor_is_a_gpu_s_that_is_missing_where_it_is_known_which() -> None:
    book = Book()
    book.gpus["gemma"], book.missing[""] = {"GPU-1"}, {"GPU-6": "6"}
    book.note(GONE, 0.0)
    book.note(STALLED, 1.0)
    book.note(XID._replace(place=Place(gpu="1", uuid="GPU-1")), 2.0)
    book.note(XID, 3.0)
    causes = [one.cause and one.cause.kind for one in book.news() if one.state == "open"]
    assert causes == [None, None, None, "GpuMissing"]


def test_nor_is_another_machine_s_trouble() -> None:
    book = Book()
    book.hosts["gemma"] = {"node-a"}
    full = Finding("HostDiskFull", "page", "full", place=Place(part="/", host="node-b"), stays=60.0)
    for finding in (full, STALLED, Finding("JournalErrors", "ticket", "lost", place=Place(host="node-b"))):
        book.note(finding, 0.0)
    assert [one.cause and one.cause.kind for one in book.news() if one.state == "open"] == [None, None, "HostDiskFull"]


def test_a_cause_does_not_close_before_what_follows_from_it() -> None:
    book = Book()
    book.note(XID, 0.0)
    for when in range(1, 200):
        book.note(STALLED, float(when))
        book.settle(float(when))
    assert set(book.open) == {XID.key, STALLED.key}
    book.settle(300.0)
    book.settle(300.0)
    assert not book.open


def test_a_run_that_ended_stalls_no_more() -> None:
    book = Book()
    book.note(STALLED, 0.0)
    book.note(STALLED._replace(place=Place("llama")), 0.0)
    book.end(("TrainingStalled",), 1.0, "gemma")
    assert [key[1].run for key in book.open] == ["llama"]
