"""What Alertmanager posted, and what it makes of the alerts: which fire now, which ended lately.

parse(b'{"alerts": [{"status": "firing", "labels": {"alertname": "GpuMissing"}, …}]}')  ->  [{"event": "alert", …}]
Received(keep, events).take(alerts)   ->  how many of them were news

News goes to the node's event file, and so does the word, now and then, that an alert goes on: who reads the file alone,
after a restart or in another process, knows as much.
"""

import hashlib
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import orjson

from trainvitals.alerting.routes import COLLECTOR_REPEAT_SECONDS
from trainvitals.journal.record import Record, seconds, timestamp_at
from trainvitals.model import SEVERITIES

MAX_BODY_BYTES = 2**20
MAX_ALERTS = 1000
MAX_FIRING, MAX_RESOLVED = 1000, 50
# Two repeats that failed to come: silenced since, or Alertmanager is gone with its memory.
FRESH_SECONDS = 2.5 * COLLECTOR_REPEAT_SECONDS
_GOES_ON_SECONDS = COLLECTOR_REPEAT_SECONDS / 2
_MAX_LABELS, _MAX_TEXT = 64, 4096
_FINGERPRINT = re.compile(r"[0-9a-f]{1,64}")
Alert = Record


def parse(body: bytes) -> list[Alert]:
    """ValueError says what is not as Alertmanager sends it."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError("the body is no JSON") from error
    alerts = content.get("alerts") if isinstance(content, dict) else None
    if not isinstance(alerts, list) or len(alerts) > MAX_ALERTS:
        raise ValueError(f"alerts: a list of {MAX_ALERTS} at most is wanted, as Alertmanager's webhook sends it")
    group = _group(content)
    return [_alert(number, each) | group for number, each in enumerate(alerts)]


def identity(alert: Alert) -> str:
    """Of an alert from its start to its end."""
    return hashlib.sha256(f"{alert['fingerprint']} {alert['starts']}".encode()).hexdigest()[:16]


def _group(content: Mapping[str, Any]) -> Alert:
    """A message names all of its group that goes on, unless it was cut short."""
    key = content.get("groupKey")
    is_whole = isinstance(key, str) and 0 < len(key) <= _MAX_TEXT and not content.get("truncatedAlerts")
    return {"group": key} if is_whole else {}


def _alert(number: int, content: Any) -> Alert:
    where = f"alerts[{number}]"
    if not isinstance(content, dict):
        raise ValueError(f"{where}: an object is wanted")
    labels = _texts(f"{where}.labels", content.get("labels"))
    if not labels.get("alertname"):
        raise ValueError(f"{where}.labels: alertname is missing")
    status, fingerprint = content.get("status"), content.get("fingerprint")
    if status not in ("firing", "resolved"):
        raise ValueError(f"{where}.status: firing or resolved is wanted")
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        raise ValueError(f"{where}.fingerprint: hexadecimal digits are wanted")
    starts = _time(f"{where}.startsAt", content.get("startsAt"))
    ends = {"ends": _time(f"{where}.endsAt", content.get("endsAt"))} if status == "resolved" else {}
    return {"event": "alert", "status": status, "name": labels["alertname"], "fingerprint": fingerprint,
            "starts": starts, **ends, "labels": labels,
            "annotations": _texts(f"{where}.annotations", content.get("annotations"))}  # fmt: skip


def _texts(where: str, content: Any) -> dict[str, str]:
    if not isinstance(content, dict) or len(content) > _MAX_LABELS:
        raise ValueError(f"{where}: names and texts are wanted, {_MAX_LABELS} at most")
    if not all(isinstance(text, str) and max(len(text), len(name)) <= _MAX_TEXT for name, text in content.items()):
        raise ValueError(f"{where}: a text of {_MAX_TEXT} characters at most is wanted")
    return content


def moment(content: object) -> float | None:
    """Alertmanager writes nanoseconds, which not each Python reads."""
    return seconds(re.sub(r"(\.\d{1,6})\d*", lambda match: match[1].ljust(7, "0"), str(content)[:40]))


def _time(where: str, content: Any) -> str:
    found = moment(content)
    if found is None:
        raise ValueError(f"{where}: a time such as 2025-07-30T12:34:56Z is wanted")
    return timestamp_at(found)


def how_soft(alert: Mapping[str, Any]) -> int:
    """Nothing is worse than what nobody has judged."""
    severity = alert["labels"].get("severity", "")
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


class Known:
    """What a row of event lines comes to."""

    def __init__(self, events: Iterable[Mapping[str, Any]] = ()) -> None:
        self._firing: dict[str, Alert] = {}
        self._resolved: dict[tuple[str, str], Alert] = {}
        for event in events:
            if is_alert(event):
                self.add(dict(event))

    def add(self, alert: Alert) -> None:
        """An alert with its `timestamp`, which is when it was last heard of."""
        fingerprint = alert["fingerprint"]
        if alert["status"] == "firing":
            self._firing = _last({**_without(self._firing, fingerprint), fingerprint: alert}, MAX_FIRING)
            return
        self._firing = _without(self._firing, fingerprint)
        key = (fingerprint, alert["starts"])
        self._resolved = _last({**_without(self._resolved, key), key: alert}, MAX_RESOLVED)

    def is_news(self, alert: Alert) -> bool:
        known = self._firing.get(alert["fingerprint"])
        if alert["status"] == "resolved":
            return known is not None or (alert["fingerprint"], alert["starts"]) not in self._resolved
        return known is None or known["starts"] != alert["starts"] or _age(known, alert) >= _GOES_ON_SECONDS

    def left_out(self, alerts: Collection[Alert], now: str) -> Iterator[Alert]:
        """What a message about its group no longer names has ended, though the end is not told: something that says
        more keeps it quiet."""
        groups, there = {alert.get("group") for alert in alerts} - {None}, {alert["fingerprint"] for alert in alerts}
        for fingerprint, known in self._firing.items():
            if known.get("group") in groups and fingerprint not in there:
                yield {**known, "status": "resolved", "ends": now}

    def view(self, now: float) -> dict[str, list[Alert]]:
        """The worst and the newest first."""
        firing = [alert for alert in self._firing.values() if now - _heard(alert) < FRESH_SECONDS]
        firing.sort(key=lambda alert: str(alert["starts"]), reverse=True)
        firing.sort(key=how_soft)
        return {"firing": firing, "resolved": list(reversed(self._resolved.values()))}


def is_alert(event: Mapping[str, Any]) -> bool:
    if event.get("event") != "alert" or event.get("status") not in ("firing", "resolved"):
        return False
    texts = (event.get(name) for name in ("timestamp", "name", "fingerprint", "starts"))
    mappings = (event.get(name) for name in ("labels", "annotations"))
    return all(isinstance(text, str) for text in texts) and all(isinstance(each, dict) for each in mappings)


def _without(alerts: dict[Any, Alert], key: object) -> dict[Any, Alert]:
    return {name: alert for name, alert in alerts.items() if name != key}


def _last(alerts: dict[Any, Alert], count: int) -> dict[Any, Alert]:
    return dict(list(alerts.items())[-count:])


def _heard(alert: Alert) -> float:
    return seconds(alert["timestamp"]) or 0.0


def _age(known: Alert, alert: Alert) -> float:
    return _heard(alert) - _heard(known)


class Received:
    """The agent's side: `keep` writes a line to the node's event file."""

    def __init__(self, keep: Callable[[Record], object], events: Iterable[Mapping[str, Any]] = ()) -> None:
        self._keep, self._known = keep, Known(events)
        self._lock = threading.Lock()

    def take(self, alerts: Collection[Alert], now: float) -> int:
        """May wait for the disk; a repeat is no news."""
        count, when = 0, timestamp_at(now)
        with self._lock:
            for alert in (*alerts, *self._known.left_out(alerts, when)):
                told = {**alert, "timestamp": when}
                if self._known.is_news(told):
                    self._keep(told)
                    self._known.add(told)
                    count += 1
        return count

    def view(self, now: float) -> dict[str, list[Alert]]:
        """Waits for nobody: what is known is replaced, never changed."""
        return self._known.view(now)
