"""How the parameters and gradients of a layer are distributed, counted where they lie.

{"edges": [-0.2, …, 0.2], "counts": [3, …, 1], "sum": 0.7, "sum_squares": 12.1, "min": -0.2, "max": 0.2}
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from trainvitals.run.watch_layers import is_there, local
from trainvitals.run.watch_norms import some, stride
from trainvitals.run.watch_parcel import Numbers, Parcel

torch: Any = sys.modules["torch"]

BUCKETS = 30
MAX_ELEMENTS = 2**20
PREFIX = "histogram "


def put_histograms(parcel: Parcel, parameters: Mapping[str, Sequence[Any]]) -> None:
    for layer, held in parameters.items():
        _put(parcel, f"parameters/{layer}", held)
        _put(parcel, f"gradients/{layer}", [each.grad for each in held if each.grad is not None])


def _put(parcel: Parcel, name: str, tensors: Sequence[Any]) -> None:
    parcel.drop(PREFIX + name)
    flat = [_looked_at(tensor) for tensor in map(local, tensors) if is_there(tensor)]
    if sum(map(len, flat)) and len({tensor.device for tensor in flat}) == 1:
        parcel.put(PREFIX + name, range(BUCKETS + 4), _counted(torch.cat(flat)))


def _looked_at(tensor: Any) -> Any:
    values = some(tensor, stride(tensor, MAX_ELEMENTS))
    return (values.abs() if values.is_complex() else values).float().flatten()


def _counted(values: Any) -> Any:
    """Without the range on the host: it is brought to 0…1 on the device first, and what is not finite out of it."""
    finite = values.isfinite()
    low = torch.where(finite, values, torch.inf).min()
    high = torch.where(finite, values, -torch.inf).max()
    placed = torch.where(high > low, (values - low) / (high - low), 0.5)
    counts = torch.histc(torch.where(finite, placed, -1.0), BUCKETS, 0.0, 1.0)
    summed = torch.where(finite, values, 0.0)
    return torch.cat([counts, torch.stack([low, high, summed.sum(), summed.square().sum()])])


def histograms(numbers: Numbers, scale: float) -> dict[str, dict[str, Any]]:
    """Gradients as they are without the factor that the loss was multiplied with."""
    found = {}
    for kind, given in numbers.items():
        name = kind.removeprefix(PREFIX)
        if name != kind and any(list(given.values())[:BUCKETS]):
            found[name] = _shown(list(given.values()), scale if name.startswith("gradients/") else 1.0)
    return found


def _shown(values: list[float], scale: float) -> dict[str, Any]:
    *counts, low, high, total, squares = values
    low, high = low / scale, high / scale
    first, width = (low, high - low) if high > low else (low - 0.5, 1.0)
    return {
        "edges": [first + width * place / BUCKETS for place in range(BUCKETS + 1)],
        "counts": [int(count) for count in counts],
        "sum": total / scale,
        "sum_squares": squares / scale**2,
        "min": low,
        "max": high,
    }
