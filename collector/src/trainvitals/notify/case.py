"""A finding as a channel knows it: the last that was heard of it, and what was told. Its line in the channel's file:

{"number":7,"told":"ticket","state":"open","opened":…,"when":…,"finding":{"kind":"GpuMissing","severity":"page",…}}
"""

from dataclasses import dataclass, field
from typing import Any

from trainvitals.detect.finding import WEIGHT, Change, Finding, Place
from trainvitals.journal.record import Record, decode, encode
from trainvitals.model import Severity
from trainvitals.notify.limits import EVIDENCE_KEPT, SENTENCE_CHARACTERS
from trainvitals.notify.message import severity_of

Key = tuple[str, Place]


@dataclass(slots=True, eq=False)
class Case:
    change: Change
    # How it was told last, None: not at all yet.
    told: Severity | None = None
    # What follows from it beyond its evidence.
    more: int = 0
    # Of this process alone: when it was told first and last.
    first: float | None = None
    last: float | None = None
    sent: Change | None = None
    # What the file knows, and by what name.
    number: int = 0
    line: bytes = field(default=b"", repr=False)

    @property
    def key(self) -> Key:
        return self.change.finding.key

    @property
    def is_over(self) -> bool:
        return self.change.state == "close"

    @property
    def severity(self) -> Severity:
        return severity_of(self.change)

    @property
    def is_untold(self) -> bool:
        """Or is worse than was told."""
        return self.told is None or WEIGHT[self.severity] > WEIGHT[self.told]

    def encoded(self) -> bytes:
        change = self.change
        known: Record = {"number": self.number, "told": self.told or "", "more": self.more, "state": change.state,
                         "opened": change.opened, "when": change.when, "finding": _record(change.finding),
                         "evidence": [_record(one) for one in change.evidence]}  # fmt: skip
        return encode(known | {"cause": _record(change.cause)} if change.cause else known)


def shortened(change: Change) -> tuple[Change, int]:
    """What a rule of the user's own says may be long, and much may follow from a finding."""
    evidence = change.evidence[:EVIDENCE_KEPT]
    if severity_of(change) != severity_of(change._replace(evidence=evidence)):
        worst = max(change.evidence, key=lambda one: WEIGHT[one.severity])
        evidence = (worst, *evidence[:-1])
    kept = change._replace(finding=_clipped(change.finding), evidence=tuple(map(_clipped, evidence)),
                           cause=change.cause and _clipped(change.cause))  # fmt: skip
    return kept, len(change.evidence) - len(evidence)


def _clipped(finding: Finding) -> Finding:
    return finding._replace(what=_clip(finding.what), advice=_clip(finding.advice))


def _clip(text: str) -> str:
    return text if len(text) <= SENTENCE_CHARACTERS else f"{text[:SENTENCE_CHARACTERS]} …"


def case_of(line: bytes) -> tuple[int, Case | None]:
    """Its number and what the line says of it, None: it is done. ValueError where it is no such line."""
    try:
        known: Any = decode(line)
        if known.get("done"):
            return int(known["number"]), None
        change = Change(_one_of(("open", "update", "close"), known["state"]), _finding(known["finding"]),
                        float(known["opened"]), float(known["when"]),
                        _finding(known["cause"]) if "cause" in known else None,
                        tuple(map(_finding, known["evidence"])))  # fmt: skip
        told = _one_of(("", *WEIGHT), known["told"]) or None
        return int(known["number"]), Case(change, told, int(known["more"]))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError("no line of a queue") from error


def done_line(number: int) -> bytes:
    return encode({"number": number, "done": True})


def _record(finding: Finding) -> Record:
    """Without what is None: that would take the slow way of writing."""
    known = finding._asdict() | {"place": list(finding.place)}
    return {name: value for name, value in known.items() if value is not None}


def _finding(known: Any) -> Finding:
    found = Finding(**known)._replace(place=Place(*known["place"]))
    _one_of(tuple(WEIGHT), found.severity)
    if not all(isinstance(text, str) for text in (found.kind, found.what, found.advice, *found.place)):
        raise ValueError("no finding")
    return found


def _one_of(names: tuple[str, ...], name: Any) -> Any:
    if name not in names:
        raise ValueError(f"not one of {names}")
    return name
