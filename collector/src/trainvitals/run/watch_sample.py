"""What is measured of one step: gradients when backward is over, parameters before the optimizer's step, updates after.

Measured means asked for: the numbers come with the parcel, and `report` makes names of them.
"""

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from trainvitals.run.watch_histograms import put_histograms
from trainvitals.run.watch_layers import Layer, chosen, layers, local, unique
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
        self._parameters = unique(found)
        self._place = {id(parameter): place for place, parameter in enumerate(self._parameters)}
        self._watched = chosen(found, patterns)
        self._with_histograms = with_histograms
        self._before: dict[int, Before] = {}
        self.layers = [self._held(layer) for layer in found]
        self.watched = [self._held(Layer(name, held)) for name, held in self._watched.items()]

    def _held(self, layer: Layer) -> Held:
        places = [self._place[id(parameter)] for parameter in layer.parameters]
        return Held(layer.name, places, [parameter.numel() for parameter in layer.parameters])

    def take_gradients(self, scale: Any = None) -> None:
        """Again where another backward adds to them: the last one holds."""
        given = [
            (place, parameter.grad) for place, parameter in enumerate(self._parameters) if parameter.grad is not None
        ]
        self.has_gradients = bool(given)
        self.parcel.drop("gradient")
        with torch.no_grad():
            put_norms(self.parcel, "gradient", [place for place, _ in given], [local(grad) for _, grad in given])
            if self._with_histograms:
                put_histograms(self.parcel, self._watched)
        self.tell_scale(scale)

    def tell_scale(self, scale: Any) -> None:
        """What the loss, and so each gradient, was multiplied with."""
        if isinstance(scale, torch.Tensor):
            self.parcel.drop("scale")
            self.parcel.put("scale", [0], scale)

    def take_parameters(self) -> None:
        if "parameter" not in self.parcel:
            with torch.no_grad():
                values = [local(parameter) for parameter in self._parameters]
                put_norms(self.parcel, "parameter", range(len(values)), values)

    def before_step(self, optimizer: Any) -> None:
        self.take_parameters()
        moved = [self._place[key] for key in _ids(optimizer) if key in self._place]
        with torch.no_grad():
            self._before[id(optimizer)] = Before(moved, [self._parameters[place] for place in moved])

    def after_step(self, optimizer: Any) -> None:
        before = self._before.pop(id(optimizer), None)
        if before is not None:
            with torch.no_grad():
                self.factors |= before.factors()
                before.put_update(self.parcel)

    def send(self) -> None:
        self._parameters, self._watched = [], {}
        self._before.clear()
        with torch.no_grad():
            self.parcel.send()


def _ids(optimizer: Any) -> dict[int, None]:
    return dict.fromkeys(id(parameter) for group in optimizer.param_groups for parameter in group["params"])
