"""Numbers on their way from a device: asked for together, copied as one, read when the copy has arrived.

parcel.put("gradient", [0, 1, 2], norms)
parcel.send()
parcel.values()     ->  None while a GPU is busy, then {"gradient": {0: 0.31, 1: 2.5, 2: 0.02}}
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

torch: Any = sys.modules["torch"]

Places = Sequence[int]
Numbers = dict[str, dict[int, float]]
# Where eight-byte numbers are to be had.
_DOUBLE = frozenset({"cpu", "cuda"})


class Sent(NamedTuple):
    parts: list[tuple[str, Places]]
    copy: Any
    event: Any


class Parcel:
    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[Places, Any]]] = {}
        self._sent: list[Sent] = []

    def put(self, kind: str, places: Places, tensor: Any) -> None:
        """A number of the tensor for each place."""
        self._parts.setdefault(kind, []).append((places, tensor.detach().reshape(-1)))

    def drop(self, kind: str) -> None:
        self._parts.pop(kind, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def send(self) -> None:
        by_device: dict[Any, list[tuple[str, Places, Any]]] = {}
        for kind, parts in self._parts.items():
            for places, tensor in parts:
                by_device.setdefault(tensor.device, []).append((kind, places, tensor))
        self._sent = [_sent(device, parts) for device, parts in by_device.items()]
        self._parts.clear()

    def values(self) -> Numbers | None:
        if not all(sent.event is None or sent.event.query() for sent in self._sent):
            return None
        numbers: Numbers = {}
        for sent in self._sent:
            given = iter(sent.copy.tolist())
            for kind, places in sent.parts:
                # The places come first: zip would take one number too many of the next.
                numbers.setdefault(kind, {}).update(zip(places, given, strict=False))
        return numbers


def _sent(device: Any, parts: list[tuple[str, Places, Any]]) -> Sent:
    kind = torch.float64 if device.type in _DOUBLE else torch.float32
    together = torch.cat([tensor.to(kind) for _, _, tensor in parts])
    names = [(name, places) for name, places, _ in parts]
    module: Any = torch.get_device_module(device)
    if device.type == "cpu" or not hasattr(module, "Event"):
        return Sent(names, together, None)
    with module.device(device):
        copy = torch.empty(together.shape, dtype=kind, pin_memory=True).copy_(together, non_blocking=True)
        event = module.Event()
        event.record()
    return Sent(names, copy, event)
