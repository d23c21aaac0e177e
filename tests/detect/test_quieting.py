"""Of which findings an acknowledgement or a silence is, and what is left of a change."""

import math
import time
from typing import Any

import pytest

from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.detect.quieting import Acknowledgement, Covered, Kept, Silence, identity_of
from trainvitals.journal.record import decode, encode, timestamp_at

BEGAN = 1_753_878_896.0
XID = Finding("GpuXidFatal", "page", "Xid 79", place=Place(gpu="3", uuid="GPU-3"))
STALLED = Finding("TrainingStalled", "page", "no step", place=Place("gemma"))
HOT = Finding("GpuTemperatureHigh", "ticket", "84 °C", place=Place(gpu="3", uuid="GPU-3"))


def opened(finding: Finding, when: float = BEGAN, *evidence: Finding) -> Change:
    return Change("open", finding, when, when, None, evidence)


def known(change: Change, at: float = BEGAN + 60) -> Acknowledgement:
    covers = tuple(Covered(one.kind, one.severity, one.place) for one in (change.finding, *change.evidence))
    return Acknowledgement(identity_of(change), timestamp_at(change.opened), timestamp_at(at), "me", "", covers)


def silent(until: float = BEGAN + 3600, name: str = "0" * 16, **named: str) -> Silence:
    return Silence(name, timestamp_at(BEGAN), timestamp_at(until), "me", "", **named)


def kept(*some: Acknowledgement | Silence) -> Kept:
    return Kept({one.id: one for one in some if isinstance(one, Acknowledgement)},
                {one.id: one for one in some if isinstance(one, Silence)})  # fmt: skip


def left(change: Change, *some: Acknowledgement | Silence, now: float = BEGAN + 100) -> list[str]:
    heard = kept(*some).heard(change, now)
    return [] if heard is None else [heard.finding.kind, *(one.kind for one in heard.evidence)]


def test_a_name_is_that_of_one_opening() -> None:
    names = {identity_of(opened(one, when)) for one in (XID, STALLED, XID._replace(place=Place(gpu="3")))
             for when in (BEGAN, BEGAN + 0.001)}  # fmt: skip
    assert len(names) == 6
    same = XID._replace(severity="info", what="else", value=math.nan, advice="x", stays=1.0)
    assert identity_of(opened(same, BEGAN + 0.0001)._replace(state="close")) == identity_of(opened(XID))


def test_what_nobody_made_quiet_stays_as_it_is() -> None:
    change = opened(XID, BEGAN, STALLED)
    assert Kept().heard(change, BEGAN) is change
    assert kept(silent(kind="Other")).heard(change, BEGAN) is change


def test_all_that_was_there_is_acknowledged_and_what_comes_later_is_not() -> None:
    one = known(opened(XID, BEGAN, STALLED))
    assert left(opened(XID), one) == left(opened(XID, BEGAN, STALLED), one) == []
    assert left(opened(XID, BEGAN, STALLED, HOT), one) == ["GpuTemperatureHigh"]
    # After a restart what hung on another may stand by itself.
    assert left(opened(STALLED, BEGAN + 5), one) == []
    assert left(opened(STALLED, BEGAN + 60.001), one) == ["TrainingStalled"]
    assert left(opened(STALLED, BEGAN - 0.001), one) == ["TrainingStalled"]


@pytest.mark.parametrize(("was", "becomes", "found"), [
    ("ticket", "page", ["GpuTemperatureHigh"]), ("info", "ticket", ["GpuTemperatureHigh"]), ("page", "ticket", []),
    ("ticket", "ticket", [])])  # fmt: skip
def test_what_becomes_worse_is_news(was: Any, becomes: Any, found: list[str]) -> None:
    one = known(opened(HOT._replace(severity=was)))
    assert left(opened(HOT._replace(severity=becomes)), one) == found


def test_the_next_of_the_same_is_news() -> None:
    assert left(opened(XID, BEGAN + 3600), known(opened(XID))) == ["GpuXidFatal"]


def test_a_clock_that_was_set_back_costs_no_acknowledgement() -> None:
    assert left(opened(XID), known(opened(XID), at=BEGAN - 3600)) == []


def test_a_silence_is_over_when_it_is() -> None:
    one = silent(kind="GpuXidFatal")
    assert left(opened(XID), one, now=BEGAN + 3599) == []
    assert left(opened(XID), one, now=BEGAN + 3600) == ["GpuXidFatal"]


def test_where_the_head_is_quiet_the_worst_of_the_rest_is_told_in_its_place() -> None:
    change = opened(XID, BEGAN, HOT, STALLED)
    assert left(change, silent(kind="GpuXidFatal")) == ["TrainingStalled", "GpuTemperatureHigh"]
    assert left(change, silent(kind="TrainingStalled")) == ["GpuXidFatal", "GpuTemperatureHigh"]
    assert left(change, silent(gpu="3")) == ["TrainingStalled"]
    assert left(change, silent(gpu="3"), silent(name="1" * 16, run="gemma")) == []


def test_a_name_that_is_no_utf_8_is_silenced_as_it_is_shown() -> None:
    assert left(opened(STALLED._replace(place=Place("a\udcff"))), silent(run="a?")) == []


def test_it_is_the_same_after_the_file() -> None:
    odd = STALLED._replace(place=Place("a\udcff\n\u2028", "0", part="/"))
    before = kept(known(opened(odd, BEGAN, XID)), silent(run="x", rank="1"), silent(name="1" * 16, uuid="GPU-3"))
    assert Kept.read(decode(encode(before.record()))) == before


def good() -> dict[str, Any]:
    return kept(known(opened(XID)), silent(kind="x")).record()


@pytest.mark.parametrize("broken", [
    3, None, "x", [], {}, {"id": 3}, {"id": "x", "covers": 3}, {"id": "x", "covers": [3]}, {"id": "x", "covers": [{}]},
    {**good()["acknowledged"][0], "opened": "x"}, {**good()["acknowledged"][0], "more": "x"},
    {**good()["acknowledged"][0], "covers": [{"kind": 3, "severity": "page"}]},
    {**good()["acknowledged"][0], "covers": [{"kind": "x", "severity": "page", "where": "y"}]},
    {**good()["silences"][0], "until": None}, {**good()["silences"][0], "kind": ""},
    {**good()["silences"][0], "rank": 3}, {"id": "x", "since": "2025", "until": "2025"}])  # fmt: skip
def test_what_somebody_broke_costs_itself_alone(broken: Any) -> None:
    told = good()
    for name in told:
        told[name].insert(0, broken)
    found = Kept.read(told)
    assert found.record() == good()
    for whole in (broken, {"acknowledged": broken, "silences": broken}):
        assert Kept.read(whole if isinstance(whole, dict) else {"silences": whole}) == Kept()


def test_a_thousand_cost_no_more_than_one() -> None:
    """Each message of each channel asks for each finding that is open."""
    some: list[Acknowledgement | Silence] = [silent(name=f"{number:016x}", kind=f"K{number}") for number in range(1000)]
    some += [known(opened(XID._replace(kind=f"L{number}"))) for number in range(1000)]
    quiet, change = kept(*some), opened(XID, BEGAN, *[HOT] * 20)
    began = time.monotonic()
    for _ in range(2000):
        quiet.heard(change, BEGAN)
    assert time.monotonic() - began < 20
