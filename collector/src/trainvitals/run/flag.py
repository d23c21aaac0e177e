"""An event that a signal's handler may set and wait for amid any use of it: `threading.Event` would wait for itself."""

import time
from queue import Empty, SimpleQueue

LOOK_SECONDS = 0.001


class Flag:
    """For short waits: who waits looks again and again."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        # Counted, for a clock may be made to stand still.
        for _ in range(max(0, int(seconds / LOOK_SECONDS))):
            if self._is_set:
                break
            time.sleep(LOOK_SECONDS)
        return self._is_set


class Bell:
    """For a thread that waits long: each ring ends one wait, at once."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        self._rings.put(None)

    def wait(self, seconds: float | None = None) -> None:
        try:
            self._rings.get(timeout=seconds)
        except Empty:
            return
        while not self._rings.empty():
            self._rings.get()
