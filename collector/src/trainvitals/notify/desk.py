"""What is to be told next, and when: for people (messages), and for Alertmanager (alerts that fire until they end).

desk.note(change); batch = desk.due(); …; desk.done(batch)

Neither sends nor waits. Whoever owns one has a lock around it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from trainvitals.clock import Clock
from trainvitals.detect.advice import has_rule
from trainvitals.detect.finding import WEIGHT, Change
from trainvitals.model import Severity
from trainvitals.notify.case import Case
from trainvitals.notify.ledger import Ledger
from trainvitals.notify.limits import FIRES_SECONDS, LINGERS_SECONDS, REFRESH_SECONDS, Pace
from trainvitals.notify.message import Item, State, severity_of
from trainvitals.notify.pace import Gate
from trainvitals.notify.quiet import Quiet

# Quiet hours, a clock that was set, a disk that has space again: looked at so often.
LOOK_SECONDS = 15.0
Entry = tuple[Case, Item]
# A change without what somebody acknowledged or silenced; None where nothing is left of it.
Hear = Callable[[Change], Change | None]


def whole(change: Change) -> Change:
    return change


class Batch(NamedTuple):
    entries: tuple[Entry, ...]

    @property
    def items(self) -> list[Item]:
        return [item for _, item in self.entries]


class Desk:
    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self.ledger, self._clock = ledger, clock

    def note(self, change: Change) -> None:
        raise NotImplementedError

    def due(self, *, at_once: bool = False) -> Batch | None:
        raise NotImplementedError

    def done(self, batch: Batch) -> None:
        raise NotImplementedError

    def wait(self) -> float:
        """Seconds until there may be something due, if nothing is heard before."""
        raise NotImplementedError

    def adopt(self, changes: Iterable[Change]) -> None:
        self.ledger.adopt([change for change in changes if self.is_for_it(change)], self._clock.now())

    def is_for_it(self, change: Change) -> bool:
        raise NotImplementedError

    def drop(self, batch: Batch) -> int:
        """What is refused again and again stands in the way of the rest. How much of it is given up."""
        raise NotImplementedError


class Messages(Desk):
    """One message lists all that is news, within the channel's pace. What is folded under another is told with it."""

    def __init__(self, ledger: Ledger, clock: Clock, pace: Pace, quiet: Quiet, *, only_pages: bool = False,
                 hear: Hear = whole) -> None:  # fmt: skip
        super().__init__(ledger, clock)
        self._quiet, self._only_pages, self._hear = quiet, only_pages, hear
        self._pages, self._all = Gate(pace), Gate(pace)
        # When the first came of what is not told yet.
        self._since: float | None = None
        self._settle = pace.settle_seconds

    def is_for_it(self, change: Change) -> bool:
        return change.cause is None

    def note(self, change: Change) -> None:
        if self.is_for_it(change):
            if self._since is None:
                self._since = self._clock.monotonic()
            self.ledger.note(change)

    def due(self, *, at_once: bool = False) -> Batch | None:
        entries = self._entries()
        is_ready = self._clock.monotonic() >= self._ready_at(entries)
        return Batch(tuple(entries)) if entries and (is_ready or at_once) else None

    def done(self, batch: Batch) -> None:
        now = self._clock.monotonic()
        self._since = None
        self._all.passed(now)
        if any(_rings(item) for item in batch.items):
            self._pages.passed(now)
        for case, item in batch.entries:
            if item.goes_on:
                case.told = item.severity
                self.ledger.changed(case)
            else:
                self.ledger.remove(case)

    def drop(self, batch: Batch) -> int:
        for case, _ in batch.entries:
            self.ledger.remove(case)
        return len(batch.entries)

    def wait(self) -> float:
        entries = self._entries()
        if not entries:
            self._since = None
            return LOOK_SECONDS
        return min(LOOK_SECONDS, max(0.0, self._ready_at(entries) - self._clock.monotonic()))

    def _ready_at(self, entries: Sequence[Entry]) -> float:
        rings = any(_rings(item) for _, item in entries)
        gate = min(self._all.ready_at, self._pages.ready_at) if rings else self._all.ready_at
        return gate if self._since is None else max(gate, self._since + self._settle)

    def _entries(self) -> list[Entry]:
        now = self._clock.now()
        self.ledger.forget_old(now)
        is_quiet = self._quiet.is_now(now)
        found: list[Entry] = []
        for case in self.ledger.cases:
            heard = self._hear(case.change)
            state = _news(case, heard)
            if heard is None or state is None:
                if case.is_over:
                    self.ledger.remove(case)
                continue
            severity = case.told if state == "resolved" and case.told else severity_of(heard)
            if case.is_over and not self._is_told_of(case, severity, is_quiet):
                self.ledger.remove(case)
            elif severity == "page" or (severity == "ticket" and not is_quiet and not self._only_pages):
                found.append((case, Item(heard, state, severity, case.more)))
        return found

    def _is_told_of(self, case: Case, severity: Severity, is_quiet: bool) -> bool:
        """Of what is over. A ticket that came and went in quiet hours is nobody's; a pager cannot be unrung."""
        if self._only_pages:
            return severity == "page" and case.told is None
        return severity != "info" and (case.told is not None or severity == "page" or not is_quiet)


