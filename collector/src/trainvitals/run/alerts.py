"""Conditions of the user's own, asked with each record.

run.alert_when("hot loss", lambda metrics: metrics["loss"] > 9, "page", "loss is {loss:.1f}")
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainvitals.run.harmless import told

Condition = Callable[[dict[str, Any]], Any]
# As other tools call them -> as they are handled here.
SEVERITIES = {"warning": "ticket", "error": "page", "critical": "page", "page": "page", "ticket": "ticket",
              "info": "info"}  # fmt: skip


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

    def __post_init__(self) -> None:
        self.severity = SEVERITIES.get(self.severity, "ticket")

    def fires(self, metrics: Mapping[str, Any]) -> bool:
        """A condition on what a record does not hold is not met."""
        now = time.monotonic()
        try:
            if now < self.silent_until or not self.condition(dict(metrics)):
                return False
        except KeyError:
            return False
        self.silent_until = now + self.cooldown_seconds
        return True

    def words(self, metrics: Mapping[str, Any]) -> str:
        """Where a value does not fit its format, the message as it stands."""
        try:
            return (self.message or self.name).format_map(_AsWritten(metrics))
        except (ValueError, TypeError, AttributeError, IndexError, KeyError):
            return self.message


def ask(alerts: list[Alert], record: Mapping[str, Any], write_event: Callable[..., None],
        warn: Callable[[str, str], None]) -> None:  # fmt: skip
    """A condition that fails is asked no more."""
    for alert in list(alerts):
        try:
            if alert.fires(record):
                write_event("alert", name=alert.name, severity=alert.severity, message=alert.words(record))
        except Exception as error:
            alerts.remove(alert)
            warn(f"alert {alert.name}", f"alert {alert.name!r} is switched off: its condition failed: {told(error)}")
