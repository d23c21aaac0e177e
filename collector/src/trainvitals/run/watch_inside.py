"""What goes on inside a forward: statistics of layers' outputs, and how spread attention is.

Its hooks are on the layers during the one forward that is looked at, and at no other time.
"""

import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from trainvitals.run.watch_hooks import Hooks
from trainvitals.run.watch_layers import bare
from trainvitals.run.watch_parcel import Parcel
from trainvitals.run.watch_times import tensors

torch: Any = sys.modules["torch"]

NO_WEIGHTS = (
    "attention=True: no module returned its attention weights, so there is no attention_entropy; "
    "nn.MultiheadAttention does with need_weights=True, transformers with attn_implementation='eager' "
    "and output_attentions=True"
)


class Inside:
    def __init__(self, hooks: Hooks, patterns: Sequence[str] | None, *, activations: bool, attention: bool) -> None:
        self._hooks, self._patterns = hooks, patterns
        self.activations, self.attention = activations, attention
        self._parcel: Parcel | None = None

    def open(self, model: Any, parcel: Parcel) -> None:
        self.close()
        self._parcel = parcel
        for name, module in self._layers(model) if self.activations else ():
            self._hooks.add(module.register_forward_hook, partial(self._activation, name))
        for name, module in attentions(model) if self.attention else ():
            self._hooks.add(module.register_forward_hook, partial(self._entropy, name))

    def close(self) -> bool:
        """False where attention was looked for and not found."""
        self._hooks.remove()
        parcel, self._parcel = self._parcel, None
        return parcel is None or not self.attention or any(kind.startswith("attention_") for kind in parcel)

    def _layers(self, model: Any) -> Iterator[tuple[str, Any]]:
        """Also those without parameters, as activation functions: dead units show there."""
        for name, module in bare(model).named_modules():
            own = any(parameter is not None for parameter in module._parameters.values())
            is_layer = own or not module._modules
            if any(_means(pattern, name, is_layer) for pattern in self._patterns or ("*",)):
                yield name or type(module).__name__, module

    def _activation(self, name: str, _module: Any, _inputs: Any, output: Any) -> None:
        parcel, values = self._parcel, _first(output)
        if parcel is None or values is None or f"activation_mean/{name}" in parcel:
            return
        with torch.no_grad():
            deviation, mean = torch.std_mean(values.detach(), correction=0)
            parcel.put(f"activation_mean/{name}", [0], mean)
            parcel.put(f"activation_std/{name}", [0], deviation)
            parcel.put(f"activation_zeros/{name}", [0], 1 - torch.count_nonzero(values) / values.numel())

    def _entropy(self, name: str, _module: Any, _inputs: Any, output: Any) -> None:
        weights = _weights(output)
        if self._parcel is None or weights is None or f"attention_entropy/{name}" in self._parcel:
            return
        with torch.no_grad():
            spread = torch.special.entr(weights.detach()).sum(-1).mean()
        self._parcel.put(f"attention_entropy/{name}", [0], spread)


def _means(pattern: str, name: str, is_layer: bool) -> bool:
    return name == pattern or (is_layer and fnmatchcase(name, pattern))


def _first(output: Any) -> Any:
    return next((tensor for tensor in tensors(output) if tensor.is_floating_point() and tensor.numel()), None)


def attentions(model: Any) -> Iterator[tuple[str, Any]]:
    """By their class's name, and the innermost of them: a layer and what it wraps return the same weights."""
    for name, module in bare(model).named_modules():
        inner = (each for each in module.modules() if each is not module)
        if _is_attention(module) and not any(map(_is_attention, inner)):
            yield name or type(module).__name__, module


def _is_attention(module: Any) -> bool:
    return "Attention" in type(module).__name__


def _weights(output: Any) -> Any:
    """The last of what a module returns beside its output: some put a bias before it."""
    beside = output[1:] if isinstance(output, tuple) else ()
    found = [each for each in beside if isinstance(each, torch.Tensor) and each.is_floating_point()]
    return found[-1] if found and found[-1].dim() > 1 and found[-1].numel() else None
