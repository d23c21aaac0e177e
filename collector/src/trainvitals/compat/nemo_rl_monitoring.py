"""A training's monitoring as its configuration says: the `monitoring:` part of a YAML file, or a dictionary.

monitoring = Monitoring("grpo.yml", email_config)
monitoring.start()
monitoring.training.record_metrics(step, loss, learning_rate, batch_size)
monitoring.stop()
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainvitals.compat.configuration import read
from trainvitals.compat.handing import HandingOn
from trainvitals.compat.nemo_rl_alerting import THRESHOLDS, PerformanceAlerting
from trainvitals.compat.nemo_rl_realtime import RealTimeMonitor
from trainvitals.compat.nemo_rl_training import TrainingMonitor
from trainvitals.errors import nearest
from trainvitals.journal.record import as_number
from trainvitals.run import current, harmless
from trainvitals.run.harmless import log, warn
from trainvitals.run.off import is_switched_off

Config = Mapping[str, Any] | str | os.PathLike[str]
# Metrics -> the check of the alerting that looks at them; "": each run records them, or its agent does.
METRICS = {"training_loss": "loss_increase", "gpu_memory": "gpu_memory", "cpu_usage": "cpu_usage",
           "training_speed": "training_speed", "model_parameters": "", "gradient_norms": "",
           "learning_rate": ""}  # fmt: skip
KEYS = {"enabled", "interval", "metrics", *(f"visualization.{name}" for name in
        ("tensorboard", "dashboard", "prometheus", "grafana")), *(f"alerting.{name}" for name in
        ("enabled", "email_notifications", "slack_notifications", "thresholds")), *(f"analysis.{name}" for name in
        ("trend_analysis", "anomaly_detection", "performance_regression"))}  # fmt: skip
_SECTIONS = {"visualization", "alerting", "analysis"}
# Where nobody gives an e-mail's configuration it is taken from the environment, as the stack's is.
_MAIL = {"SMTP_HOST": "smtp_server", "SMTP_PORT": "smtp_port", "SMTP_FROM": "from", "SMTP_TO": "to",
         "SMTP_USER": "username", "SMTP_PASSWORD": "password", "SMTP_PASSWORD_FILE": "password_file",
         "SMTP_TLS": "tls"}  # fmt: skip


@dataclass(slots=True)
class MonitoringSettings:
    """Analysis is what the agent's detectors do, whatever is said of it here; Grafana comes with the stack."""

    enabled: bool = True
    interval: float = 30.0
    checks: list[str] = field(default_factory=lambda: list(THRESHOLDS))
    tensorboard: bool = False
    page: bool = False
    alerts: bool = False
    email: bool = False
    slack: bool = False
    thresholds: dict[str, float] = field(default_factory=dict)


class Monitoring:
    def __init__(self, config: Config, email_config: Mapping[str, Any] | None = None) -> None:
        self.settings = load(config)
        self.training = TrainingMonitor()
        self.alerting = _alerting(self.settings, email_config)
        self.real_time = RealTimeMonitor(self.alerting)
        self._handing: HandingOn | None = None
        self._is_begun_here = False

    def failed(self, error: BaseException) -> None:
        warn(error)

    @harmless
    def start(self) -> None:
        """Of the run that is under way, else of one that begins here."""
        if not self.settings.enabled or is_switched_off():
            return
        under_way = current()
        self._is_begun_here = under_way.status != "running"
        run = self.training.begin(None if self._is_begun_here else under_way)
        folder = os.environ.get("TENSORBOARD_DIR", "tensorboard_log")
        sinks = [f"tensorboard={folder}"] if self.settings.tensorboard else []
        if (sinks or self.settings.page) and run.status == "running" and run.local_rank == 0:
            self._handing = HandingOn(run, sinks, *(("--port", "8080") if self.settings.page else ()))
        if self.settings.alerts and run.rank == 0:
            self.real_time.start_monitoring(self.settings.interval)

    @harmless
    def stop(self) -> None:
        self.real_time.stop_monitoring()
        if self.training.run is not None and self._is_begun_here:
            self.training.run.finish()
        handing, self._handing = self._handing, None
        if handing is not None:
            handing.end()


