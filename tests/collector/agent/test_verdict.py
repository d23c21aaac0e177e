"""How a run ended, by its ranks' last words and what was seen of them."""

import pytest

from trainvitals.agent.verdict import End, Ends, verdict
from trainvitals.journal.record import Record, seconds

TERM = End(2.0, "preempted", "SIGTERM")
CRASH = End(1.0, "crashed", "ValueError: x")
LATER = End(1.5, "crashed", "connection reset")
DONE = End(3.0, "finished")
CASES: list[tuple[str, list[End], bool, tuple[str, str]]] = [
    ("finished", [DONE, DONE], False, ("finished", "")),
    ("finished", [DONE, CRASH], False, ("crashed", "ValueError: x")),
    ("finished", [DONE], True, ("finished", "")),
    ("crashed", [LATER, TERM], True, ("crashed", "")),
    ("preempted", [TERM, TERM], False, ("preempted", "")),
    ("preempted", [TERM, LATER, CRASH], False, ("crashed", "ValueError: x")),
    ("preempted", [TERM], True, ("killed", "")),
    ("running", [], False, ("killed", "")),
    ("running", [DONE], True, ("killed", "")),
    ("", [DONE, DONE], False, ("finished", "")),
    ("", [TERM, CRASH], False, ("crashed", "ValueError: x")),
    ("", [TERM, DONE], False, ("killed", "")),
]


@pytest.mark.parametrize(("told", "ends", "was_killed", "expected"), CASES, ids=range(len(CASES)))
def test_what_ended_a_run_first_is_how_it_ended(
    told: str, ends: list[End], was_killed: bool, expected: tuple[str, str]
) -> None:
    assert verdict(told, ends, was_killed) == expected


STARTED = "2025-07-30T12:00:00.000Z"


def event(minute: int, kind: str, **fields: str) -> Record:
    return {"timestamp": f"2025-07-30T12:{minute:02}:00.000Z", "event": kind, **fields}


SIGNAL = event(5, "signal", signal="SIGTERM")


@pytest.mark.parametrize(
    ("events", "gone_minute", "expected"),
    [
        ([SIGNAL], 6, "preempted SIGTERM"),
        ([SIGNAL], 36, ""),
        ([SIGNAL, event(5, "end", status="crashed", error="x")], 6, "crashed x"),
        ([event(4, "end", status="finished"), SIGNAL], 6, "preempted SIGTERM"),
        ([event(5, "note")], 6, ""),
        ([], 6, ""),
    ],
)
def test_a_signal_not_long_before_is_how_a_rank_ended_that_did_not_say(
    events: list[Record], gone_minute: int, expected: str
) -> None:
    ends = Ends()
    for told in events:
        ends.take(0, told)
    ends.settle(0, seconds(STARTED) + 60 * gone_minute)  # type: ignore[operator]
    end = ends.of(0, STARTED)
    assert (f"{end.status} {end.error}" if end else "") == expected


def test_a_signal_of_an_earlier_life_ended_no_later_one() -> None:
    ends = Ends()
    ends.take(0, SIGNAL)
    ends.settle(0, seconds(STARTED) + 600)  # type: ignore[operator]
    assert ends.of(0, "2025-07-30T12:06:00.000Z") is None
