"""How a run ended, by its ranks' last words and what was seen of them."""

import pytest

from trainvitals.agent.verdict import End, verdict

TERM = End(2.0, "preempted", "SIGTERM")
CRASH = End(1.0, "crashed", "ValueError: x")
LATER = End(1.5, "crashed", "connection reset")
DONE = End(3.0, "finished")
CASES: list[tuple[str, list[End], bool, tuple[str, str]]] = [
    ("finished", [DONE, CRASH], False, ("finished", "")),
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
