"""Which alerts an Alertmanager is to keep quiet, as the matchers of its silences.

of_silence({"kind": "GpuTemperatureHigh", "gpu": "3"}, "gpu1")
->  alertname="GpuTemperatureHigh", gpu="3", instance=~"gpu1|"

A label that is not there counts as an empty one.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from trainvitals.detect.finding import WEIGHT, Change
from trainvitals.errors import plain
from trainvitals.model import Severity
from trainvitals.notify.alertmanager import labels
from trainvitals.notify.message import Item

# What the rule of the same name has too, where it speaks of the same: those that one keeps the other quiet by.
_OF_RUN = ("run", "rank", "uuid")
_OF_NODE = ("instance", "run", "rank", "gpu", "uuid", "mountpoint")


class Matcher(NamedTuple):
    name: str
    value: str
    is_regex: bool = False

    def record(self) -> dict[str, object]:
        return {"name": self.name, "value": self.value, "isRegex": self.is_regex, "isEqual": True}


Matchers = tuple[Matcher, ...]


def of_silence(named: Mapping[str, str], host: str) -> Matchers:
    """Of a run on whichever node, else of this one."""
    names = {"kind": "alertname"}
    found = [Matcher(names.get(name, name), plain(value)) for name, value in named.items()]
    return tuple(found) if "run" in named else (*found, _or_none("instance", host))


def of_finding(change: Change, host: str) -> Matchers:
    """The agent's own alert and the rule's of it. Not of a graver one: that is news."""
    finding = change.finding
    known = labels(Item(change, "open", finding.severity), host)
    names = _OF_RUN if finding.place.run else _OF_NODE
    found = [Matcher("alertname", known["alertname"]), *(Matcher(name, known.get(name, "")) for name in names)]
    return (*found, *([_or_none("part", known["part"])] if "part" in known else []), *_no_graver(finding.severity))


def of_alert(known: Mapping[str, str]) -> Matchers:
    return tuple(Matcher(name, value) for name, value in known.items())


def _or_none(name: str, value: str) -> Matcher:
    return Matcher(name, f"{re.escape(plain(value))}|", is_regex=True)


def _no_graver(severity: Severity) -> Matchers:
    lesser = [name for name, weight in WEIGHT.items() if weight <= WEIGHT[severity]]
    return () if len(lesser) == len(WEIGHT) else (Matcher("severity", "|".join(lesser), is_regex=True),)
