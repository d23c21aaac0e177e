"""What is handed to a channel: some news of findings, the worst first.

Message((Item(change, "open", "page"), …), host="gpu1").severity   ->  "page"
"""

from typing import Literal, NamedTuple

from trainvitals.detect.finding import WEIGHT, Change, Finding
from trainvitals.model import Severity

# "worse": told before, as less; "over": it ended before it could be told.
State = Literal["open", "worse", "resolved", "over"]


class Item(NamedTuple):
    """`severity` is that of the whole: a page may be folded under a ticket. `more`: so many more follow from it than
    its evidence lists."""

    change: Change
    state: State
    severity: Severity
    more: int = 0

    @property
    def finding(self) -> Finding:
        return self.change.finding

    @property
    def goes_on(self) -> bool:
        return self.state in ("open", "worse")


class Message(NamedTuple):
    items: tuple[Item, ...]
    host: str
    # The page of the agent, as it is called from where people are.
    page: str = ""
    # Said to be a trial, so that nobody gets up.
    is_trial: bool = False

    @property
    def severity(self) -> Severity:
        return max((item.severity for item in self.items), key=WEIGHT.__getitem__)

    @property
    def goes_on(self) -> bool:
        """False where it tells of ends alone."""
        return any(item.goes_on for item in self.items)


def severity_of(change: Change) -> Severity:
    """Of a finding with all that is folded under it: nobody else tells of that."""
    known = (change.finding, *change.evidence)
    return max((finding.severity for finding in known), key=WEIGHT.__getitem__)


def worst_first(items: list[Item]) -> tuple[Item, ...]:
    """What goes on before what ended, the worst, then the newest."""
    return tuple(sorted(items, key=lambda item: (not item.goes_on, -WEIGHT[item.severity], -item.change.opened)))
