"""What a detector says, and what becomes of it.

Finding("TrainingNonFinite", "page", "the loss is nan at step 812", value=nan, place=Place(run="gemma", rank="0"))
Change("open", finding, opened=1753878896.7, when=1753878896.7)
"""

from typing import Any, Literal, NamedTuple

from trainvitals.detect.advice import ADVICE, runbook
from trainvitals.journal.record import Record, timestamp_at
from trainvitals.model import SEVERITIES, Severity

WEIGHT: dict[str, int] = {severity: weight for weight, severity in enumerate(reversed(SEVERITIES))}


class Place(NamedTuple):
    """What a finding is about; what it does not concern is empty. Nothing at all: the machine."""

    run: str = ""
    rank: str = ""
    gpu: str = ""
    uuid: str = ""
    # What else tells one from another: a mount point, a source.
    part: str = ""
    # Where machines are judged together, which of them; an agent knows its own alone.
    host: str = ""

    def labels(self) -> dict[str, str]:
        return {name: value for name, value in zip(self._fields, self, strict=True) if value}


class Finding(NamedTuple):
    """`stays`: the seconds for which it stays open after its detector said it last."""

    kind: str
    severity: Severity
    what: str
    value: float | None = None
    threshold: float | None = None
    place: Place = Place()
    step: int | None = None
    stays: float = 60.0
    # What to do first, where that is not the same for all of its kind.
    advice: str = ""

    @property
    def key(self) -> tuple[str, Place]:
        return self.kind, self.place

    @property
    def todo(self) -> str:
        return self.advice or ADVICE.get(self.kind, "")


class Change(NamedTuple):
    """News of a finding. `opened`: when it began; `cause`: what it follows from, and is told along with; `evidence`:
    what follows from it."""

    state: Literal["open", "update", "close"]
    finding: Finding
    opened: float
    when: float
    cause: Finding | None = None
    evidence: tuple[Finding, ...] = ()
    # When its detector said it last.
    last: float = 0.0

    def record(self) -> Record:
        """Its line in an event file."""
        told: dict[str, Any] = {"timestamp": timestamp_at(self.when), "event": "finding", "state": self.state}
        told |= describe(self.finding) | {"opened": timestamp_at(self.opened)}
        if self.cause:
            told["cause"] = self.cause.kind
        if self.evidence:
            told["evidence"] = [describe(one) for one in self.evidence]
        return told


def describe(finding: Finding) -> Record:
    known = {"step": finding.step, "value": finding.value, "threshold": finding.threshold}
    return {"kind": finding.kind, "severity": finding.severity, **finding.place.labels(),
            **{name: value for name, value in known.items() if value is not None},
            "what": finding.what, "todo": finding.todo, "runbook": runbook(finding.kind)}  # fmt: skip
