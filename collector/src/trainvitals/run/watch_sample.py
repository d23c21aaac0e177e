"""What is measured of one step: gradients when backward is over, parameters before the optimizer's step, updates after.

Measured means asked for: the numbers come with the parcel, and `report` makes names of them.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trainvitals.run.watch_histograms import put_histograms
from trainvitals.run.watch_layers import Slot, chosen, is_there, layers, local
from trainvitals.run.watch_norms import Before, put_norms
from trainvitals.run.watch_parcel import Parcel

torch: Any = sys.modules["torch"]


class Held(NamedTuple):
    """A layer by the places of its parameters, and how many elements each has."""

    name: str
    places: list[int]
    sizes: list[int]


class Sample:
    def __init__(self, model: Any, patterns: Sequence[str], *, with_histograms: bool) -> None:
        found = layers(model)
        self.number = 0
        self.parcel = Parcel()
        self.factors: dict[int, float] = {}
        self.has_gradients = False
        slots = {id(held): slot for layer in found for held, slot in zip(layer.parameters, layer.slots, strict=True)}
        self._slots: list[Slot] = list(slots.values())
        places = {key: place for place, key in enumerate(slots)}
        self._with_histograms = with_histograms
        self._before: dict[int, Before] = {}
        self.layers = [_held(layer.name, layer.parameters, places) for layer in found]
        self.watched = [_held(name, held, places) for name, held in chosen(found, patterns).items()]

    def _now(self) -> dict[int, Any]:
        """Parameters by place, looked up each time: one that was there before may have lost its memory."""
        found = ((place, slot.parameter()) for place, slot in enumerate(self._slots))
        return {place: parameter for place, parameter in found if parameter is not None}

    def take_gradients(self, scale: Any = None) -> None:
        """Again where another backward adds to them: the last one holds."""
        now = self._now()
        given = [(place, parameter.grad) for place, parameter in now.items() if parameter.grad is not None]
        self.has_gradients = bool(given)
        self.parcel.drop("gradient")
        with torch.no_grad():
            put_norms(self.parcel, "gradient", [place for place, _ in given], [local(grad) for _, grad in given])
            if self._with_histograms:
                shown = {name: [now[place] for place in places if place in now] for name, places, _ in self.watched}
                put_histograms(self.parcel, shown)
        self.tell_scale(scale)

    def tell_scale(self, scale: Any) -> None:
        """What the loss, and so each gradient, was multiplied with."""
        if isinstance(scale, torch.Tensor):
            self.parcel.drop("scale")
            self.parcel.put("scale", [0], scale)

    def take_parameters(self) -> None:
        if "parameter" not in self.parcel:
            now = self._now()
            with torch.no_grad():
                put_norms(self.parcel, "parameter", list(now), [local(parameter) for parameter in now.values()])

    def before_step(self, optimizer: Any) -> None:
        self.take_parameters()
        ids = _ids(optimizer)
        moved = {place: held for place, held in self._now().items() if id(held) in ids and is_there(local(held))}
        with torch.no_grad():
            self._before[id(optimizer)] = Before(list(moved), list(moved.values()))

    def after_step(self, optimizer: Any) -> None:
        before = self._before.pop(id(optimizer), None)
        if before is not None:
            with torch.no_grad():
                self.factors |= before.factors()
                before.put_update(self.parcel)

    def send(self) -> None:
        self._slots = []
        self._before.clear()
        with torch.no_grad():
            self.parcel.send()


def _held(name: str, parameters: Sequence[Any], places: Mapping[int, int]) -> Held:
    """`places` by the parameter's id."""
    return Held(name, [places[id(each)] for each in parameters], [each.numel() for each in parameters])


def _ids(optimizer: Any) -> frozenset[int]:
    return frozenset(id(parameter) for group in optimizer.param_groups for parameter in group["params"])
