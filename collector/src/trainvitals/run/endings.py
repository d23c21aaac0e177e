"""How a run learns that its process ends without having said so: an uncaught exception, a signal, the interpreter's
end. Whoever listened before still does: their hooks and handlers are called after ours.
"""

import atexit
import builtins
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, FrameType, TracebackType
from typing import Any, NoReturn, Protocol
from weakref import WeakSet

from trainvitals.journal.layout import ENDINGS
from trainvitals.run.files import END_SECONDS
from trainvitals.run.harmless import harmless, told
from trainvitals.run.lookout import Lookout
from trainvitals.run.values import Refused

# What ends a process from outside: a scheduler, or a terminal that is closed.
_ENDERS = (signal.SIGTERM, signal.SIGHUP)
SIGNALS = (*_ENDERS, signal.SIGUSR1)
# What other tools call a run that did not do what it was to do.
_BAD = frozenset(("failed", "failure", "error", "aborted", "killed", "canceled", "cancelled"))


class Ending(Protocol):
    """What a run does when its process ends."""

    name: str

    def crash(self, error: BaseException) -> None: ...
    def note_signal(self, name: str, is_last: bool) -> None: ...
    def end_at_exit(self) -> None: ...
    def wait(self, deadline: float) -> None: ...
    def forget(self) -> None: ...


def verdict(error: BaseException) -> tuple[str, str]:
    """How a run ended that this exception ended, and what is said of it. A generator that is closed has given what was
    wanted of it."""
    if isinstance(error, GeneratorExit):
        return "finished", ""
    if isinstance(error, SystemExit):
        return ("finished", "") if _is_success(error.code) else ("crashed", told(error))
    return ("preempted" if isinstance(error, KeyboardInterrupt) else "crashed"), told(error)


def _is_success(code: object) -> bool:
    """As the interpreter takes it: whatever is no number is printed, and the exit status is 1."""
    return code is None or (isinstance(code, int) and code & 0xFF == 0)


log = logging.getLogger("trainvitals")
_lookout = Lookout()
# And the threads that they were started in.
_living: dict[Ending, threading.Thread] = {}
_waited_for: "WeakSet[Ending]" = WeakSet()
_excepthook: Callable[..., Any] | None = None
_thread_hook: Callable[..., Any] = threading.excepthook
_exit: Callable[..., NoReturn] = sys.exit
_exits: list[SystemExit] = []
_children: set[int] = set()


def said(status: object, error: object, failed: Callable[[BaseException], None]) -> tuple[str, str]:
    """How it ended in the run's own words, of which only three have a meaning to readers."""
    if status in ENDINGS:
        return str(status), str(error)
    failed(Refused(f"finish: status {str(status)[:50]!r} cannot be used: say {', '.join(ENDINGS)}"))
    is_bad = bool(error) or str(status).lower() in _BAD
    return ("crashed", str(error) or str(status)) if is_bad else ("finished", "")


def watch_over(run: Ending) -> None:
    global _excepthook, _thread_hook, _exit
    _living[run] = threading.current_thread()
    _waited_for.add(run)
    if _excepthook is None:
        _excepthook, sys.excepthook = sys.excepthook, _on_exception
        _thread_hook, threading.excepthook = threading.excepthook, _on_threads_exception
        _exit, sys.exit = sys.exit, _on_exit
    processes: Any = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None and os.getpid() not in _children:
        _children.add(os.getpid())
        sys.modules["multiprocessing.util"].Finalize(None, _at_childs_exit, exitpriority=0)
    # Some trainers' frameworks listen to SIGUSR1 only where nobody does yet, and set that up when they begin.
    listen(_ENDERS)


def let_go(run: Ending) -> None:
    _living.pop(run, None)


def latest() -> Any:
    return next(reversed(list(_living)), None)


def end_what_is_replaced(name: str) -> None:
    """In a notebook a cell that is run again starts its run again, and nobody ended the one before."""
    if _is_at_a_prompt():
        for other in [other for other in list(_living) if other.name == name]:
            other.end_at_exit()


def _is_at_a_prompt() -> bool:
    return hasattr(sys, "ps1") or hasattr(builtins, "get_ipython")


def listen(signals: tuple[signal.Signals, ...] = SIGNALS) -> None:
    """Before all who listen by now."""
    if threading.current_thread() is threading.main_thread():
        for number in signals:
            _chain(number)
        _post_lookout()


def _chain(number: signal.Signals) -> None:
    """What is ignored stays ignored, and what was set from C cannot be called from here."""
    handler = signal.getsignal(number)
    if isinstance(handler, _Listener) or handler in (signal.SIG_IGN, None):
        return
    if handler != signal.SIG_DFL or not _is_caught(number):
        signal.signal(number, _Listener(number, handler))


