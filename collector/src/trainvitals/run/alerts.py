"""Conditions of the user's own, asked with each line that is written.

run.alert_when("hot loss", lambda metrics: metrics["loss"] > 9, "page", "loss is {loss:.1f}")
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainvitals.run.harmless import let_through, told

Condition = Callable[[dict[str, Any]], Any]
# As other tools call them -> as they are handled here.
SEVERITIES = {"warning": "ticket", "error": "page", "critical": "page", "page": "page", "ticket": "ticket",
              "info": "info"}  # fmt: skip
STEPS_KEPT = 8


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
    cooldown_seconds: float = 300.0
    silent_until: float = 0.0
    fired_at: object = None

    def __post_init__(self) -> None:
        self.severity = SEVERITIES.get(self.severity, "ticket")

    def fires(self, metrics: Mapping[str, Any]) -> bool:
        """A condition on what a record does not hold is not met."""
        now = time.monotonic()
        try:
            if now < self.silent_until or self.fired_at == metrics["step"] or not self.condition(dict(metrics)):
                return False
        except KeyError:
            return False
        self.silent_until, self.fired_at = now + self.cooldown_seconds, metrics["step"]
        return True

    def words(self, metrics: Mapping[str, Any]) -> str:
        """Where a value does not fit its format, the message as it stands."""
        try:
            return (self.message or self.name).format_map(_AsWritten(metrics))
        except (ValueError, TypeError, AttributeError, IndexError, KeyError):
            return self.message


class Alerts:
    """What is known of a step comes in several lines, some of them late: a condition is asked of all that came so far,
    and fires once a step at most."""

    def __init__(self, write_event: Callable[..., None], warn: Callable[[str, str], None]) -> None:
        self._write_event, self._warn = write_event, warn
        self._alerts: list[Alert] = []
        self._steps: dict[int, dict[str, Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._alerts)

    def add(self, alert: Alert) -> None:
        self._alerts.append(alert)

    def ask(self, record: Mapping[str, Any]) -> None:
        """A condition that fails is asked no more."""
        known = self._steps.setdefault(record["step"], {})
        known.update(record)
        if len(self._steps) > STEPS_KEPT:
            del self._steps[next(iter(self._steps))]
        for alert in list(self._alerts):
            try:
                if alert.fires(known):
                    self._write_event("alert", name=alert.name, severity=alert.severity, message=alert.words(known))
            except Exception as error:
                let_through(error)
                self._alerts.remove(alert)
                self._warn(f"alert {alert.name}",
                           f"alert {alert.name!r} is switched off: its condition failed: {told(error)}")  # fmt: skip
