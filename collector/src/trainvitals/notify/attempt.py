"""One thing at a time that somebody else may keep hanging: Attempt("slack").run(send, 20)

It runs in a thread that is left alone when the time is over. As long as that hangs no other is begun.
"""

import threading
from collections.abc import Callable

from trainvitals.notify.channel import Unsent


class Attempt:
    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None

    def run(self, act: Callable[[], object], seconds: float) -> None:
        """Raises what `act` raises, Unsent where it does not come to an end."""
        if self._thread is not None and self._thread.is_alive():
            raise Unsent("has not come back from the attempt before")
        errors: list[BaseException] = []
        self._thread = threading.Thread(target=_catching, args=(act, errors), name=f"send-{self._name}"[:15],
                                        daemon=True)  # fmt: skip
        self._thread.start()
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise Unsent(f"did not answer within {seconds:g} s")
        if errors:
            raise errors[0]


def _catching(act: Callable[[], object], errors: list[BaseException]) -> None:
    try:
        act()
    except BaseException as error:
        errors.append(error)