def load(config: Config) -> MonitoringSettings:
    """What cannot be used is named in one warning, and the rest holds."""
    given = read(config)
    given = given.get("monitoring", given)
    problems: list[str] = []
    flat = dict(_flat(given if isinstance(given, Mapping) else {}, problems))
    settings = MonitoringSettings(
        enabled=_flag(flat, "enabled", problems, True),
        interval=_interval(flat, problems),
        checks=_checks(flat.get("metrics"), problems),
        tensorboard=_flag(flat, "visualization.tensorboard", problems),
        page=_flag(flat, "visualization.dashboard", problems) or _flag(flat, "visualization.prometheus", problems),
        alerts=_flag(flat, "alerting.enabled", problems, any(key.startswith("alerting.") for key in flat)),
        email=_flag(flat, "alerting.email_notifications", problems),
        slack=_flag(flat, "alerting.slack_notifications", problems),
        thresholds=_thresholds(flat.get("alerting.thresholds"), problems),
    )
    if problems:
        log.warning("monitoring: %s", "; ".join(problems))
    return settings


def _flat(given: Mapping[str, Any], problems: list[str]) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        inner = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, Mapping) else {}
        for key, each in (inner if name in _SECTIONS and inner else {str(name): value}).items():
            if key in KEYS:
                yield key, each
            elif key not in _SECTIONS or value:
                problems.append(_unknown(key, KEYS))


def _flag(flat: Mapping[str, Any], key: str, problems: list[str], default: bool = False) -> bool:
    value = flat.get(key, default)
    if isinstance(value, bool):
        return value
    problems.append(f"{key}: {value!r} cannot be used: give true or false")
    return default


def _interval(flat: Mapping[str, Any], problems: list[str]) -> float:
    seconds = as_number(flat.get("interval", 30.0))
    if seconds is None or not 0 < seconds < 86_400:
        problems.append(f"interval: {flat['interval']!r} cannot be used: give seconds")
        return 30.0
    return seconds


def _checks(names: Any, problems: list[str]) -> list[str]:
    """Where none are named, all."""
    if names is None:
        return list(THRESHOLDS)
    if isinstance(names, str) or not isinstance(names, Iterable):
        problems.append(f"metrics: {names!r} cannot be used: give a list of names")
        return list(THRESHOLDS)
    known = [str(name) for name in names]
    problems += [f"metrics: {_unknown(name, METRICS)}" for name in known if name not in METRICS]
    return [METRICS[name] for name in known if METRICS.get(name)]


def _thresholds(given: Any, problems: list[str]) -> dict[str, float]:
    if given is not None and not isinstance(given, Mapping):
        problems.append(f"alerting.thresholds: {given!r} cannot be used: give names with numbers")
    found: dict[str, float] = {}
    for name, value in given.items() if isinstance(given, Mapping) else ():
        number = as_number(value)
        if name not in THRESHOLDS:
            problems.append(f"alerting.thresholds: {_unknown(str(name), THRESHOLDS)}")
        elif number is None or not number >= 0:
            problems.append(f"alerting.thresholds.{name}: {value!r} cannot be used: give a share, as 0.1")
        else:
            found[name] = number
    return found


def _unknown(name: str, known: Iterable[str]) -> str:
    return f"{name!r} is no key: the nearest is {nearest(name, known)!r}"


def _alerting(settings: MonitoringSettings, email_config: Mapping[str, Any] | None) -> PerformanceAlerting:
    found = {name: os.environ[key] for key, name in _MAIL.items() if os.environ.get(key)}
    wants_mail = settings.alerts and settings.email
    alerting = PerformanceAlerting((email_config or found) if wants_mail else None)
    alerting.alert_thresholds.update(settings.thresholds)
    alerting.alert_thresholds = {name: alerting.alert_thresholds[name] for name in settings.checks}
    if wants_mail and not email_config and not found:
        log.warning("monitoring: email_notifications: nobody says where to: give email_config, or set SMTP_HOST, "
                    "SMTP_FROM and SMTP_TO")  # fmt: skip
    if settings.alerts and settings.slack:
        alerting.slack_webhook_url = os.environ.get("SLACK_WEBHOOK_URL", "")
        if not alerting.slack_webhook_url:
            log.warning("monitoring: slack_notifications: set SLACK_WEBHOOK_URL to the webhook's address")
    return alerting
