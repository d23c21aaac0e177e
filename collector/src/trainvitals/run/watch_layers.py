"""A model's layers: the modules that have trainable parameters of their own, under the names torch gives them.

layers(model)                     ->  [Layer("blocks.0.norm", [weight, bias], [Slot(norm, "weight"), …]), …]
chosen(layers, ["blocks.0.*"])    ->  {"blocks.0.norm": [weight, bias], "blocks.0.linear": […]}
"""

import sys
import weakref
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

torch: Any = sys.modules["torch"]

_WILD = frozenset("*?[")


class Slot(NamedTuple):
    """Where a parameter is found. What is found changes: FSDP puts another there for the time of a forward."""

    module: "weakref.ref[Any]"
    name: str

    def parameter(self) -> Any:
        """None where there is none any more."""
        held = getattr(self.module(), self.name, None)
        return held if isinstance(held, torch.Tensor) else None


class Layer(NamedTuple):
    name: str
    parameters: list[Any]
    slots: list[Slot]


def alone(model: Any) -> Any:
    """Without what has it talk to other ranks or devices: DDP and DataParallel."""
    while isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
        model = model.module
    return model


def bare(model: Any) -> Any:
    """The model as it was written: wrappers and compilers put a name of their own before each of its names."""
    model = alone(model)
    while "_orig_mod" in getattr(model, "_modules", ()):
        model = alone(model._orig_mod)
    return model


def is_compiled(model: Any) -> bool:
    compiled = (getattr(module, "_compiled_call_impl", None) is not None for module in model.modules())
    return any("_orig_mod" in module._modules for module in model.modules()) or any(compiled)


def layers(model: Any) -> list[Layer]:
    """Anew each time, for layers are replaced and unfrozen; one that is used twice comes once, a tied weight twice."""
    found = []
    for name, module in bare(model).named_modules():
        own = {key: parameter for key, parameter in module._parameters.items() if _is_trainable(parameter)}
        if own:
            slots = [Slot(weakref.ref(module), key) for key in own]
            found.append(Layer(name or type(module).__name__, list(own.values()), slots))
    return found


def _is_trainable(parameter: Any) -> bool:
    return parameter is not None and parameter.requires_grad and not hasattr(parameter, "materialize")


def unique(found: Iterable[Layer]) -> list[Any]:
    return list({id(parameter): parameter for layer in found for parameter in layer.parameters}.values())


def chosen(found: Sequence[Layer], patterns: Sequence[str]) -> dict[str, list[Any]]:
    """A pattern with wildcards means layers; a plain name also means a module that holds layers, as one."""
    parameters: dict[str, list[Any]] = {}
    for pattern in patterns:
        if _WILD & set(pattern):
            parameters.update({layer.name: layer.parameters for layer in found if fnmatchcase(layer.name, pattern)})
        elif inside := [layer for layer in found if f"{layer.name}.".startswith(f"{pattern}.")]:
            parameters[pattern] = unique(inside)
    return parameters


def local(tensor: Any) -> Any:
    """What this rank holds of it; of a sparse one, its values."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    return tensor.coalesce().values() if tensor.is_sparse else tensor


def is_there(tensor: Any) -> bool:
    """False where its memory was given back, as FSDP does between two uses: to read it would end the process."""
    if type(tensor) is not torch.Tensor or not tensor.numel():
        return True
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    try:
        held = tensor.untyped_storage().nbytes()
    except RuntimeError:  # of a kind that has no storage
        return True
    return bool(held >= (tensor.storage_offset() + last + 1) * tensor.element_size())
