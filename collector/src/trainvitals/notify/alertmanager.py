"""Alertmanager's API: what fires is posted at once and again each minute, and with an end when it is over.

labels(item, "gpu1")   ->   {"alertname": "GpuMissing", "severity": "page", "source": "agent", "instance": "gpu1"}
"""

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from trainvitals.detect.advice import runbook
from trainvitals.detect.finding import Place
from trainvitals.errors import SettingError, plain
from trainvitals.journal.record import timestamp_at
from trainvitals.notify.channel import Channel, Unsent
from trainvitals.notify.limits import ALERT_LASTS_SECONDS
from trainvitals.notify.message import Item, Message
from trainvitals.notify.request import ask
from trainvitals.notify.summaries import summary
from trainvitals.notify.words import description

# Of a trial, so that it is no real alert to anybody: the routes of ours take it down each way.
TRIAL = "AlertTest"
_TRIAL_SECONDS = 30.0
# Stamps are told to the nearest millisecond: what is one apart may be told as the same.
_LEAST_SECONDS = 0.002
MOST_LISTED_BYTES = 16 * 2**20


class Alertmanager(Channel):
    kind = "alertmanager"
    starts_beside = True

    def __init__(self, key: str, url: str) -> None:
        parts = urlsplit(url)
        super().__init__(key, [parts.username or "", parts.password or ""], shown=f"alertmanager {parts.hostname}")
        self._url = url.rstrip("/")

    def send(self, message: Message) -> None:
        now = time.time()
        if message.is_trial:
            # Any server may take what is posted.
            self.check()
        alerts = [alert(item, message.host, now) for item in message.items]
        body = [trial(message.host, now)] if message.is_trial else alerts
        ask(f"{self._url}/api/v2/alerts", orjson.dumps(body))

    def check(self) -> str:
        try:
            status = orjson.loads(ask(f"{self._url}/api/v2/status"))
            if not (isinstance(status, dict) and "versionInfo" in status):
                raise ValueError
        except Unsent as error:
            raise self._wrong(str(error)) from None
        except ValueError:
            raise self._wrong("it answers, but not as an Alertmanager does") from None
        return ""

    def silences(self) -> list[dict[str, Any]]:
        return self._listed("silences")

    def silenced(self) -> list[dict[str, Any]]:
        """Alerts that a silence keeps quiet, whatever else does."""
        return self._listed("alerts?active=false&silenced=true&inhibited=true&unprocessed=false")

    def silence(self, content: Mapping[str, Any]) -> str:
        """A new one, or another end for that whose `id` it names. Which it is then."""
        told = orjson.loads(ask(f"{self._url}/api/v2/silences", orjson.dumps(content)))
        return str(told["silenceID"])

    def expire(self, silence: str) -> None:
        ask(f"{self._url}/api/v2/silence/{quote(silence, safe='')}", method="DELETE")

    def _listed(self, what: str) -> list[dict[str, Any]]:
        try:
            found = orjson.loads(ask(f"{self._url}/api/v2/{what}", most_bytes=MOST_LISTED_BYTES))
        except ValueError:
            raise Unsent(f"lists more than {MOST_LISTED_BYTES // 2**20} MiB of it, or answers as no Alertmanager does"
                         ) from None  # fmt: skip
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def _wrong(self, why: str) -> SettingError:
        where = urlsplit(self._url)
        shown = where._replace(netloc=where.netloc.rpartition("@")[2]).geturl()
        fix = f"{self.hide(why)}; start Alertmanager there, or say where it is: alertmanager=http://127.0.0.1:9093"
        return SettingError(self.key, shown, fix)


def alert(item: Item, host: str, now: float) -> dict[str, Any]:
    change = item.change
    starts = min(change.opened, now)
    ends = now + ALERT_LASTS_SECONDS if item.goes_on else max(now, starts + _LEAST_SECONDS)
    return {"labels": labels(item, host), "annotations": _annotations(item, host),
            "startsAt": timestamp_at(starts), "endsAt": timestamp_at(ends)}  # fmt: skip


def labels(item: Item, host: str) -> dict[str, str]:
    """As its twin's, a rule of Prometheus's, so that Alertmanager can tell that they are of the same place."""
    finding, cause = item.finding, item.change.cause
    found = {"alertname": finding.kind, "severity": item.severity, "source": "agent", "instance": host,
             **_place(finding.kind, finding.place), **({"folded": cause.kind} if cause else {})}  # fmt: skip
    return {name: plain(value) for name, value in found.items()}


def _place(kind: str, place: Place) -> dict[str, str]:
    found = place.labels()
    part = found.pop("part", "")
    if part:
        found["mountpoint" if kind.startswith("HostDisk") else "part"] = part
    return found


def _annotations(item: Item, host: str) -> dict[str, str]:
    finding = item.finding
    found = {"summary": plain(summary(finding.kind, finding.place, host)), "description": description(item),
             "runbook_url": runbook(finding.kind)}  # fmt: skip
    return {name: value for name, value in found.items() if value}


def trial(host: str, now: float) -> dict[str, Any]:
    return {
        "labels": {"alertname": TRIAL, "severity": "page", "source": "test", "instance": host,
                   "alert_test": f"agent-{now:.0f}"},
        "annotations": {"summary": "A test of the way that alerts take; nothing is wrong.",
                        "description": "Sent by `trainvitals notify --test`. It ends by itself."},
        "startsAt": timestamp_at(now), "endsAt": timestamp_at(now + _TRIAL_SECONDS),
    }  # fmt: skip
