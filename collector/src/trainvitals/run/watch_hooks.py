"""What torch calls for us: a hook that returns nothing, lets nothing out, and leaves no trace in a saved model.

hooks = Hooks(failed=...)
hooks.add(model.register_forward_pre_hook, began)
hooks.remove()
"""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

torch: Any = sys.modules["torch"]  # who has a model has imported it

Act = Callable[..., None]


class Hook:
    """Compilers and tracers look through it and see nothing: what they make of the model has no hook in it."""

    __slots__ = ("_act", "_hooks")

    def __init__(self, act: Act, hooks: "Hooks") -> None:
        self._act, self._hooks = act, hooks

    def __call__(self, *arguments: Any) -> None:
        if torch.compiler.is_compiling() or not self._hooks.are_in_place or _is_traced():
            return
        try:
            self._act(*arguments)
        except Exception as error:
            self._hooks.failed(error)

    @property
    def __name__(self) -> str:
        """Asked for by torch.jit.script, which goes on to compile the hook: no source of ours can be."""
        raise AttributeError("torch.jit.script cannot compile a watched model: call watching.remove() before it")

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of the model carries a call that does nothing, and that Python has without us."""
        return getattr, (nullcontext(), "__exit__")


def _is_traced() -> bool:
    """By what asks for a graph, or for a function of the model's: tensors are not what they seem there."""
    return bool(torch.jit.is_tracing() or torch._C._are_functorch_transforms_active())


class Hooks:
    """Those that are in place, so that they can all be taken away."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self.failed = failed
        self.are_in_place = False
        self._handles: list[Any] = []

    def add(self, register: Callable[[Hook], Any], act: Act) -> None:
        self.are_in_place = True
        self._handles.append(register(self.wrap(act)))

    def wrap(self, act: Act) -> Hook:
        return Hook(act, self)

    def remove(self) -> None:
        """Those that autograd holds stay with it, and do nothing."""
        self.are_in_place = False
        while self._handles:
            self._handles.pop().remove()
