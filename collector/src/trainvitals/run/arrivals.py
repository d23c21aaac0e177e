"""What a GPU had still to compute when it was logged or timed: written once it is there, and never waited for.

{"timestamp": …, "step": 12, "loss": 2.3}     a line of its own, after the one of the log
"""

import threading
import time
from collections.abc import Callable, Mapping

from trainvitals.journal.record import encode, timestamp
from trainvitals.run.timing import Timer
from trainvitals.run.values import Failed, Later

Write = Callable[[bytes], bool]
SOON_SECONDS, LAST_SECONDS, PAUSE_SECONDS = 0.02, 1.5, 0.001


def line_of(number: int, values: Mapping[str, float]) -> bytes:
    return encode({"timestamp": timestamp(), "step": number, **values})


class Arrivals:
    def __init__(self, values: Later, timer: Timer, failed: Failed) -> None:
        self._values, self._timer, self._failed = values, timer, failed

    def __bool__(self) -> bool:
        """Whether something is on its way."""
        return bool(self._values.waiting or self._timer.later)

    def write(self, write: Write) -> list[tuple[int, Mapping[str, float]]]:
        """What came, with its step."""
        came: list[tuple[int, Mapping[str, float]]] = [*self._values.ready(self._failed), *self._timer.arrived()]
        for number, values in came:
            write(line_of(number, values))
        return came

    def write_last(self, write: Write, then: Callable[[], None]) -> None:
        """Where the GPU is far behind, by a thread: the training goes on with what it does."""
        if self._come_within(SOON_SECONDS, write):
            then()
            return

        def late() -> None:
            self._come_within(LAST_SECONDS, write)
            then()

        try:
            threading.Thread(target=late, name="trainvitals-end", daemon=True).start()
        except RuntimeError:  # no more threads
            then()

    def _come_within(self, seconds: float, write: Write) -> bool:
        """Counted, too: a clock that a test holds still comes to no deadline."""
        deadline = time.monotonic() + seconds
        left = round(seconds / PAUSE_SECONDS)
        self.write(write)
        while self and left and time.monotonic() < deadline:
            left -= 1
            time.sleep(PAUSE_SECONDS)
            self.write(write)
        return not self
