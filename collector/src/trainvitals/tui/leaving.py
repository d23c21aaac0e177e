"""However it ends, the terminal is as it was: by a key, a signal, a mistake of ours, a terminal that is gone.

terminal = Terminal(); terminal.watch(end); try: …; finally: terminal.restore()

Textual puts the terminal back by itself while its event loop and its writer run. Where one of them waits for a
terminal that takes nothing any more, nobody waits for them longer than three seconds.
"""

import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

PATIENCE_SECONDS = 3.0
# Whole lines, no bracketed paste, no reports, the shell's screen, a cursor.
_BACK = b"\x1b[?7h\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[0m"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def is_terminal() -> bool:
    """Keys are read from standard input, the screen is drawn on standard error."""
    both = (sys.__stdin__, sys.__stderr__)
    return all(one is not None and one.isatty() for one in both) and os.environ.get("TERM") != "dumb"


def knows_braille(environ: Mapping[str, str] = os.environ, was_coerced: bool = bool(sys.flags.utf8_mode)) -> bool:
    """As the user's locale says. Where it says nothing, Python makes up one with UTF-8 for itself."""
    if environ.get("TERM") == "linux":  # the kernel's own console: its fonts have few letters
        return False
    category = environ.get("LC_CTYPE", "")
    told = "" if was_coerced and category == "C.UTF-8" else category
    locale = environ.get("LC_ALL") or told or environ.get("LANG") or "C"
    return "utf8" in locale.lower().replace("-", "")


class Terminal:
    def __init__(self) -> None:
        self._before = termios.tcgetattr(0)
        self._end: Callable[[], object] = lambda: None
        self._is_ending = False

    def watch(self, end: Callable[[], object]) -> None:
        """`end` is called, once, from a signal's handler."""
        self._end = end
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)

    def leave(self) -> None:
        """From now on the end is not waited for longer than a moment."""
        if not self._is_ending:
            self._is_ending = True
            timer = threading.Timer(PATIENCE_SECONDS, self._force)
            timer.daemon = True
            timer.start()

    def is_gone(self) -> bool:
        try:
            termios.tcgetattr(0)
        except termios.error:
            return True
        return False

    def restore(self) -> None:
        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, self._before)

    def _on_signal(self, *_: object) -> None:
        if not self._is_ending:
            self.leave()
            self._end()

    def _force(self) -> None:
        self.restore()
        with suppress(OSError):
            os.set_blocking(2, False)
            os.write(2, _BACK)
        os._exit(1)
