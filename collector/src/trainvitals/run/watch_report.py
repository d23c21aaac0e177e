"""From a sample's numbers to names.

{"gradient_norm": 2.1, "parameter_norm": 41.0, "update_ratio": 0.001, "vanishing_layers": 0, "exploding_layers": 1,
 "gradient_norm/blocks.0.linear": 0.3, "update_ratio/blocks.0.linear": 0.002}
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from trainvitals.run.watch_parcel import Numbers
from trainvitals.run.watch_sample import Held, Sample

# Root mean square of a layer's gradient below which it no longer learns: Adam adds 1e-8 to what it divides by.
VANISHING_BELOW = 1e-8
# Norm of a layer's gradient above which a step of any usual learning rate throws its weights about.
EXPLODING_ABOVE = 1e3
MAX_NAMES = 100


class Report(NamedTuple):
    values: dict[str, float]
    vanishing: list[str]
    exploding: list[str]


class Norms:
    """By place: gradients without the loss's factor, updates as they are probable for the whole tensor."""

    def __init__(self, sample: Sample, numbers: Numbers) -> None:
        self.scale = numbers.get("scale", {}).get(0) or 1.0
        self.gradients = {place: norm / self.scale for place, norm in numbers.get("gradient", {}).items()}
        self.parameters = numbers.get("parameter", {})
        updates = numbers.get("update", {})
        self.updates = {place: norm * sample.factors[place] for place, norm in updates.items()}

    def gradient(self, places: Iterable[int]) -> float | None:
        return _together(self.gradients, places)

    def ratio(self, places: Iterable[int]) -> float | None:
        """Of what the optimizer moved to what it moved from; both of the same parameters."""
        moved = [place for place in places if place in self.updates]
        update, size = _together(self.updates, moved), _together(self.parameters, moved)
        return update / size if update is not None and size else None


def report(sample: Sample, numbers: Numbers) -> tuple[Report, Norms]:
    norms = Norms(sample, numbers)
    vanishing, exploding = [], []
    for layer in sample.layers if norms.gradients else ():
        if _vanishes(layer, norms):
            vanishing.append(layer.name)
        elif _explodes(layer, norms):
            exploding.append(layer.name)
    values = _totals(norms) | _of_layers(sample, norms) | _of_inside(numbers)
    if norms.gradients:
        values |= {"vanishing_layers": len(vanishing), "exploding_layers": len(exploding)}
    return Report(_known(values), vanishing, exploding), norms


def _totals(norms: Norms) -> dict[str, float | None]:
    return {"gradient_norm": norms.gradient(norms.gradients),
            "parameter_norm": _together(norms.parameters, norms.parameters),
            "update_ratio": norms.ratio(norms.updates)}  # fmt: skip


def _of_layers(sample: Sample, norms: Norms) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for name, places, _ in sample.watched:
        values[f"gradient_norm/{name}"] = norms.gradient(places)
        values[f"update_ratio/{name}"] = norms.ratio(places)
    return values


def _of_inside(numbers: Numbers) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    entropies = []
    for kind, given in numbers.items():
        # What is no distribution has the entropy minus infinity, and was no attention.
        if kind.startswith(("activation_", "attention_")) and given[0] != -math.inf:
            values[kind] = given[0]
            entropies += [given[0]] if kind.startswith("attention_") else []
    if entropies:
        values["attention_entropy"] = sum(entropies) / len(entropies)
    return values


def _vanishes(layer: Held, norms: Norms) -> bool:
    elements = sum(size for place, size in zip(layer.places, layer.sizes, strict=True) if place in norms.gradients)
    norm = norms.gradient(layer.places)
    return norm is not None and elements > 0 and norm / math.sqrt(elements) < VANISHING_BELOW


def _explodes(layer: Held, norms: Norms) -> bool:
    norm = norms.gradient(layer.places)
    return norm is not None and not norm <= EXPLODING_ABOVE


def _together(norms: dict[int, float], places: Iterable[int]) -> float | None:
    squares = [norms[place] ** 2 for place in places if place in norms]
    return math.sqrt(sum(squares)) if squares else None


def _known(values: dict[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
