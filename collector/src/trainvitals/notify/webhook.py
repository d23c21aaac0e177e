"""Any program that takes JSON: all that is known of each finding, as docs/notify.md lists it.

{"version":1,"host":"gpu1","severity":"page","text":"[page] …","findings":[{"kind":"GpuMissing","state":"open",…}]}
"""

from typing import Any
from urllib.parse import urlsplit

import orjson

from trainvitals.detect.advice import runbook
from trainvitals.detect.finding import Finding
from trainvitals.journal.record import as_json, timestamp_at
from trainvitals.notify.channel import Channel
from trainvitals.notify.message import Item, Message
from trainvitals.notify.request import ask, look
from trainvitals.notify.words import subject

VERSION = 1
_STATES = {"open": "open", "worse": "escalated", "resolved": "resolved", "over": "resolved"}


class Webhook(Channel):
    kind = "webhook"

    def __init__(self, key: str, url: str, *, only_pages: bool = False) -> None:
        super().__init__(key, [url], shown=f"webhook {urlsplit(url).hostname}", only_pages=only_pages)
        self._url = url

    def send(self, message: Message) -> None:
        ask(self._url, orjson.dumps(content(message)))

    def check(self) -> str:
        look(self._url)
        return ""


def content(message: Message) -> dict[str, Any]:
    found = {"version": VERSION, "host": message.host, "severity": message.severity, "text": subject(message),
             "findings": [_item(item, message.host) for item in message.items]}  # fmt: skip
    return found | ({"test": True} if message.is_trial else {})


def _item(item: Item, host: str) -> dict[str, Any]:
    change = item.change
    found = _finding(item.finding) | {"severity": item.severity, "state": _STATES[item.state], "instance": host,
                                      "opened": timestamp_at(change.opened)}  # fmt: skip
    if not item.goes_on:
        found["closed"] = timestamp_at(change.when)
    if change.evidence:
        found["evidence"] = [_finding(one) for one in change.evidence]
    if item.more:
        found["more_evidence"] = item.more
    return found


def _finding(finding: Finding) -> dict[str, Any]:
    known = {"step": finding.step, "value": finding.value, "threshold": finding.threshold}
    return {"kind": finding.kind, "severity": finding.severity, "place": _texts(finding.place.labels()),
            "what": _text(finding.what), "todo": _text(finding.todo), "runbook": runbook(finding.kind),
            **{name: as_json(value) for name, value in known.items() if value is not None}}  # fmt: skip


def _texts(known: dict[str, str]) -> dict[str, str]:
    return {name: _text(value) for name, value in known.items()}


def _text(value: str) -> str:
    """A name that is no UTF-8 is told as near as can be."""
    return value.encode("utf-8", "replace").decode()
