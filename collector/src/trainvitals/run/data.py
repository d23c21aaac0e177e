"""A loader whose batches are waited for by the clock. In all else it is the loader: what it has shows through.

for batch in run.data(loader):      # {"data_wait_seconds": 0.03} in the line of the step
async for batch in run.data(loader):
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from functools import lru_cache
from threading import get_ident
from time import perf_counter as clock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainvitals.run.timing import Timer

# What Python asks a class for, and not its object: had only where the loader has it.
_ASKED_OF_THE_CLASS = ("__len__", "__bool__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__call__",
                       "__reversed__", "__length_hint__", "__enter__", "__exit__", "__add__", "__next__",
                       "__aiter__", "__anext__", "__aenter__", "__aexit__")  # fmt: skip


class Data:
    # Names that no loader has.
    __slots__ = ("__weakref__", "_timed_by", "_timed_loader", "_timed_next")

    def __init__(self, timer: Timer, loader: Any) -> None:
        own = object.__setattr__
        own(self, "_timed_by", timer)
        own(self, "_timed_loader", loader)
        own(self, "_timed_next", getattr(loader, "__next__", None))

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._timed_loader)
        mine: Any = self if batches is self._timed_loader else data(self._timed_by, batches)
        return mine  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timed_loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._timed_loader, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._timed_loader, name)

    def __copy__(self) -> Any:
        return data(self._timed_by, copy.copy(self._timed_loader))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return data(self._timed_by, copy.deepcopy(self._timed_loader, memo))

    def __reduce__(self) -> Any:
        """Where it is sent to there is no clock to wait by."""
        return _itself, (self._timed_loader,)


def data(timer: Timer, loader: Iterable[Any] | AsyncIterable[Any]) -> Any:
    return _fitting(type(loader))(timer, loader)


def _itself(loader: Any) -> Any:
    return loader


@lru_cache(maxsize=64)
def _fitting(loader: type) -> type[Data]:
    names = [name for name in _ASKED_OF_THE_CLASS if getattr(loader, name, None) is not None]
    return type("Data", (Data,), {"__slots__": (), **{name: _passed_on(name) for name in names}})


def _passed_on(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any) -> Any:
        return getattr(self._timed_loader, name)(*arguments)

    return _TIMED.get(name, method)


def _next(self: Data) -> Any:
    timer = self._timed_by
    waited, began = timer.waited, clock()
    batch = self._timed_next()
    _count(timer, waited, began)
    return batch


def _aiter(self: Any) -> Any:
    batches = self._timed_loader.__aiter__()
    return self if batches is self._timed_loader else data(self._timed_by, batches)


async def _anext(self: Data) -> Any:
    timer = self._timed_by
    waited, began = timer.waited, clock()
    batch = await self._timed_loader.__anext__()
    _count(timer, waited, began)
    return batch


def _count(timer: Timer, waited: float, began: float) -> None:
    """Where one loader times another, both wait at once: it is the outer one's time that counts."""
    if (timer.thread == get_ident() or not timer.is_used) and not timer.open:
        timer.waited = waited + clock() - began


_TIMED: dict[str, Callable[..., Any]] = {"__next__": _next, "__aiter__": _aiter, "__anext__": _anext}
