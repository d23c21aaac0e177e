"""How a command that runs until it is told to stop is told: by a signal, or by the end of the process it belongs to.

end_on_signals(); try: …; except KeyboardInterrupt: …    # SIGTERM and SIGHUP too, as Ctrl-C does
at_end_of_input(lambda: os._exit(0))
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

PARENT_SECONDS = 1.0


class Ended(KeyboardInterrupt):
    """Python remembers a plain one that comes while text is executed (a dataclass), and dies of it at exit."""


def end_on_signals() -> None:
    signal.signal(signal.SIGTERM, _interrupt)
    # Who starts it with nohup wants it to stay.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _interrupt)


def end_with(parent: int) -> None:
    """However that process ends: a trainer's agent is not left behind by a kill."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def at_end_of_input(end: Callable[[], object]) -> None:
    """Whoever started this process holds the other end of its input, and lets go of it however they end."""
    threading.Thread(target=_read_out, args=(end,), daemon=True).start()


def _read_out(end: Callable[[], object]) -> None:
    with suppress(OSError, ValueError):
        while sys.stdin.buffer.read(4096):
            pass
    end()


def _interrupt(*_: object) -> None:
    raise Ended
