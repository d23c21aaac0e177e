"""How far two answers of a model are apart."""

import sys
from typing import Any

from trainvitals.run.watch_times import tensors

torch: Any = sys.modules["torch"]


def main_output(output: Any) -> Any:
    """The logits where they are called so, else the first that is more than a number; None where there is none."""
    logits = output.get("logits") if hasattr(output, "get") else getattr(output, "logits", None)
    candidates = [tensor for tensor in tensors((logits, output)) if tensor.is_floating_point()]
    found = next((tensor for tensor in candidates if tensor.dim()), next(iter(candidates), None))
    return None if found is None else found.detach().to("cpu", torch.float64)


def difference(one: Any, other: Any) -> tuple[float | None, float | None]:
    """Mean and largest, absolute."""
    if one is None or other is None or one.shape != other.shape or not one.numel():
        return None, None
    apart = (one - other).abs()
    return float(apart.mean()), float(apart.max())


def top1_agreement(one: Any, other: Any) -> float | None:
    """Of what has several classes: how often both take the same for the likeliest."""
    if one is None or other is None or one.shape != other.shape or one.dim() < 2 or one.shape[-1] < 2:
        return None
    return float((one.argmax(-1) == other.argmax(-1)).double().mean())
