"""Readings under the names that other tools have for them.

host_percent()                                             ->  {"cpu_percent": 12.5, "memory_percent": 41.0, …}
"""

import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from trainvitals.journal.gpu_keys import GIB_IN_MIB
from trainvitals.run import cuda

FIRST_SECONDS = 0.03


def allocator() -> list[dict[str, Any]]:
    """What torch's allocator holds in this process, of each GPU that it can use, in MiB; nothing before it uses one."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not cuda.is_used():
        return []
    return [
        {
            "uuid": f"GPU-{torch.cuda.get_device_properties(place).uuid}",
            "memory_allocated": torch.cuda.memory_allocated(place) / 2**20,
            "memory_reserved": torch.cuda.memory_reserved(place) / 2**20,
            "max_memory_allocated": torch.cuda.max_memory_allocated(place) / 2**20,
        }
        for place in range(torch.cuda.device_count())
    ]


def allocator_values(lines: Mapping[int, Mapping[str, Any]]) -> dict[str, float]:
    """The allocator's under the numbers that the node's GPUs have."""
    numbers = {line.get("uuid"): number for number, line in lines.items()}
    values = {}
    for held in allocator():
        if (number := numbers.get(held["uuid"])) is not None:
            for name in ("memory_allocated", "memory_reserved"):
                values[f"gpu_{number}_{name}_gb"] = held[name] / GIB_IN_MIB
    return values


def host_percent() -> dict[str, float]:
    """The processors' share is that since the thread's call before; the first one looks for a moment."""
    import psutil

    memory = psutil.virtual_memory()
    used = memory.total - memory.available
    return {
        "cpu_percent": _cpu_percent(psutil),
        "cpu_count": psutil.cpu_count() or 1,
        "memory_percent": 100 * used / memory.total,
        "memory_available_gb": memory.available / 2**30,
        "memory_used_gb": used / 2**30,
    }


def host_values() -> dict[str, float]:
    """As W&B gets them."""
    host = host_percent()
    return {"cpu_utilization_pct": host["cpu_percent"], "system_memory_used_gb": host["memory_used_gb"],
            "system_memory_utilization_pct": host["memory_percent"]}  # fmt: skip


_before = threading.local()


def _cpu_percent(psutil: Any) -> float:
    """So soon after the call before there is nothing to tell but what that told."""
    now = time.monotonic()
    asked = getattr(_before, "asked", None)
    if asked is None or now - asked >= FIRST_SECONDS:
        _before.told = float(psutil.cpu_percent(FIRST_SECONDS if asked is None else None))
        _before.asked = time.monotonic()
    return float(_before.told)
