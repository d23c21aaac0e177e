"""How a run ended, by what its ranks said of it and what was seen of them.

verdict("preempted", [End(9.0, "crashed", "ValueError: x"), End(9.2, "preempted")], was_killed=False)
->  ("crashed", "ValueError: x")
"""

from collections.abc import Collection
from typing import NamedTuple

from trainvitals.journal.layout import ENDINGS


class End(NamedTuple):
    """A rank's last words."""

    when: float
    status: str
    error: str = ""


def verdict(told: str, ends: Collection[End], was_killed: bool) -> tuple[str, str]:
    """`told` is what run.json says; empty where it says nothing of an end. A launcher ends the other ranks when one
    fails: that rank 0 was told to end is then not why the run did."""
    if told in ENDINGS and told != "preempted":
        return told, ""
    if was_killed:
        return "killed", ""
    crashed = min((end for end in ends if end.status == "crashed"), default=None)
    if crashed is not None:
        return "crashed", crashed.error
    said = {told} if told in ENDINGS else {end.status for end in ends} & set(ENDINGS)
    return (said.pop() if len(said) == 1 else "killed"), ""
