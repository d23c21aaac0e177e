"""Values as they are given, made into what a journal line holds: numbers at once, a GPU's tensor later.

Reading a tensor from a GPU makes the host wait for all that the GPU still has to do. So it is copied on the
GPU's own stream, an event is put behind the copy, and the value is taken once that event is past.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from trainvitals.journal.record import encode

Values = dict[str, Any]
Failed = Callable[[BaseException], None]
MAX_WAITING = 1000
MAX_LINE_BYTES = 65_536
MAX_TEXT = 10_000
_PLAIN = (float, int, str, bool)


class Refused(Exception):
    """A value that is none for a journal line, and what to log in its place."""


class Waiting(NamedTuple):
    """A value that is still on its way from a device."""

    step: int
    name: str
    copy: Any
    event: Any


class Later:
    """What was logged and is not there yet, in the order it came."""

    def __init__(self) -> None:
        self.waiting: deque[Waiting] = deque(maxlen=MAX_WAITING)
        self._free: list[Any] = []

    def hold(self, step: int, name: str, tensor: Any) -> None:
        if hasattr(tensor, "is_ready"):
            self.waiting.append(Waiting(step, name, tensor, None))
            return
        device = sys.modules["torch"].get_device_module(tensor.device)
        if getattr(device, "is_current_stream_capturing", bool)():
            raise Refused(f"{name} is part of a CUDA graph that is being captured: log it outside")
        copy = self._free.pop() if self._free else _pinned()
        copy.copy_(tensor, non_blocking=True)
        event = device.Event()
        event.record()
        self.waiting.append(Waiting(step, name, copy, event))

    def ready(self, failed: Failed) -> Iterator[tuple[int, Values]]:
        """Steps with the values that have arrived, as far as nothing earlier is missing."""
        values: Values = {}
        step = -1
        while (arrived := self._next(failed)) is not None:
            if arrived.step != step and values:
                yield step, values
                values = {}
            step = arrived.step
            values[arrived.name] = arrived.copy
        if values:
            yield step, values

    def _next(self, failed: Failed) -> Waiting | None:
        """With its value. It is taken out first, for another thread may ask too; one that fails is given up."""
        while self.waiting:
            first = self.waiting.popleft()
            try:
                if not _is_there(first):
                    self.waiting.appendleft(first)
                    return None
                value = float(first.copy)
            except Exception as error:
                failed(error)
                continue
            if first.event is not None and len(self._free) < MAX_WAITING:
                self._free.append(first.copy)
            return first._replace(copy=value)
        return None


def settle(values: Values, step: int, later: Later, failed: Failed) -> Values:
    """What can be written now. A tensor of a GPU goes to `later`; None, which says nothing, goes nowhere. A value that
    fails costs itself."""
    settled: Values = {}
    for name, value in values.items():
        try:
            taken = value if type(value) in _PLAIN else _settled(name, value, step, later)
        except Exception as error:
            failed(error if isinstance(error, Refused) else Refused(f"{name}: {type(error).__name__}"))
        else:
            if taken is not None:
                settled[name] = taken
    return settled


def _settled(name: str, value: Any, step: int, later: Later) -> Any:
    if hasattr(value, "detach"):
        return _tensor(name, value, step, later)
    if hasattr(value, "is_ready") and hasattr(value, "block_until_ready"):
        _require_one(name, value.size)
        return float(value) if value.is_ready() else later.hold(step, name, value)
    # An array of one element; a failing one is told by the line itself.
    return value.item() if getattr(value, "size", 0) == 1 and hasattr(value, "item") else value


def _tensor(name: str, tensor: Any, step: int, later: Later) -> Any:
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    _require_one(name, tensor.numel())
    return tensor.item() if tensor.device.type == "cpu" else later.hold(step, name, tensor.reshape(()))


def _require_one(name: str, elements: int) -> None:
    if elements != 1:
        raise Refused(f"{name} has {elements} elements: log its mean or one of them")


def _pinned() -> Any:
    torch: Any = sys.modules["torch"]
    return torch.empty((), dtype=torch.float64, pin_memory=True)


def _is_there(waiting: Waiting) -> bool:
    return bool(waiting.copy.is_ready() if waiting.event is None else waiting.event.query())


def shortened(record: Values) -> Values:
    """A record that makes a line far too long: its numbers, and of the rest what is short."""
    return {name: _short(value) for name, value in record.items() if _fits(value)}


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]}… ({len(value)} characters)"
    return value


def _fits(value: Any) -> bool:
    return type(value) in _PLAIN or isinstance(value, (str, float, int)) or len(encode({"": value})) <= MAX_TEXT