def _news(case: Case, heard: Change | None) -> State | None:
    """Of what is kept quiet the end is none either."""
    if heard is None:
        return None
    is_untold = case.told is None or WEIGHT[severity_of(heard)] > WEIGHT[case.told]
    if case.is_over:
        return "over" if is_untold else "resolved"
    return ("open" if case.told is None else "worse") if is_untold else None


def _rings(item: Item) -> bool:
    return item.severity == "page" and item.state != "resolved"


class Alerts(Desk):
    """Alertmanager groups, waits and repeats by itself: it is told what fires, again and again, and what ended. Of what
    is folded too: that keeps the rule's alert of the same quiet."""

    def __init__(self, ledger: Ledger, clock: Clock, pace: Pace) -> None:
        super().__init__(ledger, clock)
        self._gate = Gate(pace)

    def is_for_it(self, change: Change) -> bool:
        return True

    def note(self, change: Change) -> None:
        self.ledger.note(change)

    def due(self, *, at_once: bool = False) -> Batch | None:
        now = self._clock.monotonic()
        self.ledger.forget_old(self._clock.now())
        if now < self._gate.ready_at and not at_once:
            return None
        entries = [entry for case in self.ledger.cases if self._when(case) <= now for entry in self._entries(case)]
        return Batch(tuple(entries)) if entries else None

    def done(self, batch: Batch) -> None:
        now = self._clock.monotonic()
        self._gate.passed(now)
        for case, item in batch.entries:
            if item.goes_on:
                self._fires(case, item, now)
            elif item.state == "resolved":
                self.ledger.remove(case)

    def drop(self, batch: Batch) -> int:
        """Nothing: what goes on is told again as long as it does."""
        return 0

    def wait(self) -> float:
        now = self._clock.monotonic()
        soonest = min((self._when(case) for case in self.ledger.cases), default=now + LOOK_SECONDS)
        return min(LOOK_SECONDS, max(0.0, soonest - now, self._gate.ready_at - now))

    def _fires(self, case: Case, item: Item, now: float) -> None:
        if case.first is None or case.told != item.severity:
            case.first = now
        case.last, case.sent = now, item.change
        if case.told != item.severity:
            case.told = item.severity
            self.ledger.changed(case)

    def _when(self, case: Case) -> float:
        """When it is to be posted next."""
        if case.is_untold or case.last is None or case.first is None:
            return float("-inf")
        if case.is_over:
            left = self._lingers(case)
            let_go = self._clock.monotonic() + left if left else 0.0
            return min(max(case.first + FIRES_SECONDS, let_go), case.last + REFRESH_SECONDS)
        if case.sent is not case.change:
            return float("-inf")
        return case.last + REFRESH_SECONDS

    def _entries(self, case: Case) -> list[Entry]:
        if case.is_over and case.told and not case.is_untold and self._fired_enough(case):
            return [(case, Item(case.change, "resolved", case.told, case.more))]
        found = [(case, Item(case.change, "open", case.severity, case.more))]
        if case.told and WEIGHT[case.severity] > WEIGHT[case.told]:
            # Under its old labels it is another alert.
            found.append((case, Item(case.change, "over", case.told, case.more)))
        return found

    def _fired_enough(self, case: Case) -> bool:
        has_fired = case.first is None or self._clock.monotonic() - case.first >= FIRES_SECONDS
        return has_fired and not self._lingers(case)

    def _lingers(self, case: Case) -> float:
        """For how long yet, for the sake of its rule. Of a clock that was set back no more is known."""
        since = self._clock.now() - case.change.when
        whole = LINGERS_SECONDS[case.severity] if has_rule(case.change.finding.kind) else 0.0
        return whole - since if 0 <= since < whole else 0.0
