"""How a command that runs until it is told to stop is told: by a signal, or by the end of the process it belongs to.

end_on_signals(); try: …; except KeyboardInterrupt: …    # SIGTERM and SIGHUP too, as Ctrl-C does
"""

import os
import signal
import time

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


def _interrupt(*_: object) -> None:
    raise Ended
