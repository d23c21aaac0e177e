"""How long a GPU takes for what it was asked to do, by its own events; the host never waits for it."""

import sys
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


def device() -> Any:
    """torch.cuda where it is in use; asking must not be what starts it."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def span() -> Span | None:
    found = device()
    return None if found is None or found.is_current_stream_capturing() else Span(found)


def gpus() -> list[dict[str, str]]:
    """The GPU that this process works on; its number is the driver's to say."""
    found = device()
    uuid = "" if found is None else str(getattr(found.get_device_properties(found.current_device()), "uuid", ""))
    return [{"uuid": uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"}] if uuid else []
