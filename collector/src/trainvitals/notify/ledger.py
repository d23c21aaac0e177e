"""What a channel has to tell, and what it told: bounded, and kept in a file by way of `news`.

ledger.note(change); ledger.cases; ledger.remove(case); ledger.news()   ->   lines for the file

Not safe for threads by itself: whoever owns it has a lock.
"""

from collections.abc import Iterable, Sequence

from trainvitals.detect.finding import WEIGHT, Change
from trainvitals.notify.case import Case, Key, done_line, shortened
from trainvitals.notify.limits import KEPT_SECONDS, QUEUE_BYTES, QUEUE_ENTRIES


class Ledger:
    def __init__(self, max_entries: int = QUEUE_ENTRIES, max_bytes: int = QUEUE_BYTES) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._cases: dict[int, Case] = {}
        self._open: dict[Key, Case] = {}
        self._next = 1
        self._bytes = 0
        self._news: list[bytes] = []
        self.dropped = 0

    @property
    def cases(self) -> Sequence[Case]:
        """The oldest first."""
        return tuple(self._cases.values())

    def note(self, change: Change) -> Case | None:
        """The case of it; None where it ends something unknown."""
        known = self._open.get(change.finding.key)
        if known is None and change.state == "close":
            return None
        kept, more = shortened(change)
        if known is None:
            known = self._add(Case(kept, more=more))
        else:
            known.change, known.more = kept, more
        if known.is_over:
            del self._open[known.key]
        self.changed(known)
        self._make_room()
        return known

    def restore(self, found: Iterable[Case]) -> None:
        """What the file knew. What was heard meanwhile is newer; what was told then was told long ago."""
        for case in found:
            case.first = float("-inf") if case.told else None
            known = None if case.is_over else self._open.get(case.key)
            if known is None:
                case.number = 0
                self.changed(self._add(case))
            elif case.told and (known.told is None or WEIGHT[case.told] > WEIGHT[known.told]):
                known.told, known.first = case.told, case.first
                self.changed(known)
        self._make_room()

    def adopt(self, changes: Iterable[Change], now: float) -> None:
        """These are open and no others: what was open before and is not among them ended while nobody looked."""
        there = [change for change in changes if change.state != "close"]
        keys = {change.finding.key for change in there}
        for case in [case for key, case in self._open.items() if key not in keys]:
            self.note(case.change._replace(state="close", when=now))
        for change in there:
            self.note(change)

    def changed(self, case: Case) -> None:
        """To be called after each change of it."""
        if case.number in self._cases:
            line = case.encoded()
            self._bytes += len(line) - len(case.line)
            case.line = line
            self._tell(line)

    def remove(self, case: Case) -> None:
        if self._cases.pop(case.number, None) is None:
            return
        if self._open.get(case.key) is case:
            del self._open[case.key]
        self._bytes -= len(case.line)
        self._tell(done_line(case.number))

    def forget_old(self, now: float) -> None:
        """What ended days ago is no news any more."""
        for case in self.cases:
            if case.is_over and now - case.change.when > KEPT_SECONDS:
                self.dropped += case.is_untold
                self.remove(case)

    def news(self) -> list[bytes] | None:
        """None where nobody asked for so long that all is to be written anew."""
        told, self._news = self._news, []
        return None if len(told) > 2 * self._max_entries else told

    @property
    def live_bytes(self) -> int:
        return self._bytes

    def whole(self) -> list[bytes]:
        """All lines, in the place of those that were written so far."""
        self._news = []
        return [case.line for case in self._cases.values()]

    def _tell(self, line: bytes) -> None:
        if len(self._news) <= 2 * self._max_entries:
            self._news.append(line)

    def _add(self, case: Case) -> Case:
        case.number, self._next = self._next, self._next + 1
        self._cases[case.number] = case
        if not case.is_over:
            self._open[case.key] = case
        return case

    def _make_room(self) -> None:
        """What was told goes first: its end is then not told. Then the oldest tickets, and pages last. A tenth at
        once, so that a flood does not look through all of them for each."""
        if len(self._cases) <= self._max_entries and self._bytes <= self._max_bytes:
            return
        least = sorted(self._cases.values(), key=lambda case: (case.is_untold, WEIGHT[case.severity], case.number))
        for case in least:
            if len(self._cases) <= 0.9 * self._max_entries and self._bytes <= 0.9 * self._max_bytes:
                return
            self.dropped += case.is_untold
            self.remove(case)
