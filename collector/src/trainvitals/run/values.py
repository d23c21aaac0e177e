"""Values as they are given, made into what a journal line holds: numbers at once, a GPU's tensor later.

Reading a tensor from a GPU makes the host wait for all that the GPU still has to do. So it is copied on the
GPU's own stream, an event is put behind the copy, and the value is taken once that event is past.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from trainvitals.journal.record import Unencodable, encode
from trainvitals.run.bounds import MAX_ENTRIES, PLAIN, TooMuch, bounded, is_afar
from trainvitals.run.harmless import let_through

Values = dict[str, Any]
Failed = Callable[[BaseException], None]
MAX_WAITING = 1000
MAX_LINE_BYTES = 65_536
MAX_TEXT = 10_000


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
        self.waiting: deque[Waiting] = deque()
        self._free: list[Any] = []

    def hold(self, step: int, name: str, tensor: Any) -> None:
        self.waiting.append(self._copied(step, name, tensor))
        if len(self.waiting) > MAX_WAITING:
            self.waiting.popleft()
            raise Refused(f"a device is more than {MAX_WAITING} values behind, of which the oldest are given up")

    def _copied(self, step: int, name: str, tensor: Any) -> Waiting:
        if hasattr(tensor, "is_ready"):
            return Waiting(step, name, tensor, None)
        device = sys.modules["torch"].get_device_module(tensor.device)
        if getattr(device, "is_current_stream_capturing", bool)():
            raise Refused(f"{name} is part of a CUDA graph that is being captured: log it outside")
        copy = self._free.pop() if self._free else _pinned()
        copy.copy_(tensor, non_blocking=True)
        event = device.Event()
        event.record()
        return Waiting(step, name, copy, event)

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


def settle(values: Values, step: int, later: Later | None, failed: Failed, cut: Callable[[], None],
           most: int = MAX_ENTRIES) -> Values:  # fmt: skip
    """What can be written now. A tensor of a GPU goes to `later`, where there is one; None, which says nothing, goes
    nowhere. A value that fails costs itself."""
    settled: Values = {}
    for name, value in values.items():
        try:
            taken = value if type(value) in PLAIN else _settled(name, value, step, later, most)
        except TooMuch as words:
            cut()
            settled[name] = str(words)
        except Exception as error:
            let_through(error)
            failed(error if isinstance(error, Refused) else Refused(f"{name}: {type(error).__name__}"))
        else:
            if taken is not None:
                settled[name] = taken
    return settled


def _settled(name: str, value: Any, step: int, later: Later | None, most: int) -> Any:
    if later is None and is_afar(value):
        raise Refused(f"{name} is not computed yet: log it, or give its value")
    if hasattr(value, "detach"):
        return _tensor(name, value, step, later)
    if hasattr(value, "is_ready") and hasattr(value, "block_until_ready"):
        _require_one(name, value.size)
        return later.hold(step, name, value) if later and not value.is_ready() else float(value)
    if type(size := getattr(value, "size", None)) is int and hasattr(value, "item"):
        _require_one(name, size)
        return value.item()
    return bounded(value, most)


def _tensor(name: str, tensor: Any, step: int, later: Later | None) -> Any:
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    _require_one(name, tensor.numel())
    return later.hold(step, name, tensor.reshape(())) if later and tensor.device.type != "cpu" else tensor.item()


def _require_one(name: str, elements: int) -> None:
    if elements != 1:
        raise Refused(f"{name} has {elements} elements: log its mean or one of them")


def _pinned() -> Any:
    torch: Any = sys.modules["torch"]
    return torch.empty((), dtype=torch.float64, pin_memory=True)


def _is_there(waiting: Waiting) -> bool:
    return bool(waiting.copy.is_ready() if waiting.event is None else waiting.event.query())


def line_of(record: Values) -> bytes:
    """What cannot be written, as what holds itself, costs the record no number."""
    try:
        return encode(record)
    except Unencodable:
        return encode({name: value for name, value in record.items() if type(value) in PLAIN})


def shortened(record: Values) -> Values:
    """A record that makes a line far too long: its numbers, and of the rest what is short."""
    return {name: _short(value) for name, value in record.items() if _fits(value)}


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]}… ({len(value)} characters)"
    return value


def _fits(value: Any) -> bool:
    return type(value) in PLAIN or isinstance(value, (str, float, int)) or len(encode({"": value})) <= MAX_TEXT
