"""A GPU's journal line under the keys that W&B gets, and that people who come from other tools know.

gpu_values({"gpu_index": 0, "temperature_celsius": 61.0})  ->  {"gpu_0_temperature_c": 61.0}
"""

from collections.abc import Mapping
from typing import Any

from trainvitals.journal.record import as_number

GIB_IN_MIB = 1024.0
_GPU = {"utilization_percent": ("gpu_utilization_pct", 1.0), "memory_percent": ("memory_utilization_pct", 1.0),
        "memory_total_mb": ("memory_total_gb", 1 / GIB_IN_MIB), "temperature_celsius": ("temperature_c", 1.0),
        "power_draw_watts": ("power_usage_w", 1.0), "clock_hertz_graphics": ("graphics_clock_mhz", 1e-6),
        "clock_hertz_memory": ("memory_clock_mhz", 1e-6)}  # fmt: skip


def gpu_name(number: object, name: str) -> str:
    return f"gpu_{number}_{name}"


def gpu_values(line: Mapping[str, Any]) -> dict[str, float]:
    """Absent is what the device does not tell."""
    found = ((name, factor, as_number(line.get(field))) for field, (name, factor) in _GPU.items())
    return {gpu_name(line.get("gpu_index"), name): value * factor for name, factor, value in found
            if value is not None}  # fmt: skip
