"""What a model takes: its size, and the most that lives at once while it answers."""

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

torch: Any = sys.modules["torch"]
_Mode: Any = torch.utils._python_dispatch.TorchDispatchMode


def model_bytes(model: Any) -> int:
    """Parameters and buffers, each memory once; of a quantised layer what it has packed."""
    held = [*model.parameters(), *model.buffers(), *model.state_dict().values()]
    found = list(_tensors(held))  # kept, for what is unpacked on the way must not lie where another did
    return sum({_place(tensor): tensor.numel() * tensor.element_size() for tensor in found}.values())


def _place(tensor: Any) -> tuple[Any, ...]:
    pointer = tensor.data_ptr()
    return (tensor.device, pointer) if pointer else (id(tensor),)


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)
        elif isinstance(value, (torch.ScriptObject, torch._C.ScriptObject)):
            yield from _tensors(value.__getstate__())


def peak_bytes(call: Callable[[], Any], model: Any, device: Any) -> int | None:
    """The model's own included. A GPU's allocator tells it; on the processor the tensors that operators make are
    added up. None where neither can be asked."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        call()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device))
    if device.type != "cpu":
        return None
    with Made() as made:
        call()
    return model_bytes(model) + int(made.most)


class Made(_Mode):  # type: ignore[misc]
    """Bytes of what operators make and nobody has let go of yet; a view of something makes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.most = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, operator: Any, _types: Any, arguments: Any = (), named: Any = None) -> Any:
        for memory in _memories((arguments, named)):
            self._know(memory, 0)
        output = operator(*arguments, **(named or {}))
        for memory in _memories(output):
            self._know(memory, memory.nbytes())
        return output

    def _know(self, memory: Any, size: int) -> None:
        if memory._cdata not in self._known:
            self._known.add(memory._cdata)
            self.now += size
            self.most = max(self.most, self.now)
            weakref.finalize(memory, self._let_go, memory._cdata, size)

    def _let_go(self, place: int, size: int) -> None:
        self._known.discard(place)
        self.now -= size


def _memories(values: Any) -> Iterator[Any]:
    for value in torch.utils._pytree.tree_leaves(values):
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            yield value.untyped_storage()
