"""One test alert down each configured way, as a real one would go, and what came of it.

delivered        slack
failed           email      connection refused (Alertmanager's log)
not configured   pagerduty

Alertmanager tells per receiver how many messages it sent and how many of them failed: each way has a receiver of its
own for this. Why one failed stands in its log alone.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trainvitals.alerting.channels import HIDDEN
from trainvitals.alerting.receivers import CHANNELS, INTEGRATIONS, TRIAL
from trainvitals.errors import SettingError, TrainVitalsError
from trainvitals.journal.record import timestamp_at

PAUSE_SECONDS = 0.5
ASK_SECONDS = 5.0
LASTS_SECONDS = 30.0
DELIVERED, FAILED, ABSENT = "delivered", "failed", "not configured"
_METRIC = re.compile(r"alertmanager_notification_requests_(failed_)?total")
# Of an attempt that will be made again the receiver stands apart, of the last one before the error.
_LOG_LINES = (re.compile(rf'receiver"?[=:]"?{TRIAL}(\w+)\b.*?\berr"?[=:]"((?:[^"\\]|\\.)*)"'),
              re.compile(rf'\berr"?[=:]"{TRIAL}(\w+)/\S+ ((?:[^"\\]|\\.)*)"'))  # fmt: skip
_SECRET_PATH = re.compile(r"(bot)\d+:[\w-]+|(https?://)[^/\s@]+@")


class Outcome(NamedTuple):
    channel: str
    state: str
    why: str = ""


class Counts(NamedTuple):
    sent: float = 0.0
    failed: float = 0.0

    @property
    def taken(self) -> float:
        return self.sent - self.failed


class Alertmanager:
    """Its HTTP interface, as far as a trial needs it."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def channels(self) -> list[str]:
        names = {each.get("name") for each in orjson.loads(self._ask("/api/v2/receivers"))}
        return [channel for channel in CHANNELS if TRIAL + channel in names]

    def post(self, alert: Mapping[str, Any]) -> None:
        self._ask("/api/v2/alerts", orjson.dumps([alert]))

    def counts(self) -> dict[str, Counts]:
        """By receiver where Alertmanager tells those apart, else by the kind of message."""
        found: dict[str, list[float]] = {}
        for name, labels, value in _samples(self._ask("/metrics").decode()):
            key = labels.get("receiver_name") or labels.get("integration", "")
            found.setdefault(key, [0.0, 0.0])["failed" in name] += value
        return {key: Counts(*both) for key, both in found.items()}

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        try:
            asked = Request(self.url + path, body, {"content-type": "application/json"})
            with urlopen(asked, timeout=ASK_SECONDS) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            raise TrainVitalsError(f"Alertmanager at {self.url}{path} answers {error.code}: is it one?") from error
        except (URLError, OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            fix = f"Alertmanager does not answer there ({why}): start it, or say where it is"
            raise SettingError("--alertmanager", self.url, fix) from error


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families

    lines = [line for line in text.splitlines() if _METRIC.match(line)]
    for family in text_string_to_metric_families("\n".join([*lines, ""])):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def run(alertmanager: Alertmanager, host: str, seconds: float, log: Path | None = None,
        sleep: Callable[[float], None] = time.sleep) -> list[Outcome]:  # fmt: skip
    """A row for each way there is; within `seconds`."""
    channels = alertmanager.channels()
    if not channels:
        fix = "its configuration has no ways to try: make it with `trainvitals alertmanager-config`"
        raise SettingError("--alertmanager", alertmanager.url, fix)
    start = log.stat().st_size if log else 0
    before = alertmanager.counts()
    alertmanager.post(_alert(host, time.time()))
    deadline = time.monotonic() + seconds
    gains: dict[str, _Gain] = {}
    while not (gains and all(gain.is_enough for gain in gains.values())) and time.monotonic() < deadline:
        sleep(PAUSE_SECONDS)
        gains = _gains(channels, before, alertmanager.counts())
    reasons = _reasons(log, start)
    return [_outcome(channel, gains.get(channel), reasons.get(channel, "")) for channel in CHANNELS]


class _Gain(NamedTuple):
    taken: float
    failed: float
    wanted: int

    @property
    def is_enough(self) -> bool:
        return self.taken >= self.wanted


def _gains(channels: list[str], before: Mapping[str, Counts], now: Mapping[str, Counts]) -> dict[str, _Gain]:
    """Where receivers are not told apart, all of a kind must have taken one."""
    by_name = any(key.startswith(TRIAL) for key in now)
    found = {}
    for channel in channels:
        key = TRIAL + channel if by_name else INTEGRATIONS[channel]
        old, new = before.get(key, Counts()), now.get(key, Counts())
        same = sum(INTEGRATIONS[other] == INTEGRATIONS[channel] for other in channels)
        found[channel] = _Gain(new.taken - old.taken, new.failed - old.failed, 1 if by_name else same)
    return found


def _outcome(channel: str, gain: _Gain | None, reason: str) -> Outcome:
    if gain is None:
        return Outcome(channel, ABSENT)
    if gain.is_enough:
        return Outcome(channel, DELIVERED)
    unsaid = f"{gain.failed:.0f} attempts failed; Alertmanager's log says why" if gain.failed else "no answer in time"
    return Outcome(channel, FAILED, reason or unsaid)


def _alert(host: str, now: float) -> dict[str, Any]:
    return {
        "labels": {"alertname": "AlertTest", "severity": "page", "source": "test", "instance": host,
                   "alert_test": uuid.uuid4().hex[:12]},
        "annotations": {"summary": "A test of the way that alerts take; nothing is wrong.",
                        "description": "Sent by `trainvitals alert-test`. Nothing is to be done: "
                                       "that you read it is what was to be shown. It ends by itself."},
        "startsAt": timestamp_at(now), "endsAt": timestamp_at(now + LASTS_SECONDS),
    }  # fmt: skip


def _reasons(log: Path | None, start: int) -> dict[str, str]:
    """The last that Alertmanager wrote of each way since the trial began."""
    if log is None:
        return {}
    with log.open("rb") as file:
        file.seek(start)
        text = file.read().decode("utf-8", "replace")
    return {match[1]: without_secrets(match[2].replace('\\"', '"'))
            for pattern in _LOG_LINES for match in pattern.finditer(text)}  # fmt: skip


def without_secrets(text: str) -> str:
    """Telegram's token is part of its address, which Alertmanager writes out."""
    return _SECRET_PATH.sub(lambda match: f"{match[1] or match[2]}{HIDDEN}", text)
