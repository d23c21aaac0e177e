"""What nobody wants to be told of any more, or for a while, and which findings that is true of.

kept = Kept.read({"acknowledged": […], "silences": [{"id": "5f…", "kind": "GpuTemperatureHigh", "gpu": "3", …}]})
kept.heard(change, now)   ->   the change without what is quiet, None where all of it is

An acknowledgement is of a finding as it was: one that becomes worse, or opens again, is news.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trainvitals.detect.finding import WEIGHT, Change, Finding, Place
from trainvitals.journal.record import Record, seconds, timestamp_at

# By which a silence may say what it is of; what it does not name it holds for all of.
FIELDS = ("kind", "run", "rank", "gpu", "uuid")
Key = tuple[str, Place]


def identity(kind: str, place: Place, opened: str) -> str:
    """Of a finding from its opening to its end, in every agent's life. An agent's places name no machine."""
    return hashlib.sha256(json.dumps([kind, *place[:-1], opened]).encode()).hexdigest()[:16]


def identity_of(change: Change) -> str:
    return identity(*change.finding.key, timestamp_at(change.opened))


class Covered(NamedTuple):
    kind: str
    severity: str
    place: Place

    def record(self) -> Record:
        return {"kind": self.kind, "severity": self.severity, **self.place.labels()}


class Acknowledgement(NamedTuple):
    """`covers`: the finding and what was seen to follow from it; nothing for another's alert. `opened`: when that
    finding did, `at`: when somebody said so, both as stamps, which sort as they are."""

    id: str
    opened: str
    at: str
    by: str = ""
    note: str = ""
    covers: tuple[Covered, ...] = ()

    def record(self) -> Record:
        return self._asdict() | {"covers": [one.record() for one in self.covers]}

    def is_of(self, key: Key, severity: str, opened: str) -> bool:
        """Of one that opened meanwhile, and is no worse than it was."""
        was = next((one.severity for one in self.covers if (one.kind, one.place) == key), severity)
        return self.opened <= opened <= max(self.at, self.opened) and _weight(severity) <= _weight(was)


class Silence(NamedTuple):
    id: str
    since: str
    until: str
    by: str = ""
    note: str = ""
    kind: str = ""
    run: str = ""
    rank: str = ""
    gpu: str = ""
    uuid: str = ""

    def record(self) -> Record:
        return {name: value for name, value in self._asdict().items() if value or name not in FIELDS}

    @property
    def named(self) -> dict[str, str]:
        """What it is of."""
        return {name: value for name in FIELDS if (value := getattr(self, name))}

    def ends(self) -> float:
        return seconds(self.until) or 0.0


def _weight(severity: str) -> int:
    return WEIGHT.get(severity, len(WEIGHT))


@dataclass(frozen=True)
class Kept:
    """Never changed, but replaced: who reads it waits for nobody."""

    acknowledged: Mapping[str, Acknowledgement] = field(default_factory=dict)
    silences: Mapping[str, Silence] = field(default_factory=dict)
    # Found by what a finding is: a thousand of them cost no more than one.
    _of: Mapping[Key, list[Acknowledgement]] = field(init=False)
    _named: Mapping[tuple[str, ...], Mapping[tuple[str, ...], list[Silence]]] = field(init=False)

    def __post_init__(self) -> None:
        of: dict[Key, list[Acknowledgement]] = {}
        for one in self.acknowledged.values():
            for covered in one.covers:
                of.setdefault((covered.kind, covered.place), []).append(one)
        named: dict[tuple[str, ...], dict[tuple[str, ...], list[Silence]]] = {}
        for silence in self.silences.values():
            by_values = named.setdefault(tuple(silence.named), {})
            by_values.setdefault(tuple(silence.named.values()), []).append(silence)
        object.__setattr__(self, "_of", of)
        object.__setattr__(self, "_named", named)

    def record(self) -> Record:
        return {"acknowledged": [one.record() for one in self.acknowledged.values()],
                "silences": [one.record() for one in self.silences.values()]}  # fmt: skip

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Kept":
        """What somebody broke in the file is not in it."""
        acknowledged = filter(None, map(_acknowledgement, _list(told.get("acknowledged"))))
        silences = filter(None, map(_silence, _list(told.get("silences"))))
        return cls({one.id: one for one in acknowledged}, {one.id: one for one in silences})

    def acknowledgement(self, name: str, key: Key, severity: str, opened: str) -> Acknowledgement | None:
        """By the finding's name; else of one that was seen to follow from what somebody acknowledged."""
        known = self.acknowledged.get(name)
        found = [*([known] if known else []), *self._of.get(key, ())]
        return next((one for one in found if one.is_of(key, severity, opened)), None)

    def was_acknowledged(self, key: Key) -> bool:
        """Of some opening of it."""
        return key in self._of

    def silence(self, key: Key, now: float, *, is_here: bool = True) -> Silence | None:
        """The one that lasts longest. What another machine tells is silenced here by its run alone."""
        place = key[1]
        values = dict(zip(FIELDS, (key[0], *map(_text, place[:4])), strict=True))
        found = [one for names, by_values in self._named.items() if is_here or "run" in names
                 for one in by_values.get(tuple(values[name] for name in names), ()) if one.ends() > now]  # fmt: skip
        return max(found, key=Silence.ends, default=None)

    def heard(self, change: Change, now: float) -> Change | None:
        """Where the head is quiet and what follows from it is not, the worst of that is told in its place."""
        if not (self.acknowledged or self.silences):
            return change
        opened = timestamp_at(change.opened)
        known = (change.finding, *change.evidence)
        loud = [one for one in known if not self._is_quiet(one, opened, now)]
        if len(loud) == len(known) or not loud:
            return change if loud else None
        head = change.finding if loud[0] is change.finding else max(loud, key=lambda one: _weight(one.severity))
        return change._replace(finding=head, evidence=tuple(one for one in loud if one is not head))

    def _is_quiet(self, finding: Finding, opened: str, now: float) -> bool:
        name = identity(*finding.key, opened)
        is_known = self.acknowledgement(name, finding.key, finding.severity, opened) is not None
        return is_known or self.silence(finding.key, now) is not None


def _text(name: str) -> str:
    """As it came to whoever silenced it."""
    return name.encode("utf-8", "replace").decode()


def _list(told: Any) -> Iterable[Any]:
    return told if isinstance(told, list) else ()


def _acknowledgement(told: Any) -> Acknowledgement | None:
    try:
        found = Acknowledgement(**{**told, "covers": tuple(_covers(told["covers"]))})
    except (TypeError, ValueError, KeyError, AttributeError):
        return None
    return found if _are_texts(found[:-1]) and _are_stamps(found.opened, found.at) else None


def _covers(told: Iterable[Mapping[str, str]]) -> Iterator[Covered]:
    for one in told:
        place = {name: value for name, value in one.items() if name not in ("kind", "severity")}
        if not _are_texts(one.values()):
            raise ValueError("no finding")
        yield Covered(one["kind"], one["severity"], Place(**place))


def _silence(told: Any) -> Silence | None:
    try:
        found = Silence(**told)
    except TypeError:
        return None
    return found if _are_texts(found) and _are_stamps(found.since, found.until) and found.named else None


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _are_stamps(*values: str) -> bool:
    return all(seconds(value) is not None for value in values)
