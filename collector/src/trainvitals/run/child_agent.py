"""An agent for as long as the run lasts, where none listens for its journal: `tv.start(..., agent=True)`."""

import fcntl
import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from trainvitals import starting
from trainvitals.journal import layout

PORT = 8080
LOCK, MOST_ADDRESS = ".agent", 300
_ADDRESS = re.compile(rb"https?://[A-Za-z0-9.:\[\]-]+")


class ChildAgent:
    """One for all runs of this process that have the same journal."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._users = 1
        threading.Thread(target=self._pass_on, name="trainvitals-agent", daemon=True).start()

    def join(self) -> bool:
        self._users += self.is_running
        return self.is_running

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def remove(self) -> None:
        """It ends by itself, too, when this process is gone."""
        self._users -= 1
        if self._users == 0 and self.is_running:
            with suppress(PermissionError):  # this process is another user by now
                self._process.terminate()

    def _pass_on(self) -> None:
        """Its address, and what opens the page. Not all that it says: who prints from a thread while the interpreter
        ends may kill it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.lstrip().startswith(("page", "link")) and sys.stderr is not None and not sys.is_finalizing():
                with suppress(OSError, ValueError):
                    print(f"trainvitals: {line.strip()}", file=sys.stderr)
        self._process.wait()


_started: dict[tuple[Path, tuple[str, ...]], ChildAgent] = {}


def start(root: Path, *flags: str) -> ChildAgent | None:
    """`flags` are those of `trainvitals serve`. None where somebody listens."""
    known = _started.get((root, flags))
    if known is not None and known.join():
        return known
    if is_listened_to(root):
        return None
    _started[root, flags] = agent = ChildAgent(_spawn(root, flags))
    return agent


def _spawn(root: Path, flags: tuple[str, ...]) -> "subprocess.Popen[str]":
    words = starting.words("trainvitals.cli", "serve", "--with-parent", str(os.getpid()),
                           "--dir", str(root), "--port", str(_free_port()), *flags)  # fmt: skip
    # Not a child of the training job to its launcher: a session of its own, and no rank's variables.
    environ = {key: value for key, value in os.environ.items() if key != "TRAINVITALS_RUN_ID"}
    # In a program that was started without stderr its number is that of any file.
    errors = None if sys.__stderr__ is not None else subprocess.DEVNULL
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                            env=environ, start_new_session=True)  # fmt: skip


def is_listened_to(root: Path, host: str = "") -> bool:
    """Whether this host's agent holds its lock on the journal."""
    try:
        fd = os.open(layout.gpu_folder(root, host or layout.host_name()) / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def address(root: Path, host: str = "") -> str:
    """Of the page of the agent that holds the lock; empty where it has none, or does not say so."""
    path = layout.gpu_folder(root, host or layout.host_name()) / LOCK
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = _ADDRESS.fullmatch(os.pread(fd, MOST_ADDRESS, 0))
        finally:
            os.close(fd)
        return found[0].decode() if found else ""
    return ""


def _free_port() -> int:
    """The usual one, else any."""
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
    return PORT
