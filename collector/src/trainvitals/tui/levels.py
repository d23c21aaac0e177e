"""How grave a reading is: a colour, and a sign for those who see none.

temperature(gpu)  ->  Level("bad", "!!")
"""

from typing import NamedTuple

from trainvitals.detect.limits import Limits
from trainvitals.tui.picture import Gpu

_LIMITS = Limits()


class Level(NamedTuple):
    style: str
    sign: str


GOOD, DIM = Level("good", "  "), Level("dim", "  ")
WARN, BAD = Level("warn", "! "), Level("bad", "!!")
SEVERITIES = {"page": BAD, "ticket": WARN, "info": Level("", "i ")}
STATES = {"well": Level("good", "✓ "), "starting": Level("dim", "… "), "ticket": WARN, "page": BAD, "problem": BAD}
STATUSES = {"running": GOOD, "finished": DIM, "crashed": BAD, "killed": BAD, "preempted": WARN}
# What holds the clocks down and should not: of these a cap of power is everyday life.
_HELD = {"hw_thermal_slowdown": (BAD, "heat slows"), "hw_power_brake": (BAD, "power brake"),
         "hw_slowdown": (BAD, "slowed down"), "sw_thermal_slowdown": (WARN, "heat slows")}  # fmt: skip


def utilization(gpu: Gpu) -> Level:
    """High is work and low may be a pause: which it is the detectors know, who see the run too."""
    return _missing(gpu, "utilization_percent") or GOOD


def memory(gpu: Gpu) -> Level:
    """Full memory is a run's plan more often than its end."""
    share = gpu.values.get("memory_percent", 0.0) / 100
    return _missing(gpu, "memory_percent") or (WARN if share > _LIMITS.gpu_memory else GOOD)


def temperature(gpu: Gpu) -> Level:
    now = gpu.values.get("temperature_celsius", 0.0)
    slowdown = gpu.values.get("temperature_slowdown_celsius")
    if slowdown is not None and now >= slowdown:
        return BAD
    near = slowdown is not None and now >= slowdown - _LIMITS.gpu_thermal_margin
    is_warm = near or now > _LIMITS.gpu_temperature
    return _missing(gpu, "temperature_celsius") or (WARN if is_warm else GOOD)


def power(gpu: Gpu) -> Level:
    """At its limit is where a busy GPU is to be."""
    return _missing(gpu, "power_draw_watts") or GOOD


def state(gpu: Gpu) -> tuple[Level, str]:
    """What is to be said of it in a word or two; nothing of one that is well."""
    if gpu.is_missing:
        return BAD, "no answer"
    values = gpu.values
    if values.get("ecc_volatile_errors_total_uncorrected") or values.get("remapped_rows_failed"):
        return BAD, "bad memory"
    if "xid" in values:
        return WARN, f"Xid {values['xid']:.0f}"
    return next((held for reason, held in _HELD.items() if reason in gpu.throttle), (GOOD, ""))


def _missing(gpu: Gpu, field: str) -> Level | None:
    return None if field in gpu.values else DIM
