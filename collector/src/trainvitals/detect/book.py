"""Findings from their first sight to their end, and which of them follow from which.

A finding opens once, is told again when it becomes worse or brings something new to light, and closes when its detector
has kept silent for as long as it `stays`. What follows from an open one is folded under it: one message, not three, as
loud as the loudest of them.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from trainvitals.detect.finding import WEIGHT, Change, Finding, Place

# What each may follow from. Of a GPU: the same GPU, or one of the run's; of a run: the same run.
CAUSES: dict[str, tuple[str, ...]] = {
    "GpuMissing": ("GpuXidFatal",),
    "GpuXidFatal": ("GpuMissing", "GpuXidFatal"),
    "GpuXidWarning": ("GpuXidFatal", "GpuMissing"),
    "GpuEccUncorrectable": ("GpuXidFatal",),
    "GpuRecoveryActionNeeded": ("GpuXidFatal", "GpuEccUncorrectable"),
    "GpuNvlinkDown": ("GpuXidFatal", "GpuMissing"),
    "GpuRowRemapPending": ("GpuEccUncorrectable", "GpuXidFatal"),
    "GpuHardwareSlowdown": ("GpuThermalMargin",),
    "TrainingStalled": ("GpuXidFatal", "GpuMissing", "GpuEccUncorrectable", "GpuNvlinkDown", "TrainingHangSuspected",
                        "TrainingKilled", "HostDiskFull"),
    "TrainingHangSuspected": ("GpuXidFatal", "GpuMissing", "GpuEccUncorrectable", "GpuNvlinkDown", "TrainingStalled",
                              "TrainingKilled"),
    "TrainingCrashed": ("GpuXidFatal", "GpuMissing", "GpuEccUncorrectable", "TrainingHangSuspected"),
    "TrainingKilled": ("GpuXidFatal", "GpuMissing", "HostOomKill", "TrainingHangSuspected"),
    "TrainingThroughputRegression": ("TrainingStraggler", "TrainingDataStarved", "GpuHardwareSlowdown",
                                     "TrainingHangSuspected", "TrainingStalled"),
    "TrainingCheckpointOverdue": ("TrainingHangSuspected", "TrainingStalled", "TrainingKilled"),
    "HostDiskFillingUp": ("HostDiskFull",),
    "JournalErrors": ("HostDiskFull",),
}  # fmt: skip
# What may come to light a moment after what followed from it, and is told along with that then.
LATE: dict[str, tuple[str, ...]] = {"HostOomKill": ("TrainingKilled",)}
LATE_SECONDS = 60.0
Key = tuple[str, Place]


@dataclass(slots=True)
class Open:
    finding: Finding
    opened: float
    last: float
    cause: Key | None = None
    evidence: list[Finding] = field(default_factory=list)


class Book:
    """`gpus` tells the UUIDs of each run's GPUs, `hosts` its machines, where there are several; `missing` the UUIDs of
    each machine's GPUs that are gone."""

    def __init__(self) -> None:
        self.open: dict[Key, Open] = {}
        self.gpus: dict[str, set[str]] = {}
        self.hosts: dict[str, set[str]] = {}
        self.missing: dict[str, Collection[str]] = {}
        self._news: list[Change] = []

    def note(self, finding: Finding, when: float) -> None:
        known = self.open.get(finding.key)
        if known is None:
            self._begin(finding, when)
            return
        known.last = max(known.last, when)
        worse = WEIGHT[finding.severity] > WEIGHT[known.finding.severity]
        keeps = known.finding.severity if not worse else finding.severity
        known.finding = finding if finding.severity == keeps else finding._replace(severity=keeps)
        if worse:
            self._tell("update", known, when)
            head = self.open.get(known.cause) if known.cause else None
            if head and self._raise(head, finding):
                self._tell("update", head, when)

    def settle(self, now: float) -> None:
        """Closes what has been silent for long enough; never before what is folded under it."""
        for key in [key for key, one in self.open.items() if now - one.last > one.finding.stays]:
            if not self._children(key):
                self._end(key, now)

    def end(self, kinds: Iterable[str], now: float, run: str = "") -> None:
        """What cannot be any more: a run that ended neither stalls nor starves."""
        wanted = set(kinds)
        for key in [key for key in self.open if key[0] in wanted and (not run or key[1].run == run)]:
            if not self._children(key):
                self._end(key, now)

    def news(self) -> list[Change]:
        told, self._news = self._news, []
        return told

    def _begin(self, finding: Finding, when: float) -> None:
        cause = self._cause_of(finding, when)
        known = self.open[finding.key] = Open(finding, when, when, cause)
        self._tell("open", known, when)
        if cause:
            head = self.open[cause]
            head.evidence = [*(one for one in head.evidence if one.key != finding.key), finding]
            self._raise(head, finding)
            self._tell("update", head, when)

    def _raise(self, head: Open, finding: Finding) -> bool:
        """A page is never lost under a ticket."""
        is_lesser = WEIGHT[head.finding.severity] < WEIGHT[finding.severity]
        if is_lesser:
            head.finding = head.finding._replace(severity=finding.severity)
        return is_lesser

    def _end(self, key: Key, now: float) -> None:
        self._tell("close", self.open.pop(key), now)

    def _tell(self, state: str, one: Open, when: float) -> None:
        cause = self.open[one.cause].finding if one.cause in self.open else None
        self._news.append(Change(state, one.finding, one.opened, when, cause, tuple(one.evidence), one.last))  # type: ignore[arg-type]

    def _children(self, key: Key) -> bool:
        return any(one.cause == key for one in self.open.values())

    def _cause_of(self, finding: Finding, when: float) -> Key | None:
        """The head of what it follows from: all of it hangs on one."""
        late = LATE.get(finding.kind, ())
        for kind in (*CAUSES.get(finding.kind, ()), *late):
            for key, one in self.open.items():
                is_it = key[0] == kind and (kind not in late or when - one.opened <= LATE_SECONDS)
                if is_it and key != finding.key and self._is_near(finding.key, key):
                    return one.cause or key
        return None

    def _is_near(self, key: Key, cause: Key) -> bool:
        """What nobody knows of either keeps them not apart."""
        one, other = key[1], cause[1]
        if one.run and other.run:
            return one.run == other.run
        if one.part and other.part and one.part != other.part:
            return False
        return all(_may_meet(of(key), of(cause)) for of in (self._hosts_of, self._gpus_of))

    def _hosts_of(self, key: Key) -> set[str]:
        place = key[1]
        return self.hosts.get(place.run, set()) if place.run else {place.host} - {""}

    def _gpus_of(self, key: Key) -> set[str]:
        kind, place = key
        if kind == "GpuMissing" and not place.uuid:
            return set(self.missing.get(place.host, ()))
        return self.gpus.get(place.run, set()) if place.run else {place.uuid} - {""}

    def heads(self) -> Iterator[Open]:
        return (one for one in self.open.values() if one.cause not in self.open)


def _may_meet(some: set[str], others: set[str]) -> bool:
    return not some or not others or not some.isdisjoint(others)
