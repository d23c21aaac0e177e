"""Thresholds of compat.performance that a detector of the agent has a number for.

split({"cpu_usage_percent": 85.0, "loss": 9.0})  ->  {"host_cpu": 0.85}, {"loss": {"warning": 9.0}}

They go with the run's configuration, for another process judges by them: it sees each GPU, and goes on while the
trainer hangs. What no detector looks at stays a condition in the trainer.
"""

import logging
import math
from collections.abc import Mapping
from typing import Any

# The key in the run's configuration; the names below it are those of `thresholds:` in alerts.yml.
CONFIG_KEY = "alert_thresholds"
# As it is called here -> the detectors' name, and what a number here is there.
BUILT_IN: dict[str, tuple[str, float]] = {
    "cpu_usage_percent": ("host_cpu", 0.01),
    "memory_usage_percent": ("host_memory", 0.01),
    "gpu_memory_usage_percent": ("gpu_memory", 0.01),
    "gpu_temperature": ("gpu_temperature", 1.0),
    "gpu_temperature_celsius": ("gpu_temperature", 1.0),
    "disk_usage_percent": ("host_disk_full", -0.01),
    "gradient_norm_exploded": ("gradient_norm", 1.0),
    "grad_norm_exploded": ("gradient_norm", 1.0),
    "learning_rate_too_low": ("learning_rate_low", 1.0),
    "training_loss_spike": ("loss_spike_sigma", 1.0),
}
# The mildest first: a detector has one number, and what is beyond it stays a condition.
_MILDEST = ("info", "ticket", "warning", "page", "error", "critical")
Thresholds = dict[str, dict[str, Any]]

log = logging.getLogger("trainvitals")


def split(thresholds: Mapping[str, Any]) -> tuple[dict[str, float], Thresholds]:
    """The detectors' numbers, and what stays here, by severity."""
    handed: dict[str, float] = {}
    kept: Thresholds = {}
    for name, given in thresholds.items():
        limits = dict(given) if isinstance(given, Mapping) else {"warning": given}
        if name in BUILT_IN and limits:
            _hand(name, limits.pop(min(limits, key=_mildness)), handed)
        if limits:
            kept[str(name)] = limits
    return handed, kept


def _hand(name: str, given: Any, handed: dict[str, float]) -> None:
    theirs, factor = BUILT_IN[name]
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf or (factor < 0 and number > 100):
        log.warning("config: alert_system.thresholds.%s: %r cannot be used: give a number of 0 or more", name, given)
        return
    # Of a disk it is the share that is left.
    handed[theirs] = round(number * factor if factor > 0 else 1 + number * factor, 9)


def _mildness(severity: object) -> int:
    return _MILDEST.index(str(severity)) if severity in _MILDEST else len(_MILDEST)
