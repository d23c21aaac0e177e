"""How a run ended, by what its ranks said of it and what was seen of them.

verdict("preempted", [End(9.0, "crashed", "ValueError: x"), End(9.2, "preempted")], was_killed=False)
->  ("crashed", "ValueError: x")
"""

import time
from collections.abc import Collection
from typing import NamedTuple

from trainvitals.agent.run_state import as_label
from trainvitals.journal.layout import ENDINGS, PREEMPTION_SECONDS
from trainvitals.journal.record import Record, seconds


class End(NamedTuple):
    """A rank's last words."""

    when: float
    status: str
    error: str = ""


class Ends:
    """The last words of a run's ranks, as their events bring them."""

    def __init__(self) -> None:
        self._ends: dict[int, End] = {}
        self._signals: dict[int, End] = {}

    def take(self, rank: int, event: Record) -> None:
        when = seconds(event.get("timestamp")) or time.time()
        if event.get("event") == "end":
            self._ends[rank] = End(when, str(event.get("status")), as_label(event.get("error")))
        elif event.get("event") == "signal":
            self._signals[rank] = End(when, "preempted", as_label(event.get("signal")))

    def of(self, rank: int, started: str) -> End | None:
        """The end of an earlier life, before the run was resumed, is no end of this one."""
        end = self._ends.get(rank)
        return end if end is not None and end.when >= (seconds(started) or 0.0) else None

    def settle(self, rank: int, gone: float) -> None:
        """It went without a word: a signal that it had told of not long before is why."""
        signal = self._signals.pop(rank, None)
        if signal is None or gone - signal.when >= PREEMPTION_SECONDS:
            return
        if rank not in self._ends or signal.when > self._ends[rank].when:
            self._ends[rank] = signal


def verdict(told: str, ends: Collection[End], was_killed: bool) -> tuple[str, str]:
    """`told` is what run.json says; empty where it says nothing of an end. A launcher ends the other ranks when one
    fails: that rank 0 was told to end is then not why the run did."""
    crashed = min((end for end in ends if end.status == "crashed"), default=None)
    if told == "crashed" or (told == "finished" and crashed is None):
        return told, ""
    if was_killed and told != "finished":
        return "killed", ""
    if crashed is not None:
        return "crashed", crashed.error
    said = {told} if told in ENDINGS else {end.status for end in ends} & set(ENDINGS)
    return (said.pop() if len(said) == 1 else "killed"), ""
