"""How a run learns that its process ends without having said so: an uncaught exception, a signal, the interpreter's
end. Whoever listened before still does: their hooks and handlers are called after ours.
"""

import atexit
import builtins
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Protocol
from weakref import WeakSet

from trainvitals.run.files import END_SECONDS
from trainvitals.run.harmless import harmless, told

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
Handler = Any


class Ending(Protocol):
    """What a run does when its process ends."""

    name: str

    def crash(self, error: BaseException) -> None: ...
    def note_signal(self, name: str, is_last: bool) -> None: ...
    def end_at_exit(self) -> None: ...
    def wait(self, deadline: float) -> None: ...
    def forget(self) -> None: ...


def verdict(error: BaseException) -> tuple[str, str]:
    """How a run ended that this exception ended, and what is said of it."""
    if isinstance(error, SystemExit):
        return ("crashed", told(error)) if error.code else ("finished", "")
    return ("preempted" if isinstance(error, KeyboardInterrupt) else "crashed"), told(error)


_living: list[Ending] = []
_waited_for: "WeakSet[Ending]" = WeakSet()
_before: dict[int, Handler] = {}
_excepthook: Callable[..., Any] | None = None


def watch_over(run: Ending) -> None:
    _end_what_this_replaces(run)
    _living.append(run)
    _waited_for.add(run)
    _install()


def let_go(run: Ending) -> None:
    if run in _living:
        _living.remove(run)


def latest() -> Any:
    return _living[-1] if _living else None


def _end_what_this_replaces(run: Ending) -> None:
    """In a notebook a cell that is run again starts its run again, and nobody ended the one before."""
    if hasattr(sys, "ps1") or hasattr(builtins, "get_ipython"):
        for other in [other for other in _living if other.name == run.name]:
            other.end_at_exit()


def _install() -> None:
    global _excepthook
    if _excepthook is None:
        _excepthook, sys.excepthook = sys.excepthook, _on_exception
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            _chain(number)


def _chain(number: int) -> None:
    """What is ignored stays ignored, and what was set from C cannot be called from here."""
    handler = signal.getsignal(number)
    if handler in (_on_signal, signal.SIG_IGN, None):
        return
    _before[number] = handler
    signal.signal(number, _on_signal)


def _on_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    for run in list(_living):
        harmless(run.crash)(error)
    (_excepthook or sys.__excepthook__)(kind, error, trace)


def _on_signal(number: int, frame: FrameType | None) -> None:
    handler = _before.get(number, signal.SIG_DFL)
    is_last = handler == signal.SIG_DFL
    for run in list(_living):
        harmless(run.note_signal)(signal.Signals(number).name, is_last)
    if callable(handler):
        handler(number, frame)
    elif is_last:
        _wait()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _at_exit() -> None:
    for run in list(_living):
        harmless(run.end_at_exit)()
    _wait()


def _wait() -> None:
    deadline = time.monotonic() + END_SECONDS
    for run in list(_waited_for):
        run.wait(deadline)


def _in_child() -> None:
    """A forked worker is not the run: it writes nothing, and signals do to it what they would have done."""
    for run in _living:
        run.forget()
    _living.clear()
    _waited_for.clear()
    for number, handler in _before.items():
        if signal.getsignal(number) is _on_signal:
            signal.signal(number, handler)
    _before.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
