"""The configuration of compat.performance: a dictionary, or a YAML file, flat or in sections.

load({"save_dir": "/data/run", "dashboard": {"enabled": True, "port": 8080}})
  ->  Settings(save_dir="/data/run", dashboard=True, port=8080, …)
"""

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainvitals.compat.configuration import read
from trainvitals.errors import nearest

log = logging.getLogger("trainvitals")


@dataclass(slots=True)
class Settings:
    save_dir: str = ""
    tensorboard_dir: str = ""
    dashboard: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    interval: float = 1.0
    alerts: bool = True
    thresholds: dict[str, Any] = field(default_factory=dict)
    performance_monitor: bool = True
    gradients: bool = False
    layers: list[str] | None = None
    rank_0_only: bool = False


# A key, or section.key -> the setting. "" is understood and needs nothing: each line is written when it is logged,
# and each rank writes its own file.
KEYS = {
    "save_dir": "save_dir",
    "enable_dashboard": "dashboard",
    "dashboard_port": "port",
    "enable_alerts": "alerts",
    "tensorboard_dir": "tensorboard_dir",
    "enable_performance_monitor": "performance_monitor",
    "track_gradients": "gradients",
    "gradient_monitoring.enabled": "gradients",
    "gradient_monitoring.track_layers": "layers",
    "distributed_monitoring": "",
    "track_rank_0_only": "rank_0_only",
    "dashboard.enabled": "dashboard",
    "dashboard.host": "host",
    "dashboard.port": "port",
    "dashboard.refresh_interval": "interval",
    "alert_system.enabled": "alerts",
    "alert_system.thresholds": "thresholds",
    "metrics_collection.buffer_size": "",
    "metrics_collection.flush_interval": "",
    "performance_tuning.high_frequency_mode": "high_frequency",
}
# Its other keys say how another tool was tuned.
_OPEN = "performance_tuning."
HIGH_FREQUENCY_SECONDS = 0.2
_SECTIONS = {name.partition(".")[0] for name in KEYS if "." in name}
_NUMBERS = {"port": int, "interval": float}


def load(config: Mapping[str, Any] | str | os.PathLike[str] | None) -> Settings:
    """What cannot be used is named in one warning, and the rest holds."""
    settings, problems = Settings(), []
    for name, value in _flat(read(config)):
        if name not in KEYS:
            problems += _unknown(name)
        elif KEYS[name] == "high_frequency":
            settings.interval = min(settings.interval, HIGH_FREQUENCY_SECONDS) if value else settings.interval
        elif KEYS[name]:
            problems += _set(settings, name, value)
    if problems:
        log.warning("config: %s", "; ".join(problems))
    return settings


def _set(settings: Settings, name: str, value: Any) -> list[str]:
    target = KEYS[name]
    kind = type(getattr(Settings(), target))
    try:
        setattr(settings, target, _taken(kind, target, value))
    except (TypeError, ValueError):
        return [f"{name}: {value!r} cannot be used: give {_WANTED.get(target, 'true or false')}"]
    return []


_WANTED = {"save_dir": "a folder", "tensorboard_dir": "a folder", "host": "an address", "port": "a port's number",
           "interval": "seconds", "thresholds": "names of metrics with numbers",
           "layers": "a list of layers' names"}  # fmt: skip


def _taken(kind: type, target: str, value: Any) -> Any:
    if target in _NUMBERS:
        return _NUMBERS[target](value)
    if target == "layers":
        return [value] if isinstance(value, str) else None if value is None else [str(layer) for layer in value]
    if target == "thresholds":
        return dict(value)
    if kind is bool:
        if not isinstance(value, (bool, int)):
            raise TypeError
        return bool(value)
    return "" if value is None else os.fspath(value)


def _flat(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if str(name) in _SECTIONS and isinstance(value, Mapping):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            yield str(name), value


def _unknown(name: str) -> list[str]:
    """The nearest may be a section."""
    if name.startswith(_OPEN):
        return []
    return [f"{name!r} is no key: the nearest is {nearest(name, {*KEYS, *_SECTIONS})!r}"]