def _last_words(number: int) -> bool:
    listener = signal.getsignal(number)
    is_last = isinstance(listener, _Listener) and listener.before == signal.SIG_DFL
    if is_last:
        _tell(signal.Signals(number), True)
        _wait()
    return is_last and not _lookout.is_handled(number)


def _post_lookout() -> None:
    """Where a signal would have ended the process at once, it still does when the main thread cannot see to it."""
    try:
        _lookout.post(_ENDERS, _last_words)
    except (OSError, RuntimeError, ValueError) as error:
        log.debug("signals are handled by the main thread alone: %s", error)


def _is_caught(number: signal.Signals) -> bool:
    """By the kernel's word: of a handler that was set from C, as faulthandler's, Python knows nothing."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            caught = next(line for line in file if line.startswith("SigCgt"))
    except (OSError, StopIteration):
        return False
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


class _Listener:
    """A signal's handler. Whoever listened before hears of it after the runs; and where somebody took our place
    since, and calls us, it is theirs to say what the signal does."""

    def __init__(self, number: signal.Signals, before: Any) -> None:
        self._number, self.before = number, before

    def __call__(self, number: int, frame: FrameType | None) -> None:
        _lookout.handled(number)
        is_last = self.before == signal.SIG_DFL and signal.getsignal(number) is self
        _tell(self._number, is_last)
        if callable(self.before):
            _heard.add(number)
            try:
                self.before(number, frame)
            finally:
                _heard.discard(number)
        elif is_last:
            _wait()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


# Signals that the runs know of, while those who listened before are told.
_heard: set[int] = set()


def _tell(number: signal.Signals, is_last: bool) -> None:
    if number not in _heard:
        for run in list(_living):
            harmless(run.note_signal)(number.name, is_last)


def _on_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """At a prompt each mistake comes here too, and ends nothing."""
    for run in list(_living) if not _is_at_a_prompt() else ():
        harmless(run.crash)(error)
    (_excepthook or sys.__excepthook__)(kind, error, trace)


def _on_threads_exception(told: threading.ExceptHookArgs) -> None:
    """It ends what was started in that thread, though the process goes on."""
    for run, thread in list(_living.items()):
        if thread is told.thread and told.exc_value is not None:
            harmless(run.crash)(told.exc_value)
    _thread_hook(told)


class _Exit(SystemExit):
    """The interpreter lets go of what ended it when no frame is left; in a frame somebody caught it, and went on."""

    __module__ = "builtins"

    def __del__(self) -> None:
        if sys._getframe().f_back is not None:
            _exits.clear()

    def __reduce__(self) -> Any:
        return SystemExit, self.args


# As whoever looks at it knows it.
_Exit.__name__ = _Exit.__qualname__ = "SystemExit"


def _on_exit(status: Any = None, /) -> NoReturn:
    """At the interpreter's end nobody knows any more with which status it was asked for."""
    if threading.current_thread() is threading.main_thread():
        _exits[:] = [SystemExit(status)]
        if isinstance(_exit, BuiltinFunctionType):
            raise _Exit(*(() if status is None else (status,)))
    _exit(status)


def _at_childs_exit() -> None:
    """A process of multiprocessing ends without what others do at their end; what it fails of is being handled then."""
    error = sys.exc_info()[1]
    for run in list(_living):
        harmless(run.end_at_exit if error is None else partial(run.crash, error))()
    _wait()


def _at_exit() -> None:
    # Who took the hook's place since has let the interpreter note what it was about.
    noted = (getattr(sys, "last_exc", None), getattr(sys, "last_value", None), *_exits)
    uncaught = next((error for error in noted if isinstance(error, BaseException)), None)
    if uncaught is not None and not _is_at_a_prompt():
        for run in list(_living):
            harmless(run.crash)(uncaught)
    for run in list(_living):
        harmless(run.end_at_exit)()
    _wait()


def _wait() -> None:
    deadline = time.monotonic() + END_SECONDS
    for run in list(_waited_for):
        run.wait(deadline)


def _in_child() -> None:
    """A forked worker is not the run: it writes nothing, and signals do to it what they would have done."""
    _lookout.leave()
    for run in _living:
        run.forget()
    _living.clear()
    _waited_for.clear()
    _heard.clear()
    for number in SIGNALS:
        handler: Any = signal.getsignal(number)
        while isinstance(handler, _Listener):
            handler = handler.before
        if handler is not signal.getsignal(number):
            signal.signal(number, handler)


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
