"""Alerts on how a training does beside how it did, and an e-mail for each.

alerting = PerformanceAlerting({"smtp_server": "mail.example.org", "smtp_port": 587, "username": "me",
                                "password": "…", "from": "me@example.org", "to": "you@example.org"})
for alert in alerting.check_alerts({"loss": 2.6, "cpu_percent": 40.0}, {"loss": 2.0}):
    alerting.send_alert(alert)      # {"type": "loss_increase", "message": "…", "severity": "warning"}
"""

import json
import logging
import math
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from trainvitals.compat.mail import Mail
from trainvitals.journal.record import as_number
from trainvitals.run import current, harmless
from trainvitals.run.alerts import SEVERITIES
from trainvitals.run.harmless import told
from trainvitals.run.off import is_switched_off

Metrics = Mapping[str, Any]
Alert = dict[str, Any]
Check = Callable[[Metrics, Metrics, float], Iterator[Alert]]
SLACK_SECONDS = 10.0
THRESHOLDS = {"loss_increase": 0.1, "gpu_memory": 0.9, "cpu_usage": 0.95, "training_speed": 0.5}
# What says how fast a training is, the best first.
_SPEEDS = ("training_speed", "throughput_samples_per_sec", "samples_per_second", "tokens_per_second",
           "steps_per_second")  # fmt: skip

log = logging.getLogger("trainvitals")


class PerformanceAlerting:
    """`alert_thresholds` are shares: of the loss before, of a GPU's memory, of all processors, and of the speed before
    that may be lost. A check whose values are not known is left out."""

    def __init__(self, email_config: Mapping[str, Any] | None) -> None:
        self.email_config = email_config
        self.alert_thresholds = dict(THRESHOLDS)
        self.slack_webhook_url = ""
        self._mail: Mail | None = None
        self._troubles: set[str] = set()
        try:
            self._mail = Mail(email_config) if email_config else None
        except (KeyError, TypeError, ValueError) as error:
            self._warn(f"email_config: {told(error)}: no e-mail is sent; give smtp_server, smtp_port, from, to")

    def check_alerts(self, current_metrics: Metrics, baseline_metrics: Metrics | None) -> list[Alert]:
        now, before = _mapping(current_metrics), _mapping(baseline_metrics)
        found: list[Alert] = []
        for name, check in CHECKS.items():
            threshold = as_number(self.alert_thresholds.get(name))
            if threshold is not None:
                found += self._checked(check, now, before, threshold) or []
        return found

    def send_alert(self, alert: Mapping[str, Any]) -> bool:
        """Whether somebody was told. It is an event of the run too, for the agent to tell."""
        return not is_switched_off() and bool(self._send(alert))

    @harmless
    def _checked(self, check: Check, *of: Any) -> list[Alert]:
        return list(check(*of))

    @harmless
    def _send(self, alert: Mapping[str, Any]) -> bool:
        name, severity, words = (str(alert.get(key) or default) for key, default in
                                 (("type", "alert"), ("severity", "warning"), ("message", "")))  # fmt: skip
        current().write_event("alert", name=name, severity=SEVERITIES.get(severity, "ticket"), message=words)
        when = datetime.now(timezone.utc)
        text = f"{words}\n\ntype: {name}\nseverity: {severity}\ntime: {when:%Y-%m-%d %H:%M:%S} UTC\n"
        ways = []
        if self._mail is not None:
            ways.append(("e-mail", self._mail.send(f"NeMo RL alert: {name}", text)))
        if self.slack_webhook_url:
            ways.append(("Slack", _post(self.slack_webhook_url, f"*{name}* ({severity}): {words}")))
        for way, trouble in ways:
            if trouble:
                self._warn(f"alert {name!r} was not sent by {way}, and training goes on: {trouble}")
        return any(not trouble for _, trouble in ways)

    def failed(self, error: BaseException) -> None:
        self._warn(f"alerting failed and training goes on: {told(error)}")

    def _warn(self, words: str) -> None:
        """Each once."""
        if words not in self._troubles and len(self._troubles) < 100:
            self._troubles.add(words)
            log.warning("%s", words)


def _loss(now: Metrics, before: Metrics, threshold: float) -> Iterator[Alert]:
    loss, base = as_number(now.get("loss")), as_number(before.get("loss"))
    if loss is None:
        return
    if not math.isfinite(loss):
        yield _alert("loss_increase", f"the loss is {loss}", "critical")
    elif base and math.isfinite(base) and loss - base > threshold * abs(base):
        share = (loss - base) / abs(base)
        yield _alert("loss_increase", f"the loss is {loss:.4g}, {share:.1%} above the {base:.4g} it is compared with")


def _gpu_memory(now: Metrics, before: Metrics, threshold: float) -> Iterator[Alert]:
    gpus = now.get("gpu_memory", now.get("gpu_metrics"))
    for gpu, held in (gpus if isinstance(gpus, Mapping) else {"": gpus}).items():
        share = _share(held)
        if share is not None and share > threshold:
            name = f"GPU {str(gpu).removeprefix('gpu_')}" if str(gpu) else "the GPU"
            yield _alert("gpu_memory", f"{name} uses {share:.1%} of its memory") | ({"gpu": gpu} if str(gpu) else {})


def _share(held: Any) -> float | None:
    """Of what the device has, where that is known, else of what the allocator reserved."""
    if not isinstance(held, Mapping):
        return as_number(held)
    used = as_number(held.get("memory_allocated", held.get("memory_used_mb")))
    most = as_number(held.get("memory_total", held.get("memory_total_mb", held.get("memory_reserved"))))
    return used / most if used is not None and most else None


def _cpu(now: Metrics, before: Metrics, threshold: float) -> Iterator[Alert]:
    percent, share = as_number(now.get("cpu_percent")), as_number(now.get("cpu_usage"))
    if percent is None and share is not None:
        percent = 100 * share if share <= 1 else share
    if percent is not None and percent > 100 * threshold:
        yield _alert("cpu_usage", f"the processors are busy for {percent:.1f}% of the time")


def _speed(now: Metrics, before: Metrics, threshold: float) -> Iterator[Alert]:
    name = next((each for each in _SPEEDS if each in now and each in before), "")
    speed, base = as_number(now.get(name)), as_number(before.get(name))
    if speed is not None and base is not None and base > 0 and speed < base * (1 - threshold):
        yield _alert("training_speed", f"training is at {speed:.4g}, {1 - speed / base:.1%} below {base:.4g} ({name})")


def _alert(name: str, message: str, severity: str = "warning") -> Alert:
    return {"type": name, "message": message, "severity": severity}


CHECKS: dict[str, Check] = {
    "loss_increase": _loss, "gpu_memory": _gpu_memory, "cpu_usage": _cpu, "training_speed": _speed,
}  # fmt: skip


def _mapping(given: Any) -> Metrics:
    return given if isinstance(given, Mapping) else {}


def _post(url: str, text: str) -> str:
    """To Slack; the address is a secret by itself."""
    request = urllib.request.Request(url, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=SLACK_SECONDS):
            return ""
    except Exception as error:
        return told(error).replace(url, "(hidden)")
