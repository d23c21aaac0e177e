"""A signal to a process that sits in C code, as in a collective that hangs: Python's handlers wait until it is back.

Without a handler it would have died at once. So a thread is told of each signal by the interpreter's wake-up
descriptor; where the main thread does not come to its handler soon, the thread says the run's last words and lets the
signal do what it would have done.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection

from trainvitals.run.flag import Flag

GRACE_SECONDS = 0.5
# What keeps the main thread in C for long; these bring threads of their own, so that ours is none too many.
_COMPUTES_IN_C = ("torch", "tensorflow", "jax")


class Lookout:
    def __init__(self) -> None:
        self._ends: tuple[int, int] | None = None
        self._flags: dict[int, Flag] = {}

    def handled(self, number: int) -> None:
        """By the main thread, which has come to the signal's handler."""
        if number in self._flags:
            self._flags[number].set()

    def is_handled(self, number: int) -> bool:
        return self._flags[number].is_set()

    def post(self, numbers: Collection[int], last_words: Callable[[int], bool]) -> None:
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
        self._flags = {number: Flag() for number in numbers}
        threading.Thread(target=self._watch, args=(last_words,), name="trainvitals-lookout", daemon=True).start()

    def leave(self, *, _keep_wakeup: bool = False) -> None:
        """In a forked child, whose signals are its own."""
        if self._ends is None:
            return
        ends, self._ends = self._ends, None
        if not _keep_wakeup and (left := signal.set_wakeup_fd(-1)) not in (-1, ends[1]):
            signal.set_wakeup_fd(left)
        for end in ends:
            os.close(end)

    def _watch(self, last_words: Callable[[int], bool]) -> None:
        assert self._ends is not None
        reads = self._ends[0]
        while told := os.read(reads, 1):
            flag = self._flags.get(told[0])
            if flag is None:
                continue
            if not flag.wait(GRACE_SECONDS) and last_words(told[0]):
                _die_of(told[0])
            flag.clear()


def _die_of(number: int) -> None:
    """Python sets handlers in the main thread alone."""
    import ctypes

    ctypes.CDLL(None).signal(number, 0)
    os.kill(os.getpid(), number)
