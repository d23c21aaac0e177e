"""However the dashboard ends, the terminal is as it was: on a terminal of the kernel's own, read by the test."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.collector.support import command_line, wait_for
from trainvitals.errors import install_words

# Off and on again: the other screen, the cursor, pasting, whole lines.
PAIRS = ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h"), (b"\x1b[?2004h", b"\x1b[?2004l"),
         (b"\x1b[?7l", b"\x1b[?7h"))  # fmt: skip


class Terminal:
    """A dashboard on a terminal of 80 by 24; `shown` is all that it wrote."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.slave, self.before = slave, termios.tcgetattr(slave)
        # setsid makes it the terminal of a session of its own, as a shell's is.
        self.process = subprocess.Popen(["setsid", "--ctty", *command], stdin=slave, stdout=slave, stderr=slave,
                                        env={**os.environ, "TERM": "xterm-256color", **env})  # fmt: skip
        self.shown = b""
        self._reads = threading.Event()
        self._reads.set()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while self._reads.wait() and (part := os.read(self.master, 65536)):
                self.shown += part

    def stall(self) -> None:
        """As a connection that takes nothing more."""
        self._reads.clear()

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def ends(self, seconds: float = 8.0) -> int:
        return self.process.wait(timeout=seconds)

    def is_as_it_was(self) -> bool:
        """What was switched is switched back, and it takes lines as before."""
        wait_for(lambda: all(self.shown.rfind(back) > self.shown.rfind(away) >= 0 for away, back in PAIRS))
        return termios.tcgetattr(self.slave) == self.before


@contextmanager
def terminal(folder: Path, *words: str, **env: str) -> Iterator[Terminal]:
    command = command_line("top", "--dir", str(folder), "--simulate", "2", *words)
    one = Terminal(command, {"LC_ALL": "C.UTF-8", **env})
    try:
        wait_for(lambda: b"utilisation" in one.shown)
        yield one
    finally:
        one.process.kill()
        one.process.wait()
        for number in (one.master, one.slave):
            with suppress(OSError):
                os.close(number)


@pytest.mark.parametrize("keys", [b"q", b"/q\x03"])
def test_a_key_ends_it(tmp_path: Path, keys: bytes) -> None:
    with terminal(tmp_path) as one:
        for key in keys:
            one.type(bytes([key]))
            time.sleep(0.05)  # else Esc and what follows would be one key
        assert one.ends() == 0
        assert one.is_as_it_was()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(tmp_path: Path, number: int) -> None:
    with terminal(tmp_path) as one:
        one.process.send_signal(number)
        assert one.ends() == 0
        assert one.is_as_it_was()


def test_a_terminal_that_takes_nothing_keeps_nobody(tmp_path: Path) -> None:
    with terminal(tmp_path, "--interval", "0.1") as one:
        one.stall()
        # So much that the kernel's buffer and Textual's own are full.
        for _ in range(400):
            fcntl.ioctl(one.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24 + _ % 2, 80, 0, 0))
            one.process.send_signal(signal.SIGWINCH)
            time.sleep(0.005)
        one.process.send_signal(signal.SIGTERM)
        assert one.ends() in (0, 1)
        assert termios.tcgetattr(one.slave) == one.before


def test_a_terminal_that_is_gone_leaves_nobody_behind(tmp_path: Path) -> None:
    """As when a connection breaks; though the shell was told to ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminal(tmp_path) as one:
            os.close(one.slave)
            os.close(one.master)
            one.ends()
    finally:
        signal.signal(signal.SIGHUP, before)


@contextmanager
def program(folder: Path, before: str, *words: str) -> Iterator[Terminal]:
    """A dashboard in a process that is prepared for it."""
    text = f"import sys\n{before}\nfrom trainvitals import cli\nsys.exit(cli.main())"
    command = [sys.executable, "-c", text, "top", "--dir", str(folder), "--simulate", "2", *words]
    one = Terminal(command, {"LC_ALL": "C.UTF-8"})
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()


BROKEN = """
from trainvitals.tui import screen
def broken(view, cells, height, draw=screen.draw):
    if view.filter: raise RuntimeError("a mistake")
    return draw(view, cells, height)
screen.draw = broken
"""


def test_a_mistake_of_our_own_is_told_without_what_variables_hold(tmp_path: Path) -> None:
    with program(tmp_path, BROKEN, "--token", "hush-hush-hush-hush") as one:
        wait_for(lambda: b"utilisation" in one.shown)
        one.type(b"/x")
        assert one.ends() == 1
        assert one.is_as_it_was()
        assert b"RuntimeError: a mistake" in one.shown and b"hush" not in one.shown


def test_what_it_needs_is_asked_for_when_it_is_missing(tmp_path: Path) -> None:
    with program(tmp_path, "sys.modules['textual'] = None") as one:
        assert one.ends() == 2
        wait_for(lambda: b"\n" in one.shown)
        assert one.shown.decode().strip() == f"trainvitals: textual is missing: {install_words('tui')}"


def test_by_itself_it_needs_nothing_of_the_page(tmp_path: Path) -> None:
    absent = "starlette", "uvicorn", "yaml", "bcrypt"
    with program(tmp_path, f"sys.modules.update(dict.fromkeys({absent}))") as one:
        wait_for(lambda: b"utilisation" in one.shown)
        one.type(b"q")
        assert one.ends() == 0


def test_without_a_terminal_it_says_what_else_there_is(tmp_path: Path) -> None:
    done = subprocess.run(command_line("top", "--dir", str(tmp_path)), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=20, check=False)  # fmt: skip
    assert done.returncode == 2
    assert re.fullmatch(r"trainvitals: top draws on a terminal.*`trainvitals once`.*\n", done.stderr)


def test_all_that_is_written_is_ascii_where_the_locale_knows_no_more(tmp_path: Path) -> None:
    with terminal(tmp_path, LC_ALL="", LANG="de_DE.ISO-8859-1", LC_CTYPE="") as one:
        one.type(b"?")
        wait_for(lambda: b"any key goes back" in one.shown)
        one.type(b"xq")
        assert one.ends() == 0
    assert one.shown.isascii()
