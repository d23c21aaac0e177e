"""How long a GPU takes for what it was asked to do, by its own events; the host never waits for it."""

import sys
from functools import cache
from typing import Any


class Span:
    def __init__(self, device: Any) -> None:
        self._began, self._ended = device.Event(enable_timing=True), device.Event(enable_timing=True)
        self._began.record()

    def close(self) -> None:
        self._ended.record()

    def seconds(self) -> float | None:
        """None while the GPU is not there yet."""
        return self._began.elapsed_time(self._ended) / 1000 if self._ended.query() else None


@cache
def _can_use(torch: Any) -> bool:
    """False of a build for the processor alone, and of None."""
    version = getattr(torch, "version", None)
    return bool(getattr(version, "cuda", None) or getattr(version, "hip", None))


def is_used() -> bool:
    """Asking must not be what starts it."""
    torch: Any = sys.modules.get("torch")
    return _can_use(torch) and bool(torch.cuda.is_initialized())


def span() -> Span | None:
    device: Any = sys.modules["torch"].cuda
    return None if device.is_current_stream_capturing() else Span(device)


def gpus() -> list[dict[str, str]]:
    """The GPU that this process works on; its number is the driver's to say."""
    if not is_used():
        return []
    device: Any = sys.modules["torch"].cuda
    uuid = str(getattr(device.get_device_properties(device.current_device()), "uuid", ""))
    return [{"uuid": uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"}] if uuid else []
