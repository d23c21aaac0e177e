"""Norms of many tensors at once, and how far an optimizer's step moved the parameters.

An update is the difference to a copy from before the step. So that the copy of a large model fits beside it, at most
MAX_COPIED elements are taken, spread evenly over each tensor; the norm is then what they make probable.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any

from trainvitals.run.watch_layers import is_there, local
from trainvitals.run.watch_parcel import Parcel

torch: Any = sys.modules["torch"]

MAX_COPIED = 2**20
# Elements that lie side by side: memory is read by the line.
LINE = 16


def put_norms(parcel: Parcel, kind: str, places: Sequence[int], tensors: Sequence[Any]) -> None:
    groups: dict[Any, list[tuple[int, Any]]] = {}
    for place, tensor in zip(places, tensors, strict=True):
        if not is_there(tensor):
            continue
        groups.setdefault((tensor.device, tensor.dtype), []).append((place, tensor))
    for (_, dtype), group in groups.items():
        # In 16 bits a norm would be rounded, or overflow where its tensor does not.
        exact = {"dtype": torch.float32} if dtype in (torch.float16, torch.bfloat16) else {}
        norms = torch._foreach_norm([tensor for _, tensor in group], 2, **exact)
        parcel.put(kind, [place for place, _ in group], torch.stack(norms))


class Before:
    """Parameters as they were before a step, and what share of each was looked at."""

    def __init__(self, places: Sequence[int], parameters: Sequence[Any]) -> None:
        most = max(1, MAX_COPIED // max(1, len(parameters)))
        self._parameters, self.places = parameters, places
        self._strides = [stride(local(parameter), most) for parameter in parameters]
        self._values = [value.clone() for value in self._now()]

    def factors(self) -> dict[int, float]:
        """By what the norm of the looked at is multiplied to be that of the whole."""
        sizes = (local(parameter).numel() / max(1, value.numel()) for parameter, value in self._pairs())
        return {place: math.sqrt(size) for place, size in zip(self.places, sizes, strict=True)}

    def put_update(self, parcel: Parcel) -> None:
        torch._foreach_sub_(self._values, self._now())
        put_norms(parcel, "update", self.places, self._values)

    def _now(self) -> list[Any]:
        pairs = zip(self._parameters, self._strides, strict=True)
        return [some(local(parameter), step) for parameter, step in pairs]

    def _pairs(self) -> list[tuple[Any, Any]]:
        return list(zip(self._parameters, self._values, strict=True))


def some(tensor: Any, step: int) -> Any:
    """All of it where the step is 1, else every so many lines."""
    flat = tensor.flatten()
    return flat if step == 1 else flat[: flat.numel() // LINE * LINE].view(-1, LINE)[::step]


def stride(tensor: Any, most: int) -> int:
    """Never the same columns of each row: prime to the length of a row."""
    if tensor.numel() <= max(most, LINE):
        return 1
    step: int = math.ceil(tensor.numel() / most)
    while math.gcd(step, tensor.shape[-1]) != 1:
        step += 1
    return step
