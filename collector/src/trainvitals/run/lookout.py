"""SIGTERM to a process that sits in C code, as in a collective that hangs: Python's handlers wait until it is back.

Without a handler it would have died at once. So a thread is told of each signal by the interpreter's wake-up
descriptor; where the main thread does not come to its handler soon, the thread says the run's last words and lets the
signal do what it would have done.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable

from trainvitals.run.flag import Flag

GRACE_SECONDS = 0.5
# What keeps the main thread in C for long; these bring threads of their own, so that ours is none too many.
_COMPUTES_IN_C = ("torch", "tensorflow", "jax")


class Lookout:
    def __init__(self) -> None:
        self._ends: tuple[int, int] | None = None
        self.is_handled = Flag()

    def post(self, number: signal.Signals, last_words: Callable[[], bool]) -> None:
        """By the main thread. `last_words` says whether the signal is to end the process. Where somebody else has the
        wake-up descriptor, or there is none left to have, it is as with any handler."""
        if self._ends is not None or not any(name in sys.modules for name in _COMPUTES_IN_C):
            return
        reads, writes = os.pipe()
        os.set_blocking(writes, False)
        before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
        self._ends = reads, writes
        if before != -1:
            signal.set_wakeup_fd(before)
            self.leave(_keep_wakeup=True)
            return
        threading.Thread(target=self._watch, args=(number, last_words), name="trainvitals-lookout", daemon=True).start()

    def leave(self, *, _keep_wakeup: bool = False) -> None:
        """In a forked child, whose signals are its own."""
        if self._ends is None:
            return
        ends, self._ends = self._ends, None
        if not _keep_wakeup and (left := signal.set_wakeup_fd(-1)) not in (-1, ends[1]):
            signal.set_wakeup_fd(left)
        for end in ends:
            os.close(end)

    def _watch(self, number: signal.Signals, last_words: Callable[[], bool]) -> None:
        assert self._ends is not None
        reads = self._ends[0]
        while told := os.read(reads, 1):
            if told[0] == number and not self.is_handled.wait(GRACE_SECONDS) and last_words():
                _die_of(number)


def _die_of(number: signal.Signals) -> None:
    """Python sets handlers in the main thread alone."""
    import ctypes

    ctypes.CDLL(None).signal(int(number), 0)
    os.kill(os.getpid(), number)
