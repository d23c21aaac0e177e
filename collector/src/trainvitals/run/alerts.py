"""Conditions of the user's own, asked with each line that is written.

run.alert_when("hot loss", lambda metrics: metrics["loss"] > 9, "page", "loss is {loss:.1f}")
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trainvitals.run.facts import unusable
from trainvitals.run.harmless import let_through, log, told

Condition = Callable[[dict[str, Any]], Any]
# As other tools call them -> as they are handled here.
SEVERITIES = {"warning": "ticket", "error": "page", "critical": "page", "page": "page", "ticket": "ticket",
              "info": "info"}  # fmt: skip
STEPS_KEPT = 8
COOLDOWN_SECONDS = 300.0


class Untold(KeyError):
    """A condition asked for what a step did not tell: it is not met."""


class _Metrics(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        raise Untold(key)


class _Unknown(str):
    """A field that nobody knows stays in the message as it was written."""

    def __format__(self, form: str) -> str:
        return "".join(("{", self, ":" if form else "", form, "}"))


class _AsWritten(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return _Unknown(key)


@dataclass(slots=True)
class Alert:
    name: str
    condition: Condition
    severity: str = "ticket"
    message: str = ""
    cooldown_seconds: float = COOLDOWN_SECONDS
    silent_until: float = 0.0
    fired_at: object = None

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            words = f"choose one of {', '.join(SEVERITIES)}; it is told as a ticket"
            log.warning("alert_when: %s", unusable("severity", self.severity, words))
        if not callable(self.condition):
            raise unusable("condition", self.condition, "give a function of the metrics")
        self.severity, self.cooldown_seconds = SEVERITIES.get(self.severity, "ticket"), _cooldown(self.cooldown_seconds)

    def fires(self, metrics: Mapping[str, Any]) -> bool:
        now = time.monotonic()
        try:
            if now < self.silent_until or self.fired_at == metrics["step"] or not self.condition(_Metrics(metrics)):
                return False
        except Untold:
            return False
        self.silent_until, self.fired_at = now + self.cooldown_seconds, metrics["step"]
        return True

    def words(self, metrics: Mapping[str, Any]) -> str:
        """Where a value does not fit its format, the message as it stands."""
        try:
            return (self.message or self.name).format_map(_AsWritten(metrics))
        except (ValueError, TypeError, AttributeError, IndexError, KeyError):
            return self.message


def _cooldown(given: Any) -> float:
    with suppress(Exception):  # a value of the user's own may raise anything
        if (seconds := float(given)) >= 0:
            return seconds
    words = f"give seconds, 0 or more; it is {COOLDOWN_SECONDS:.0f}"
    log.warning("alert_when: %s", unusable("cooldown_seconds", given, words))
    return COOLDOWN_SECONDS


class Alerts:
    """What is known of a step comes in several lines, some of them late: a condition is asked of all that came so far,
    and fires once a step at most."""

    def __init__(self, write_event: Callable[..., None], warn: Callable[[str, str], None]) -> None:
        self._write_event, self._warn = write_event, warn
        self._alerts: list[Alert] = []
        self._steps: dict[int, dict[str, Any]] = {}
        # Threads that are in a condition: one that logs by itself is not asked about that.
        self._asking: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._alerts)

    def add(self, alert: Alert) -> None:
        self._alerts.append(alert)

    def ask(self, record: Mapping[str, Any]) -> None:
        """A condition that fails is asked no more."""
        thread = threading.get_ident()
        if thread in self._asking:
            return
        known = self._steps.setdefault(record["step"], {})
        known.update(record)
        if len(self._steps) > STEPS_KEPT:
            self._steps.pop(next(iter(self._steps)), None)
        self._asking.add(thread)
        try:
            self._ask(known)
        finally:
            self._asking.discard(thread)

    def _ask(self, known: Mapping[str, Any]) -> None:
        for alert in list(self._alerts):
            try:
                if alert.fires(known):
                    self._write_event("alert", name=alert.name, severity=alert.severity, message=alert.words(known),
                                      cooldown_seconds=alert.cooldown_seconds)  # fmt: skip
            except (Exception, SystemExit) as error:
                let_through(error)
                self._alerts = [other for other in self._alerts if other is not alert]
                self._warn(f"alert {alert.name}",
                           f"alert {alert.name!r} is switched off: its condition failed: {told(error)}")  # fmt: skip
