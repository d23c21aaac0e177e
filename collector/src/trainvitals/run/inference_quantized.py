"""A copy of a model with the weights of its linear and recurrent layers in 8 bits, for as long as it is looked at."""

import copy
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trainvitals.run.watch_layers import bare

torch: Any = sys.modules["torch"]

# torch says of its own quantisation that it will go. Then this fails, and says so in the results.
_KNOWN_WARNINGS = (r"torch\.ao\.quantization is deprecated", r"torch\.quantize_per_tensor, ")


@contextmanager
def quantized(model: Any) -> Iterator[Any]:
    with warnings.catch_warnings(), _without_fast_path():
        for text in _KNOWN_WARNINGS:
            warnings.filterwarnings("ignore", text)
        # Held by another: only what a module holds is exchanged.
        holder = torch.nn.Sequential(_on_the_processor(bare(model)))
        small = torch.ao.quantization.quantize_dynamic(holder, inplace=True)[0]
        if not any("quantized" in type(module).__module__ for module in small.modules()):
            raise ValueError("the model has no linear or recurrent layers, which alone can be quantised like this")
        yield small


def _on_the_processor(model: Any) -> Any:
    """In 32 bits, which quantisation starts from. No tensor is doubled where it lies: a GPU may have no room for it."""
    held = {id(each): _parameter(each) for each in model.parameters()}
    held |= {id(each): _copied(each) for each in model.buffers()}
    return copy.deepcopy(model, held).eval()


def _parameter(parameter: Any) -> Any:
    return torch.nn.Parameter(_copied(parameter), requires_grad=False)


def _copied(tensor: Any) -> Any:
    kind = torch.float32 if tensor.is_floating_point() else tensor.dtype
    return tensor.detach().to("cpu", kind, copy=True)


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """torch's fused attention looks for weights where a quantised layer has none."""
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was)
